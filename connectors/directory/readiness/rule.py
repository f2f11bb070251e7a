"""The interface of readiness rules: settings, the evaluation of one stable file, and a rule's view of the file."""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, TypeVar, cast

import msgspec

from connectors.files.identity import Identity
from connectors.formats import Format
from connectors.option_types import ConnectorOptions

T = TypeVar("T")

TEXT_BYTES = 2**20
"""The maximum number of bytes that are read from a sidecar or manifest. Every usual sidecar or manifest is smaller."""


class NotReady(msgspec.Struct, frozen=True, kw_only=True):
    """The file is not ready. ``sentence`` states what it waits for.

    ``at_most``: after this number of seconds, the file is read although it is not ready. Then the reading reports the error.
    """

    sentence: str
    at_most: float | None = None


class InvalidFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file must not be read in its present state. It is rejected with ``sentence`` until it or a companion changes."""

    sentence: str


class ScannedFolder(Protocol):
    """The access of rules to files of a drop folder. Names are paths below the folder, with slashes."""

    def open_scanned(self, name: str, identity: Identity) -> AbstractContextManager[BinaryIO]:
        """Return a context with the open file, or with an open local copy, at offset 0.

        Raises:
            FileNotFoundError: the file was removed, replaced or written to after the scan.
        """

    def companion(self, name: str) -> Identity | None:
        """Return the identity of the companion ``name``; None if there is no regular file of this name."""

    def companions(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """Return the non-empty regular files of one sub-folder (empty: the folder itself) with names that match a glob."""

    def text(self, name: str) -> str:
        """Return the first `TEXT_BYTES` of a text file. Bytes that are not UTF-8 are replaced by U+FFFD."""


class ContentCache(msgspec.Struct):
    """Results of rules for files. They are kept while the file is unchanged and every scan requests a result of the file."""

    _results: dict[str, tuple[Identity, dict[str, object]]] = msgspec.field(default_factory=dict)
    _used: set[str] = msgspec.field(default_factory=set)

    def get(self, name: str, identity: Identity, key: str, compute: Callable[[], T]) -> T:
        """Return the result ``key`` for the present content of a file. Call ``compute`` if there is no result yet."""
        self._used.add(name)
        seen = self._results.get(name)
        if seen is None or not seen[0].has_same_content(identity):
            seen = self._results[name] = (identity, {})
        if key not in seen[1]:
            seen[1][key] = compute()
        return cast("T", seen[1][key])

    def forget_unused(self) -> None:
        """Forget the results of files that were not requested since the last call."""
        self._results = {name: seen for name, seen in self._results.items() if name in self._used}
        self._used = set()


class FileView(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's view of one file in one scan.

    ``name``: the path below the folder. ``now``: seconds since the epoch. ``format_for``: returns the format of a file name.
    """

    name: str
    identity: Identity
    now: float
    format_for: Callable[[str], Format]
    folder: ScannedFolder
    cache: ContentCache

    @property
    def base(self) -> str:
        """The name without its folders."""
        return self.name.rpartition("/")[2]

    @property
    def format(self) -> Format:
        """The format in which the file is read."""
        return self.format_for(self.name)

    def open_file(self) -> AbstractContextManager[BinaryIO]:
        """See `ScannedFolder.open_scanned`."""
        return self.folder.open_scanned(self.name, self.identity)

    def sibling(self, base: str) -> Identity | None:
        """Return the identity of the file ``base`` in the same folder; None if there is no regular file of this name."""
        return self.folder.companion(parent_folder(self.name) + base)

    def sibling_text(self, base: str) -> str:
        """Return the text of the file ``base`` in the same folder; see `ScannedFolder.text`."""
        return self.folder.text(parent_folder(self.name) + base)

    def sha256(self) -> str:
        """Return the SHA-256 of the whole file, computed once for each content."""
        return self.cached("sha256", self._sha256)

    def _sha256(self) -> str:
        with self.open_file() as file:
            return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest()

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, which is called once for each content of the file."""
        return self.cache.get(self.name, self.identity, key, compute)


def parent_folder(name: str) -> str:
    """Return the sub-folder of a path, with a slash at the end; empty for a file directly in the folder."""
    return name[: name.rfind("/") + 1]


class ReadinessRule(ConnectorOptions, ABC):
    """A configured rule. In a subclass, the default of ``type`` is the rule's name, and each setting is one field."""

    type: str

    @abstractmethod
    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Return why the file does not meet this rule; None if it meets the rule.

        Raises:
            OSError: the file or a companion can't be read now.
        """

    def companions(self, base: str) -> tuple[str, ...]:  # noqa: ARG002 - most rules need no other file
        """Return the names of the files that are removed with the file ``base``."""
        return ()

    def is_companion(self, base: str) -> bool:  # noqa: ARG002 - most rules need no other file
        """Return True if a file named ``base`` belongs to other files, so that it is never read itself."""
        return False
