# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node program: reads a node once, plans every subsystem, applies, reports.

Standard library only, Python 3.10 and newer, relative imports only: the same files run inside
an Ansible module, as a zipapp on the node, and in tests.
"""
