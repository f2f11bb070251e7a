"""The shared context of the validators, and their errors."""

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
    """The class interface of a connector for the configuration; implemented by `ingestd.sdk.Connector`."""

    Options: ClassVar[type[BaseModel]]
    scheduled_only: ClassVar[bool]

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:
        """Return the files that a source with these options reads, removes and writes."""


class ConnectorUnusable(IngestdError):
    """There is no connector of that name, or it can't be loaded; the sentence says why and what to do."""


@dataclass(slots=True, kw_only=True)
class Reading:
    """The context of one validation of a file.

    Pydantic reads fields in the order of their declaration, so what a pipeline's source says is known when its schedule
    is read, and the names of the pipelines before it when its own is. ``secrets`` False: placeholders of sources may be left
    as they are, and their options unchecked.
    """

    options_of: Callable[[str], type[ConnectorKind]]
    secrets: bool = True
    names: set[str] = field(default_factory=set)
    connector: type[ConnectorKind] | None = None


def problem(sentence: str, position: int | None = None) -> PydanticCustomError:
    """Return an error with a sentence; ``position``: its 0-based offset in the text."""
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
