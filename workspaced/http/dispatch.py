"""The handling of one request, with checks in a fixed order (contract G12).

route and method → 401 → 429 → syntax of the workspace's id → 403 → 413 → 415 → 400 → then, in the transaction: 409 of the writer
fence, 404, 412, 409 and 422. One class, and not a stack of middleware, has all checks, so that their order is visible. The
routing of FastAPI and Starlette is not used. It decodes paths before it routes, parses bodies before it authorizes, and treats
HEAD, 405 and trailing slashes differently (contract G12, G16, G24).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from ingestd.process.http_server.limits import KNOWN_CALLER
from ingestd.process.http_server.registry import source_of
from ingestd.wire import names
from ingestd.wire.writer import Writer
from workspaced.core.asgi import ClientDisconnect, Receive, Scope, Send
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
from workspaced.core.timestamps import stamp
from workspaced.http.bodies import StreamedBody, read_body
from workspaced.http.headers import RequestHeaders, client_address, client_scheme, query_of
from workspaced.http.idempotency import IdempotencySlot, InFlight, is_stored, make_idempotent, slot_of, with_body_digest
from workspaced.http.internal_client import internal_caller_of
from workspaced.http.long_responses import LongResponses
from workspaced.http.operations import Call, Operation, PathHeaders, Work
from workspaced.http.paths import Match, Routes, Segment, raw_path_of, segments
from workspaced.http.responses import Headers, Response, problem_response, send_response
from workspaced.http.spool import SpoolRoom
from workspaced.http.tracing import record_operation, record_refusal, request_id_of
from workspaced.http.writer_fence import make_fenced, writer_of
from workspaced.security.authentication import Authentication
from workspaced.security.permissions import Principal
from workspaced.security.rate_limits import Limit
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store
from workspaced.telemetry.metrics import Metrics

_IGNORED_NAMES = 20
_IGNORED_CHARACTERS = 64
_CACHED_PATHS = 1_024
_CACHED_BYTES = 512
_ANNOUNCED_MS: Final = 30 * 86_400_000
_CACHE_CONTROL: Final = (("Cache-Control", "private, no-cache"),)


class _ResolvedPath(NamedTuple):
    """The route of a method and a path, the path to show in problems, and the headers of each response.

    ``match`` None: there is no such path.
    """

    match: Match[Operation] | None
    path: str
    headers: Headers


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
        rate: Limit,
        metrics: Metrics,
        now: Callable[[], int],
    ) -> None:
        self._routes: Routes[Operation] = Routes()
        for operation in operations:
            self._routes.add(operation.method, operation.path, operation)
        self._path_headers = [(_pattern(one.path), one.headers) for one in path_headers]
        self._settings = settings
        self._is_configured = False
        self._store = store
        self._authentication = authentication
        self._is_public = is_public
        self._rate = rate
        self._metrics = metrics
        self._now = now
        self._in_flight = InFlight("A request with this Idempotency-Key is still in progress.")
        limits = settings.limits
        room = SpoolRoom(settings.data, most=limits.spool_bytes)
        self._long_responses = LongResponses(room, per_caller=limits.streams_per_key)
        # Cached, because a client that pushes values one by one sends the same path each time.
        self._cached_target = lru_cache(maxsize=_CACHED_PATHS)(self._find_target)

    def configure(self, settings: WorkspacedSettings) -> None:
        """Use these settings, which include the constants of the database, and accept requests that need a key."""
        self._settings = settings
        self._is_configured = True

    def require_configured(self) -> None:
        """Check that `configure` was called.

        Raises:
            UnavailableProblem: `configure` was not called yet.
        """
        if not self._is_configured:
            raise UnavailableProblem("starting", "The service waits for its database or its files.", retry_seconds=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        target = self._target(scope)
        try:
            response = await self._respond(target, scope, receive)
        except ClientDisconnect:
            return
        await send_response(response, (*target.headers, *scope["state"].get("rate", ())), scope, receive, send)

    async def respond(self, scope: Scope, receive: Receive) -> Response:
        """Return the response to an internal request; the scope names its caller (`workspaced.http.internal_client`)."""
        return await self._respond(self._target(scope), scope, receive)

    def _target(self, scope: Scope) -> _ResolvedPath:
        raw_path = raw_path_of(scope)
        find = self._cached_target if len(raw_path) <= _CACHED_BYTES else self._find_target
        return find(scope["method"], raw_path)

    def _find_target(self, method: str, raw_path: bytes) -> _ResolvedPath:
        path = segments(raw_path)
        of_path = [header for pattern, more in self._path_headers if _is_below(path, pattern) for header in more]
        shown = raw_path.decode("ascii", "replace")
        return _ResolvedPath(self._routes.find(method, path), shown, (*of_path, *_CACHE_CONTROL))

    async def _respond(self, target: _ResolvedPath, scope: Scope, receive: Receive) -> Response:
        match, shown = target.match, target.path
        operation = match.operation if match else None
        if operation is not None:
            record_operation(scope, operation.name)
        try:
            if match is None:
                raise NotFoundProblem("no_such_path", "There is nothing under this path.")
            if operation is None:
                return _without_operation(scope["method"], match)
            return await self._perform(operation, match.names, scope, receive, shown)
        except Problem as problem:
            record_refusal(scope, problem)
            return self._problem_response(problem, operation, scope, shown)

    async def _perform(
        self, operation: Operation, found: Mapping[str, Segment], scope: Scope, receive: Receive, path: str
    ) -> Response:
        headers = RequestHeaders(scope)
        headers.require_single()
        address = client_address(scope, headers, self._settings.proxies)
        principal, workspace = await self._authorized(operation, found.get("workspace"), headers, scope, address)
        body = b""
        streamed = StreamedBody(receive, headers, limit=operation.body_bytes) if operation.take else None
        if operation.body_bytes and streamed is None:
            body = await read_body(receive, headers, limit=operation.body_bytes)
            principal = await self._authorized_again(operation, principal, workspace)
            require_json(headers.get("Content-Type"), body)
        call = Call(
            operation=operation.name,
            path=path,
            wants_body=scope["method"] != "HEAD",
            names={**_readable(found), **({"workspace": workspace} if workspace else {})},
            query=query_of(scope),
            headers=headers,
            body=body,
            principal=principal,
            client_id=_client_id(headers, self._settings.limits.client_id_length, required=operation.client_id),
            request_id=request_id_of(scope),
            address=address,
            scheme=client_scheme(scope, headers, self._settings.proxies),
            now=self._now(),
            settings=self._settings,
            store=self._store,
            long_responses=self._long_responses,
        )
        if operation.read:
            return await operation.read(call)
        if operation.take and streamed:

            async def renewed() -> Call:
                present = await self._authorized_again(operation, principal, workspace)
                return msgspec.structs.replace(call, principal=present, now=self._now())

            return await self._write_streamed(operation.take(call, streamed, renewed), operation, call, scope)
        return await self._write(operation, call, scope)

    async def _authorized(
        self, operation: Operation, workspace: Segment, headers: RequestHeaders, scope: Scope, address: str
    ) -> tuple[Principal | None, str | None]:
        """Return the caller, and the workspace's id in the path (if any) in lower case. Anyone may read a public workspace."""
        if operation.scope is None:
            return None, None
        self.require_configured()
        principal = await self._authenticated(headers.get(names.API_KEY), scope, address)
        workspace_id = as_uuid(workspace) if workspace else None
        if operation.anonymous:
            return principal, None
        if principal and "{workspace}" in operation.path and workspace_id is None:
            raise Invalid("bad_workspace_id", "The workspace's id in the path is no UUID.")
        if principal is None or not _is_permitted(operation, operation.scope, principal, workspace_id):
            readable = operation.method == "GET" and workspace_id is not None and await self._is_public(workspace_id)
            if not readable:
                raise ForbiddenProblem if principal else UnauthenticatedProblem
        return principal, workspace_id

    async def _authorized_again(
        self, operation: Operation, principal: Principal | None, workspace_id: str | None
    ) -> Principal | None:
        """Return the caller with its present permissions. Permissions may change while a body is received (contract A4)."""
        if operation.scope is None or principal is None:
            return principal
        present = await self._present(principal)
        if not _is_permitted(operation, operation.scope, present, workspace_id):
            raise ForbiddenProblem
        return present

    async def _present(self, principal: Principal) -> Principal:
        """Return the present permissions of a key. Raises UnauthenticatedProblem: the key is no longer valid."""
        present = await self._authentication.verify_again(principal.key_id, principal.secret)
        if present is None:
            raise UnauthenticatedProblem
        return present

    async def _authenticated(self, key: str | None, scope: Scope, address: str) -> Principal | None:
        """Return the caller, and take a token from the caller's rate limit (contract G20).

        Without a key, the limit of the caller's address applies. An internal request may be exempt from the rate limit. The
        page verified the caller before it received the form, so the caller's key is verified again.
        """
        internal = internal_caller_of(scope)
        if internal and not internal.counted:
            return await self._present(internal.principal)
        try:
            principal = (
                await self._present(internal.principal)
                if internal
                else await self._authentication.principal(key, address=address, request_id=request_id_of(scope))
            )
        except (UnauthenticatedProblem, TooManyRequests):
            scope["state"]["rate"] = self._authentication.failures.look(source_of(address)).headers
            raise
        if principal is not None:
            scope["state"][KNOWN_CALLER] = True
        allowance = await self._rate.admit(principal.key_id if principal else f"address {source_of(address)}")
        scope["state"]["rate"] = (*allowance.headers, *_expiry(principal, self._now()))
        allowance.require()
        return principal

    async def _write(self, operation: Operation, call: Call, scope: Scope) -> Response:
        slot = slot_of(call, scope["query_string"]) if operation.method == "POST" else None
        writer = writer_of(call)
        with self._in_flight.claim(slot and slot.digest):
            try:
                work = operation.prepared(call)
            except Problem as problem:
                if writer is None and (slot is None or not is_stored(problem)):
                    raise
                work = _raising(problem)
            return await self._run(work, slot, operation, call, scope, writer=writer)

    async def _write_streamed(
        self, preparing: AbstractAsyncContextManager[Work], operation: Operation, call: Call, scope: Scope
    ) -> Response:
        """Perform a write with a streamed body.

        A refusal before the end of the body is not stored: without the whole body, a repetition can't be recognised.
        """
        slot = slot_of(call, scope["query_string"]) if operation.method == "POST" else None
        with self._in_flight.claim(slot and slot.digest):
            async with preparing as work:
                full_slot = with_body_digest(slot, work.digest) if slot else None
                return await self._run(work, full_slot, operation, call, scope)

    async def _run(
        self,
        work: Work,
        slot: IdempotencySlot | None,
        operation: Operation,
        call: Call,
        scope: Scope,
        *,
        writer: Writer | None = None,
    ) -> Response:
        def refused(problem: Problem) -> Response:
            return self._problem_response(problem, operation, scope, call.path)

        if slot is not None:
            keep_ms = int(self._settings.idempotency_hours * 3_600_000)
            work = make_idempotent(work, slot, now=call.now, keep_ms=keep_ms, refused=refused)
        if writer is not None:
            # The fence is checked before stored responses are looked up, so the refusal of a late request is never replayed.
            work = make_fenced(work, writer, call, refused=refused)
        response = await self._store.write(work.act, weight=work.weight)
        if response.written:
            self._metrics.wrote(response.written)
        if not work.ignored:
            return response
        ignored = ",".join(quote(name[:_IGNORED_CHARACTERS], safe=".-_") for name in work.ignored[:_IGNORED_NAMES])
        return msgspec.structs.replace(response, headers=(*response.headers, ("X-Ignored-Fields", ignored)))

    def _problem_response(self, problem: Problem, operation: Operation | None, scope: Scope, path: str) -> Response:
        accepts = RequestHeaders(scope).get("Accept", "")
        document_form = operation is not None and operation.document_form and names.PROBLEM_JSON not in accepts
        return problem_response(problem, instance=path, request_id=request_id_of(scope), document_form=document_form)


