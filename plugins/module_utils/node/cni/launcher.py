# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI plugin ``gpufleet-alias`` of the collection gpufleet.vmss: its beginning; the program is the text below.

Compiling that text takes a fifth of an ADD (5 of 24 ms measured), so the result is kept until the next boot, for each Python that
this machine gets. Without that place, or with something else there, everything works as well.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types

CACHE = "/run/gpufleet/cache"
DIGEST = ""
SOURCE = ""


def program() -> types.CodeType:
    """The compiled text, kept or made now."""
    # What importlib.util calls MAGIC_NUMBER: it changes with the format of compiled code.
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    path = f"{CACHE}/gpufleet-alias-{DIGEST}-{magic.hex()}"
    try:
        with open(path, "rb") as file:
            # Nobody else's code is run.
            if os.fstat(file.fileno()).st_uid == os.geteuid():
                kept = marshal.loads(file.read())  # noqa: S302 - root's own file
                if isinstance(kept, type(program.__code__)):
                    return kept
    except (OSError, ValueError, EOFError, TypeError):
        pass
    made = compile(SOURCE, __file__, "exec")
    try:
        os.makedirs(CACHE, mode=0o755, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(marshal.dumps(made))
        os.replace(temporary, path)
    except OSError:  # it would only have been quicker
        pass
    return made


if __name__ == "__main__":
    exec(program())  # noqa: S102 pylint: disable=exec-used
