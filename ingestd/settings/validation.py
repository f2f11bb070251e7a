"""What the validators of the configuration share: what is known while a file is read, and how they refuse a value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from ingestd.core.claims import FileClaim
from ingestd.core.errors import IngestdError

Model = TypeVar("Model", bound=BaseModel)

SENTENCE = "ingestd_sentence"
"""The type of a pydantic error that is a sentence already; ``ctx`` holds it, and the offset in the text where it has one."""


class ConnectorKind(Protocol):
    """What the configuration needs to know of a connector's class (`ingestd.sdk.Connector` fits)."""

    Options: ClassVar[type[BaseModel]]
    scheduled_only: ClassVar[bool]

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:
        """The files that a source with these options reads, takes away and writes."""


class ConnectorUnusable(IngestdError):
    """There is no connector of that name, or it can't be loaded: a sentence that says why and what to do."""


@dataclass(slots=True, kw_only=True)
class Reading:
    """The context of one pass over a file.

    Pydantic reads fields in the order of their declaration, so what a pipeline's source says is known when its schedule
    is read, and the names of the pipelines before it when its own is. ``secrets`` False: placeholders of sources may be left
    as they are, and their options unchecked.
    """

    options_of: Callable[[str], type[ConnectorKind]]
    secrets: bool = True
    names: set[str] = field(default_factory=set)
    connector: type[ConnectorKind] | None = None


def problem(sentence: str, position: int | None = None) -> PydanticCustomError:
    """A refusal in our own words; ``position`` is the 0-based offset in the text that it is about."""
    return PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence, "position": position})


def refuse(at: tuple[str | int, ...], what: PydanticCustomError | str, found: Any) -> NoReturn:
    """Raise ``what`` (or an error type of pydantic's, such as ``missing``) for the value at ``at`` below this one."""
    raise ValidationError.from_exception_data("", [InitErrorDetails(type=what, loc=at, input=found)])


def validated(model: type[Model], found: Any, context: Reading | None = None) -> Model:
    """``found``, plain data as JSON has it, as a ``model``: strictly, so that a number is never taken for a text.

    Raises:
        ValidationError: everything that does not fit; raised in a validator it keeps its places.
    """
    return model.model_validate_json(json.dumps(found), strict=True, context=context)
