"""The time limits of a reading: the time without data, and the total time."""

from __future__ import annotations

import time

from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceUnavailable


class Deadline:
    """The deadline of a reading, exceeded if the database sends nothing for too long, or if the reading takes too long."""

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self._end = time.monotonic() + options.read_timeout_seconds
        self.restart()

    def restart(self) -> None:
        """Restart the limit of silence. Called before a wait for data: the processing of a frame is not silence."""
        self._silent_until = time.monotonic() + self._options.statement_timeout_seconds

    def left(self) -> float:
        """Return the seconds until the first limit is exceeded; 0 if a limit is exceeded."""
        return max(0.0, min(self._silent_until, self._end) - time.monotonic())

    def check(self) -> None:
        """Raise `SourceUnavailable` if a limit is exceeded."""
        if not self.left():
            raise self.exceeded()

    def exceeded(self) -> SourceUnavailable:
        """Return the error for the limit that is exceeded first."""
        return self.too_long() if self._end <= self._silent_until else self.silent()

    def too_long(self) -> SourceUnavailable:
        """Return the error for a reading that exceeds its total time."""
        options = self._options
        return SourceUnavailable(
            f"Reading the database {options.address()} took longer than {options.read_timeout_seconds:g} seconds"
            " (read_timeout_seconds)."
        )

    def silent(self) -> SourceUnavailable:
        """Return the error for a database that sends nothing."""
        options = self._options
        return SourceUnavailable(
            f"The database {options.address()} sent nothing for longer than {options.statement_timeout_seconds:g} seconds"
            " (statement_timeout_seconds)."
        )
