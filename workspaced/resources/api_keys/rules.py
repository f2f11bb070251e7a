"""The members of the request bodies of API keys (contract A2, A3, A4, A5). Performs no I/O."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from workspaced.core.bodies import Body, body_schema
from workspaced.core.json_schema import TIMESTAMP, Schema, array, choice, described, nullable
from workspaced.core.members import Flag, Identifier, Info, Label, Member, Strings, Whole, Word, rejected
from workspaced.core.timestamps import microseconds
from workspaced.security.permissions import EVERYWHERE, ROLES
from workspaced.settings.model import Limits

DAY_MS: Final = 86_400_000
LONGEST_GRACE_SECONDS: Final = 7 * 86_400


class PrincipalName(Label):
    """The name of a principal. The length is checked before whitespace is trimmed."""

    slack = 0


class RoleScopes(Strings):
    """Some of the scopes of the role. The role is read before this member."""

    def _check(self, value: Any, info: Info) -> Any:
        scopes, role = frozenset(super()._check(value, info)), info.data.get("role")
        if role is not None and (unknown := sorted(scopes - ROLES[role])):
            # A scope that the role does not have would never apply.
            raise rejected("unknown_scope", f"has scopes that the role {role} does not have: {', '.join(unknown)}")
        return scopes


class Expiry(Member):
    """A date-time in the future, or "never" (contract A3). After reading, a date-time is in milliseconds since 1970."""

    def _check(self, value: Any, info: Info) -> Any:
        if value == "never":
            return value
        try:
            at = microseconds(value) // 1_000
        except (TypeError, ValueError):
            at = 0
        if at <= info.context.now:
            raise rejected("bad_timestamp", 'must be an RFC 3339 date-time in the future, or "never"')
        return at

    def _form(self, limits: Any) -> Schema:
        about = f"In the future; in {limits.key_days} days by default."
        return described({"anyOf": [TIMESTAMP, {"const": "never"}]}, about)


class NewApiKey(Body):
    """A create body. Empty ``workspace_id``: all workspaces. `with_defaults` sets absent ``scopes`` and ``expires_at``."""

    name: Annotated[str, PrincipalName(longest="label_length", description="The name of the principal.")]
    role: Annotated[
        str,
        Word(
            longest="label_length", words=tuple(ROLES), mistake=("unknown_role", f"must be one of {', '.join(ROLES)}")
        ),
    ]
    scopes: Annotated[
        frozenset[str] | None,
        RoleScopes(most=100, longest=100, description="Some of the role's scopes; by default all scopes of the role."),
    ] = None
    workspace_id: Annotated[
        str,
        Identifier(
            description="The one workspace that the key is for; all workspaces by default. All keys with one name are valid in "
            "the same workspaces."
        ),
    ] = EVERYWHERE
    expires_at: Annotated[Any, Expiry()] = None
    guest: Annotated[bool, Flag(description="Whether the key is accepted only by workspaces with guests enabled.")] = (
        False
    )


class KeyRotation(Body):
    """The optional body of a rotation (contract A4)."""

    seconds: Annotated[
        int,
        Whole(highest=LONGEST_GRACE_SECONDS, description="How many seconds the old key stays valid; a day by default."),
        Field(alias="gracePeriodSeconds"),
    ] = 86_400


def with_defaults(new: NewApiKey, limits: Limits, *, now: int) -> NewApiKey:
    """Return the create body with its defaults. In the result, ``expires_at`` None means never."""
    scopes = ROLES[new.role] if new.scopes is None else new.scopes
    expires_at = now + limits.key_days * DAY_MS if new.expires_at is None else new.expires_at
    return new.model_copy(update={"scopes": scopes, "expires_at": None if expires_at == "never" else expires_at})


def new_key_schema(limits: Limits) -> Schema:
    """Return the schema of a create body. For each role, the schema permits only the role's scopes."""
    return {
        **body_schema(NewApiKey, limits),
        "anyOf": [_role_schema(role, sorted(scopes)) for role, scopes in ROLES.items()],
    }


def _role_schema(role: str, scopes: list[str]) -> Schema:
    one = choice(*scopes)
    return {"properties": {"role": {"const": role}, "scopes": nullable({"anyOf": [array(one), one]})}}
