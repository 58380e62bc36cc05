# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading ARM as raw JSON, page by page, through the SDK's own pipeline.

Typed SDK models cost 24 times the CPU of the raw documents at 7,500 instances (measured), so only the SDK's
pipeline is used: its credential, retry and throttling policies. The provider-registration policy is left out,
because an inventory must never write.
"""

from __future__ import annotations

import contextlib
import gc
import json
import threading
import time
import typing as t
import urllib.parse

from .clouds import Cloud
from .credentials import CONNECT_RETRIES, Login, credential, missing_library, token, unreachable
from .errors import ArmError, AzureError, IncompleteError, UnavailableError
from .pace import Pace

if t.TYPE_CHECKING:
    from azure.core.rest import HttpResponse

Document = dict[str, t.Any]
T = t.TypeVar("T")

CONNECT_SECONDS = 10
READ_SECONDS = 60
# One page with all its retries. ARM's read bucket is 250 and refills 25 a second (learn.microsoft.com,
# "Understand how Azure Resource Manager throttles requests"), so a longer wait means that something else eats it.
PAGE_SECONDS = 300
RETRIES = 8
BACKOFF_MAX_SECONDS = 30
# A page has up to 3 MB; the SDK's blocks of 4 KB cost more time than its unpacking (measured: 0.6 s for 75 of them).
BLOCK_BYTES = 1 << 20

GRAPH_PATH, GRAPH_VERSION, GRAPH_ROWS = "/providers/Microsoft.ResourceGraph/resources", "2022-10-01", 1000

_ADVICE = {
    "SubscriptionNotFound": "correct subscription_ids (AZURE_SUBSCRIPTION_ID); `az account list` shows those of this login",
    "InvalidSubscriptionId": "correct subscription_ids (AZURE_SUBSCRIPTION_ID): an id is a GUID",
    "AuthorizationFailed": "give this identity the role Reader on the subscription or the resource group",
    "ResourceGroupNotFound": "correct resource_groups",
    "ResourceNotFound": "it may have been deleted while it was listed: run again, and correct the name if it stays so",
    "InvalidAuthenticationTokenTenant": "the login belongs to another tenant than the subscription: correct tenant_id (AZURE_TENANT_ID)",
}


class Client:
    """Logged in to one cloud. Used by many threads at once; close it when done."""

    def __init__(self, *, login: Login, cloud: Cloud, parallel: int) -> None:
        """``parallel`` is how many connections are kept open. Raises AzureError when the login fails."""
        self._login = login
        self._cloud = cloud
        self._reading = threading.Lock()
        taken = credential(login, cloud)
        try:
            import requests
            import requests.adapters

            from azure.core.pipeline import policies
            from azure.core.pipeline.transport import RequestsTransport
            from azure.mgmt.core import ARMPipelineClient
            from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

            from .policies import Paced, Retry
        except ImportError as error:
            raise AzureError(missing_library("azure-mgmt-core", error)) from error
        token(taken, login, cloud)
        session = requests.Session()
        session.mount("https://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=parallel))
        transport = RequestsTransport(
            session=session,
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            connection_verify=cloud.ca_file or True,
            connection_data_block_size=BLOCK_BYTES,
        )
        retry = Retry(
            retry_total=RETRIES,
            # Else three each, as these are counted apart.
            retry_status=RETRIES,
            retry_read=RETRIES,
            retry_connect=CONNECT_RETRIES,
            retry_backoff_max=BACKOFF_MAX_SECONDS,
            timeout=PAGE_SECONDS,
        )
        self._pipeline: t.Any = ARMPipelineClient(
            base_url=cloud.arm_endpoint,
            transport=transport,
            policies=[
                policies.RequestIdPolicy(),
                policies.HeadersPolicy({"Accept": "application/json"}),
                policies.UserAgentPolicy(base_user_agent="gpufleet.vmss.azure_vmss"),
                policies.ProxyPolicy(),
                retry,
                Paced(Pace(parallel=parallel, clock=time.monotonic, sleep=time.sleep), retry),
                ARMChallengeAuthenticationPolicy(taken, cloud.scope),
            ],
        )

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._pipeline.close()

    def pages(self, path: str, make: t.Callable[[list[Document]], T], *, api_version: str, **parameters: str) -> list[T]:
        """What ``make`` makes of each page of a list, whose documents are then dropped.

        Raises AzureError for a page that cannot be had and for one that is not a list of documents:
        part of a list is never given for the whole.
        """
        query = urllib.parse.urlencode({"api-version": api_version, **parameters}, quote_via=urllib.parse.quote, safe="$'/")
        url: str | None = f"{self._cloud.arm_endpoint}{path}?{query}"
        made: list[T] = []
        seen: set[str] = set()
        while url:
            seen.add(url)
            body = self._get(url, path)
            # One page at a time: Python runs one thread at a time anyway, and sixteen pages of documents take 300 MB.
            with self._reading, _uncollected():
                page = _page(body, path, len(seen))
                made.append(make(page["value"]))
            url = self._next(page.get("nextLink"), path, seen)
        return made

    def rows(self, query: str, make: t.Callable[[list[Document]], T], *, subscription_ids: t.Sequence[str]) -> list[T]:
        """What ``make`` makes of each page of a query to Azure Resource Graph, which must have an order.

        Raises as ``pages`` does. Pages that are too large are asked for in halves.
        """
        url = f"{self._cloud.arm_endpoint}{GRAPH_PATH}?api-version={GRAPH_VERSION}"
        made: list[T] = []
        top, token, count, total = GRAPH_ROWS, "", 0, 0
        while True:
            options = {"$top": top, "resultFormat": "objectArray", **({"$skipToken": token} if token else {})}
            body = {"subscriptions": list(subscription_ids), "query": query, "options": options}
            try:
                answer = self._get(url, GRAPH_PATH, body)
            except ArmError as error:
                if error.code != "ResponsePayloadTooLarge" or top == 1:
                    raise
                top //= 2
                continue
            with self._reading, _uncollected():
                page = _page(answer, GRAPH_PATH, len(made) + 1, name="data")
                made.append(make(page["data"]))
            count, total = count + len(page["data"]), max(total, page.get("totalRecords") or 0)
            token = page.get("$skipToken") or ""
            if not token:
                break
        if count < total:
            raise IncompleteError(f"{GRAPH_PATH}: {count} of {total} rows came, and no link to the others; run again")
        return made

    def _next(self, link: object, path: str, seen: set[str]) -> str | None:
        if not link:
            return None
        if not same_server(str(link), self._cloud.arm_endpoint):
            raise AzureError(
                f"{path}: page {len(seen)} points to another server for the next page; only {self._cloud.arm_endpoint} is asked"
            )
        if link in seen:
            raise IncompleteError(f"{path}: page {len(seen)} points back to a page already read; the list has no end: run again")
        return str(link)

    def _get(self, url: str, path: str, body: Document | None = None) -> bytes:
        """One answer. With ``body`` it is a query, which reads like a GET and is asked again like one."""
        from azure.core.exceptions import AzureError as SdkError
        from azure.core.exceptions import ClientAuthenticationError
        from azure.core.rest import HttpRequest

        try:
            request = HttpRequest("POST", url, json=body) if body else HttpRequest("GET", url)
            response: HttpResponse = self._pipeline.send_request(request, retry_on_methods=("GET", "POST"))
        except ClientAuthenticationError as error:
            raise AzureError(self._login.redact(f"{path}: the login is no longer accepted ({error.message}); run again")) from error
        except SdkError as error:
            raise UnavailableError(f"ARM at {self._cloud.arm_endpoint} cannot be read: {unreachable(str(error))} ({path})") from error
        if response.status_code != 200:
            raise refusal(response.status_code, response.content, path=path, endpoint=self._cloud.arm_endpoint)
        return response.content


@contextlib.contextmanager
def _uncollected() -> t.Iterator[None]:
    """Without Python's search for garbage in cycles: a page is 50,000 documents and has none (measured: a tenth of all)."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _page(body: bytes, path: str, number: int, name: str = "value") -> Document:
    """One page of a list, which is what ``name`` holds. Raises IncompleteError for what is none."""
    page = parse(body)
    if not isinstance(page, dict):
        raise IncompleteError(f"{path}: ARM answered {_kind(page)} where a document belongs; run again, and report it if it stays so")
    values = page.get(name)
    if not isinstance(values, list):
        raise IncompleteError(
            f"{path}: page {number} holds no list of documents but {_kind(values)}; run again, and report it if it stays so"
        )
    for index, item in enumerate(values):
        if not isinstance(item, dict):
            raise IncompleteError(f"{path}: page {number}, item {index} is {_kind(item)} where a document belongs; run again")
    return page


