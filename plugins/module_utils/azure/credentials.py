# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logging in with azure-identity: by one named way, or by the first of the usual ways that is set up here."""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
import typing as t

from .clouds import Cloud
from .errors import AzureError, UnavailableError

if t.TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

Source = t.Literal["auto", "environment", "workload", "managed", "cli"]

_AADSTS = re.compile(r"AADSTS(\d+)")
# learn.microsoft.com, "Microsoft Entra authentication and authorization error codes".
_ADVICE = {
    "7000222": "the client secret has expired: make a new one (`az ad app credential reset --id {client}`) and put it in AZURE_CLIENT_SECRET",
    "7000215": "the client secret is not the right one: put the secret's value (not its id) in AZURE_CLIENT_SECRET",
    "700016": "tenant {tenant} has no application {client}: correct client_id (AZURE_CLIENT_ID) or tenant_id (AZURE_TENANT_ID)",
    "90002": "there is no tenant {tenant}: correct tenant_id (AZURE_TENANT_ID)",
    "700027": "the certificate does not fit application {client}: upload it there, or correct certificate_path",
    "700024": "the federated token has expired: check that {token_file} is renewed",
    "53003": "a conditional access policy blocks this login: use an identity that it allows",
}
# What the text of a connection that could not be made holds, and what it means.
_CONNECTION_SIGNS = (
    ("Connection refused", "connection refused"),
    ("Name or service not known", "its name is not known"),
    ("Temporary failure in name resolution", "its name cannot be resolved"),
    ("No address associated", "its name has no address"),
    ("timed out", "no answer in time"),
    ("Network is unreachable", "network is unreachable"),
    ("No route to host", "no route to host"),
    ("invalid path", "ca_file cannot be read"),
)
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
# How MSAL says that the login service has no such tenant; the service's own AADSTS90002 is not in it.
_NO_AUTHORITY = "Unable to get authority configuration"
# As many as for ARM: the library's three take five seconds, for an address that is wrong as for one that is slow.
CONNECT_RETRIES = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Login:
    """Who logs in. What is None is not set; nothing here is looked up elsewhere."""

    source: Source = "auto"
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = dataclasses.field(default=None, repr=False)
    certificate_path: str | None = None
    certificate_password: str | None = dataclasses.field(default=None, repr=False)
    federated_token_file: str | None = None

    @property
    def has_principal(self) -> bool:
        """Whether a service principal is set whole."""
        return bool(self.tenant_id and self.client_id and (self.client_secret or self.certificate_path))

    def redact(self, text: str) -> str:
        """``text`` without any of the secrets."""
        for secret in (self.client_secret, self.certificate_password):
            if secret:
                text = text.replace(secret, "********")
        return text


def credential(login: Login, cloud: Cloud) -> TokenCredential:
    """An azure-identity credential; makes no request.

    Raises AzureError when azure-identity is absent and when the named way lacks one of its settings.
    """
    try:
        import azure.identity
    except ImportError as error:
        raise AzureError(missing_library("azure-identity", error)) from error
    # Without a handler Python prints the library's warnings to stderr, beside our one message.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    if login.source == "auto":
        return azure.identity.ChainedTokenCredential(*(_make(source, login, cloud) for source in usable(login)))
    return _make(login.source, login, cloud)


def usable(login: Login) -> tuple[Source, ...]:
    """The ways that ``auto`` tries, in order. The last two can only be found out by trying."""
    principal: tuple[Source, ...] = ("environment",) if login.has_principal else ()
    workload: tuple[Source, ...] = ("workload",) if login.federated_token_file and login.tenant_id and login.client_id else ()
    return (*principal, *workload, "managed", "cli")


def token(taken: TokenCredential, login: Login, cloud: Cloud) -> None:
    """Log in once before anything is asked of ARM, so that a failed login is said as one.

    Raises AzureError, and UnavailableError where the login service does not answer.
    """
    from azure.core.exceptions import AzureError as SdkError

    try:
        taken.get_token(cloud.scope)
    except SdkError as error:
        raise explain(error, login, cloud) from error
    except ValueError as error:  # how azure-identity and MSAL refuse a malformed tenant or authority
        raise AzureError(
            login.redact(f"logging in at {cloud.authority} failed: {_first_line(str(error))}; check tenant_id and authority")
        ) from error


def explain(error: Exception, login: Login, cloud: Cloud) -> AzureError:
    """What the login library's error means for the user."""
    from azure.core.exceptions import ServiceRequestError, ServiceResponseError

    text = str(error)
    where = f"logging in at {cloud.authority} failed"
    if isinstance(error, (ServiceRequestError, ServiceResponseError)) or _is_unconnected(error, login):
        return UnavailableError(login.redact(f"{where}: {unreachable(text)}"))
    return AzureError(login.redact(f"{where}: {_refused(error, login, cloud)}"))


