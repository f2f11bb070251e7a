"""The prose of an operation, from the docstring of its handler.

The first line is the summary; a contract clause in it is left out. Lines ``404: …`` describe responses, and continue until the
next of them. Anything else is the description. ``$bulk_items`` is replaced by that limit. Performs no I/O.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass

from workspaced.settings.model import Limits

_CONTRACT = re.compile(r" \(contract [^)]*\)")
_RESPONSE = re.compile(r"^(?=\d{3}: )", re.MULTILINE)
_LIMIT = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """The texts of an operation. ``responses`` has them by status; of errors: the codes and their causes."""

    summary: str
    description: str
    responses: Mapping[int, str]


def read_prose(handler: object, limits: Limits) -> Prose | None:
    """Return the prose of a handler; None if its docstring has no description."""
    first, _, others = (inspect.getdoc(handler) or "").partition("\n\n")
    text, *responses = _RESPONSE.split(_LIMIT.sub(lambda found: str(getattr(limits, found[1])), others))
    if not text.strip():
        return None
    return Prose(
        summary=_CONTRACT.sub("", " ".join(first.split())).removesuffix("."),
        description=" ".join(text.split()),
        responses={int(one[:3]): " ".join(one[4:].split()) for one in responses},
    )
