"""The ASGI application of the pages: it finds the session, checks forms, calls the page and adds the security headers."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from ingestd.wire import names
from workspaced.core.asgi import ClientDisconnect, Receive, Scope, Send
from workspaced.core.json_schema import Schema
from workspaced.core.problems import Invalid, MethodNotAllowed, NotFoundProblem, Problem, UnauthenticatedProblem
from workspaced.http.bodies import read_body
from workspaced.http.headers import RequestHeaders, client_address, client_scheme, query_items_of, query_of
from workspaced.http.internal_client import EMPTY_BODY, InternalClient
from workspaced.http.paths import Routes, raw_path_of, segments
from workspaced.http.responses import Headers, Response, json_response, send_response
from workspaced.http.tracing import record_operation, record_refusal, request_id_of
from workspaced.security.permissions import ADMIN, AUDIT_READ
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import Limits
from workspaced.ui.addresses import address, see_other
from workspaced.ui.edit.routes import edit_routes
from workspaced.ui.edit.table_import import ReadTableFile
from workspaced.ui.live import LiveUpdates
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.protection import SAFETY, is_same_origin, keep_cookie, safe_return, token_of
from workspaced.ui.renderer import Assets, PageView, Renderer
from workspaced.ui.routes import FORM_BYTES, Route, routes
from workspaced.ui.sessions import Session, Sessions

_NO_STORE: Final = ("Cache-Control", "no-store")
_FORM_FIELDS: Final = 40
_LONG_FORM_FIELDS: Final = 1_040
"""The maximum number of fields of a form that may exceed `FORM_BYTES`. Each of up to 1 000 selected options is a field."""
_PROOF_HEADER: Final = "X-Form-Token"
_SIGN_IN: Final = "/ui/sign-in"


class _BuiltIn(Enum):
    """Routes of assets, and routes that begin or end a session."""

    SIGN_IN = auto()
    SIGN_OUT = auto()
    ASSET = auto()


class Pages:
    """The ASGI application of the web pages. It serves ``/ui`` and all paths below."""

    def __init__(
        self,
        *,
        respond: Callable[[Scope, Receive], Awaitable[Response]],
        schema_of: Callable[[str], Schema],
        sessions: Sessions,
        proxies: Proxies,
        limits: Limits,
        read_table_file: ReadTableFile,
    ) -> None:
        """``respond`` sends internal requests to the API (`workspaced.http.dispatch.Dispatch.respond`).

        ``schema_of`` returns the schema of a body or record by its name in the API description.
        """
        self._respond = respond
        self._schema_of = schema_of
        self._sessions = sessions
        self._proxies = proxies
        self._assets = Assets()
        self._rendering = Renderer(self._assets)
        self.live = LiveUpdates(self._rendering, sessions, limits=limits)
        self._routes: Routes[Route | _BuiltIn] = Routes()
        for route in (*routes(self.live), *edit_routes(limits, read_table_file)):
            self._routes.add(route.method, route.path, route)
        self._routes.add("GET", _SIGN_IN, _BuiltIn.SIGN_IN)
        self._routes.add("POST", _SIGN_IN, _BuiltIn.SIGN_IN)
        self._routes.add("POST", "/ui/sign-out", _BuiltIn.SIGN_OUT)
        self._routes.add("GET", "/ui/assets/{asset}", _BuiltIn.ASSET)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        raw_path = raw_path_of(scope)
        try:
            response = await self._handle(raw_path, scope, receive)
        except ClientDisconnect:
            return
        await send_response(response, (*SAFETY, _NO_STORE), scope, receive, send)

    async def _handle(self, raw_path: bytes, scope: Scope, receive: Receive) -> Response:
        headers = RequestHeaders(scope)
        session: Session | None = None
        try:
            headers.require_single()
            session = await self._session(headers)
            return await self._page(raw_path, headers, session, scope, receive)
        except PageRefused as refused:
            return self._refusal(refused, session, (), headers)
        except Problem as problem:
            record_refusal(scope, problem)
            shown = PageRefused(problem.status, problem.title, problem.detail)
            return self._refusal(shown, session, problem.headers, headers)

    async def _session(self, headers: RequestHeaders) -> Session | None:
        token = token_of(headers.get("Cookie", ""))
        return await self._sessions.find(token) if token else None

    async def _page(
        self, raw_path: bytes, headers: RequestHeaders, session: Session | None, scope: Scope, receive: Receive
    ) -> Response:
        match = self._routes.find(scope["method"], segments(raw_path))
        if match is None:
            raise NotFoundProblem("no_such_page", "There is no page under this address.")
        route = match.operation
        if route is None:
            raise MethodNotAllowed(", ".join(match.allowed))
        of_path = {name: value for name, value in match.names.items() if value is not None}
        if len(of_path) < len(match.names):
            raise NotFoundProblem("no_such_page", "There is no page under this address.")
        if route is _BuiltIn.ASSET:
            return self._assets.response(of_path["asset"], headers)
        is_post = scope["method"] == "POST"
        if is_post:
            _require_same_origin(headers)
        if session is None and isinstance(route, Route):
            return _signed_out(route, raw_path, headers, scope)
        if route is _BuiltIn.SIGN_IN:
            form = await _form(receive, headers, limit=FORM_BYTES) if is_post else {}
            return await self._sign_in(form, headers, session, scope)
        if session is None:
            return see_other(_SIGN_IN)
        form, is_proven = await _read_form(route, session, receive, headers) if is_post else ({}, True)
        if not isinstance(route, Route):
            return await self._sign_out(session, headers, scope)
        record_operation(scope, f"pages.{route.name}")
        request = PageRequest(
            method=scope["method"],
            names=of_path,
            query_items=query_items_of(scope),
            headers=headers,
            session=session,
            address=client_address(scope, headers, self._proxies),
            api=InternalClient(self._respond, scope, session.principal),
            schema_of=self._schema_of,
            form=form,
            is_proven=is_proven,
            body=receive if route.form_bytes is None else EMPTY_BODY,
        )
        shown = await route.page(request)
        return self._rendered(shown, session) if isinstance(shown, PageView) else shown

    async def _sign_in(
        self, form: Mapping[str, str], headers: RequestHeaders, session: Session | None, scope: Scope
    ) -> Response:
        """Show the sign-in form, or sign in. An invalid key counts as a failure of the caller's address (contract G20)."""
        asked = form if scope["method"] == "POST" else query_of(scope)
        return_to = safe_return(asked.get("next", ""))
        problem: Problem | None = None
        if scope["method"] == "POST":
            key = form.get("key", "").strip()
            try:
                begun = await self._sessions.begin(
                    key, address=client_address(scope, headers, self._proxies), request_id=request_id_of(scope)
                )
            except UnauthenticatedProblem as refused:
                problem = refused
            else:
                if session:  # a new sign-in ends the previous session
                    await self._sign_out(session, headers, scope)
                cookie = keep_cookie(
                    begun.token, seconds=self._sessions.seconds, scheme=client_scheme(scope, headers, self._proxies)
                )
                return see_other(return_to, cookie)
        view = PageView(
            template="sign_in.html",
            title="Sign in",
            values={"return_to": return_to, "wrong": problem is not None},
            status=problem.status if problem else 200,
        )
        return self._rendered(view, session)

    async def _sign_out(self, session: Session, headers: RequestHeaders, scope: Scope) -> Response:
        await self._sessions.end(
            session, address=client_address(scope, headers, self._proxies), request_id=request_id_of(scope)
        )
        return see_other(_SIGN_IN, keep_cookie("", seconds=0, scheme=client_scheme(scope, headers, self._proxies)))

    def _rendered(self, view: PageView, session: Session | None) -> Response:
        body = self._rendering.page(
            view,
            principal=session.principal.name if session else "",
            form_token=session.form_token if session else "",
            may_administer=session is not None and session.principal.may(ADMIN),
            may_audit=session is not None and session.principal.may_somewhere(AUDIT_READ),
        )
        return Response(status=view.status, headers=(("Content-Type", "text/html; charset=utf-8"),), body=body)

    def _refusal(
        self, refused: PageRefused, session: Session | None, headers: Headers, requested: RequestHeaders
    ) -> Response:
        if _wants_json(requested):
            body = {"title": refused.title, "detail": refused.sentence, "errors": dict(refused.mistakes)}
            return json_response(body, status=refused.status, headers=headers)
        view = PageView(
            template="refused.html",
            title=refused.title,
            values={"sentence": refused.sentence, "status": refused.status},
            status=refused.status,
        )
        shown = self._rendered(view, session)
        return Response(status=shown.status, headers=(*shown.headers, *headers), body=shown.body)


