"""The lines of the daemon's unit in the journal of systemd, read by `journalctl`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import TemporaryFile

from ingestd.core.errors import IngestdError
from ingestd.daemon.logs.log_file import LONGEST_LINE


class JournalUnreadable(IngestdError):
    """`journalctl` failed; the sentence has what it printed."""


_CURSOR = "-- cursor: "
_SHOWN = 1_000
"""Bytes of an error message that are shown."""


@dataclass(slots=True, kw_only=True)
class Journal:
    """The journal of a unit. ``program``: the name or path of `journalctl`."""

    unit: str
    program: str = "journalctl"
    _cursor: str = field(default="", init=False)

    def exists(self) -> bool:
        """Return True if this machine has `journalctl`. The journal may have no line of the unit."""
        return shutil.which(self.program) is not None

    def until_now(self, *, count: int | None, since: datetime | None) -> Iterator[str]:
        """Yield the last ``count`` lines (None: all) since a time, the oldest first.

        Raises:
            JournalUnreadable: `journalctl` failed.
        """
        options = [f"--lines={'all' if count is None else count}", "--show-cursor"]
        if since is not None:
            options.append(f"--since=@{int(since.timestamp())}")
        former: str | None = None
        for line in self._run(*options):
            if former is not None:
                yield former
            former = line
        if former is not None and former.startswith(_CURSOR):
            self._cursor = former.removeprefix(_CURSOR)
        elif former is not None:
            yield former

    def from_now(self) -> Iterator[str]:
        """Yield the lines after those of `until_now` when they are written, without an end.

        Raises:
            JournalUnreadable: `journalctl` failed.
        """
        begin = f"--after-cursor={self._cursor}" if self._cursor else "--lines=0"
        yield from self._run(begin, "--follow")

    def _run(self, *options: str) -> Iterator[str]:
        command = [self.program, f"--unit={self.unit}", "--output=cat", "--no-pager", "--quiet", *options]
        with (
            TemporaryFile() as errors,
            subprocess.Popen(  # noqa: S603 - a list of fixed options; the unit's name is validated
                command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL
            ) as reader,
        ):
            if reader.stdout is None:
                raise TypeError("journalctl was started with a pipe")
            try:
                while line := reader.stdout.readline(LONGEST_LINE):
                    yield line.rstrip(b"\r\n").decode(errors="backslashreplace")
                status = reader.wait()
            finally:
                reader.terminate()
            errors.seek(0)
            said = errors.read(_SHOWN).decode(errors="backslashreplace").strip()
            if status:
                raise JournalUnreadable(
                    f"journalctl can't read the journal of {self.unit} (exit code {status}): {said or 'it gave no reason.'}"
                    " If the daemon writes its log to a file, name it in the setting log: {file: FILE}."
                )
