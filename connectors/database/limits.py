"""The time limits of a reading: silence and total time."""

from __future__ import annotations

import time

from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceUnavailable


class Deadline:
    """When a reading must end because the database sends nothing, or because the reading takes too long."""

    def __init__(self, options: DatabaseOptions) -> None:
        self._where = str(options.address())
        self._silence = options.statement_timeout_seconds
        self._total = options.read_timeout_seconds
        self._end = time.monotonic() + self._total
        self.restart()

    def restart(self) -> None:
        """Begin to wait: the limit of silence starts again. The time between two frames is not the database's."""
        self._silent_until = time.monotonic() + self._silence

    def left(self) -> float:
        """Return the seconds until the first limit; 0 if one is exceeded."""
        return max(0.0, min(self._silent_until, self._end) - time.monotonic())

    def exceeded(self) -> SourceUnavailable:
        """Return the error for the limit that is exceeded first."""
        return self.too_long() if self._end <= self._silent_until else self.silent()

    def too_long(self) -> SourceUnavailable:
        """Return the error for a reading that takes too long as a whole."""
        return SourceUnavailable(
            f"Reading the database {self._where} took longer than {self._total:g} seconds (read_timeout_seconds)."
        )

    def silent(self) -> SourceUnavailable:
        """Return the error for a database that sends nothing."""
        return SourceUnavailable(
            f"The database {self._where} sent nothing for longer than {self._silence:g} seconds (statement_timeout_seconds)."
        )
