# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logging in without a secret: a signed assertion, by an application's certificate or by an issuer that it trusts.

learn.microsoft.com, "Microsoft identity platform application authentication certificate credentials" and "Workload
identity federation".
"""

from __future__ import annotations

import dataclasses
import typing as t

import jwt

KIND = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
EXCHANGE_AUDIENCE = "api://AzureADTokenExchange"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Certificate:
    """A certificate of the application, as its public key in PEM."""

    public_key: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Federation:
    """An issuer and subject that stand for the application; the key is the issuer's, in PEM."""

    issuer: str
    subject: str
    public_key: str


class AssertionRefusedError(Exception):
    """``number`` is that of the AADSTS error."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def check(form: t.Mapping[str, str], known: t.Iterable[Certificate | Federation], *, client_id: str, token_url: str) -> None:
    """Raise AssertionRefusedError unless the form's assertion is one by which the application may log in."""
    if form.get("client_assertion_type") != KIND:
        raise AssertionRefusedError(900144, f"The request body must contain the following parameter: 'client_assertion_type' ({KIND}).")
    refused = AssertionRefusedError(700027, "The certificate with identifier used to sign the client assertion is not registered.")
    for trusted in known:
        if isinstance(trusted, Certificate):
            issuer, subject, audience = client_id, client_id, token_url
        else:
            issuer, subject, audience = trusted.issuer, trusted.subject, EXCHANGE_AUDIENCE
        try:
            jwt.decode(
                form["client_assertion"],
                trusted.public_key,
                algorithms=["RS256", "PS256"],
                audience=audience,
                issuer=issuer,
                subject=subject,
                options={"require": ["exp", "iss", "sub", "aud"]},
            )
        except jwt.InvalidSignatureError:
            continue
        except jwt.ExpiredSignatureError:
            refused = AssertionRefusedError(700024, "Client assertion is not within its valid time range.")
        except jwt.InvalidTokenError as error:
            refused = AssertionRefusedError(700211, f"No matching federated identity record found for presented assertion: {error}.")
        else:
            return
    raise refused
