"""The members of the request bodies of API keys (contract A2, A3, A4, A5). Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Final

from workspaced.core.fields import Fields
from workspaced.core.json_schema import TIMESTAMP, Schema, array, choice, described, nullable
from workspaced.core.members import (
    Flag,
    Identifier,
    Label,
    Member,
    Slot,
    Strings,
    Text,
    Whole,
    Word,
    body_schema,
    read_members,
)
from workspaced.core.timestamps import microseconds
from workspaced.security.permissions import EVERYWHERE, ROLES
from workspaced.settings.model import Limits

DAY_MS: Final = 86_400_000
LONGEST_GRACE_SECONDS: Final = 7 * 86_400


class PrincipalName(Label):
    """The name of a principal: one line, trimmed, not blank."""

    def _check(self, slot: Slot, value: Any) -> Any:
        text = Text(longest=self.longest, one_line=True, trimmed=True).read(slot, value)
        return slot.reject("blank", "can't be blank") if text == "" else text


class Expiry(Member):
    """A date-time as milliseconds since 1970, or "never" (contract A3).

    Any other value is read as 0, which `read_new_key` rejects like every instant in the past.
    """

    def _check(self, slot: Slot, value: Any) -> Any:
        del slot
        try:
            return "never" if value == "never" else microseconds(value) // 1_000
        except (TypeError, ValueError, OverflowError):
            return 0

    def _form(self, limits: Any) -> Schema:
        about = f"In the future; in {limits.key_days} days by default."
        return described({"anyOf": [TIMESTAMP, {"const": "never"}]}, about)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A create body. Empty ``workspace_id``: all workspaces; no ``expires_at``: never; no ``scopes``: all."""

    name: Annotated[str, PrincipalName(longest="label_length", description="The name of the principal.")]
    role: Annotated[
        str,
        Word(
            longest="label_length", words=tuple(ROLES), mistake=("unknown_role", f"must be one of {', '.join(ROLES)}")
        ),
    ]
    scopes: Annotated[
        Any,
        Strings(most=100, longest=100, description="Some of the role's scopes; all of them by default."),
    ] = None
    workspace_id: Annotated[
        str, Identifier(description="The one workspace that the key is for; all workspaces by default.")
    ] = EVERYWHERE
    expires_at: Annotated[int | None, Expiry()] = None
    guest: Annotated[bool, Flag(description="Whether the key is accepted only by workspaces with guests enabled.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotation:
    """The optional body of a rotation (contract A4)."""

    seconds: Annotated[
        int,
        Whole(
            name="gracePeriodSeconds",
            highest=LONGEST_GRACE_SECONDS,
            description="How long the old key is still valid; a day by default.",
        ),
    ] = 86_400


def read_new_key(body: object, limits: Limits, *, now: int) -> tuple[NewApiKey, tuple[str, ...]]:
    """Return the create body with its defaults, and the names of ignored members.

    Raises:
        Invalid: the body has mistakes. A scope that the role does not have is one, because it would never apply.
    """
    fields = Fields(body)
    new = read_members(NewApiKey, fields, limits)
    allowed = ROLES.get(new.role, frozenset())
    scopes = allowed if new.scopes is None else frozenset(new.scopes or ())
    if allowed and (unknown := sorted(scopes - allowed)):
        fields.mistake(
            "scopes", "unknown_scope", f"has scopes that the role {new.role} does not have: {', '.join(unknown)}"
        )
    expires_at: Any = now + limits.key_days * DAY_MS if new.expires_at is None else new.expires_at
    if expires_at != "never" and expires_at <= now:
        fields.mistake("expiresAt", "bad_timestamp", 'must be an RFC 3339 date-time in the future, or "never"')
    ignored = fields.finish()
    expires_at = None if expires_at == "never" else expires_at
    return dataclasses.replace(new, scopes=scopes, expires_at=expires_at), ignored


def new_key_schema(limits: Limits) -> Schema:
    """Return the schema of a create body; for each role it permits only the role's scopes."""
    return {
        **body_schema(NewApiKey, limits),
        "anyOf": [_role_schema(role, sorted(scopes)) for role, scopes in ROLES.items()],
    }


def _role_schema(role: str, scopes: list[str]) -> Schema:
    one = choice(*scopes)
    return {"properties": {"role": {"const": role}, "scopes": nullable({"anyOf": [array(one), one]})}}
