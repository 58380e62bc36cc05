# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hard property tests try: Hypothesis's own default at each change, ``thorough`` for ``make test-slow``."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
