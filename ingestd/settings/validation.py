"""The context that validators share, and the errors that they raise."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from ingestd.core.claims import FileClaim
from ingestd.core.errors import IngestdError

Model = TypeVar("Model", bound=BaseModel)

SENTENCE = "ingestd_sentence"
"""The type of a pydantic error with a complete sentence; ``ctx`` has the sentence and the offset in the text or None."""


class ConnectorKind(Protocol):
    """The part of a connector class that the configuration uses; `ingestd.sdk.Connector` implements it."""

    Options: ClassVar[type[BaseModel]]
    scheduled_only: ClassVar[bool]

    @classmethod
    def schedule_refusal(cls, options: Any) -> str:
        """Return why a source with these options can't have a schedule with times; empty if it can have one."""

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:
        """Return the files that a source with these options reads, removes and writes."""


class ConnectorUnusable(IngestdError):
    """A connector does not exist or can't be loaded; the sentence has the reason and what to do."""


class Reading(msgspec.Struct, kw_only=True):
    """The context of one validation of a file.

    Pydantic validates fields in the order of their declaration: a pipeline's source before its schedule, and earlier
    pipelines before later ones. ``secrets`` False: options of sources with unfilled placeholders are not validated.
    ``names``: the names of earlier pipelines. ``connector``: the connector of the current pipeline.
    """

    options_of: Callable[[str], type[ConnectorKind]]
    secrets: bool = True
    names: set[str] = msgspec.field(default_factory=set)
    connector: type[ConnectorKind] | None = None


def problem(sentence: str, position: int | None = None) -> PydanticCustomError:
    """Return an error with a sentence; ``position`` is the 0-based offset of the mistake in the text."""
    return PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence, "position": position})


def checked_by(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator of texts. ``check`` raises a ValueError with a sentence if a text is not permitted."""

    def validator(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise problem(str(error), getattr(error, "position", None)) from None
        return text

    return AfterValidator(validator)


def refuse(at: tuple[str | int, ...], what: PydanticCustomError | str, found: Any) -> NoReturn:
    """Raise ``what``, an error or the name of a pydantic error type, for the value at the relative path ``at``."""
    raise ValidationError.from_exception_data("", [InitErrorDetails(type=what, loc=at, input=found)])


def validated(model: type[Model], found: Any, context: Reading | None = None) -> Model:
    """Validate ``found``, plain JSON data, in strict mode: a number is not accepted as a text.

    Raises:
        ValidationError: all mistakes. If a validator raises this error, the paths of the mistakes are kept.
    """
    return model.model_validate_json(json.dumps(found), strict=True, context=context)
