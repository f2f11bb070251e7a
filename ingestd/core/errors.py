"""Every error that the daemon raises on purpose, grouped by the reaction of the runtime.

::

    IngestdError
      ConfigurationError      the configuration file is wrong: nothing runs (exit code 78)
      SourceError
        SourceUnavailable     the source is not reachable now: back off and retry
          SourceUnmounted     the source's folder is an empty mount point: back off and retry; a separate metric reports it
        RecordUnreadable      one record cannot be read: reject it, read the next one
        SourceBroken          a partition or source cannot be read as configured: skip it, read the rest
        AcknowledgeLater      the connector cannot acknowledge a partition yet: call it again later
      MirrorError
        MirrorBusy            another daemon uses the state file
        MirrorFull            no room now (full disk, I/O error, locked): pause reading, keep delivering, retry
        MirrorCorrupt         the state file is damaged: stop, change nothing
        MirrorNewer           a newer version of the program wrote the state file: use that version
      RunNotHeld              an operator's command names a run that is not held: report it
      NotRolledBack           an operator's command names a run that cannot be rolled back: report it

The message is a sentence for a person. The fields hold the same facts for programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ingestd.core.phrases import clipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ingestd.core.record import Position


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then the errors that caused it, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


class IngestdError(Exception):
    """The base class of every error that the daemon raises on purpose."""


class Mistake(NamedTuple):
    """One mistake in a configuration file.

    ``line`` and ``column`` count from 1. They are 0 if the mistake has no location in the file, for example a missing file.
    """

    file: str
    line: int
    column: int
    key: str
    sentence: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{location}: {self.key}: {self.sentence}" if self.key else f"{location}: {self.sentence}"


class ConfigurationError(IngestdError):
    """The configuration is invalid; ``mistakes`` holds every mistake found, in the order of the file."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


class SourceError(IngestdError):
    """An error of a source; the subclass determines what the runtime does. A long sentence is clipped."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(clipped(sentence))


class SourceUnavailable(SourceError):
    """The source is not reachable now (server down, share not mounted): the runtime backs off and retries.

    ``retry_after``: the seconds for which the source asked not to be read; the runtime waits at least this long, at most a day.
    """

    def __init__(self, reason: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after
        super().__init__(reason)


class SourceUnmounted(SourceUnavailable):
    """The share with the source's folder is not mounted, so files that are missing in its mount point were not removed."""


class RecordUnreadable(SourceError):
    """One record cannot be read: the runtime rejects it with its position and ``reason``, and the reading continues.

    A generator ends when it raises, so `Connector.read` must yield this error, then a batch. If `Connector.read` raises
    it, the whole partition is rejected. The ``parse`` function of `pack` raises this error.

    ``reason`` is a sentence. ``position`` may be omitted in ``parse``, because `pack` knows it. ``field`` names the field with
    the fault (empty: the whole record). ``record`` holds the record's texts by field, or ``{"text": …}`` if the fields are
    unknown. With ``field`` and ``record``, the key of the record is known, and a snapshot with ``deletes="remove"`` keeps the
    record's entry. Without them, such a snapshot removes no entry at all.
    """

    def __init__(
        self,
        reason: str,
        *,
        position: Position | None = None,
        field: str = "",
        record: Mapping[str, str | None] | None = None,
    ) -> None:
        self.position = position
        self.field = field
        self.record = record or {}
        super().__init__(reason)


class SourceBroken(SourceError):
    """The source or partition cannot be read as configured until a person acts; for example, a column is missing."""


class AcknowledgeLater(SourceError):
    """A partition can't be acknowledged yet, for example before its whole group. `Connector.acknowledge` is called again."""


class MirrorError(IngestdError):
    """An error of the state file."""


class MirrorBusy(MirrorError):
    """Another process uses the state file; ``pid`` is its process id, if the system reports it."""

    def __init__(self, path: str, pid: int | None) -> None:
        self.path = path
        self.pid = pid
        user = f"process {pid}" if pid else "another process"
        super().__init__(f"{path} is in use by {user}. Stop that process first, or configure another state file.")


class MirrorFull(MirrorError):
    """The state file cannot be read or written now. The same call may succeed later.

    The disk is full or reports an I/O error, or another program has locked the file. The failed call changed nothing.
    """


class MirrorCorrupt(MirrorError):
    """The file is damaged, or belongs to another program: the daemon stops and changes nothing.

    ``fact``: a sentence that names the file and its damage. ``advice``: what to do if the file is the state file in use.
    """

    def __init__(self, fact: str, advice: str = "") -> None:
        self.fact = fact
        super().__init__(f"{fact} {advice}".rstrip())


class MirrorNewer(MirrorError):
    """A newer version of the program wrote the state file."""


class MirrorOutdated(MirrorError):
    """The state file has an older layout or no tables. The next start of the daemon, or the next sync, updates the file."""


class RunNotHeld(IngestdError):
    """The run cannot be approved or discarded. The message states why."""


class NotRolledBack(IngestdError):
    """The runs cannot be rolled back. The message states why."""
