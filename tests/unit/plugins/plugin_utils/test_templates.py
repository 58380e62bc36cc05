# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates of subsystems, and those of a user in their place."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import registry, spec
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.plugin_utils import templates

UNIT = "gpufleet-accounting.service"


def own(**paths: str) -> dict[str, t.Any]:
    return {"traffic_accounting_name": "openai", "traffic_accounting_templates": paths}


@pytest.mark.parametrize("subsystem", registry.SUBSYSTEMS, ids=lambda item: item.name)
def test_every_template_renders_from_the_defaults(subsystem: t.Any) -> None:
    given = {parameter.name: "example" for parameter in subsystem.parameters if parameter.required}
    texts = templates.render(subsystem.name, spec.validate(subsystem.parameters, given, where=subsystem.name))
    assert set(texts) == {name.removesuffix(".j2") for name in subsystem.templates}
    assert all(text.endswith("\n") for text in texts.values())


def test_a_user_s_template_takes_the_place_of_one_and_sees_the_role_s_variables(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_text("{% if traffic_accounting_name %}\nname={{ traffic_accounting_name }}\n{% endif %}\n", encoding="utf-8")
    assert templates.render("traffic_accounting", own(**{UNIT: str(path)})) == {UNIT: "name=openai\n"}


def test_a_home_is_expanded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.j2").write_text("text\n", encoding="utf-8")
    assert templates.render("traffic_accounting", own(**{UNIT: "~/mine.j2"})) == {UNIT: "text\n"}


def test_a_template_that_the_role_does_not_have_is_named_with_the_nearest() -> None:
    with pytest.raises(
        NodeError, match=r"traffic_accounting_templates names gpufleet-acounting\.service, .*did you mean gpufleet-accounting\.service\?"
    ):
        templates.render("traffic_accounting", own(**{"gpufleet-acounting.service": "/tmp/x"}))


@pytest.mark.parametrize("what", ["absent", "folder"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: pathlib.Path, what: str) -> None:
    path = tmp_path / what
    if what == "folder":
        path.mkdir()
    with pytest.raises(NodeError, match=f"template {path} cannot be read .*; give a path on the controller"):
        templates.render("traffic_accounting", own(**{UNIT: str(path)}))


def test_a_file_that_is_no_text_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(NodeError, match=f"template {path} is no UTF-8 text"):
        templates.render("traffic_accounting", own(**{UNIT: str(path)}))


@pytest.mark.parametrize(
    ("text", "said"), [("{{ alias_network_mtu }}", "'alias_network_mtu' is undefined"), ("{% if %}", "Expected an expression")]
)
def test_an_error_in_a_template_names_the_file_and_what_it_may_use(tmp_path: pathlib.Path, text: str, said: str) -> None:
    path = tmp_path / "mine.j2"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NodeError) as caught:
        templates.render("traffic_accounting", own(**{UNIT: str(path)}))
    assert str(caught.value).startswith(f"template {path}: {said}") and str(caught.value).endswith("may use the variables of its own role")


def test_a_template_that_breaks_off_while_it_runs_is_an_error_too(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_text("{{ traffic_accounting_name + 1 }}", encoding="utf-8")
    with pytest.raises(NodeError, match=f"template {path}: "):
        templates.render("traffic_accounting", own(**{UNIT: str(path)}))
