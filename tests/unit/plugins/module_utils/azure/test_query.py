# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two questions with one digest have one answer: everything that changes the answer is in it, and nothing secret."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.credentials import Login
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.query import Access, Query
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.scope import Scope

LOGIN = Login(tenant_id="t", client_id="c", client_secret="first", certificate_password="first")
ACCESS = Access(subscription_ids=("s",), login=LOGIN, cloud="AzureCloud")
QUERY = Query(accesses=(ACCESS,), scope=Scope(resource_groups=("g",), tags={"cluster": "a"}))


def of_scope(**changed: t.Any) -> Query:
    return dataclasses.replace(QUERY, scope=dataclasses.replace(QUERY.scope, **changed))


def of_access(**changed: t.Any) -> Query:
    return dataclasses.replace(QUERY, accesses=(dataclasses.replace(ACCESS, **changed),))


def of_login(**changed: t.Any) -> Query:
    return of_access(login=dataclasses.replace(LOGIN, **changed))


@pytest.mark.parametrize(
    "other",
    [
        of_scope(resource_groups=()),
        of_scope(scale_sets=("g",)),
        of_scope(exclude_resource_groups=("g",)),
        of_scope(exclude_scale_sets=("g",)),
        of_scope(tags={"cluster": "b"}),
        of_access(subscription_ids=("s", "t")),
        of_access(cloud="AzureChinaCloud"),
        of_access(arm_endpoint="https://arm.invalid"),
        of_access(authority="https://login.invalid"),
        of_access(audience="https://audience.invalid"),
        of_access(ca_file="/ca.pem"),
        of_login(source="cli"),
        of_login(tenant_id="u"),
        of_login(client_id="d"),
        of_login(certificate_path="/client.pem"),
        of_login(federated_token_file="/token"),
        dataclasses.replace(QUERY, accesses=(ACCESS, dataclasses.replace(ACCESS, subscription_ids=("t",)))),
        dataclasses.replace(QUERY, keep_documents=True),
    ],
)
def test_what_changes_the_answer_changes_the_digest(other: Query) -> None:
    assert other.digest != QUERY.digest


@pytest.mark.parametrize(
    "same",
    [
        dataclasses.replace(QUERY, parallel=3),
        of_login(client_secret="second"),
        of_login(certificate_password="second"),
    ],
)
def test_what_does_not_does_not(same: Query) -> None:
    assert same.digest == QUERY.digest
