# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The login service (Entra ID) as far as service principals need it, and the cloud's metadata."""

from __future__ import annotations

import dataclasses
import secrets
import uuid

from aiohttp import web

from . import assertions
from .tokens import LIFETIME_SECONDS, Tokens

# learn.microsoft.com, "Azure Stack Hub: metadata endpoints"; the same document that Azure's own cloud gives.
OTHER_SERVICES = (
    "activeDirectoryDataLake",
    "batch",
    "gallery",
    "graph",
    "graphAudience",
    "logAnalyticsResourceId",
    "media",
    "mediaResourceId",
    "microsoftGraphResourceId",
    "portal",
    "sqlManagement",
    "vmImageAliasDoc",
)
OTHER_SUFFIXES = (
    "acrLoginServer",
    "azureDataLakeAnalyticsCatalogAndJob",
    "azureDataLakeStoreFileSystem",
    "keyVaultDns",
    "mhsmDns",
    "mysqlServerEndpoint",
    "mariadbServerEndpoint",
    "postgresqlServerEndpoint",
    "sqlServerHostname",
    "storage",
    "storageSyncEndpointSuffix",
    "synapseAnalytics",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Principal:
    """The one application that may log in. ``expired_secret`` was right once, so that tests can meet its error.

    ``trusted`` are certificates and issuers by which it may log in without a secret.
    """

    tenant: str
    client_id: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    secret: str = dataclasses.field(default_factory=lambda: secrets.token_urlsafe(24))
    expired_secret: str = dataclasses.field(default_factory=lambda: secrets.token_urlsafe(24))
    trusted: list[assertions.Certificate | assertions.Federation] = dataclasses.field(default_factory=list)


class LoginError(Exception):
    """An error of the login service: AADSTS number, OAuth error, message."""

    def __init__(self, number: int, error: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.number = number
        self.error = error
        self.status = status

    def response(self) -> web.Response:
        trace, correlation = uuid.uuid4(), uuid.uuid4()
        description = f"AADSTS{self.number}: {self} Trace ID: {trace} Correlation ID: {correlation} Timestamp: 2026-01-01 00:00:00Z"
        body = {
            "error": self.error,
            "error_description": description,
            "error_codes": [self.number],
            "trace_id": str(trace),
            "correlation_id": str(correlation),
        }
        return web.json_response(body, status=self.status)


def routes(principal: Principal, tokens: Tokens, base_url: str) -> list[web.RouteDef]:
    """Routes of the login service and of the cloud's metadata, below ``base_url``."""

    async def configuration(request: web.Request) -> web.Response:
        tenant = request.match_info["tenant"]
        if tenant != principal.tenant:
            return _no_tenant(tenant).response()
        root = f"{base_url}/{tenant}"
        return web.json_response(
            {
                "token_endpoint": f"{root}/oauth2/v2.0/token",
                "authorization_endpoint": f"{root}/oauth2/v2.0/authorize",
                "device_authorization_endpoint": f"{root}/oauth2/v2.0/devicecode",
                "issuer": f"{root}/v2.0",
                "jwks_uri": f"{root}/discovery/v2.0/keys",
                "tenant_region_scope": None,
            }
        )

    async def token(request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        try:
            return web.json_response(_grant(principal, tokens, request.match_info["tenant"], form, base_url))
        except LoginError as error:
            return error.response()

    async def endpoints(request: web.Request) -> web.Response:
        entry = {
            "name": "gpufleet-lab",
            "resourceManager": f"{base_url}/",
            "authentication": {
                "loginEndpoint": f"{base_url}/",
                "audiences": [f"{base_url}/"],
                "tenant": principal.tenant,
                "identityProvider": "AAD",
            },
            # Services that the lab does not have; clients fail on a document that lacks their names.
            **dict.fromkeys(OTHER_SERVICES, f"{base_url}/"),
            "suffixes": dict.fromkeys(OTHER_SUFFIXES, "lab.invalid"),
        }
        # Older versions of the document are the cloud itself, newer ones a list of clouds.
        return web.json_response(entry if request.query.get("api-version", "") < "2019-05-01" else [entry])

    return [
        web.get("/{tenant}/v2.0/.well-known/openid-configuration", configuration),
        web.post("/{tenant}/oauth2/v2.0/token", token),
        web.get("/metadata/endpoints", endpoints),
    ]


def _grant(principal: Principal, tokens: Tokens, tenant: str, form: dict[str, str], base_url: str) -> dict[str, object]:
    if tenant != principal.tenant:
        raise _no_tenant(tenant)
    if form.get("grant_type") != "client_credentials":
        raise LoginError(70003, "unsupported_grant_type", f"The app requested an unsupported grant type '{form.get('grant_type', '')}'.")
    if form.get("client_id") != principal.client_id:
        raise LoginError(
            700016,
            "unauthorized_client",
            f"Application with identifier '{form.get('client_id', '')}' was not found in the directory '{tenant}'.",
        )
    _prove(principal, tenant, form, base_url)
    audience, default, _ = form.get("scope", "").partition("/.default")
    if not default or audience.rstrip("/") != base_url:
        raise LoginError(500011, "invalid_resource", f"The resource principal named {audience} was not found in the tenant.")
    granted = tokens.issue(audience, principal.client_id)
    return {"token_type": "Bearer", "expires_in": LIFETIME_SECONDS, "ext_expires_in": LIFETIME_SECONDS, "access_token": granted.value}


def _prove(principal: Principal, tenant: str, form: dict[str, str], base_url: str) -> None:
    """Raise LoginError unless this is the application: by its secret, or by an assertion."""
    if "client_assertion" in form:
        token_url = f"{base_url}/{tenant}/oauth2/v2.0/token"
        try:
            assertions.check(form, principal.trusted, client_id=principal.client_id, token_url=token_url)
        except assertions.AssertionRefusedError as error:
            raise LoginError(error.number, "invalid_client", str(error), status=401) from error
        return
    given = form.get("client_secret", "")
    if secrets.compare_digest(given.encode(), principal.expired_secret.encode()):
        raise LoginError(7000222, "invalid_client", "The provided client secret keys for app are expired.", status=401)
    if not secrets.compare_digest(given.encode(), principal.secret.encode()):
        raise LoginError(7000215, "invalid_client", "Invalid client secret provided.", status=401)


def _no_tenant(tenant: str) -> LoginError:
    return LoginError(
        90002,
        "invalid_request",
        f"Tenant '{tenant}' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud.",
    )
