# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How a module logs in, and to which Azure. As azure_login, but modules describe environment variables in words."""

    DOCUMENTATION = r"""
requirements:
  - azure-identity
  - azure-mgmt-core
options:
  auth:
    description:
      - How to log in, by default what E(GPUFLEET_AZURE_AUTH) says.
      - V(environment) is a service principal with a secret or a certificate, from the options below or their variables.
      - V(workload) is a federated token in a file, V(managed) is the identity of the Azure machine this runs on, V(cli) is C(az login).
      - V(auto) tries those of them that are set up, in this order.
    type: str
    default: auto
    choices: [auto, environment, workload, managed, cli]
  tenant_id:
    description: The Entra tenant, by default E(AZURE_TENANT_ID).
    type: str
  client_id:
    description: The application, or the user-assigned managed identity, by default E(AZURE_CLIENT_ID).
    type: str
  client_secret:
    description: The application's secret, by default E(AZURE_CLIENT_SECRET). Take it from there or from a lookup.
    type: str
  certificate_path:
    description: A PEM or PKCS12 file with the application's certificate and private key, by default E(AZURE_CLIENT_CERTIFICATE_PATH).
    type: str
  certificate_password:
    description: The password of O(certificate_path), by default E(AZURE_CLIENT_CERTIFICATE_PASSWORD).
    type: str
  federated_token_file:
    description: The file with the token of a workload identity, by default E(AZURE_FEDERATED_TOKEN_FILE).
    type: str
  cloud:
    description: Which public cloud, by default what E(GPUFLEET_AZURE_CLOUD) says.
    type: str
    default: AzureCloud
    choices: [AzureCloud, AzureChinaCloud, AzureUSGovernment]
  arm_endpoint:
    description:
      - The address of a private Azure Resource Manager, in place of that of O(cloud), by default E(GPUFLEET_ARM_ENDPOINT).
      - Without O(authority) it is asked where to log in.
    type: str
  authority:
    description: The address of the login service, in place of that of O(cloud), by default E(AZURE_AUTHORITY_HOST).
    type: str
  audience:
    description: What tokens are asked for, by default E(GPUFLEET_ARM_AUDIENCE), else what the cloud says, or O(arm_endpoint).
    type: str
  ca_file:
    description:
      - A PEM file of certificate authorities to trust in place of the built-in ones, by default E(GPUFLEET_CA_FILE), else
        E(REQUESTS_CA_BUNDLE).
    type: str
"""
