"""The readiness rule: settings, and the evaluation of one stable file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict

from connectors.files.identity import Identity
from connectors.formats import Format

T = TypeVar("T")


class NotReady(msgspec.Struct, frozen=True, kw_only=True):
    """The file is not ready; ``sentence`` says what it waits for.

    ``at_most``: seconds after which the file is read although it is not ready, so that the reading reports what is wrong.
    """

    sentence: str
    at_most: float | None = None


class InvalidFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file must not be read as it is.

    It is rejected with the sentence until it or a companion changes.
    """

    sentence: str


class FileView(Protocol):
    """One file as a rule sees it."""

    @property
    def name(self) -> str:
        """The path below the folder."""

    @property
    def base(self) -> str:
        """The name without its folders."""

    def open_file(self) -> AbstractContextManager[BinaryIO]:
        """Return a context with the file as it was scanned, or a copy of it, open on disk at its start.

        Raises:
            FileNotFoundError: it was removed, replaced or written to since the scan.
        """

    @property
    def identity(self) -> Identity:
        """The identity at the last scan."""

    @property
    def now(self) -> float:
        """The time, in seconds since the epoch."""

    @property
    def format(self) -> Format:
        """The format in which the file is read."""

    def sibling(self, base: str) -> Identity | None:
        """Return the identity of a regular file in the same folder; None if there is none."""

    def sibling_text(self, base: str) -> str:
        """Return the content of a small text file in the same folder."""

    def sha256(self) -> str:
        """Return the hash of the whole content, computed once for each content."""

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, which is called once for each content of the file."""


class ReadinessRule(BaseModel, ABC):
    """A rule as configured. A subclass has a field ``type`` with its name, and one field for each setting."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @abstractmethod
    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Return why the file is not ready by this rule; None if it is ready.

        Raises:
            OSError: the file or a companion can't be read now.
        """

    def companions(self, base: str) -> tuple[str, ...]:  # noqa: ARG002 - most rules need no other file
        """Return the names of the files that are removed with the file ``base``."""
        return ()

    def is_companion(self, base: str) -> bool:  # noqa: ARG002 - most rules need no other file
        """Return True for the name of a file that belongs to another one and is never read itself."""
        return False