def _requested_page(raw_path: bytes, scope: Scope) -> str:
    """Return the address of the page to show after signing in; empty for a POST, because a form is not sent again."""
    if scope["method"] == "POST":
        return ""
    query: bytes = scope["query_string"]
    return (raw_path + (b"?" + query if query else b"")).decode("ascii", "replace")


def _signed_out(route: Route, raw_path: bytes, headers: RequestHeaders, scope: Scope) -> Response:
    """Redirect to the sign-in form. Raises PageRefused: a script, a stream or a form with input needs an error instead."""
    if route.name == "live" or _wants_json(headers):
        raise PageRefused(401, "Signed out", "You are signed out. Sign in again.")
    if route.keeps_input and scope["method"] == "POST":
        sentence = "You are signed out, so nothing was saved. Sign in in another tab, then reload this page to keep your input."
        raise PageRefused(401, "Signed out", sentence)
    return see_other(address("sign-in", next=_requested_page(raw_path, scope)))


def _require_same_origin(headers: RequestHeaders) -> None:
    """Check that a page of this service sent the request."""
    if not is_same_origin(headers):
        raise PageRefused(403, "Not done", "This form was sent by a page of another site, so nothing was done.")


async def _read_form(
    route: Route | _BuiltIn, session: Session, receive: Receive, headers: RequestHeaders
) -> tuple[dict[str, str], bool]:
    """Return the fields of the form, and whether a page of this session sent it. A body that is no form has no fields."""
    most = route.form_bytes if isinstance(route, Route) else FORM_BYTES
    form = {} if most is None else await _form(receive, headers, limit=most)
    sent = headers.get(_PROOF_HEADER, "") if most is None else form.get("form_token", "")
    is_proven = hmac.compare_digest(sent.encode(), session.form_token.encode())
    if not is_proven and not (isinstance(route, Route) and route.keeps_input):
        raise PageRefused(403, "Not done", "This form is from another session. Go back, reload the page and try again.")
    return form, is_proven


def _wants_json(headers: RequestHeaders) -> bool:
    """Return whether a script sent the request. The script shows a refusal itself, and so needs JSON."""
    return headers.get("Accept") == names.JSON


async def _form(receive: Receive, headers: RequestHeaders, *, limit: int) -> dict[str, str]:
    """Return the fields of a form. If a field occurs several times, its values are joined with line breaks."""
    body = await read_body(receive, headers, limit=limit)
    most = _FORM_FIELDS if limit <= FORM_BYTES else _LONG_FORM_FIELDS
    try:
        parse = partial(parse_qsl, keep_blank_values=True, max_num_fields=most, errors="strict")
        text = body.decode("ascii")
        # The escapes of a large form, such as a table, take seconds.
        fields = parse(text) if len(text) <= FORM_BYTES else await asyncio.to_thread(parse, text)
    except ValueError as error:
        raise Invalid("bad_form", "The form can't be read. Go back, reload the page and try again.") from error
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: "\n".join(several) for name, several in values.items()}
