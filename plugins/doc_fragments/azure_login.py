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

    # For modules, whose options have no "env": the same options, read by module_utils/azure/arguments.py.
    MODULE = r"""
requirements:
  - azure-identity
  - azure-mgmt-core
options:
  env_file:
    description:
      - A file of C(NAME=VALUE) lines whose variables are used in place of the environment variables of the same names.
      - An absolute path, or one relative to the folder in which the module runs or to a folder above it, up to the root of the project.
    type: path
  subscription_id:
    description: The subscription. By default E(AZURE_SUBSCRIPTION_ID).
    type: str
  auth:
    description:
      - How to log in. By default E(GPUFLEET_AZURE_AUTH), else V(auto).
      - V(environment) is a service principal with a secret or a certificate, from the options below or their variables.
      - V(workload) is a federated token in a file, V(managed) is the identity of the Azure machine this runs on, V(cli) is C(az login).
      - V(auto) tries those of them that are set up, in this order.
    type: str
    choices: [auto, environment, workload, managed, cli]
  tenant_id:
    description: The Entra tenant. By default E(AZURE_TENANT_ID).
    type: str
  client_id:
    description: The application, or the user-assigned managed identity. By default E(AZURE_CLIENT_ID).
    type: str
  client_secret:
    description: The application's secret. By default E(AZURE_CLIENT_SECRET).
    type: str
  certificate_path:
    description: A PEM or PKCS12 file with the application's certificate and private key. By default E(AZURE_CLIENT_CERTIFICATE_PATH).
    type: str
  certificate_password:
    description: The password of O(certificate_path). By default E(AZURE_CLIENT_CERTIFICATE_PASSWORD).
    type: str
  federated_token_file:
    description: The file with the token of a workload identity. By default E(AZURE_FEDERATED_TOKEN_FILE).
    type: str
  cloud:
    description: Which public cloud. By default E(GPUFLEET_AZURE_CLOUD), else V(AzureCloud).
    type: str
    choices: [AzureCloud, AzureChinaCloud, AzureUSGovernment]
  arm_endpoint:
    description:
      - The address of a private Azure Resource Manager, in place of that of O(cloud). By default E(GPUFLEET_ARM_ENDPOINT).
      - Without O(authority) it is asked where to log in.
    type: str
  authority:
    description: The address of the login service, in place of that of O(cloud). By default E(AZURE_AUTHORITY_HOST).
    type: str
  audience:
    description: What tokens are asked for. By default E(GPUFLEET_ARM_AUDIENCE), else what the cloud says, or O(arm_endpoint).
    type: str
  ca_file:
    description:
      - A PEM file of certificate authorities to trust in place of the built-in ones.
      - By default E(GPUFLEET_CA_FILE), else E(REQUESTS_CA_BUNDLE).
    type: str
"""
