# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How a plugin logs in, and to which Azure."""

    DOCUMENTATION = r"""
requirements:
  - azure-identity
  - azure-mgmt-core
options:
  auth:
    description:
      - How to log in.
      - V(environment) is a service principal with a secret or a certificate, from the options below or their variables.
      - V(workload) is a federated token in a file, V(managed) is the identity of the Azure machine this runs on, V(cli) is C(az login).
      - V(auto) tries those of them that are set up, in this order.
    type: str
    default: auto
    choices: [auto, environment, workload, managed, cli]
    env:
      - name: GPUFLEET_AZURE_AUTH
  tenant_id:
    description: The Entra tenant.
    type: str
    env:
      - name: AZURE_TENANT_ID
  client_id:
    description: The application, or the user-assigned managed identity.
    type: str
    env:
      - name: AZURE_CLIENT_ID
  client_secret:
    description: The application's secret. Keep it out of this file; take it from the environment, from O(env_file) or from a lookup.
    type: str
    env:
      - name: AZURE_CLIENT_SECRET
  certificate_path:
    description: A PEM or PKCS12 file with the application's certificate and private key.
    type: str
    env:
      - name: AZURE_CLIENT_CERTIFICATE_PATH
  certificate_password:
    description: The password of O(certificate_path). Keep it out of this file.
    type: str
    env:
      - name: AZURE_CLIENT_CERTIFICATE_PASSWORD
  federated_token_file:
    description: The file with the token of a workload identity.
    type: str
    env:
      - name: AZURE_FEDERATED_TOKEN_FILE
  cloud:
    description: Which public cloud.
    type: str
    default: AzureCloud
    choices: [AzureCloud, AzureChinaCloud, AzureUSGovernment]
    env:
      - name: GPUFLEET_AZURE_CLOUD
  arm_endpoint:
    description:
      - The address of a private Azure Resource Manager, in place of that of O(cloud).
      - Without O(authority) it is asked where to log in.
    type: str
    env:
      - name: GPUFLEET_ARM_ENDPOINT
  authority:
    description: The address of the login service, in place of that of O(cloud).
    type: str
    env:
      - name: AZURE_AUTHORITY_HOST
  audience:
    description: What tokens are asked for. By default what the cloud says, or O(arm_endpoint).
    type: str
    env:
      - name: GPUFLEET_ARM_AUDIENCE
  ca_file:
    description: A PEM file of certificate authorities to trust in place of the built-in ones.
    type: str
    env:
      - name: GPUFLEET_CA_FILE
      - name: REQUESTS_CA_BUNDLE
"""
