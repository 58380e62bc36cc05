# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes to ARM: begun, guarded by the etag of what was read, and followed to the end of their long-running operation.

The SDK follows: by Azure-AsyncOperation, Location or the resource's own state, as often as Retry-After says.
"""

from __future__ import annotations

import time
import typing as t

from .client import Client, parse, same_server
from .credentials import missing_library
from .documents import Document
from .errors import ArmError, AzureError, UnavailableError

# Between two questions about an operation where ARM says no Retry-After; the SDK's own default is 30.
POLL_SECONDS = 10
FOLLOWED = ("Azure-AsyncOperation", "Location")


class Operation:
    """A write that ARM has taken. ``what`` says to people what it does."""

    def __init__(self, client: Client, answer: t.Any, what: str) -> None:
        """``answer`` is the SDK's response to the write."""
        try:
            from azure.core.polling import LROPoller
            from azure.mgmt.core.polling.arm_polling import ARMPolling
        except ImportError as error:
            raise AzureError(missing_library("azure-mgmt-core", error)) from error
        headers = answer.http_response.headers
        self._what = what
        self._place = next((headers[name] for name in FOLLOWED if headers.get(name)), "")
        for name in FOLLOWED:
            # The token goes with every question.
            if headers.get(name) and not same_server(headers[name], client.endpoint):
                raise AzureError(f"{what}: ARM names another server for its operation ({name}); only {client.endpoint} is asked")
        # It waits in a thread of its own, which does not keep Python from ending.
        self._poller: t.Any = LROPoller(client.pipeline, answer, _document, ARMPolling(timeout=POLL_SECONDS))

    def result(self, deadline: float) -> Document:
        """Wait for the end, until ``time.monotonic()`` is ``deadline``; the resource as ARM then has it, {} where it says none.

        Raises ArmError for an operation that failed, with Azure's own code, and UnavailableError for one that goes on.
        """
        from azure.core.exceptions import AzureError as SdkError
        from azure.core.exceptions import HttpResponseError

        try:
            self._poller.wait(max(0.0, deadline - time.monotonic()))
            if not self._poller.done():
                raise UnavailableError(
                    f"{self._what}: its operation has not ended in time and goes on in Azure ({self._place}); "
                    "raise timeout, or look there and run again"
                )
            return t.cast("Document", self._poller.result())
        except HttpResponseError as error:
            raise self._failed(error) from error
        except SdkError as error:
            raise UnavailableError(f"{self._what}: how its operation ends cannot be read ({error}); run again") from error

    def _failed(self, error: t.Any) -> ArmError:
        """Azure's body is that of an operation, {"status": "Failed", "error": {...}}, or of a refusal, {"error": {...}}."""
        body = parse(error.response.content) if error.response is not None else None
        said = body.get("error") if isinstance(body, dict) else None
        code = str(said.get("code") or "") if isinstance(said, dict) else ""
        text = str(said.get("message") or "") if isinstance(said, dict) else str(error)
        reason = " ".join(filter(None, (code, text.strip().partition("\n")[0]))).rstrip(".")
        status = error.response.status_code if error.response is not None else 0
        return ArmError(f"{self._what} failed in Azure: {reason}; put that right and run again", status=status, code=code)


def begin(client: Client, method: str, path: str, *, api_version: str, body: Document, what: str, etag: str | None = None) -> Operation:
    """Send a write. With ``etag`` ARM refuses it if the resource is no longer as it was read.

    Raises AzureError, ArmError with status 412 for that.
    """
    headers = {"If-Match": etag} if etag else {}
    return Operation(client, client.send(method, path, api_version=api_version, body=body, headers=headers), what)


def _document(answer: t.Any) -> Document:
    found = parse(answer.http_response.content)
    return found if isinstance(found, dict) else {}
