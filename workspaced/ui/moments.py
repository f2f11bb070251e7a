"""Conversion of the UTC times in forms and URLs ("moments"), such as ``2026-11-23T09:30:00.250``. Performs no I/O."""

from __future__ import annotations

import re
from datetime import datetime

from workspaced.core.timestamps import stamp
from workspaced.ui.page_request import PageRefused

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)


def moment_stamp(text: str) -> str:
    """Return the API's timestamp of a moment.

    Raises:
        PageRefused: the text is not a moment.
    """
    if not _MOMENT.fullmatch(text):
        raise PageRefused(400, "Not a moment", "Write a moment as 2026-11-23T09:30:00.")
    seconds = text if text.count(":") > 1 else f"{text}:00"
    return f"{seconds}Z"


def moment_ms(text: str) -> int:
    """Return the milliseconds since 1970 of a moment.

    Raises:
        PageRefused: the text is not a moment.
    """
    try:
        return milliseconds(moment_stamp(text))
    except (ValueError, OverflowError):
        raise PageRefused(400, "Not a moment", "There is no such day or time. Check it.") from None


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of a timestamp of the API, such as ``2026-11-23T09:30:00.250Z``.

    Raises:
        ValueError: the text is not a timestamp.
    """
    # This is ten times as fast as `microseconds`, which reads any RFC 3339 date-time. A plot has thousands of timestamps.
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def moment_text(at: int) -> str:
    """Return the moment of milliseconds since 1970, in the form that input fields use."""
    return stamp(at).removesuffix("Z")