def _is_permitted(operation: Operation, scope: str, principal: Principal, workspace_id: str | None) -> bool:
    """Return whether the caller's key permits the operation. ``scope`` is the scope of the operation."""
    if "{workspace}" in operation.path:
        return principal.may(scope, workspace_id)
    return principal.may_somewhere(scope) if operation.anywhere else principal.may(scope)


def _pattern(path: str) -> tuple[str | None, ...]:
    """Return the path's segments; None matches any segment."""
    return tuple(None if part.startswith("{") else part for part in path.split("/")[1:])


def _is_below(path: tuple[Segment, ...], pattern: tuple[str | None, ...]) -> bool:
    return len(path) >= len(pattern) and all(
        wanted is None or wanted == part for wanted, part in zip(pattern, path, strict=False)
    )


def _without_operation(method: str, match: Match[Operation]) -> Response:
    allowed = ", ".join(match.allowed)
    if method == "OPTIONS":
        return Response(status=204, headers=(("Allow", allowed),))
    raise MethodNotAllowed(allowed)


def _readable(found: Mapping[str, Segment]) -> dict[str, str]:
    """Return the names in the path with their values, as text."""
    readable = {name: value for name, value in found.items() if value is not None}
    if len(readable) < len(found):
        raise Invalid("bad_path", "The path contains an escape that is not UTF-8, or the character U+0000.")
    return readable


def _expiry(principal: Principal | None, now: int) -> Headers:
    """Return the header that announces the expiry of a key, if it is at most `_ANNOUNCED_MS` away (contract A3)."""
    ends = principal.expires_at if principal is not None else None
    return ((names.KEY_EXPIRES, stamp(ends)),) if ends is not None and ends - now <= _ANNOUNCED_MS else ()


def _client_id(headers: RequestHeaders, longest: int, *, required: bool) -> str | None:
    """Return the header ClientId (contract A8)."""
    value: str | None = headers.get(names.CLIENT_ID)
    if value is None:
        if not required:
            return None
        value = ""
    visible = value.isascii() and value.isprintable() and " " not in value
    if not value or len(value) > longest or not visible:
        if required or value:
            raise Invalid("bad_client_id", f"The header ClientId must have 1 to {longest} visible ASCII characters.")
        return None
    return value


def _raising(problem: Problem) -> Work:
    def act(_tx: Transaction) -> Response:
        raise problem

    return Work(act=act)
