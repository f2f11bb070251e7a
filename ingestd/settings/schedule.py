"""The schedule of a pipeline, and the parsers of durations and time zones."""

from __future__ import annotations

import re
import zoneinfo
from typing import Final, TypeAlias

import msgspec

from ingestd.core.phrases import nearest, shortened

_UNIT_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(?P<d>\d{1,9})d)?(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m)?(?:(?P<s>\d{1,9})s)?")
LONGEST_SECONDS: Final = 366 * 86_400


class OnChange(msgspec.Struct, frozen=True, kw_only=True):
    """Run when the source reports a change."""


class Every(msgspec.Struct, frozen=True, kw_only=True):
    """Run at an interval: ``seconds`` between the starts of two runs, from 1 second to 366 days."""

    seconds: int


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """Run at the times of a cron expression of five fields, in an IANA time zone."""

    expression: str
    timezone: str = "UTC"


Schedule: TypeAlias = OnChange | Every | Cron


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration such as ``1h30m``: 5400.

    Raises:
        ValueError: the text is no duration from 1s to 366d. The message is a sentence.
    """
    found = _DURATION.fullmatch(text.strip())
    parts = {unit: int(amount) for unit, amount in found.groupdict().items() if amount} if found else {}
    if not parts:
        raise ValueError(
            f"Expected a duration such as 15m, 90s or 1h30m (d, h, m, s, larger units first), found '{shortened(text)}'."
        )
    seconds = sum(amount * _UNIT_SECONDS[unit] for unit, amount in parts.items())
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise ValueError(f"Expected a duration from 1s to 366d, found '{shortened(text)}'.")
    return seconds


def known_timezone(name: str) -> str:
    """Return ``name`` if the time zone database of the system has it.

    Raises:
        ValueError: the time zone is unknown. The message is a sentence with the most similar name.
    """
    if name == "UTC":
        return name
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        names = zoneinfo.available_timezones()
        if not names:
            raise ValueError(
                "This machine has no time zone database (Debian: package tzdata); only UTC is known."
            ) from None
        raise ValueError(
            f"There is no time zone '{shortened(name)}'.{nearest(name, names) or ' Expected a name such as Europe/Berlin.'}"
        ) from None
    return name
