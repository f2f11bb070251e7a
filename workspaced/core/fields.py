"""Reading the members of a JSON object: strict types, every mistake with its pointer, unknown names noted.

Absent and null are different things to a PATCH: absent is `msgspec.UNSET`, null is None (contract G4, G5, G6, G7).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from workspaced.core.problems import Invalid, Mistake
from workspaced.core.text import as_uuid, has_controls, normalised

Text: TypeAlias = str | UnsetType | None

# Within what every reader's floating point holds, and long enough for any measured quantity.
_LARGEST = Decimal("1e300")
_DIGITS = 64


class Fields:
    """One object of a request body. Ask for members by name; `finish` raises when anything was wrong.

    ``child`` objects share the lists of mistakes and of ignored names, so one `finish` speaks for the whole body.
    """

    def __init__(self, body: object, *, pointer: str = "", parent: Fields | None = None) -> None:
        self._pointer = pointer
        self._mistakes: list[Mistake] = parent._mistakes if parent else []  # noqa: SLF001  one family
        self._ignored: dict[str, None] = parent._ignored if parent else {}  # noqa: SLF001
        self._asked: set[str] = set()
        self._values: Mapping[str, object] = {}
        if isinstance(body, dict):
            self._values = body
        else:
            self.mistake("", "wrong_type", "must be a JSON object")

    def mistake(self, name: str, code: str, must: str) -> None:
        """Note that the member ``name`` (empty: this object) is wrong; ``must`` completes a sentence about it."""
        pointer = f"{self._pointer}/{_escape(name)}" if name else self._pointer
        subject = pointer or "The body"
        self._mistakes.append(Mistake(pointer=pointer, code=code, detail=f"{subject} {must}."))

    def raw(self, name: str) -> object:
        """The member as it is; UNSET where it is absent."""
        self._asked.add(name)
        return self._values.get(name, UNSET)

    def child(self, name: str, body: object) -> Fields:
        """An object inside this one, at ``name`` (which may hold an index: ``entries/3``)."""
        return Fields(body, pointer=f"{self._pointer}/{name}", parent=self)

    def text(
        self, name: str, *, longest: int, required: bool = False, exact: bool = False, one_line: bool = False
    ) -> Text:
        """A string of at most ``longest`` code points, in NFC unless ``exact``.

        ``required``: neither absent nor null. ``one_line``: without control characters. What is wrong reads as UNSET.
        """
        value = self.raw(name)
        if value is UNSET or value is None:
            if required:
                self.mistake(name, "required", "is required and must be a string")
            return UNSET if value is UNSET else None
        if not isinstance(value, str):
            self.mistake(name, "wrong_type", "must be a string")
            return UNSET
        text = value if exact else normalised(value)
        if len(text) > longest:
            self.mistake(name, "too_long", f"may have {longest} characters at the most")
            return UNSET
        if one_line and has_controls(text):
            self.mistake(name, "control_character", "may not hold control characters")
            return UNSET
        return text

    def label(self, *, longest: int, required: bool) -> str | UnsetType:
        """The member ``label``: trimmed, not blank, one line (contract S1)."""
        value = self.text("label", longest=longest + 1_000, required=required, one_line=True)
        if not isinstance(value, str):
            if value is None and not required:
                self.mistake("label", "wrong_type", "can't be null")
            return UNSET
        trimmed = value.strip()
        if not trimmed:
            self.mistake("label", "blank", "can't be blank")
        if len(trimmed) > longest:
            self.mistake("label", "too_long", f"may have {longest} characters at the most")
        return trimmed

    def identifier(self, name: str, *, required: bool = False) -> str | None:
        """A UUID in lower case; None where it is absent, null or wrong (contract G1)."""
        value = self.raw(name)
        if value is UNSET or value is None:
            if required:
                self.mistake(name, "required", "is required and must be a UUID")
            return None
        found = as_uuid(value) if isinstance(value, str) else None
        if found is None:
            self.mistake(name, "not_a_uuid", "must be a UUID")
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean; the default where it is absent or null."""
        value = self.raw(name)
        if value is UNSET or value is None:
            return default
        if not isinstance(value, bool):
            self.mistake(name, "wrong_type", "must be true or false")
            return default
        return value

    def number(self, name: str, *, lowest: float | None = None) -> int | Decimal | UnsetType | None:
        """A finite number with the digits it was sent with; what is wrong reads as UNSET."""
        value = self.raw(name)
        if value is UNSET or value is None:
            return UNSET if value is UNSET else None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            self.mistake(name, "wrong_type", "must be a number")
            return UNSET
        if not -_LARGEST <= value <= _LARGEST or len(str(value)) > _DIGITS:
            self.mistake(name, "out_of_range", f"may have {_DIGITS} digits at the most, and be no larger than 1e300")
            return UNSET
        if lowest is not None and value < lowest:
            self.mistake(name, "out_of_range", f"must be at least {lowest:g}")
            return UNSET
        return value

    def whole(self, name: str, *, lowest: int, highest: int) -> int | None:
        """A whole number within bounds; None where it is absent, null or wrong. 7.0 is one, as JSON Schema has it."""
        value = self.number(name)
        if isinstance(value, UnsetType) or value is None:
            return None
        if value != int(value) or not lowest <= value <= highest:
            self.mistake(name, "out_of_range", f"must be a whole number from {lowest} to {highest}")
            return None
        return int(value)

    def texts(self, name: str, *, most: int, longest: int, distinct: bool = True) -> tuple[str, ...]:
        """Strings in their order, each once where ``distinct``; one string counts as a list of one (contract G6)."""
        value = self.raw(name)
        if value is UNSET or value is None:
            return ()
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            self.mistake(name, "wrong_type", "must be a list of strings")
            return ()
        if len(items) > most or any(len(item) > longest for item in items):
            self.mistake(name, "too_long", f"may have {most} strings of {longest} characters at the most")
            return ()
        texts = [normalised(item) for item in items]
        return tuple(dict.fromkeys(texts) if distinct else texts)

    def close(self) -> None:
        """No more members will be asked for: the others are ignored, and told (contract G5)."""
        prefix = ".".join(part for part in self._pointer.split("/") if part and not part.isdigit())
        for name in self._values.keys() - self._asked:
            self._ignored[f"{prefix}.{name}" if prefix else name] = None

    def finish(self) -> tuple[str, ...]:
        """The names of ignored members, sorted.

        Raises:
            Invalid: something was wrong; carries every mistake.
        """
        self.close()
        if self._mistakes:
            raise Invalid.because(self._mistakes)
        return tuple(sorted(self._ignored))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1") if "~" in name else name
