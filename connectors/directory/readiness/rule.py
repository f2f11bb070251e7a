"""What every readiness rule is: settings that a person can give, and a judgement on a file that stands still."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from connectors.files.identity import Identity
from connectors.formats import Format

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReady:
    """The file is not ready; ``sentence`` says for what it waits.

    ``at_most``: so long it waits as it is; then the rule lets it go, and its reading says what is wrong with it.
    """

    sentence: str
    at_most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """The file must not be read as it is: it is parked with the sentence until it, or what lies beside it, changes."""

    sentence: str


class FileView(Protocol):
    """One file as a rule sees it. What is costly to find out is found out once for each content."""

    @property
    def name(self) -> str:
        """The path below the folder."""

    @property
    def base(self) -> str:
        """The name without its folders."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def identity(self) -> Identity:
        """As the last scan saw it."""

    @property
    def now(self) -> float:
        """Seconds since the epoch."""

    @property
    def file_format(self) -> Format:
        """The format in which it will be read."""

    def beside(self, base: str) -> Identity | None:
        """A regular file of that name in the same folder; None where there is none."""

    def text_beside(self, base: str) -> str:
        """The content of a small text file in the same folder."""

    def sha256(self) -> str:
        """Of the whole content."""

    def cached(self, what: str, find: Callable[[], T]) -> T:
        """What ``find`` returns, found out once as long as the file stays the same."""


class ReadinessRule(BaseModel, ABC):
    """A rule as configured. A subclass has a field ``type`` with its name, and one field for each setting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @abstractmethod
    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """None where, as far as this rule goes, the file is ready.

        Raises:
            OSError: the file, or what lies beside it, can't be read now.
        """

    def companions(self, base: str) -> tuple[str, ...]:  # noqa: ARG002 - most rules need nothing beside a file
        """The names of the files that go where the file ``base`` goes."""
        return ()

    def is_companion(self, base: str) -> bool:  # noqa: ARG002 - as above
        """Whether a name is that of a file which belongs to another and is never read itself."""
        return False
