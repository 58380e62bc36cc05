# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in Azure's shape: ``{"error": {"code": ..., "message": ...}}``."""

from __future__ import annotations

import json
import typing as t

from aiohttp import web


class ArmError(Exception):
    """An answer that is no success. ``code`` and ``message`` are Azure's."""

    def __init__(self, status: int, code: str, message: str, *, headers: t.Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        body = {"error": {"code": self.code, "message": str(self)}}
        return web.Response(status=self.status, text=json.dumps(body), content_type="application/json", headers=self.headers)


def resource_not_found(kind: str, name: str, group: str) -> ArmError:
    return ArmError(
        404,
        "ResourceNotFound",
        f"The Resource '{kind}/{name}' under resource group '{group}' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def parent_not_found(kind: str, name: str) -> ArmError:
    return ArmError(
        404,
        "ParentResourceNotFound",
        f"Failed to perform 'read' on resource(s) of type '{kind}', because the parent resource '{name}' could not be found.",
    )


def group_not_found(name: str) -> ArmError:
    return ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def subscription_not_found(name: str) -> ArmError:
    return ArmError(404, "SubscriptionNotFound", f"The subscription '{name}' could not be found.")


def instance_not_found(instance_id: str) -> ArmError:
    return ArmError(404, "NotFound", f"The entity was not found in this Azure location. Instance '{instance_id}' does not exist.")


def bad_parameter(name: str, message: str) -> ArmError:
    return ArmError(400, "InvalidParameter", f"The value of parameter {name} is invalid. {message}")


def precondition_failed(wanted: str, etag: str) -> ArmError:
    return ArmError(412, "PreconditionFailed", f"The condition '{wanted}' is not met: the etag of the resource is '{etag}'.")
