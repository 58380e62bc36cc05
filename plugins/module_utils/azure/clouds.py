# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Azure: where ARM is, who signs its tokens, and which certificates to trust."""

from __future__ import annotations

import dataclasses
import json
import typing as t
import urllib.parse

from ansible.module_utils.urls import open_url

from .errors import AzureError, UnavailableError

# The api-version that every cloud since 2019 answers with a list of clouds; newer ones answer one object.
METADATA_VERSION = "2019-05-01"
METADATA_SECONDS = 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cloud:
    """``audience`` is what tokens are asked for (the scope without "/.default").

    ``ca_file`` replaces the built-in certificate authorities. ``instance_discovery`` is whether the login
    library may ask Microsoft whether ``authority`` is a real one: off for private clouds, which cannot reach it.
    """

    arm_endpoint: str
    audience: str
    authority: str
    ca_file: str | None = None
    instance_discovery: bool = True

    @property
    def scope(self) -> str:
        return f"{self.audience}/.default"


# Endpoints: learn.microsoft.com, "Azure national clouds" and "Azure Government: compare with global Azure".
PUBLIC_CLOUDS: t.Mapping[str, Cloud] = {
    "AzureCloud": Cloud(
        arm_endpoint="https://management.azure.com",
        audience="https://management.azure.com",
        authority="https://login.microsoftonline.com",
    ),
    "AzureChinaCloud": Cloud(
        arm_endpoint="https://management.chinacloudapi.cn",
        audience="https://management.chinacloudapi.cn",
        authority="https://login.chinacloudapi.cn",
    ),
    "AzureUSGovernment": Cloud(
        arm_endpoint="https://management.usgovcloudapi.net",
        audience="https://management.core.usgovcloudapi.net",
        authority="https://login.microsoftonline.us",
    ),
}


def choose(
    name: str, *, arm_endpoint: str | None = None, authority: str | None = None, audience: str | None = None, ca_file: str | None = None
) -> Cloud:
    """The cloud that the options name. A private ``arm_endpoint`` without ``authority`` is asked for it.

    Raises AzureError for a name that is not known, an address that is not https, and UnavailableError for an endpoint that does not answer.
    """
    if name not in PUBLIC_CLOUDS:
        raise AzureError(f"cloud {name!r} is not known; choose one of {', '.join(PUBLIC_CLOUDS)}, or give arm_endpoint for a private one")
    cloud = PUBLIC_CLOUDS[name]
    if arm_endpoint is not None:
        endpoint = _https("arm_endpoint", arm_endpoint)
        wanted_authority, wanted_audience = (authority, endpoint) if authority else _discover(endpoint, ca_file)
        cloud = Cloud(arm_endpoint=endpoint, audience=wanted_audience, authority=wanted_authority)
    trusted = _https("authority", authority or cloud.authority)
    return dataclasses.replace(
        cloud,
        authority=trusted,
        audience=(audience or cloud.audience).rstrip("/"),
        ca_file=ca_file,
        instance_discovery=any(trusted == known.authority for known in PUBLIC_CLOUDS.values()),
    )


def _https(option: str, value: str) -> str:
    address = value.rstrip("/")
    parts = urllib.parse.urlsplit(address if "://" in address else f"https://{address}")
    if parts.scheme != "https" or not parts.hostname:
        raise AzureError(f"{option} {value!r} is not an https address; tokens are never sent unencrypted: write https://HOST[:PORT]")
    return parts.geturl()


def _discover(endpoint: str, ca_file: str | None) -> tuple[str, str]:
    """Ask a private ARM which authority and audience it wants."""
    url = f"{endpoint}/metadata/endpoints?api-version={METADATA_VERSION}"
    try:
        with open_url(url, timeout=METADATA_SECONDS, ca_path=ca_file) as answer:
            document = json.load(answer)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UnavailableError(
            f"arm_endpoint {endpoint} does not say where to log in ({reason}; asked {url}); "
            "check that it runs, that ca_file is its certificate authority, or give authority yourself"
        ) from error
    entry = document[0] if isinstance(document, list) and document else document
    login = entry.get("authentication") if isinstance(entry, dict) else None
    if not isinstance(login, dict) or not login.get("loginEndpoint"):
        raise AzureError(f"arm_endpoint {endpoint}: {url} has no authentication.loginEndpoint; give authority yourself")
    audiences = [str(item) for item in login.get("audiences") or []]
    return str(login["loginEndpoint"]).rstrip("/"), (audiences or [endpoint])[0].rstrip("/")
