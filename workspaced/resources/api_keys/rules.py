"""What a new key may be (contract A2, A3, A4, A5). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from workspaced.core.fields import Fields
from workspaced.core.timestamps import microseconds
from workspaced.security.permissions import EVERYWHERE, ROLES
from workspaced.settings.model import Limits

DAY_MS = 86_400_000
_GRACE_SECONDS = 86_400
LONGEST_GRACE_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A checked create body. ``workspace_id`` empty: all; ``expires_at`` None: never."""

    name: str
    role: str
    workspace_id: str
    scopes: frozenset[str]
    expires_at: int | None
    guest: bool


def read_new_key(body: object, limits: Limits, *, now: int) -> tuple[NewKey, tuple[str, ...]]:
    """The create body and the ignored names.

    Raises:
        Invalid: something is wrong; a scope that the role does not have would never hold, so it is a mistake.
    """
    fields = Fields(body)
    name = fields.text("name", longest=limits.label_length, required=True, one_line=True)
    name = name.strip() if isinstance(name, str) else None
    if name == "":
        fields.mistake("name", "blank", "can't be blank")
    role = fields.text("role", longest=limits.label_length, required=True)
    if isinstance(role, str) and role not in ROLES:
        fields.mistake("role", "unknown_role", f"must be one of {', '.join(ROLES)}")
    allowed = ROLES.get(role, frozenset()) if isinstance(role, str) else frozenset[str]()
    scopes = allowed
    if fields.raw("scopes") not in (UNSET, None):
        scopes = frozenset(fields.texts("scopes", most=100, longest=100))
        if allowed and (unknown := sorted(scopes - allowed)):
            fields.mistake("scopes", "unknown_scope", f"names what the role {role} has not: {', '.join(unknown)}")
    new = NewKey(
        name=name or "",
        role=role if isinstance(role, str) else "",
        workspace_id=fields.identifier("workspaceId") or EVERYWHERE,
        scopes=scopes,
        expires_at=_expiry(fields, now=now, days=limits.key_days),
        guest=fields.flag("guest", default=False),
    )
    return new, fields.finish()


def read_grace_ms(body: object) -> tuple[int, tuple[str, ...]]:
    """A rotation's body: how many milliseconds the secrets so far stay valid, 24 hours unless it says otherwise (contract A4).

    Raises:
        Invalid: ``gracePeriodSeconds`` is no whole number from 0 to seven days.
    """
    fields = Fields(body)
    seconds = fields.whole("gracePeriodSeconds", lowest=0, highest=LONGEST_GRACE_SECONDS)
    ignored = fields.finish()
    return (_GRACE_SECONDS if seconds is None else seconds) * 1_000, ignored


def _expiry(fields: Fields, *, now: int, days: int) -> int | None:
    """A date-time, or the word "never", which nobody gets by leaving something out (contract A3)."""
    value = fields.raw("expiresAt")
    if value is UNSET or value is None:
        return now + days * DAY_MS
    if value == "never":
        return None
    try:
        at = microseconds(value) // 1_000 if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        at = 0
    if at <= now:
        fields.mistake("expiresAt", "bad_timestamp", 'must be an RFC 3339 date-time in the future, or "never"')
    return at