def _refused(error: Exception, login: Login, cloud: Cloud) -> str:
    from azure.identity import CredentialUnavailableError

    text = str(error)
    code = _AADSTS.search(text)
    if code and code.group(1) in _ADVICE:
        advice = _ADVICE[code.group(1)].format(client=login.client_id, tenant=login.tenant_id, token_file=login.federated_token_file)
        return f"{code.group(0)}, {advice}"
    if code:
        return f"{_first_line(text[code.start() :])}; look the code up at {cloud.authority}/error?code={code.group(1)}"
    if _NO_AUTHORITY in text:
        return f"it does not know tenant {login.tenant_id}; correct tenant_id (AZURE_TENANT_ID) or authority"
    if isinstance(error, CredentialUnavailableError) or login.source == "auto":
        ways = ", ".join(usable(login) if login.source == "auto" else (login.source,))
        return (
            f"no way to log in is set up here (tried: {ways}); set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, "
            "run where a managed identity is, or run `az login`"
        )
    return f"{_first_line(text)}; check the tenant, the identity and its secret"


def _is_unconnected(error: Exception, login: Login) -> bool:
    """Whether an error is that of a connection to the login service, which azure-identity gives as a failed login.

    That the last ways of auto cannot be reached only says that this is not the place for them.
    """
    from azure.identity import CredentialUnavailableError

    text = str(error)
    if isinstance(error, CredentialUnavailableError) or _AADSTS.search(text) or _NO_AUTHORITY in text:
        return False
    signs = (_UNTRUSTED, *(sign for sign, _meaning in _CONNECTION_SIGNS))
    by_login_service = login.source != "auto" or usable(login)[0] not in ("managed", "cli")
    return by_login_service and any(sign in text for sign in signs)


def unreachable(text: str) -> str:
    """The short reason for a connection that could not be made, with what to do about it."""
    if _UNTRUSTED in text:
        return "its certificate is not trusted; set ca_file to the certificate authority of this cloud"
    for sign, meaning in _CONNECTION_SIGNS:
        if sign in text:
            return f"{meaning}; check the address, the network and any proxy"
    return f"{_first_line(text)}; check the address, the network and any proxy"


def missing_library(package: str, error: ImportError) -> str:
    """What to install, for the interpreter that is running."""
    return f"the Python package {package} is missing from {sys.executable} ({error}); install it: {sys.executable} -m pip install {package}"


def _make(source: Source, login: Login, cloud: Cloud) -> TokenCredential:
    from azure import identity

    common: dict[str, t.Any] = {
        "authority": cloud.authority,
        "disable_instance_discovery": not cloud.instance_discovery,
        "retry_connect": CONNECT_RETRIES,
    }
    if cloud.ca_file:
        common["connection_verify"] = cloud.ca_file
    if source == "environment":
        return _principal(login, common)
    if source == "workload":
        _need(login, source, "tenant_id", "client_id", "federated_token_file")
        return identity.WorkloadIdentityCredential(
            tenant_id=login.tenant_id, client_id=login.client_id, token_file_path=login.federated_token_file, **common
        )
    if source == "managed":
        return identity.ManagedIdentityCredential(client_id=login.client_id)
    if source == "cli":
        return identity.AzureCliCredential(tenant_id=login.tenant_id or "")
    raise AzureError(f"auth: {source} is not known; choose auto, environment, workload, managed or cli")


def _principal(login: Login, common: dict[str, t.Any]) -> TokenCredential:
    from azure import identity

    _need(login, "environment", "tenant_id", "client_id")
    tenant, client = str(login.tenant_id), str(login.client_id)
    if login.client_secret:
        return identity.ClientSecretCredential(tenant, client, login.client_secret, **common)
    if not login.certificate_path:
        raise AzureError(
            "auth: environment needs a secret or a certificate; set AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE_PATH, or choose another auth"
        )
    try:
        return identity.CertificateCredential(tenant, client, login.certificate_path, password=login.certificate_password, **common)
    except (OSError, ValueError) as error:
        raise AzureError(
            login.redact(f"certificate {login.certificate_path} cannot be used ({error}); it must be PEM or PKCS12 with its private key")
        ) from error


def _need(login: Login, source: str, *names: str) -> None:
    missing = [name for name in names if not getattr(login, name)]
    if missing:
        raise AzureError(f"auth: {source} needs {', '.join(missing)}; set the option or its environment variable, or choose another auth")


def _first_line(text: str) -> str:
    return re.split(r"\s*(?:Trace ID:|Correlation ID:|\n)", text.strip(), maxsplit=1)[0].rstrip(".")
