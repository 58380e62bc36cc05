# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What everything here raises for what a user can put right, or can wait for."""

from __future__ import annotations


class AzureError(Exception):
    """One message: what went wrong, where, and what to do. Never holds a secret."""


class UnavailableError(AzureError):
    """Azure cannot be asked, or gives no answer, though the question was right: it may answer later."""


class IncompleteError(AzureError):
    """Azure answered in part: what there is must not be taken for the whole."""


class ArmError(AzureError):
    """An answer of ARM that is not 2xx; ``code`` is Azure's own word for it, "" where it gave none."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def may_pass(self) -> bool:
        """Whether the same question may be answered later."""
        return self.status in (408, 429) or self.status >= 500