def same_server(link: str, endpoint: str) -> bool:
    """Whether a next page is at ARM itself or at one of its regions: the bearer token goes with every request.

    Azure writes some links with ":443" and some without.
    """
    there, home = urllib.parse.urlsplit(link), urllib.parse.urlsplit(endpoint)
    host, arm = there.hostname or "", home.hostname or ""
    return there.scheme == "https" and (there.port or 443) == (home.port or 443) and (host == arm or host.endswith(f".{arm}"))


def refusal(status: int, body: bytes, *, path: str, endpoint: str) -> ArmError:
    """The error for an answer of ARM that is not 200; Azure's body is {"error": {"code": ..., "message": ...}}."""
    document = parse(body)
    error = document.get("error") if isinstance(document, dict) else None
    code = str(error.get("code") or "") if isinstance(error, dict) else ""
    said = str(error.get("message") or "") if isinstance(error, dict) else ""
    if code in _ADVICE:
        advice = _ADVICE[code]
    elif status == 401:
        advice = "the token is not accepted: check tenant_id, authority and audience"
    elif status == 403:
        advice = _ADVICE["AuthorizationFailed"]
    elif status == 429:
        advice = f"still throttled after {RETRIES} retries or {PAGE_SECONDS} s: something else uses up this identity's calls; wait, or lower parallel"
    elif status >= 500:
        advice = f"still so after {RETRIES} retries: see the state of this Azure region and run again"
    else:
        advice = "check the inventory's options"
    reason = " ".join(filter(None, (str(status), code, said.strip().splitlines()[0] if said.strip() else "")))
    return ArmError(f"ARM at {endpoint} refuses {path}: {reason.rstrip('.')}; {advice}", status=status, code=code)


def parse(body: bytes) -> t.Any:
    """One JSON text as data, None for what is not JSON. orjson where it is installed: twice as fast on pages of 3 MB."""
    try:
        import orjson
    except ImportError:
        try:
            return json.loads(body)
        except ValueError:
            return None
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def _kind(value: object) -> str:
    return "null" if value is None else {"list": "a list", "str": "a text"}.get(type(value).__name__, type(value).__name__)
