# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ARM as raw JSON, lists page by page, through the SDK's own pipeline.

Typed SDK models cost 24 times the CPU of the raw documents at 7,500 instances (measured), so only the SDK's
pipeline is used: its credential, retry and throttling policies. The provider-registration policy is left out,
because an inventory must never write. What writes does so through operations.py.
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

    def __init__(
        self, *, login: Login, cloud: Cloud, parallel: int, caller: str = "azure_vmss", advice: t.Mapping[str, str] | None = None
    ) -> None:
        """``parallel`` is how many connections are kept open. ``caller`` is the plugin, which Azure's logs name; ``advice`` says, by
        Azure's codes, which of its options to correct, by default for the inventory. Raises AzureError when the login fails.
        """
        self._login = login
        self._cloud = cloud
        self._advice = advice
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
        self.pipeline: t.Any = ARMPipelineClient(
            base_url=cloud.arm_endpoint,
            transport=transport,
            policies=[
                policies.RequestIdPolicy(),
                policies.HeadersPolicy({"Accept": "application/json"}),
                policies.UserAgentPolicy(base_user_agent=f"gpufleet.vmss.{caller}"),
                policies.ProxyPolicy(),
                retry,
                Paced(Pace(parallel=parallel, clock=time.monotonic, sleep=time.sleep), retry),
                ARMChallengeAuthenticationPolicy(taken, cloud.scope),
            ],
        )

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.pipeline.close()

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

    def document(self, path: str, *, api_version: str) -> Document:
        """One resource. Raises AzureError, ArmError for what ARM refuses."""
        found = parse(self._get(f"{self._cloud.arm_endpoint}{path}?api-version={api_version}", path))
        if not isinstance(found, dict):
            raise IncompleteError(f"{path}: ARM answered {_kind(found)} where a document belongs; run again")
        return found

    def send(
        self, method: str, path: str, *, api_version: str, body: t.Mapping[str, t.Any], headers: t.Mapping[str, str] | None = None
    ) -> t.Any:
        """A write: the SDK's response to it, as what follows its operation takes it. Raises as ``document`` does.

        A refusal that comes with a Retry-After is waited out and asked again, whatever its status.
        """
        from azure.core.rest import HttpRequest

        url = f"{self._cloud.arm_endpoint}{path}?api-version={api_version}"
        request = HttpRequest(method, url, json=body, headers=dict(headers or {}))
        with self._explained(path, "written to"):
            # A write whose answer is lost is not sent again: if it came through, the etag has moved on with it.
            answer = self.pipeline.send_request(request, retry_on_methods=(), _return_pipeline_response=True)
        response: HttpResponse = answer.http_response
        if response.status_code not in (200, 201, 202, 204):
            raise refusal(response.status_code, response.content, path=path, endpoint=self._cloud.arm_endpoint, advice=self._advice)
        return answer

    @property
    def endpoint(self) -> str:
        return self._cloud.arm_endpoint

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
        from azure.core.rest import HttpRequest

        with self._explained(path):
            request = HttpRequest("POST", url, json=body) if body else HttpRequest("GET", url)
            response: HttpResponse = self.pipeline.send_request(request, retry_on_methods=("GET", "POST"))
        if response.status_code != 200:
            raise refusal(response.status_code, response.content, path=path, endpoint=self._cloud.arm_endpoint, advice=self._advice)
        return response.content

    @contextlib.contextmanager
    def _explained(self, path: str, done: str = "read") -> t.Iterator[None]:
        """Turns what the SDK raises without an answer of ARM into AzureError."""
        from azure.core.exceptions import AzureError as SdkError
        from azure.core.exceptions import ClientAuthenticationError

        try:
            yield
        except ClientAuthenticationError as error:
            raise AzureError(self._login.redact(f"{path}: the login is no longer accepted ({error.message}); run again")) from error
        except SdkError as error:
            raise UnavailableError(f"ARM at {self._cloud.arm_endpoint} cannot be {done}: {unreachable(str(error))} ({path})") from error


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


def refusal(status: int, body: bytes, *, path: str, endpoint: str, advice: t.Mapping[str, str] | None = None) -> ArmError:
    """The error for an answer of ARM that is no success; Azure's body is {"error": {"code": ..., "message": ...}}."""
    advice = _ADVICE if advice is None else advice
    document = parse(body)
    error = document.get("error") if isinstance(document, dict) else None
    code = str(error.get("code") or "") if isinstance(error, dict) else ""
    said = str(error.get("message") or "") if isinstance(error, dict) else ""
    if code in advice:
        hint = advice[code]
    elif status == 401:
        hint = "the token is not accepted: check tenant_id, authority and audience"
    elif status == 403:
        hint = advice["AuthorizationFailed"]
    elif status == 429:
        hint = (
            f"still throttled after {RETRIES} retries or {PAGE_SECONDS} s: something else uses up this identity's calls; wait and run again"
        )
    elif status >= 500:
        hint = f"still so after {RETRIES} retries: see the state of this Azure region and run again"
    else:
        hint = advice.get("", "check the inventory's options")
    reason = " ".join(filter(None, (str(status), code, said.strip().splitlines()[0] if said.strip() else "")))
    return ArmError(f"ARM at {endpoint} refuses {path}: {reason.rstrip('.')}; {hint}", status=status, code=code)


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
