"""The body that configures the history of a sink, and the instants of a comparison. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from workspaced.core.members import Body, Whole
from workspaced.core.problems import Invalid
from workspaced.core.timestamps import microseconds
from workspaced.resources.data_sinks.history_store import Moments
from workspaced.settings.history import MOST_CHANGES, MOST_DAYS


class DataSinkHistoryChanges(Body):
    """An update body of the settings of a history; null: as the service does."""

    is_update = True

    changes: Annotated[
        int | None, Whole(highest=MOST_CHANGES, description="How many changes of each entry are kept; 0: no history.")
    ] = None
    days: Annotated[int | None, Whole(highest=MOST_DAYS, description="For how many days a change is kept.")] = None


def read_moments(query: Mapping[str, str], *, now: int) -> Moments:
    """Return the instants of a comparison: ``from``, and ``to``, which is now by default.

    Raises:
        Invalid: one of them is no date-time with an offset, or ``from`` is not the earlier one.
    """
    since = _instant(query, "from")
    until = min(_instant(query, "to"), now) if "to" in query else now
    if since >= until:
        raise Invalid("bad_from", "from must be before to, and in the past.")
    return Moments(since=since, until=until)


def _instant(query: Mapping[str, str], name: str) -> int:
    try:
        return microseconds(query.get(name, "")) // 1_000
    except (ValueError, OverflowError) as error:
        raise Invalid(f"bad_{name}", f"{name} must be an RFC 3339 date-time with an offset.") from error
