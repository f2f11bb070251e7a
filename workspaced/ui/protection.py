"""What keeps others' pages away from ours: headers, the session's cookie, and where a form was sent from. Pure."""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from workspaced.http.responses import Headers as AnswerHeaders

COOKIE: Final = "workspaced_session"
HOME: Final = "/ui"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

SAFETY: Final[AnswerHeaders] = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # Not no-referrer: with it a browser sends forms with `Origin: null`, which could come from anywhere.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


def token_of(cookies: str) -> str:
    """The session's token out of the header Cookie; empty where there is none."""
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def keep_cookie(token: str, *, seconds: int, scheme: str) -> tuple[str, str]:
    """Have the browser keep the token: for our pages only, out of scripts' reach, and by https only where it came so."""
    secure = "; Secure" if scheme == "https" else ""
    return ("Set-Cookie", f"{COOKIE}={token}; Path={HOME}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")


def drop_cookie(*, scheme: str) -> tuple[str, str]:
    """Have the browser forget the token."""
    return keep_cookie("", seconds=0, scheme=scheme)


def sent_by_us(headers: Headers) -> bool:
    """Whether a form came from our own pages, as far as the browser tells.

    Sec-Fetch-Site is told over https and to this machine, Origin always. What tells neither is no browser, so it has no
    cookie that anybody could misuse.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == headers.get("Host")


def same_token(sent: str, expected: str) -> bool:
    """Whether a form sent the token that it was given."""
    return hmac.compare_digest(sent.encode(), expected.encode())


def safe_return(path: str) -> str:
    """Where to go after signing in: one of our pages, whatever the form says."""
    ours = path.startswith(f"{HOME}/")
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if ours and plain and not path.startswith(f"{HOME}/sign-") else f"{HOME}/workspaces"
