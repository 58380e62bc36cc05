# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing of single files, also when the process ends in the middle."""

from __future__ import annotations

import os
import pathlib
import signal
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import File
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.system import TEXT_LIMIT_BYTES, System, sysctl_path


@pytest.fixture
def here(tmp_path: pathlib.Path) -> System:
    return System(str(tmp_path))


def _end_at_the_last_step(*arguments: t.Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    "write", [lambda here: here.write("/etc/a", b"new", mode=0o644), lambda here: here.link("/etc/a", "new")], ids=["file", "link"]
)
def test_a_killed_write_leaves_the_old_file_and_the_next_one_cleans_up(here: System, write: t.Callable[[System], None]) -> None:
    here.write("/etc/a", b"old", mode=0o600)
    child = os.fork()
    if not child:
        os.replace = _end_at_the_last_step  # type: ignore[assignment]
        write(here)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert here.file("/etc/a") == File(mode=0o600, text="old")
    assert len(here.names("/etc")) == 2, "the process was not killed in the middle"
    write(here)
    assert here.names("/etc") == ("a",)


def test_a_write_that_fails_leaves_nothing(here: System) -> None:
    here.path("/etc/a").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        here.write("/etc/a", b"x", mode=0o644)
    assert here.names("/etc") == ("a",)


@pytest.mark.parametrize(
    ("content", "digest", "text", "sha256"),
    [
        (b"a\n", False, "a\n", None),
        (b"a", True, None, "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        (b"\xff", False, None, "sha256:a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89"),
    ],
)
def test_files_are_read_as_text_or_by_digest(here: System, content: bytes, digest: bool, text: str | None, sha256: str | None) -> None:
    here.write("/f", content, mode=0o640)
    assert here.file("/f", digest=digest) == File(mode=0o640, text=text, sha256=sha256)


def test_a_large_file_is_known_by_its_digest(here: System) -> None:
    here.write("/f", b"a" * (TEXT_LIMIT_BYTES + 1), mode=0o644)
    found = here.file("/f")
    assert found is not None and found.text is None and str(found.sha256).startswith("sha256:")


def test_what_is_absent_is_none(here: System) -> None:
    here.write("/f", b"", mode=0o644)
    assert (here.file("/none"), here.file("/f/below"), here.names("/none"), here.text("/none"), here.read_json("/none")) == (
        None,
        None,
        (),
        None,
        None,
    )
    here.remove("/none")
    here.remove("/f/below")


def test_a_broken_document_of_ours_says_what_to_do(here: System) -> None:
    here.write("/run/x.json", b"{", mode=0o600)
    with pytest.raises(NodeError, match=r"/run/x.json is not valid JSON .*; remove it and converge the node again"):
        here.read_json("/run/x.json")


def test_a_command_that_is_absent_or_hangs(here: System) -> None:
    assert here.run(["no-such-command-anywhere"]).returncode == 127
    assert here.run(["sleep", "20"], limit=0.05).returncode == 124
    assert here.run(["cat"], stdin="x").stdout == "x"


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/100.rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_the_path_of_a_kernel_parameter(key: str, path: str) -> None:
    assert sysctl_path(key) == path
