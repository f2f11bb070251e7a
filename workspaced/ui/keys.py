"""The page of API keys: list, create, rotate and revoke. A secret is shown only once, after it was created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.security.permissions import ROLES
from workspaced.ui.addresses import address, see_other
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.pager import PagePosition
from workspaced.ui.renderer import PageView, page_view

SECTION: Final = "keys"
GRACE_SECONDS: Final = {"0": "at once", "3600": "in an hour", "86400": "in a day", "604800": "in a week"}
_FIELDS: Final = ("name", "role", "workspaceId", "expiresAt", "scopes", "guest")
_PAGE_LENGTH: Final = 50
_WORKSPACES: Final = "1000"
_CLIENT_ERROR: Final = range(400, 500)


async def list_keys(request: PageRequest) -> PageView:
    """Show all keys, the newest first, and the form for a new key."""
    return await _page(request)


async def create_key(request: PageRequest) -> PageView:
    """Create a key, and show its secret. If the API refuses the input, show the form again."""
    given = {name: request.form.get(name, "").strip() for name in _FIELDS}
    body: dict[str, Any] = {name: text for name, text in given.items() if text}
    if "scopes" in body:
        body["scopes"] = body["scopes"].split("\n")
    body["guest"] = given["guest"] == "true"
    if "expiresAt" in body:
        body["expiresAt"] += "T23:59:59Z"
    try:
        issued = await request.send("POST", "api-keys", body=body)
    except PageRefused as refused:
        if refused.status not in _CLIENT_ERROR or (refused.status == 403 and request.is_proven):
            raise
        wrong = " ".join(sentence for _, sentence in refused.mistakes) or refused.sentence
        return await _page(request, given=given, wrong=wrong, status=refused.status)
    return _issued(issued.record, "created")


async def rotate_key(request: PageRequest) -> PageView:
    """Replace the secret of a key, and show the new secret."""
    grace = request.form.get("gracePeriodSeconds", "")
    body = {"gracePeriodSeconds": int(grace)} if grace in GRACE_SECONDS else {}
    issued = await request.send("POST", "api-keys", request.names["key"], "rotate", body=body)
    return _issued(issued.record, "rotated")


async def revoke_key(request: PageRequest) -> Response:
    """Revoke a key, then show the list."""
    await request.send("DELETE", "api-keys", request.names["key"])
    return see_other(address("keys"))


async def _page(
    request: PageRequest, *, given: Mapping[str, str] | None = None, wrong: str = "", status: int = 200
) -> PageView:
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    keys = await request.get("api-keys", sortedBy="createdAt", sortOrder="DESC", **list_page.query)
    workspaces = (await request.get("workspace", take=_WORKSPACES, sortedBy="label")).value
    values: dict[str, Any] = {
        "keys": keys.value,
        "pager": list_page.pager(keys.total, "keys"),
        "workspaces": [(one["id"], one["label"]) for one in workspaces],
        "roles": tuple(ROLES),
        "scopes": sorted(frozenset[str]().union(*ROLES.values())),
        "grace": GRACE_SECONDS,
        "own": request.session.principal.key_id,
        "given": given or dict.fromkeys(_FIELDS, ""),
        "wrong": wrong,
    }
    return PageView(template="keys.html", title="Keys", section=SECTION, values=values, status=status)


def _issued(record: Mapping[str, Any], action: str) -> PageView:
    return page_view("issued_key.html", f"Key {action}", SECTION, key=record, action=action)
