# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module logs in: the inventory's options of the same names, described in the documentation fragment azure_module_login."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.basic import env_fallback

from .clouds import PUBLIC_CLOUDS
from .credentials import Login
from .query import Access


def _text(*variables: str, no_log: bool = False) -> dict[str, t.Any]:
    return {"type": "str", "no_log": no_log, "fallback": (env_fallback, list(variables))}


ARGUMENTS: t.Mapping[str, t.Any] = {
    "auth": {
        "type": "str",
        "default": "auto",
        "choices": ["auto", "environment", "workload", "managed", "cli"],
        "fallback": (env_fallback, ["GPUFLEET_AZURE_AUTH"]),
    },
    "tenant_id": _text("AZURE_TENANT_ID"),
    "client_id": _text("AZURE_CLIENT_ID"),
    "client_secret": _text("AZURE_CLIENT_SECRET", no_log=True),
    "certificate_path": _text("AZURE_CLIENT_CERTIFICATE_PATH"),
    "certificate_password": _text("AZURE_CLIENT_CERTIFICATE_PASSWORD", no_log=True),
    "federated_token_file": _text("AZURE_FEDERATED_TOKEN_FILE"),
    "cloud": {
        "type": "str",
        "default": "AzureCloud",
        "choices": list(PUBLIC_CLOUDS),
        "fallback": (env_fallback, ["GPUFLEET_AZURE_CLOUD"]),
    },
    "arm_endpoint": _text("GPUFLEET_ARM_ENDPOINT"),
    "authority": _text("AZURE_AUTHORITY_HOST"),
    "audience": _text("GPUFLEET_ARM_AUDIENCE"),
    "ca_file": _text("GPUFLEET_CA_FILE", "REQUESTS_CA_BUNDLE"),
}


def access(parameters: t.Mapping[str, t.Any], subscription_ids: t.Sequence[str]) -> Access:
    """Who logs in for the subscriptions, from a module's parameters."""
    fields = [field.name for field in dataclasses.fields(Login) if field.name != "source"]
    return Access(
        subscription_ids=tuple(subscription_ids),
        login=Login(source=parameters["auth"], **{name: parameters[name] for name in fields}),
        **{name: parameters[name] for name in ("cloud", "arm_endpoint", "authority", "audience", "ca_file")},
    )
