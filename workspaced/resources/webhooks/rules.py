"""What a webhook may be (contract H1, H4, H5, H6, H15). Pure: bodies in, checked values or every mistake out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from workspaced.core.fields import Fields
from workspaced.core.problems import Invalid, Unprocessable
from workspaced.core.text import as_uuid
from workspaced.events.catalogue import PATTERN_LENGTH, is_well_formed
from workspaced.resources.webhooks.signature import key_of
from workspaced.resources.webhooks.values import Definition, GivenOAuth, NewWebhook, OAuth, WebhookChanges
from workspaced.security.egress.rules import EgressRules, UnsafeTarget
from workspaced.settings.model import Limits

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)", re.ASCII)
_HEADER_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# What frames the message, belongs to the connection, or is ours to say.
_RESERVED = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "expect",
    }
)
_RESERVED_PREFIXES = ("proxy-", "webhook-")
LONGEST_GRACE = 604_800
DEFAULT_GRACE = 86_400


def read_new_webhook(body: object, limits: Limits, egress: EgressRules) -> tuple[NewWebhook, tuple[str, ...]]:
    """The checked body (contract WH2) and the ignored names.

    Raises:
        Invalid: something is wrong with it.
        Unprocessable: a URL may not be reached.
    """
    fields = Fields(body)
    given = _given(fields, limits, creating=True)
    webhook_id = fields.identifier("id")
    secret = _secret(fields)
    ignored = fields.finish()
    require_safe(given, egress)
    given["oauth"] = merged_oauth(None, given.get("oauth"))
    given["label"] = given.get("label") or default_label(given["url"], egress)
    return NewWebhook(id=webhook_id, definition=Definition(**given), secret=secret), ignored


def read_webhook_changes(body: object, limits: Limits, egress: EgressRules) -> tuple[WebhookChanges, tuple[str, ...]]:
    """The checked body (contract WH5) and the ignored names.

    Raises:
        Invalid: something is wrong with it.
        Unprocessable: a URL may not be reached.
    """
    fields = Fields(body)
    given = _given(fields, limits, creating=False)
    secret = _secret(fields)
    fields.raw("id")
    ignored = fields.finish()
    require_safe(given, egress)
    return WebhookChanges(given=given, secret=secret), ignored


def read_rotation(body: object) -> tuple[int, tuple[str, ...]]:
    """The optional body (contract WH6): for how many seconds the old secret goes on signing; and the ignored names.

    Raises:
        Invalid: something is wrong with it.
    """
    fields = Fields(body)
    seconds = fields.whole("gracePeriodSeconds", lowest=0, highest=LONGEST_GRACE)
    return DEFAULT_GRACE if seconds is None else seconds, fields.finish()


def require_safe(given: Mapping[str, Any], egress: EgressRules) -> None:
    """Let URLs through that may be tried at all; what their names resolve to is judged at each attempt.

    Raises:
        Unprocessable: one may not.
    """
    oauth = given.get("oauth")
    urls = {"url": given.get("url"), "oauthConnection/tokenUrl": oauth.token_url if oauth else None}
    for name, url in urls.items():
        if url is None:
            continue
        try:
            egress.target(url)
        except UnsafeTarget as error:
            raise Unprocessable("unsafe_url", f"The URL in {name} can't be used. {error}") from error


def default_label(url: str, egress: EgressRules) -> str:
    """The host of a URL that was judged already."""
    return egress.target(url).host


def merged_oauth(stored: OAuth | None, given: GivenOAuth | None) -> OAuth | None:
    """The connection with the stored secret where none was given.

    Raises:
        Invalid: there is no secret to keep, or it would be sent to another address than the one it was given for.
    """
    if given is None:
        return None
    secret = given.client_secret
    if secret is None:
        if stored is None or stored.token_url != given.token_url:
            why = "is required where there is none yet, or where tokenUrl changes"
            raise Invalid.at("/oauthConnection/clientSecret", "required", f"/oauthConnection/clientSecret {why}.")
        secret = stored.client_secret
    return OAuth(
        token_url=given.token_url,
        client_id=given.client_id,
        client_secret=secret,
        scope=given.scope,
        audience=given.audience,
    )


def header_of(text: str) -> tuple[str, str] | None:
    """Name and value of a ``Name: value`` text; None where it is none, or names what is not its to set (contract H4)."""
    match = _HEADER.fullmatch(text)
    if not match or _HEADER_CONTROLS.search(match[2]):
        return None
    name = match[1].lower()
    if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
        return None
    return match[1], match[2].strip(" \t")


def _given(fields: Fields, limits: Limits, *, creating: bool) -> dict[str, Any]:
    """The members of `Definition` that the body gives. A null is the default, except of what is required."""
    given: dict[str, Any] = {}
    url = fields.text("url", longest=limits.webhook_url_length, required=creating, exact=True)
    if isinstance(url, str):
        given["url"] = url
    elif url is None and not creating:
        fields.mistake("url", "wrong_type", "can't be null")
    if fields.raw("label") is None:
        given["label"] = None
    elif isinstance(label := fields.label(longest=limits.label_length, required=False), str):
        given["label"] = label
    readers: Mapping[str, tuple[str, Callable[[], object]]] = {
        "enabled": ("enabled", lambda: fields.flag("enabled", default=True)),
        "coalesce": ("coalesce", lambda: fields.flag("coalesce", default=False)),
        "inOrder": ("in_order", lambda: fields.flag("inOrder", default=False)),
        "batchEntries": ("batch_entries", lambda: fields.flag("batchEntries", default=False)),
        "dataEvents": ("data_events", lambda: _events(fields, limits)),
        "headers": ("headers", lambda: _headers(fields, limits)),
        "workspaceIds": ("workspace_ids", lambda: _workspace_ids(fields, limits)),
        "ignoreClientIds": ("ignore_client_ids", lambda: _client_ids(fields, limits)),
        "oauthConnection": ("oauth", lambda: _oauth(fields, limits)),
    }
    for name, (attribute, read) in readers.items():
        if fields.raw(name) is not UNSET:
            given[attribute] = read()
    return given


def _events(fields: Fields, limits: Limits) -> tuple[str, ...]:
    if fields.raw("dataEvents") is None:
        return ("*",)
    events = fields.texts("dataEvents", most=limits.webhook_list_items, longest=PATTERN_LENGTH)
    if not all(is_well_formed(event) for event in events):
        fields.mistake("dataEvents", "bad_event_name", "may hold names of the characters A-Z a-z 0-9 _ . * : / - only")
    return events


def _headers(fields: Fields, limits: Limits) -> tuple[str, ...]:
    value = fields.raw("headers")
    headers = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(headers, list) or not all(isinstance(header, str) for header in headers):
        fields.mistake("headers", "wrong_type", "must be a list of 'Name: value' strings")
        return ()
    if len(headers) > limits.webhook_headers or any(len(header) > limits.webhook_header_length for header in headers):
        most, longest = limits.webhook_headers, limits.webhook_header_length
        fields.mistake("headers", "too_long", f"may have {most} headers of {longest} characters at the most")
        return ()
    for index, header in enumerate(headers):
        if header_of(header) is None:
            must = "must be 'Name: value' in one line, and may not name a header that the delivery itself sets"
            fields.mistake("headers", "bad_header", f"{must} (item {index})")
    return tuple(headers)


def _workspace_ids(fields: Fields, limits: Limits) -> tuple[str, ...]:
    found = [as_uuid(text) for text in fields.texts("workspaceIds", most=limits.webhook_list_items, longest=64)]
    if None in found:
        fields.mistake("workspaceIds", "not_a_uuid", "must hold UUIDs")
    return tuple(dict.fromkeys(text for text in found if text))


def _client_ids(fields: Fields, limits: Limits) -> tuple[str, ...]:
    return fields.texts("ignoreClientIds", most=limits.webhook_list_items, longest=limits.client_id_length)


def _oauth(fields: Fields, limits: Limits) -> GivenOAuth | None:
    value = fields.raw("oauthConnection")
    if value is None or value == {}:
        return None
    child = fields.child("oauthConnection", value)
    longest = limits.webhook_url_length
    texts = {
        name: child.text(name, longest=longest, required=name in {"tokenUrl", "clientId"}, exact=True)
        for name in ("tokenUrl", "clientId", "clientSecret", "scope", "audience")
    }
    child.close()
    found = {name: text if isinstance(text, str) else "" for name, text in texts.items()}
    return GivenOAuth(
        token_url=found["tokenUrl"],
        client_id=found["clientId"],
        client_secret=found["clientSecret"] or None,
        scope=found["scope"],
        audience=found["audience"],
    )


def _secret(fields: Fields) -> str | None:
    secret = fields.text("signingSecret", longest=200, exact=True)
    if not isinstance(secret, str):
        return None
    if key_of(secret) is None:
        fields.mistake("signingSecret", "bad_secret", "must be whsec_ and base64 of 24 to 64 bytes")
    return secret
