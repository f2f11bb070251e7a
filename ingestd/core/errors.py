"""Every error the daemon raises on purpose, grouped by what the reader of the message has to do.

::

    IngestdError
      ConfigurationError      the configuration file is wrong: fix it, nothing ran (exit 78)
      SourceError
        SourceUnavailable     away for now: back off and try again
        RecordUnreadable      one record is wrong: park it, go on with its neighbours
        SourceBroken          this source can't go on: stop it, keep the others
        SettleLater           a connector is not done with a settled partition yet: tell it again
      MirrorError
        MirrorBusy            another daemon holds the state file
        MirrorFull            no room now (full disk, I/O error, locked): stop reading, keep delivering, try again
        MirrorCorrupt         the state file is damaged: stop, touch nothing
        MirrorNewer           a newer program wrote the state file: use that one
      IllegalTransition       our own bug

A message is a sentence for a person; the fields say the same to a program.
"""

from __future__ import annotations

from dataclasses import dataclass


class IngestdError(Exception):
    """The root: catch this to catch everything the daemon raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mistake:
    """One mistake in a configuration file.

    ``line`` and ``column`` count from 1; 0 means that the mistake has no place in the file (a missing file, say).
    """

    file: str
    line: int
    column: int
    key: str
    sentence: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.key}: {self.sentence}" if self.key else f"{place}: {self.sentence}"


class ConfigurationError(IngestdError):
    """The configuration can't be used; carries every mistake found, in the order of the file."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


class SourceError(IngestdError):
    """Something about a source; the subclass tells the runtime what to do."""


class SourceUnavailable(SourceError):
    """The source is away (server down, share unmounted): the runtime backs off and comes back."""


class RecordUnreadable(SourceError):
    """One record can't be read: the runtime parks it with the reason and goes on."""


class SourceBroken(SourceError):
    """The source can't go on as configured (a column is missing, access is denied): it stops until somebody acts."""


class SettleLater(SourceError):
    """What was settled has to wait for something else (the rest of its group): the runtime tells it again, and logs nothing."""


class MirrorError(IngestdError):
    """Something about the state file."""


class MirrorBusy(MirrorError):
    """Another process holds the state file; ``pid`` names it where the system tells."""

    def __init__(self, path: str, pid: int | None) -> None:
        self.path = path
        self.pid = pid
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"{path} is in use by {who}. Stop that one first, or give this one a state file of its own.")


class MirrorFull(MirrorError):
    """The state file cannot be written or read now: intake pauses, delivery goes on, and the same call may succeed later.

    The disk is full or reports an I/O error, or another program has locked the file. Nothing of the failed call remains.
    """


class MirrorCorrupt(MirrorError):
    """SQLite says that the state file is damaged: the daemon stops and touches nothing."""


class MirrorNewer(MirrorError):
    """A newer program wrote the state file."""


class IllegalTransition(IngestdError):
    """Our own bug: something happened that the rules exclude."""
