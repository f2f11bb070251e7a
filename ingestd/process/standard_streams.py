"""Standard input, output and error of a process that may be started without these streams, or may lose them later."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on


class _Output(io.FileIO):
    """A standard stream that fails at most once: after a failure it drops all data.

    Otherwise the data that a failed write left in the buffer would fail again when the process exits, with a traceback.
    """

    def __init__(self, descriptor: int, *, silent: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None
        self._silent = silent

    def write(self, data: Buffer) -> int:
        """Write, and wait if the descriptor is non-blocking and has no room.

        Raises:
            OSError: the first failure, unless the stream is ``silent``.
        """
        while self.failure is None:
            try:
                written = super().write(data)
            except OSError as error:
                self.failure = error
                if not self._silent:
                    raise
            else:
                if written is not None:
                    return written
                writable = select.poll()
                writable.register(self.fileno(), select.POLLOUT)
                writable.poll()
        return memoryview(data).nbytes


def open_standard_streams() -> None:
    """Make the standard streams usable, even if the process was started without them; see `output_failure`.

    A closed stream becomes /dev/null. Otherwise the next file that is opened, such as a database, would become standard error,
    and messages of libraries would be written into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    # A stream that a test has replaced is not touched.
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, sys.stdout, silent=False)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, sys.stderr, silent=True)


def output_failure() -> OSError | None:
    """Return why standard output could not be written, or None."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Output) else None


def _stream(descriptor: int, former: TextIO | None, *, silent: bool) -> TextIO:
    raw = _Output(descriptor, silent=silent)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=former.encoding if former is not None else "utf-8",
        errors=former.errors if former is not None else "backslashreplace",
        line_buffering=silent or os.isatty(descriptor),
    )
