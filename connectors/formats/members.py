"""The sentence about a missing member of a path: the existing members, and the most similar member. Performs no I/O."""

from __future__ import annotations

from ingestd.sdk import nearest, shortened

_KEPT = 1000
_LISTED = 10


class MemberNames:
    """The names of the members that exist instead of a missing member, in order; at most the first 1,000."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, name: str) -> None:
        """Add a name."""
        if len(self._names) < _KEPT:
            self._names[shortened(name)] = None

    def sentence(self, missing: str) -> str:
        """Return sentences with a leading space: the name most similar to ``missing``, and the first names of the list."""
        names = list(self._names)
        if not names:
            return " It is empty."
        more = " and more" if len(names) > _LISTED else ""
        return f"{nearest(missing, names)} It has {', '.join(names[:_LISTED])}{more}."
