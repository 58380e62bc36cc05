# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only input and output of the node program: files, commands and HTTP, under a root prefix, with time limits."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import subprocess
import time
import typing as t
import urllib.error
import urllib.request

from .facts.model import File, Sysctl, fits
from .spec import NodeError

# A healthy iptables-save of 10,000 rules takes 0.1 s and a package query 0.05 s; what needs longer than this hangs.
COMMAND_LIMIT_SECONDS = 30.0
LOCK_LIMIT_SECONDS = 120.0
LOCK = "/run/gpufleet/lock"
# Larger files are no configuration: only their digest is read.
TEXT_LIMIT_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Completed:
    """How a command ended. ``returncode`` is 127 when it does not exist and 124 when its time ran out."""

    returncode: int
    stdout: str
    stderr: str


class System:
    """A node, reached through ``root``. Tests give a directory, and a ``run`` of their own."""

    def __init__(self, root: str = "/") -> None:
        self.root = pathlib.Path(root)

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    # Reading

    def file(self, path: str, *, digest: bool = False) -> File | None:
        """What stands at ``path``, or None. Links are not followed. With ``digest`` the content is not kept."""
        place = self.path(path)
        try:
            status = place.lstat()
            if place.is_symlink():
                return File(kind="link", mode=0o777, link=str(place.readlink()))
            mode = status.st_mode & 0o7777
            if place.is_dir():
                return File(kind="directory", mode=mode)
            content = place.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise NodeError(f"{path} cannot be read ({error.strerror}); run as root, or repair the file system") from error
        with contextlib.suppress(UnicodeDecodeError):
            if len(content) <= TEXT_LIMIT_BYTES and not digest:
                return File(mode=mode, text=content.decode("utf-8"))
        return File(mode=mode, sha256="sha256:" + hashlib.sha256(content).hexdigest())

    def text(self, path: str) -> str | None:
        """The text of a small kernel or configuration file, links followed; None when it is absent or unreadable."""
        try:
            return self.path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted entries of a directory; empty when it is absent."""
        try:
            return tuple(sorted(os.listdir(self.path(path))))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def matches(self, pattern: str) -> tuple[str, ...]:
        """The sorted paths of what a pattern of ``Reads.contents`` means, folders left out."""
        folders = {""}
        *parts, last = pattern.strip("/").split("/")
        for part in parts:
            folders = {
                f"{folder}/{name}"
                for folder in folders
                for name in (self.names(folder or "/") if "*" in part else (part,))
                if fits(name, part)
            }
        found = [f"{folder}/{name}" for folder in folders for name in self.names(folder) if fits(name, last)]
        return tuple(sorted(path for path in found if self.path(path).is_file()))

    def sysctl(self, key: str, *, container: bool) -> Sysctl | None:
        """The running value of a kernel parameter; None when the kernel, or this network namespace, has no such key."""
        place = self.path(sysctl_path(key))
        try:
            value = place.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return None
        return Sysctl(value=value, settable=os.access(place, os.W_OK) and (key.startswith("net.") or not container))

    def run(self, argv: t.Sequence[str], *, stdin: str = "", limit: float = COMMAND_LIMIT_SECONDS) -> Completed:
        """Run one command with a time limit and an untranslated, short environment."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        try:
            # Argument lists only, never a shell. At boot there is no AnsibleModule whose run_command could be taken.
            done = subprocess.run(  # pylint: disable=ansible-bad-function
                list(argv), input=stdin, capture_output=True, text=True, errors="replace", timeout=limit, check=False, env=environment
            )
        except FileNotFoundError:
            return Completed(returncode=127, stdout="", stderr=f"{argv[0]}: not found")
        except subprocess.TimeoutExpired:
            return Completed(returncode=124, stdout="", stderr=f"{argv[0]}: no end within {limit:g} seconds")
        return Completed(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def http_get(self, url: str, headers: t.Mapping[str, str], *, limit: float) -> bytes:
        """One GET without proxies, as IMDS wants it. Raises NodeError when there is no 200 within ``limit`` seconds."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + limit
        while True:
            try:
                with opener.open(urllib.request.Request(url, headers=dict(headers)), timeout=limit) as answer:  # noqa: S310 - http only
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                # IMDS allows five requests a second and says 429 above that.
                if error.code != 429 or time.monotonic() + 1 > deadline:
                    raise NodeError(f"{url} answered {error.code}") from error
                time.sleep(0.5)
            except OSError as error:
                raise NodeError(f"{url} did not answer within {limit:g} seconds ({getattr(error, 'reason', error)})") from error

    # Writing

    def write(self, path: str, content: bytes, *, mode: int) -> None:
        """Replace a file in one step, so that a kill leaves the old or the new one, whole."""
        place = self.path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        # One writer at a time (the lock), so the name is always the same: what a kill leaves here, the next run takes over.
        temporary = place.with_name(f".{place.name}.gpufleet")
        temporary.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            os.replace(temporary, place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def directory(self, path: str, *, mode: int) -> None:
        place = self.path(path)
        if place.is_symlink() or place.is_file():
            place.unlink()
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(mode)

    def link(self, path: str, target: str) -> None:
        place = self.path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.gpufleet")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        os.replace(temporary, place)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            self.path(path).unlink()

    def set_sysctl(self, key: str, value: str) -> None:
        self.path(sysctl_path(key)).write_text(value, encoding="ascii")

    def write_json(self, path: str, document: t.Any) -> None:
        self.write(path, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode(), mode=0o600)

    def read_json(self, path: str) -> t.Any:
        """The document at ``path``, or None when it is absent. Raises NodeError when it is no JSON."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError as error:
            raise NodeError(f"{path} is not valid JSON ({error}); remove it and converge the node again") from error

    @contextlib.contextmanager
    def locked(self) -> t.Iterator[None]:
        """Hold the node's lock; a second converge waits for the first, with a limit. Folders made meanwhile are open to readers."""
        try:
            self.directory(os.path.dirname(LOCK), mode=0o755)
            file = open(self.path(LOCK), "w", encoding="ascii")  # noqa: SIM115 - closed below
        except OSError as error:
            raise NodeError(f"{LOCK} cannot be opened ({error.strerror}); run as root") from error
        mask = os.umask(0o022)
        with file, contextlib.ExitStack() as undo:
            undo.callback(os.umask, mask)
            deadline = time.monotonic() + LOCK_LIMIT_SECONDS
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() > deadline:
                        raise NodeError(
                            f"{LOCK} has been held for {LOCK_LIMIT_SECONDS:g} seconds: another converge of this node is under way; "
                            f"find it with `fuser {LOCK}`, wait for it or end it, and run again"
                        ) from error
                    time.sleep(0.1)
            yield


def sysctl_path(key: str) -> str:
    """net.ipv4.conf.eth0.rp_filter -> /proc/sys/net/ipv4/conf/eth0/rp_filter; a slash stands for a dot in a name."""
    return "/proc/sys/" + "/".join(part.replace("/", ".") for part in key.split("."))
