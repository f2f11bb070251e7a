"""The rules for accepted requests: the name of the host, the token, and the page that sent a form."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from ingestd.web.message import WebRequest, WebResponse, text_response

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")


class AccessRules:
    """The rules of one listener. ``token`` None: no token is needed. ``hosts``: accepted names, in addition to IP addresses."""

    def __init__(self, *, token: str | None, hosts: Collection[str] = ()) -> None:
        self._token = token.encode() if token is not None else None
        self._hosts = {"localhost", *hosts}

    def refusal(self, request: WebRequest) -> WebResponse | None:
        """Return the response to a request that is not accepted, else None."""
        if not self._accepts_host(request.headers.get("host", "")):
            return text_response(
                421, "The Host header has a name that is not accepted. Add it to listen.hosts, or use the IP address."
            )
        if self._token is not None and not self._has_token(request.headers.get("authorization", "")):
            return text_response(
                401,
                "This listener needs its token (listen.token), as a bearer token or as the password of any user.",
                ("WWW-Authenticate", 'Basic realm="ingestd", charset="UTF-8"'),
            )
        if request.method == "POST" and not _is_same_origin(request):
            return text_response(403, "The form was not sent by a page of this listener. Open the page again.")
        return None

    def _accepts_host(self, host: str) -> bool:
        """Return True if the host is an accepted name or an IP address.

        Other names are refused, because another site can let its own name resolve to this address (DNS rebinding).
        """
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["name"].lower().rstrip(".")
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _has_token(self, authorization: str) -> bool:
        scheme, _, credentials = authorization.strip().partition(" ")
        given = credentials.strip().encode()
        if scheme.lower() == "basic":
            try:
                _, _, given = base64.b64decode(given, validate=True).partition(b":")
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return self._token is not None and hmac.compare_digest(given, self._token)


def _is_same_origin(request: WebRequest) -> bool:
    """Return True if the browser reports that a page of this listener sent the form. Browsers send ``Origin`` with a POST."""
    try:
        origin = urlsplit(request.headers.get("origin", ""))
    except ValueError:
        return False
    is_same_site = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    return is_same_site and bool(origin.netloc) and origin.netloc == request.headers.get("host")
