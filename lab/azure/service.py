# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of a lab's Azure over one fleet, ready to be served."""

from __future__ import annotations

import dataclasses
import pathlib
import ssl

from aiohttp import web

from ..current import Current
from ..fleet import Fleet
from . import arm
from .certificates import signer, write_authority
from .faults import Faults
from .imds import Imds
from .login import Principal
from .run_command import RunScript
from .scheduled_events import Events
from .tokens import Tokens
from .wireserver import Wireserver


@dataclasses.dataclass(frozen=True, kw_only=True)
class Service:
    """The applications, and what clients need: ``environment`` holds secrets and belongs into a private file."""

    arm: web.Application
    imds: web.Application
    wireserver: web.Application
    ssl_context: ssl.SSLContext
    principal: Principal
    tokens: Tokens
    faults: Faults
    events: Events
    environment: dict[str, str]

    @classmethod
    def create(
        cls,
        current: Current,
        *,
        base_url: str,
        directory: pathlib.Path,
        ssh_config: pathlib.Path | None = None,
        run_script: RunScript | None = None,
        throttled: bool = True,
    ) -> Service:
        """Not ``throttled``, it answers as often as it is asked, for measuring clients that ask more than Azure allows.

        ``directory`` gets the certificate authority (``ca.pem``) and the server's key."""
        fleet = current.fleet
        principal = Principal(tenant=fleet.description.tenant)
        tokens = Tokens()
        active = Faults()
        ssl_context = write_authority(directory)
        manager = arm.Arm(
            current,
            tokens,
            base_url=base_url,
            authority=directory / "ca.pem",
            active=active,
            throttles=arm.throttles() if throttled else None,
            run_script=run_script,
        )
        metadata = Imds(current, tokens, active=active, attest=signer(directory))
        return cls(
            arm=manager.application(principal),
            imds=metadata.application(),
            wireserver=Wireserver(current).application(),
            faults=active,
            events=metadata.events,
            ssl_context=ssl_context,
            principal=principal,
            tokens=tokens,
            environment=environment(fleet, principal, base_url, directory / "ca.pem", ssh_config),
        )


def environment(
    fleet: Fleet, principal: Principal, base_url: str, authority: pathlib.Path, ssh_config: pathlib.Path | None
) -> dict[str, str]:
    """The variables by which azure-identity and the inventory reach this Azure and no other."""
    return {
        "AZURE_TENANT_ID": principal.tenant,
        "AZURE_CLIENT_ID": principal.client_id,
        "AZURE_CLIENT_SECRET": principal.secret,
        "AZURE_SUBSCRIPTION_ID": fleet.description.subscription,
        "AZURE_AUTHORITY_HOST": base_url,
        "GPUFLEET_ARM_ENDPOINT": base_url,
        "GPUFLEET_CA_FILE": str(authority),
        "GPUFLEET_AZURE_AUTH": "environment",
        **({"GPUFLEET_SSH_CONFIG": str(ssh_config)} if ssh_config else {}),
    }
