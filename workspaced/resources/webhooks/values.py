"""The members of the bodies of webhooks (contract H1, H4, H5, H6), and rows of the store.

This module performs no I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field, ValidatorFunctionWrapHandler

from workspaced.core.bodies import Body, Nested, body_schema
from workspaced.core.json_schema import UUID, Schema, string
from workspaced.core.members import Flag, Identifier, Info, Label, Strings, Text, Whole, bound, rejected
from workspaced.core.text import as_uuid
from workspaced.events.catalogue import PATTERN_LENGTH, is_well_formed
from workspaced.resources.webhooks.signature import key_of
from workspaced.security.secret_box import SecretsSealed

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)", re.ASCII)
_HEADER_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Headers that frame the message, belong to the connection, or are set by the service.
_RESERVED = re.compile(
    "host|content-(length|type|encoding)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*|webhook-.*"
)
LONGEST_GRACE: Final = 604_800
DEFAULT_GRACE: Final = 86_400


def header_of(text: str) -> tuple[str, str] | None:
    """Return name and value of a ``Name: value`` text; None if it is malformed or reserved (contract H4)."""
    match = _HEADER.fullmatch(text)
    if not match or _HEADER_CONTROLS.search(match[2]):
        return None
    return None if _RESERVED.fullmatch(match[1].lower()) else (match[1], match[2].strip(" \t"))


class EventPatterns(Strings):
    """Names or patterns of event types."""

    def _check(self, value: Any, info: Info) -> Any:
        patterns = super()._check(value, info)
        if not all(map(is_well_formed, patterns)):
            raise rejected("bad_event_name", "may hold names of the characters A-Z a-z 0-9 _ . * : / - only")
        return patterns


class HeaderTexts(Strings):
    """Headers as ``Name: value``, stored as they are sent."""

    items = ("'Name: value' strings", "headers")

    def _check(self, value: Any, info: Info) -> Any:
        headers = super()._check(value, info)
        must = "must be 'Name: value' in one line, and may not name a header that the service sets"
        if wrong := [index for index, header in enumerate(headers) if header_of(header) is None]:
            raise rejected("bad_header", *(f"{must} (item {index})" for index in wrong))
        return headers

    def _form(self, limits: Any) -> Schema:
        pattern = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*$"
        item = string(longest=bound(limits, self.longest), pattern=pattern)
        return Strings(most=self.most, longest=self.longest, item=item).schema(limits)


class Identifiers(Strings):
    """A list of UUIDs."""

    def _check(self, value: Any, info: Info) -> Any:
        found = [as_uuid(text) for text in super()._check(value, info)]
        if None in found:
            raise rejected("not_a_uuid", "must hold UUIDs")
        return tuple(dict.fromkeys(found))


class SigningSecret(Text):
    """A signing secret of Standard Webhooks."""

    form = string(pattern="^whsec_([A-Za-z0-9+/]{4}){8,21}$|^whsec_([A-Za-z0-9+/]{4}){10}[A-Za-z0-9+/]{3}=$")

    def _check(self, value: Any, info: Info) -> Any:
        secret = super()._check(value, info)
        if key_of(secret) is None:
            raise rejected("bad_secret", "must be whsec_ and base64 of 24 to 64 bytes")
        return secret

    def _form(self, _limits: Any) -> Schema:
        return self.form


class Connection(Nested):
    """Client credentials; an empty object means that the webhook has none."""

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, _info: Info) -> Any:
        return None if value == {} else check(value)

    def _form(self, limits: Any) -> Schema:
        return {"anyOf": [body_schema(self.body, limits), {"type": "object", "maxProperties": 0}]}


_Short: TypeAlias = Annotated[str, Text(longest="webhook_url_length", exact=True)]


class OAuth(Body):
    """Client credentials for the token that deliveries carry (contract H5).

    In a request, an empty ``client_secret`` means the stored secret.
    """

    token_url: _Short
    client_id: _Short
    client_secret: _Short = Field(default="", repr=False)
    scope: _Short = ""
    audience: _Short = ""


class Definition(Body):
    """The members that the owner of a webhook sets (contract H1). An empty ``label`` means the host of the URL."""

    url: Annotated[
        str,
        Text(
            longest="webhook_url_length",
            exact=True,
            description="https, to a public host unless the service allows more.",
        ),
    ]
    label: Annotated[str, Label(longest="label_length", description="The host of the URL by default.")] = ""
    enabled: Annotated[bool, Flag()] = True
    coalesce: Annotated[
        bool,
        Flag(description="Whether a newer update of a resource replaces an earlier update that was not tried yet."),
    ] = False
    in_order: Annotated[
        bool,
        Flag(
            description="Whether first attempts are made one at a time, in the order of the events. "
            "If false, only events of the same entry (by sink and key), or of the same other resource, are in order."
        ),
    ] = False
    batch_entries: Annotated[
        bool,
        Flag(
            description="Whether events of entries share requests: up to 100, in order, as `events` of a "
            "`data_sink.entry.batch`. Each event has the id that it would have alone. A retry may combine other events."
        ),
    ] = False
    data_events: Annotated[
        tuple[str, ...],
        EventPatterns(
            most="webhook_list_items",
            longest=PATTERN_LENGTH,
            item=string(shortest=1, longest=PATTERN_LENGTH, pattern="^[A-Za-z0-9_.*:/-]+$"),
            description="Names of events, `prefix.*` or `*`; every event by default.",
        ),
    ] = ("*",)
    headers: Annotated[
        tuple[str, ...],
        HeaderTexts(
            most="webhook_headers",
            longest="webhook_header_length",
            exact=True,
            distinct=False,
            description="`Name: value`, sent with each delivery. Headers that the service sets are rejected.",
        ),
    ] = Field(default=(), repr=False)
    workspace_ids: Annotated[
        tuple[str, ...],
        Identifiers(
            most="webhook_list_items",
            longest=64,
            item=UUID,
            description="Only events of these workspaces; by default of all workspaces that the owner may read.",
        ),
    ] = ()
    ignore_client_ids: Annotated[
        tuple[str, ...],
        Strings(
            most="webhook_list_items",
            longest="client_id_length",
            description="Changes that came with these ClientIds are not sent.",
        ),
    ] = ()
    oauth: Annotated[
        OAuth | None,
        Connection(
            body=OAuth,
            description="Client credentials for a bearer token. Without a clientSecret, the stored secret is kept.",
        ),
        Field(alias="oauthConnection"),
    ] = None


class WebhookChanges(Definition):
    """An update body. An empty ``label`` means the default label. An `OAuth` without a secret keeps the stored secret."""

    is_update = True
    unused = frozenset({"id"})

    secret: Annotated[
        str | None,
        SigningSecret(
            longest=200,
            exact=True,
            description="`whsec_` and base64 of 24 to 64 bytes; made by the service by default.",
        ),
        Field(alias="signingSecret"),
    ] = Field(default=None, repr=False)


class NewWebhook(WebhookChanges):
    """A create body of a webhook."""

    is_update = False

    id: Annotated[str | None, Identifier()] = None


class SecretRotation(Body):
    """The optional body of a rotation of secrets."""

    seconds: Annotated[
        int,
        Whole(highest=LONGEST_GRACE, description="For how many seconds the old secrets still sign."),
        Field(alias="gracePeriodSeconds"),
    ] = DEFAULT_GRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWebhook:
    """A webhook's row with decrypted secrets. Instants are milliseconds since 1970.

    ``sealed``: why the secret, headers and credentials can't be decrypted and are empty; None: they are decrypted.
    """

    number: int
    id: str
    owner: str
    definition: Definition
    secret: str = field(repr=False)
    disabled_reason: str
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    sealed: SecretsSealed | None = None
