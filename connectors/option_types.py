"""The base class of connector options, and option types that several connectors share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

T = TypeVar("T")


class ConnectorOptions(BaseModel):
    """The base of all options: a frozen model that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def checked_by(check: Callable[[Any], object]) -> AfterValidator:
    """Return a validator that calls ``check``, which raises ValueError for an invalid value."""

    def validator(value: T) -> T:
        check(value)
        return value

    return AfterValidator(validator)


def split_address(url: str, schemes: Collection[str], *, credentials: str) -> SplitResult:
    """Return the parts of a URL with a host. ``credentials``: the names of the options for credentials, for the message.

    Raises:
        ValueError: the URL is not valid, has another scheme, no host, or credentials.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.port != 0
    except ValueError as error:
        raise ValueError(f"{url!r} is no address: {error}") from None
    if parts.scheme not in schemes or not parts.hostname or not is_usable:
        raise ValueError(f"an address begins with {' or '.join(f'{one}://' for one in schemes)} and has a host")
    if "@" in parts.netloc:
        raise ValueError(f"an address must not hold credentials; use {credentials}")
    return parts


def as_tuple(value: T | list[T] | None) -> tuple[T, ...]:
    """Return the value or the list of values of an option as a tuple; empty for None."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Texts: TypeAlias = Text | Annotated[list[Text], Field(min_length=1)]
Watch: TypeAlias = Literal["auto", "events", "polling"]
CaFile: TypeAlias = Annotated[
    Path | None, Field(description="A file with the certificates to trust, as PEM, instead of the system's.")
]
MemberGlob: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        description="Which members of a zip file are read: a glob of names, or of paths if it has a slash.",
    ),
]
