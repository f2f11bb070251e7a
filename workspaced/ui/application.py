"""One request to a page: the session, the check of a form, then the page; and the security headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from workspaced.core.problems import Invalid, MethodNotAllowed, NotFoundProblem, Problem, UnauthenticatedProblem
from workspaced.http.bodies import read_body
from workspaced.http.headers import client_address, client_scheme, query_of
from workspaced.http.internal_client import InternalClient
from workspaced.http.paths import Routes, raw_path_of, segments
from workspaced.http.response_sender import send_response
from workspaced.http.responses import Response
from workspaced.http.tracing import record_operation, record_refusal, request_id_of
from workspaced.security.trusted_proxies import Proxies
from workspaced.ui.addresses import address, see_other
from workspaced.ui.assets import Assets
from workspaced.ui.live import LiveLimits, LiveUpdates
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.protection import SAFETY, drop_cookie, is_same_origin, keep_cookie, safe_return, same_token, token_of
from workspaced.ui.renderer import PageView, Renderer
from workspaced.ui.routes import Route, routes
from workspaced.ui.sessions import Session, Sessions

_NO_STORE: Final = ("Cache-Control", "no-store")
_FORM_BYTES: Final = 8_192
_FORM_FIELDS: Final = 20
_SIGN_IN: Final = "/ui/sign-in"


class _BuiltIn(Enum):
    """Routes that work without a session, or end it."""

    SIGN_IN = auto()
    SIGN_OUT = auto()
    ASSET = auto()


class Pages:
    """The ASGI application of the web pages, which are all at or below ``/ui``."""

    def __init__(
        self,
        *,
        respond: Callable[[Scope, Receive], Awaitable[Response]],
        sessions: Sessions,
        proxies: Proxies,
        live: LiveLimits,
    ) -> None:
        """``respond`` sends internal requests to the API (`workspaced.http.dispatch.Dispatch.respond`)."""
        self._respond = respond
        self._sessions = sessions
        self._proxies = proxies
        self._assets = Assets()
        self._rendering = Renderer(self._assets)
        self.live = LiveUpdates(self._rendering, sessions, limits=live)
        self._routes: Routes[Route | _BuiltIn] = Routes()
        for route in routes(self.live):
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
        headers = Headers(scope=scope)
        session: Session | None = None
        try:
            session = await self._session(headers)
            return await self._page(raw_path, headers, session, scope, receive)
        except PageRefused as refused:
            return self._refusal(refused, session, ())
        except Problem as problem:
            record_refusal(scope, problem)
            return self._refusal(PageRefused(problem.status, problem.title, problem.detail), session, problem.headers)

    async def _session(self, headers: Headers) -> Session | None:
        token = token_of(headers.get("Cookie", ""))
        return await self._sessions.find(token) if token else None

    async def _page(
        self, raw_path: bytes, headers: Headers, session: Session | None, scope: Scope, receive: Receive
    ) -> Response:
        match = self._routes.find(scope["method"], segments(raw_path))
        if match is None:
            raise NotFoundProblem("no_such_page", "There is no page under this address.")
        route = match.operation
        if route is None:
            raise MethodNotAllowed(", ".join(match.allowed))
        names = {name: value for name, value in match.names.items() if value is not None}
        if len(names) < len(match.names):
            raise NotFoundProblem("no_such_page", "There is no page under this address.")
        if route is _BuiltIn.ASSET:
            return self._assets.response(names["asset"], headers)
        form = await _form(receive, headers) if scope["method"] == "POST" else {}
        if route is _BuiltIn.SIGN_IN:
            return await self._sign_in(form, headers, session, scope)
        if session is None:
            if isinstance(route, Route) and route.name == "live":
                raise PageRefused(401, "Signed out", "You are signed out. Sign in again.")
            return see_other(address("sign-in", next=_requested_page(raw_path, scope)))
        if scope["method"] == "POST" and not same_token(form.get("form_token", ""), session.form_token):
            raise PageRefused(
                403, "Not done", "This form is from another session. Go back, reload the page and try again."
            )
        if not isinstance(route, Route):
            return await self._sign_out(session, headers, scope)
        record_operation(scope, f"pages.{route.name}")
        request = PageRequest(
            method=scope["method"],
            names=names,
            query=query_of(scope),
            headers=headers,
            session=session,
            address=client_address(scope, headers, self._proxies),
            api=InternalClient(self._respond, scope, session.principal),
        )
        shown = await route.page(request)
        return self._rendered(shown, session) if isinstance(shown, PageView) else shown

    async def _sign_in(
        self, form: Mapping[str, str], headers: Headers, session: Session | None, scope: Scope
    ) -> Response:
        """Show the form, or sign in. An invalid key counts against its address as in the API (contract G20)."""
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

    async def _sign_out(self, session: Session, headers: Headers, scope: Scope) -> Response:
        await self._sessions.end(
            session, address=client_address(scope, headers, self._proxies), request_id=request_id_of(scope)
        )
        return see_other(_SIGN_IN, drop_cookie(scheme=client_scheme(scope, headers, self._proxies)))

    def _rendered(self, view: PageView, session: Session | None) -> Response:
        body = self._rendering.page(
            view,
            principal=session.principal.name if session else "",
            form_token=session.form_token if session else "",
        )
        return Response(status=view.status, headers=(("Content-Type", "text/html; charset=utf-8"),), body=body)

    def _refusal(self, refused: PageRefused, session: Session | None, headers: tuple[tuple[str, str], ...]) -> Response:
        view = PageView(
            template="refused.html",
            title=refused.title,
            values={"sentence": refused.sentence, "status": refused.status},
            status=refused.status,
        )
        shown = self._rendered(view, session)
        return Response(status=shown.status, headers=(*shown.headers, *headers), body=shown.body)


def _requested_page(raw_path: bytes, scope: Scope) -> str:
    """Return the page to show after signing in; empty for a form, which is not sent again."""
    if scope["method"] == "POST":
        return ""
    query: bytes = scope["query_string"]
    return (raw_path + (b"?" + query if query else b"")).decode("ascii", "replace")


async def _form(receive: Receive, headers: Headers) -> dict[str, str]:
    """Return the fields of a form that one of these pages sent.

    Raises:
        PageRefused: a page of another site sent it.
        Invalid: it can't be read.
    """
    if not is_same_origin(headers):
        raise PageRefused(403, "Not done", "This form was sent by a page of another site, so nothing was done.")
    body = await read_body(receive, headers, limit=_FORM_BYTES)
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FORM_FIELDS, errors="strict")
    except ValueError as error:
        raise Invalid("bad_form", "The form can't be read. Go back, reload the page and try again.") from error
    return dict(fields)
