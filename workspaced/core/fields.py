"""The validation of objects in request bodies: mistakes with their pointers, and unknown members."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET

from workspaced.core.problems import FieldError, Invalid


class Fields:
    """One object of a request body. `raw` returns members by name; `finish` raises if there are mistakes.

    Objects made by `child` share the lists of mistakes and of ignored names, so one `finish` covers the whole body.
    """

    def __init__(self, body: object, *, pointer: str = "", parent: Fields | None = None) -> None:
        self._pointer = pointer
        self._mistakes: list[FieldError] = parent._mistakes if parent else []  # noqa: SLF001  the same class
        self._ignored: dict[str, None] = parent._ignored if parent else {}  # noqa: SLF001
        self._known: set[str] = set()
        self._values: Mapping[str, object] = {}
        if isinstance(body, dict):
            self._values = body
        else:
            self.mistake("", "wrong_type", "must be a JSON object")

    def mistake(self, name: str, code: str, must: str) -> None:
        """Add a mistake of the member ``name`` (empty: this object); ``must`` completes a sentence about it."""
        pointer = f"{self._pointer}/{_escape(name)}" if name else self._pointer
        subject = pointer or "The body"
        self._mistakes.append(FieldError(pointer=pointer, code=code, detail=f"{subject} {must}."))

    def raw(self, name: str) -> object:
        """Return a member without a check; UNSET if it is absent. The member counts as known."""
        self._known.add(name)
        return self._values.get(name, UNSET)

    def child(self, name: str, body: object) -> Fields:
        """Return an object inside this one, at ``name`` (which may hold an index: ``entries/3``)."""
        return Fields(body, pointer=f"{self._pointer}/{name}", parent=self)

    def close(self) -> None:
        """Add the unknown members to the ignored ones."""
        prefix = ".".join(part for part in self._pointer.split("/") if part and not part.isdigit())
        for name in self._values.keys() - self._known:
            self._ignored[f"{prefix}.{name}" if prefix else name] = None

    def finish(self) -> tuple[str, ...]:
        """Return the names of ignored members, sorted.

        Raises:
            Invalid: there are mistakes; it has all of them.
        """
        self.close()
        if self._mistakes:
            raise Invalid.because(self._mistakes)
        return tuple(sorted(self._ignored))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1") if "~" in name else name
