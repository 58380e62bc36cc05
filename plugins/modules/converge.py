#!/usr/bin/python
# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: converge
author: the gpufleet maintainers (@gpufleet)
short_description: Bring a node to its desired state in one call
version_added: 0.1.0
description:
  - Reads the node once, plans every subsystem that is asked for, applies the plans, and reports what changed in each.
  - An action plugin of the same name validates the variables on the controller, renders templates, and loops over this module,
    installing packages and rebooting in between where a plan needs it and the variables allow it.
  - The roles of this collection call it. Call it yourself in the fused form, one task for all subsystems, as C(playbooks/fleet.yml) does.
options:
  subsystems:
    description: The subsystems to converge, in any order. They run in the order of the program.
    type: list
    elements: str
    required: true
  config:
    description:
      - The variables of the subsystems. Roles pass theirs one by one.
      - Without it (the fused form) the variables are taken from the host's variables by their names,
        and the list of subsystems is narrowed by C(--tags) and C(--skip-tags).
    type: dict
  failure_directory:
    description: Where, on the controller, a failed run leaves the facts and the state document for a replay of its plan.
    type: path
    default: ~/.ansible/gpufleet/failures
  state:
    description: The state document. Set by the action plugin.
    type: dict
  secrets:
    description: Secret variables, by subsystem. Set by the action plugin.
    type: dict
attributes:
  check_mode:
    description: Can run in check mode and predict what would be changed. The prediction covers package installs and all that follows them.
    support: full
  diff_mode:
    description: Shows what is changed, with secrets left out.
    support: full
notes:
  - Needs root on the node (C(become)), Python 3.10 or newer and nothing else.
"""

EXAMPLES = r"""
- name: Converge all subsystems with the host's variables
  gpufleet.vmss.converge:
    subsystems: [node_program, alias_network, traffic_accounting]

- name: Converge one subsystem as its role does
  gpufleet.vmss.converge:
    subsystems: [traffic_accounting]
    config:
      traffic_accounting_name: research
  notify: gpufleet traffic_accounting changed
"""

RETURN = r"""
subsystems:
  description: For each subsystem whether and what it changed, or would change, and what is to be said besides.
  returned: always
  type: dict
  sample:
    traffic_accounting:
      changed: true
      changes: ["file /etc/systemd/system/gpufleet-accounting.service: create"]
      notes: []
restarts:
  description: Units that were restarted, or would be.
  returned: when there are any
  type: list
  elements: str
needs:
  description: What a plan still needs from outside. C(packages) to be installed, and the reasons for a C(reboot).
  returned: when there is anything
  type: dict
  sample: {"reboot": ["options of the loaded module nvidia changed (/etc/modprobe.d/gpufleet-custom-nvidia.conf)"]}
"""

from ansible.module_utils.basic import AnsibleModule

# cli is not called here: Ansible sends to a node what is imported, and the program installs itself there with its command line.
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import (  # pylint: disable=unused-import
    cli,  # noqa: F401
    converge,
    document,
)
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.system import System


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "subsystems": {"type": "list", "elements": "str", "required": True},
            "config": {"type": "dict"},
            "failure_directory": {"type": "path", "default": "~/.ansible/gpufleet/failures"},
            "state": {"type": "dict"},
            "secrets": {"type": "dict", "no_log": True},
        },
        supports_check_mode=True,
    )
    if module.params["state"] is None:
        module.fail_json(msg="the state document is missing; call gpufleet.vmss.converge as a task, so that its action plugin can make it")
    try:
        state = document.with_secrets(module.params["state"], module.params["secrets"] or {})
        result = converge.converge(state, System("/"), check=module.check_mode)
    except converge.Failed as error:
        module.fail_json(msg=str(error), done=list(error.done), facts=error.facts.to_document() if error.facts else None)
    except NodeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
