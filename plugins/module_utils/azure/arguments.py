# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module logs in: the arguments of the fragment azure_login.module, each from the task, else from env_file, else from the environment."""

from __future__ import annotations

import pathlib
import typing as t

from . import clouds, env_file
from .clouds import Cloud
from .credentials import Login
from .errors import AzureError

# The variables of each argument, the same as those of the inventory's options.
VARIABLES: t.Mapping[str, tuple[str, ...]] = {
    "subscription_id": ("AZURE_SUBSCRIPTION_ID",),
    "auth": ("GPUFLEET_AZURE_AUTH",),
    "tenant_id": ("AZURE_TENANT_ID",),
    "client_id": ("AZURE_CLIENT_ID",),
    "client_secret": ("AZURE_CLIENT_SECRET",),
    "certificate_path": ("AZURE_CLIENT_CERTIFICATE_PATH",),
    "certificate_password": ("AZURE_CLIENT_CERTIFICATE_PASSWORD",),
    "federated_token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
    "cloud": ("GPUFLEET_AZURE_CLOUD",),
    "arm_endpoint": ("GPUFLEET_ARM_ENDPOINT",),
    "authority": ("AZURE_AUTHORITY_HOST",),
    "audience": ("GPUFLEET_ARM_AUDIENCE",),
    "ca_file": ("GPUFLEET_CA_FILE", "REQUESTS_CA_BUNDLE"),
}
SECRETS = ("client_secret", "certificate_password")
DEFAULTS = {"auth": "auto", "cloud": "AzureCloud"}

# Without defaults: a variable of env_file counts where the task says nothing.
SPEC: t.Mapping[str, dict[str, t.Any]] = {
    **{name: {"type": "str"} for name in VARIABLES},
    "auth": {"type": "str", "choices": ["auto", "environment", "workload", "managed", "cli"]},
    "cloud": {"type": "str", "choices": ["AzureCloud", "AzureChinaCloud", "AzureUSGovernment"]},
    "client_secret": {"type": "str", "no_log": True},
    "certificate_password": {"type": "str", "no_log": True},
    # Ansible takes every name with "token" for a secret; this one is a path.
    "federated_token_file": {"type": "str", "no_log": False},
    "env_file": {"type": "path"},
}


def read(parameters: t.Mapping[str, t.Any], environment: t.Mapping[str, str]) -> dict[str, t.Any]:
    """The arguments of VARIABLES, whole; None for what is set nowhere. Raises AzureError for an env_file that cannot be read."""
    named = parameters.get("env_file")
    variables = env_file.read(env_file.find(named, beside=pathlib.Path.cwd())) if named else {}
    found: dict[str, t.Any] = {}
    for name, known in VARIABLES.items():
        places = (variables.get(variable) or environment.get(variable) for variable in known)
        found[name] = parameters.get(name) or next(filter(None, places), None) or DEFAULTS.get(name)
    if not found["subscription_id"]:
        raise AzureError("no subscription is named; set subscription_id, or AZURE_SUBSCRIPTION_ID in env_file or the environment")
    return found


def login(arguments: t.Mapping[str, t.Any]) -> Login:
    """Who logs in, of what ``read`` gave."""
    names = ("tenant_id", "client_id", *SECRETS, "certificate_path", "federated_token_file")
    return Login(source=arguments["auth"], **{name: arguments[name] for name in names})


def cloud(arguments: t.Mapping[str, t.Any]) -> Cloud:
    """The cloud, of what ``read`` gave. Raises AzureError as ``clouds.choose`` does."""
    return clouds.choose(arguments["cloud"], **{name: arguments[name] for name in ("arm_endpoint", "authority", "audience", "ca_file")})
