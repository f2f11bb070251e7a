"""The time zone of the times that a command prints. A daemon that makes text for the command uses the same zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingestd.core.clock import shown_zone

UTC_NAME = "UTC"
_LOCAL = Path("/etc/localtime")
_name = UTC_NAME


def zone_of(name: str, local: Path = _LOCAL) -> tzinfo:
    """Return the zone with an IANA name, or the machine's zone if ``name`` is empty; UTC if the zone does not exist."""
    try:
        if name:
            return UTC if name == UTC_NAME else ZoneInfo(name)
        with local.open("rb") as data:
            return ZoneInfo.from_file(data)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC


def use_zone(name: str) -> None:
    """Make this process print times in a zone, and request times from the daemon in the same zone."""
    global _name  # noqa: PLW0603 - a command has one zone, and its threads print times, too
    _name = name
    shown_zone.of_process = zone_of(name)


def used_zone() -> str:
    """Return the argument of the last call of `use_zone`."""
    return _name


def local_zone(environment: Mapping[str, str]) -> str:
    """Return the zone name in the variable TZ. If TZ is missing, return "", which means the zone of the machine."""
    return environment.get("TZ", "").removeprefix(":")
