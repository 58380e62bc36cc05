# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the inventory azure.azcollection.azure_rm is pointed at the lab, for the test and for the benchmark beside it."""

from __future__ import annotations

import typing as t

CONFIGURATION = """
plugin: azure.azcollection.azure_rm
include_vm_resource_groups: ["*"]
include_vmss_resource_groups: ["*"]
auth_source: env
plain_host_names: true
hostnames: [computer_name]
default_host_filters: []
"""


def variables(environment: t.Mapping[str, str]) -> dict[str, str]:
    """What azure_rm and our own inventory want of the environment. ``environment`` is that of a served Azure."""
    url, authority_file = environment["GPUFLEET_ARM_ENDPOINT"], environment["GPUFLEET_CA_FILE"]
    return {
        **environment,
        "AZURE_TENANT": environment["AZURE_TENANT_ID"],
        "AZURE_SECRET": environment["AZURE_CLIENT_SECRET"],
        "AZURE_CLOUD_ENVIRONMENT": f"{url}/",
        "AZURE_DISABLE_INSTANCE_DISCOVERY": "true",
        "ARM_CLOUD_METADATA_URL": f"{url}/metadata/endpoints?api-version=2019-05-01",
        "REQUESTS_CA_BUNDLE": authority_file,
        "SSL_CERT_FILE": authority_file,
    }


def plain(value: t.Any) -> t.Any:
    """Without the marks that ansible-inventory puts around text from outside."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
