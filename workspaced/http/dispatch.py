"""One request, in a fixed order of checks (contract G12).

route and method → 401 → 429 → syntax of the workspace's id → 403 → 413 → 415 → 400 → then, in the transaction: 404, 412, 409 and
422. It stands here as one function instead of a pile of middleware, so that the order can be read. FastAPI and
Starlette's own routing are not used for it: they decode paths before routing, parse bodies before authorizing, and
answer HEAD, 405 and trailing slashes otherwise (contract G12, G16, G24).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from urllib.parse import quote

from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ingestd.wire import names
from workspaced.core.json_body import require_json
from workspaced.core.problems import (
    ForbiddenProblem,
    Invalid,
    MethodNotAllowed,
    NotFoundProblem,
    Problem,
    TooManyRequests,
    UnauthenticatedProblem,
    UnavailableProblem,
)
from workspaced.core.text import as_uuid
from workspaced.http.bodies import StreamedBody, read_body
from workspaced.http.headers import RequestHeaders
from workspaced.http.idempotency import IdempotencySlot, InFlight, of_streamed, once, slot_of
from workspaced.http.internal_client import internal_caller_of
from workspaced.http.long_responses import LongResponses
from workspaced.http.operations import Call, Operation, PathHeaders, Work
from workspaced.http.part_sender import send_parts
from workspaced.http.paths import Match, Routes, Segment, raw_path_of, segments
from workspaced.http.problem_body import refusal
from workspaced.http.responses import Response
from workspaced.http.spool import SpoolRoom
from workspaced.http.tracing import note_operation, note_refusal, request_id_of
from workspaced.security.authentication import Authentication
from workspaced.security.permissions import Principal
from workspaced.security.rate_limits import RateLimit
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Store, Transaction
from workspaced.telemetry.metrics import Metrics

_IGNORED_NAMES = 20


class Dispatch:
    """The ASGI application of the API."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        path_headers: Sequence[PathHeaders],
        settings: WorkspacedSettings,
        store: Store,
        authentication: Authentication,
        is_public: Callable[[str], Awaitable[bool]],
        rate: RateLimit,
        metrics: Metrics,
        now: Callable[[], int],
    ) -> None:
        self._routes: Routes[Operation] = Routes()
        for operation in operations:
            self._routes.add(operation.method, operation.path, operation)
        self._path_headers = [(_pattern(one.path), _encoded(one.headers)) for one in path_headers]
        self._settings = settings
        self._settled = False
        self._store = store
        self._authentication = authentication
        self._is_public = is_public
        self._rate = rate
        self._metrics = metrics
        self._now = now
        self._in_flight = InFlight()
        limits = settings.limits
        room = SpoolRoom(settings.data, most=limits.spool_bytes)
        self._long_answers = LongResponses(room, per_caller=limits.streams_per_key)

    def settle(self, settings: WorkspacedSettings) -> None:
        """Go by these settings from now on: the start has found out what the data fixed. Until then nobody is let in."""
        self._settings = settings
        self._settled = True

    def require_settled(self) -> None:
        """Nobody is let in before `settle`.

        Raises:
            UnavailableProblem: it was not called yet.
        """
        if not self._settled:
            raise UnavailableProblem("starting", "The service waits for its database.", retry_seconds=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        path = segments(raw_path_of(scope))
        try:
            answer = await self._answered(path, scope, receive)
        except ClientDisconnect:
            return
        try:
            await self._send(answer, path, scope, receive, send)
        finally:
            if answer.parts is not None:
                await answer.parts.aclose()

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """What a question from inside is answered; its scope's state names who asks (`workspaced.http.internal_client`)."""
        return await self._answered(segments(raw_path_of(scope)), scope, receive)

    async def _answered(self, path: tuple[Segment, ...], scope: Scope, receive: Receive) -> Response:
        shown = raw_path_of(scope).decode("ascii", "replace")
        match = self._routes.find(scope["method"], path)
        operation = match.operation if match else None
        if operation is not None:
            note_operation(scope, operation.name)
        try:
            if match is None:
                raise NotFoundProblem("no_such_path", "There is nothing under this path.")
            if operation is None:
                return _without_operation(scope["method"], match)
            return await self._answer(operation, match.names, scope, receive, shown)
        except Problem as problem:
            note_refusal(scope, problem)
            return self._refusal(problem, operation, scope, shown)

    async def _answer(
        self, operation: Operation, found: Mapping[str, Segment], scope: Scope, receive: Receive, path: str
    ) -> Response:
        headers = RequestHeaders(scope)
        address = self._address(scope, headers)
        principal, workspace = await self._authorized(operation, found.get("workspace"), headers, scope, address)
        body = b""
        streamed = StreamedBody(receive, headers, limit=operation.body_bytes) if operation.take else None
        if operation.body_bytes and streamed is None:
            body = await read_body(receive, headers, limit=operation.body_bytes)
            require_json(headers.get("Content-Type"), body)
        call = Call(
            path=path,
            wants_body=scope["method"] != "HEAD",
            names={**_readable(found), **({"workspace": workspace} if workspace else {})},
            query=_query(scope),
            headers=headers,
            body=body,
            principal=principal,
            client_id=_client_id(headers, self._settings.limits.client_id_length, required=operation.client_id),
            request_id=request_id_of(scope),
            address=address,
            scheme=self._scheme(scope, headers),
            now=self._now(),
            settings=self._settings,
            store=self._store,
            long_responses=self._long_answers,
        )
        if operation.read:
            return await operation.read(call)
        if operation.take and streamed:
            return await self._take(operation.take(call, streamed), operation, call, scope)
        return await self._write(operation, call, scope)

    async def _authorized(
        self, operation: Operation, workspace: Segment, headers: Headers, scope: Scope, address: str
    ) -> tuple[Principal | None, str | None]:
        """Who calls, and the workspace's id in lower case where the path has one."""
        if operation.scope is None:
            return None, None
        self.require_settled()
        principal = await self._authenticated(headers.get(names.API_KEY), scope, address)
        workspace_id = as_uuid(workspace) if workspace else None
        if principal is None and operation.anonymous:
            return None, None
        if principal is None:
            readable = operation.method == "GET" and workspace_id is not None and await self._is_public(workspace_id)
            if not readable:
                raise UnauthenticatedProblem
            return None, workspace_id
        if "{workspace}" in operation.path:
            if workspace_id is None:
                raise Invalid("bad_workspace_id", "The workspace's id in the path is no UUID.")
            allowed = principal.may(operation.scope, workspace_id)
        else:
            allowed = principal.may_somewhere(operation.scope) if operation.anywhere else principal.may(operation.scope)
        if not allowed:
            raise ForbiddenProblem
        return principal, workspace_id

    async def _authenticated(self, key: str | None, scope: Scope, address: str) -> Principal | None:
        """Who calls; a token of his bucket is used, or of his address's where he does not say who he is (contract G20).

        A question from inside names its caller, and need not be one that he sends.

        Raises:
            UnauthenticatedProblem: the key is not good.
            TooManyRequests: he comes too often, or too many keys from his address were not good.
        """
        inside = internal_caller_of(scope)
        if inside and not inside.counted:
            return inside.principal
        try:
            principal = (
                inside.principal
                if inside
                else await self._authentication.principal(key, address=address, request_id=request_id_of(scope))
            )
        except (UnauthenticatedProblem, TooManyRequests):
            scope["state"]["rate"] = self._authentication.failures.look(address).headers
            raise
        allowance = self._rate.take(principal.key_id if principal else f"address {address}")
        scope["state"]["rate"] = allowance.headers
        if not allowance.allowed:
            raise TooManyRequests(
                "rate_limited",
                "This caller sends more requests than it may. Send fewer, or more entries in each.",
                retry_seconds=allowance.retry_seconds,
            )
        return principal

    def _address(self, scope: Scope, headers: Headers) -> str:
        """Where the request came from, as far as the server tells."""
        return self._settings.proxies.caller(_peer(scope), headers.get("X-Forwarded-For"))

    def _scheme(self, scope: Scope, headers: Headers) -> str:
        """The scheme, http or https, that the caller used."""
        return self._settings.proxies.scheme(_peer(scope), headers.get("X-Forwarded-Proto"), own=scope["scheme"])

    async def _write(self, operation: Operation, call: Call, scope: Scope) -> Response:
        if operation.prepare is None:
            raise TypeError(f"{operation.name} is neither a read nor a write")
        slot = slot_of(call, scope["query_string"]) if operation.method == "POST" else None
        with self._in_flight.claim(slot):
            try:
                work = operation.prepare(call)
            except Problem as problem:
                if slot is None:
                    raise
                work = _refusing(problem)
            return await self._do(work, slot, operation, call, scope)

    async def _take(
        self, taking: AbstractAsyncContextManager[Work], operation: Operation, call: Call, scope: Scope
    ) -> Response:
        """A write whose body comes in pieces. What is refused before its end is not kept for a repetition.

        Until then nobody knows whether a repetition would be of the same body.
        """
        slot = slot_of(call, scope["query_string"]) if operation.method == "POST" else None
        with self._in_flight.claim(slot):
            async with taking as work:
                known = of_streamed(slot, work.digest) if slot else None
                return await self._do(work, known, operation, call, scope)

    async def _do(
        self, work: Work, slot: IdempotencySlot | None, operation: Operation, call: Call, scope: Scope
    ) -> Response:
        if slot is not None:
            keep_ms = int(self._settings.idempotency_hours * 3_600_000)
            work = once(
                work,
                slot,
                now=call.now,
                keep_ms=keep_ms,
                refused=lambda problem: self._refusal(problem, operation, scope, call.path),
            )
        answer = await self._store.write(work.act, weight=work.weight)
        if answer.written:
            self._metrics.wrote(answer.written)
        if not work.ignored:
            return answer
        told = ",".join(quote(name, safe=".-_") for name in work.ignored[:_IGNORED_NAMES])
        return Response(status=answer.status, headers=(*answer.headers, ("X-Ignored-Fields", told)), body=answer.body)

    def _refusal(self, problem: Problem, operation: Operation | None, scope: Scope, path: str) -> Response:
        accepts = Headers(scope=scope).get("Accept", "")
        document_form = operation is not None and operation.document_form and names.PROBLEM_JSON not in accepts
        return refusal(problem, instance=path, request_id=request_id_of(scope), document_form=document_form)

    async def _send(
        self, answer: Response, path: tuple[Segment, ...], scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = _encoded(answer.headers)
        for pattern, more in self._path_headers:
            if _is_below(path, pattern):
                headers.extend(more)
        if not any(name == "Cache-Control" for name, _ in answer.headers):
            headers.append((b"Cache-Control", b"private, no-cache"))
        headers.extend(_encoded(scope["state"].get("rate", ())))
        unsaid = scope["method"] == "HEAD" and not answer.body  # a read need not build what HEAD does not send
        if answer.parts is None and answer.status not in {204, 304} and not unsaid:
            headers.append((b"Content-Length", str(len(answer.body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
        elif answer.parts is None:
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await send_parts(answer.parts, receive, send)


def _pattern(path: str) -> tuple[str | None, ...]:
    """The path's segments; None matches any segment."""
    return tuple(None if part.startswith("{") else part for part in path.split("/")[1:])


def _is_below(path: tuple[Segment, ...], pattern: tuple[str | None, ...]) -> bool:
    return len(path) >= len(pattern) and all(
        wanted is None or wanted == part for wanted, part in zip(pattern, path, strict=False)
    )


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


def _peer(scope: Scope) -> str:
    """The address at the other end of the connection."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _without_operation(method: str, match: Match[Operation]) -> Response:
    allowed = ", ".join(match.allowed)
    if method == "OPTIONS":
        return Response(status=204, headers=(("Allow", allowed),))
    raise MethodNotAllowed(allowed)


def _readable(found: Mapping[str, Segment]) -> dict[str, str]:
    """The path's names; all of them are text now.

    Raises:
        Invalid: one is not UTF-8 or holds U+0000.
    """
    readable = {name: value for name, value in found.items() if value is not None}
    if len(readable) < len(found):
        raise Invalid("bad_path", "The path holds an escape that is not UTF-8, or the character U+0000.")
    return readable


def _query(scope: Scope) -> dict[str, str]:
    query = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
    if any("\0" in value for value in query.values()):
        raise Invalid("nul_character", "The query may not hold the character U+0000.")
    return query


def _client_id(headers: Headers, longest: int, *, required: bool) -> str | None:
    """The header ClientId (contract A8).

    Raises:
        Invalid: it is required and missing, or no visible ASCII text of the right length.
    """
    value = headers.get(names.CLIENT_ID)
    if value is None and not required:
        return None
    if not value or len(value) > longest or not all("!" <= letter <= "~" for letter in value):
        if required or value:
            raise Invalid("bad_client_id", f"The header ClientId must have 1 to {longest} visible ASCII characters.")
        return None
    return value


def _refusing(problem: Problem) -> Work:
    def act(_tx: Transaction) -> Response:
        raise problem

    return Work(act=act)
