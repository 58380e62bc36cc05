# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an operation is followed to. How it ends is tested with the module, against the lab."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import operations
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError


class Client:
    endpoint = "https://arm.example"

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers
        self.sent: list[dict[str, t.Any]] = []

    def send(self, method: str, path: str, **given: t.Any) -> t.Any:
        self.sent.append({"method": method, "path": path, **given})
        return types.SimpleNamespace(http_response=types.SimpleNamespace(headers=self._headers))


@pytest.mark.parametrize("name", ["Azure-AsyncOperation", "Location"])
@pytest.mark.parametrize("place", ["https://evil.example/operations/1", "http://arm.example/operations/1", "https://arm.example.evil/1"])
def test_the_token_goes_to_no_other_server(name: str, place: str) -> None:
    with pytest.raises(AzureError, match=f"another server for its operation \\({name}\\); only https://arm.example is asked"):
        operations.begin(Client({name: place}), "PUT", "/x", api_version="1", body={}, what="writing x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("etag", "expected"), [('"1"', {"If-Match": '"1"'}), ("", {}), (None, {})])
def test_an_etag_guards_where_there_is_one(etag: str | None, expected: dict[str, str]) -> None:
    client = Client({"Location": "https://evil.example/1"})
    with pytest.raises(AzureError):
        operations.begin(client, "PUT", "/x", api_version="1", body={"a": 1}, what="writing x", etag=etag)  # type: ignore[arg-type]
    assert client.sent == [{"method": "PUT", "path": "/x", "api_version": "1", "body": {"a": 1}, "headers": expected}]
