"""Protection against pages of other sites: headers, the session's cookie, and the check of a form's origin. Performs no I/O."""

from __future__ import annotations

from typing import Final

from workspaced.http.headers import RequestHeaders
from workspaced.http.responses import Headers

COOKIE: Final = "workspaced_session"
HOME: Final = "/ui"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

SAFETY: Final[Headers] = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # With no-referrer, browsers would send forms with `Origin: null`, which a form of any site can have.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


def token_of(cookies: str) -> str:
    """Return the session's token from the header Cookie; empty if there is none."""
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def keep_cookie(token: str, *, seconds: int, scheme: str) -> tuple[str, str]:
    """Return the header that stores the token in a cookie. Only the pages get the cookie, and scripts can't read it.

    If the request used https, the cookie is restricted to https. 0 seconds: the browser deletes the cookie.
    """
    secure = "; Secure" if scheme == "https" else ""
    return ("Set-Cookie", f"{COOKIE}={token}; Path={HOME}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")


def is_same_origin(headers: RequestHeaders) -> bool:
    """Return whether a page of this service sent a form, according to the browser.

    Browsers send Origin with every form, and Sec-Fetch-Site over https and to their own machine. A request with neither header
    does not come from a browser, so no other site can have caused it.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("Origin")
    return origin is None or origin.partition("://")[2] == headers.get("Host")


def safe_return(path: str) -> str:
    """Return the path of the page to show after signing in. If ``path`` is no page of this service, return the first page."""
    ours = path.startswith(f"{HOME}/")
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if ours and plain and not path.startswith(f"{HOME}/sign-") else f"{HOME}/workspaces"
