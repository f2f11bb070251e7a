"""The sentence on a path that leads nowhere: the existing members, and the most similar member. This module performs no I/O."""

from __future__ import annotations

from ingestd.sdk import nearest, shortened

_KEPT = 1000
_LISTED = 10


class MemberNames:
    """The names of the members that were met where a path ended, in order. Only the first thousand are kept."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, name: str) -> None:
        """Note a name."""
        if len(self._names) < _KEPT:
            self._names[shortened(name)] = None

    def sentence(self, missing: str) -> str:
        """Return the nearest name to ``missing`` and a list of all, as sentences with a leading space."""
        names = list(self._names)
        if not names:
            return " It is empty."
        more = " and more" if len(names) > _LISTED else ""
        return f"{nearest(missing, names)} It has {', '.join(names[:_LISTED])}{more}."
