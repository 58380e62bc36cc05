# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CNI plugin's pure parts, and the one file that is installed of it; its calls are tested in tests/integration/cni."""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import (
    call,
    gpufleet_alias,
    installed_file,
    launcher,
    plain_json,
    rtnetlink,
)
from hypothesis import given
from hypothesis import strategies as st

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(DATA)
def test_plain_json_is_that_of_the_library(value: object) -> None:
    assert plain_json.dumps(value) == json.dumps(value)
    assert plain_json.loads(json.dumps(value, indent=2) + "\n") == value


@pytest.mark.parametrize("text", ["", " ", "{", "{} {}", "nothing", '{"a": }', "[1,]"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|char|Expecting|Illegal|property"):
        plain_json.loads(text)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_host_name_fits_and_tells_containers_apart(container: str, other: str) -> None:
    name = call.host_name(container, "eth0")
    assert len(name) <= 15 and name.isalnum()
    assert name == call.host_name(container, "eth0")
    assert name != call.host_name(container, "eth1")
    if other != container:
        assert name != call.host_name(other, "eth0")


@given(st.dictionaries(st.integers(min_value=1, max_value=0x3FFF), st.binary(max_size=40), max_size=5))
def test_netlink_attributes_are_read_as_written(values: dict[int, bytes]) -> None:
    written = b"".join(rtnetlink.attribute(kind, value) for kind, value in values.items())
    assert len(written) % 4 == 0
    assert rtnetlink.attributes(written) == values


def test_the_installed_file_stands_alone(tmp_path: pathlib.Path) -> None:
    text = installed_file.text().replace(launcher.CACHE, str(tmp_path / "cache"))
    assert text.startswith("#!/usr/bin/python3 -IS\n")
    outer = ast.parse(text)
    inner = next(
        statement.value.value
        for statement in outer.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) and "\n" in str(statement.value.value)
    )
    assert "'''" not in inner
    imported = {
        (name.name if isinstance(statement, ast.Import) else statement.module or "").partition(".")[0]
        for statement in (*ast.walk(outer), *ast.walk(ast.parse(inner)))
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for name in statement.names
    }
    assert imported <= {"__future__", "typing", *sys.stdlib_module_names}
    plugin = tmp_path / "gpufleet-alias"
    plugin.write_text(text, encoding="utf-8")

    def versions() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-IS", str(plugin)],
            env={"CNI_COMMAND": "VERSION"},
            input="",
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        found: list[str] = json.loads(done.stdout)["supportedVersions"]
        return found

    assert versions() == list(gpufleet_alias.VERSIONS)
    # What is compiled is kept; anything else in its place does no harm.
    (kept,) = (tmp_path / "cache").iterdir()
    compiled = kept.read_bytes()
    for content in (compiled, b"", compiled[:100], b"nothing"):
        kept.write_bytes(content)
        assert versions() == list(gpufleet_alias.VERSIONS)
        assert kept.read_bytes() == compiled


def test_an_ipam_answer_of_another_shape_is_an_error() -> None:
    for ips in ([], [{"address": "10.0.0.4/24"}] * 2, [{"address": "2001:db8::1/64"}], [{}]):
        with pytest.raises(gpufleet_alias.CniError, match="one IPv4 address"):
            gpufleet_alias.pod_address({"ips": ips})
