# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One question about a fleet: who asks which Azure for what. Two questions with one digest have the same answer."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import typing as t

from . import clouds, fleet, graph
from .account import Account
from .client import Client
from .credentials import Login
from .listing import PARALLEL, Listing
from .scope import Scope

# An answer that an older shape of the records made is not read: raise this with every change of fleet.Instance.
VERSION = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Access:
    """Some subscriptions, who logs in for them, and in which cloud; the last five as in ``clouds.choose``."""

    subscription_ids: tuple[str, ...]
    login: Login
    cloud: str
    arm_endpoint: str | None = None
    authority: str | None = None
    audience: str | None = None
    ca_file: str | None = None

    def open(self, *, parallel: int) -> Client:
        """Log in. Raises AzureError."""
        cloud = clouds.choose(
            self.cloud, arm_endpoint=self.arm_endpoint, authority=self.authority, audience=self.audience, ca_file=self.ca_file
        )
        return Client(login=self.login, cloud=cloud, parallel=parallel)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Query:
    """``source`` is "arm" or "graph". ``parallel`` is how many calls may be under way at once; it changes nothing about the answer."""

    accesses: tuple[Access, ...]
    scope: Scope
    source: t.Literal["arm", "graph"] = "arm"
    keep_documents: bool = False
    parallel: int = dataclasses.field(default=PARALLEL, repr=False)

    @property
    def digest(self) -> str:
        """Everything that changes the answer, in short. Secrets are in no ``repr``, and so not in this."""
        return hashlib.sha256(f"{VERSION} {self!r}".encode()).hexdigest()[:16]

    def redact(self, text: str) -> str:
        """``text`` without any of the secrets."""
        for access in self.accesses:
            text = access.login.redact(text)
        return text

    def ask(self) -> tuple[fleet.Instance, ...]:
        """Every instance in scope, sorted by resource id. Raises AzureError, with UnavailableError and IncompleteError for what may pass."""
        with contextlib.ExitStack() as stack:
            accounts = [
                Account(reader=stack.enter_context(access.open(parallel=self.parallel)), subscription_ids=access.subscription_ids)
                for access in self.accesses
            ]
            if self.source == "graph":
                return graph.read(accounts, self.scope)
            return Listing(accounts, self.scope, parallel=self.parallel, keep_documents=self.keep_documents).read()
