"""What an operator should know about a running daemon, for the status, the pages and the status line of the service manager."""

from __future__ import annotations

from collections.abc import Callable

from ingestd.daemon.reload import Reloader
from ingestd.intake import SourceSupervisor
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.sqlite import SqliteMirror


class DaemonNotices:
    """Collects the notices about the daemon itself and about its sources. Thread-safe.

    ``listener`` returns why the listener can't be opened; empty if it is open, or if none is configured.
    """

    def __init__(self, mirror: SqliteMirror, supervisor: SourceSupervisor, reloader: Reloader) -> None:
        self._mirror = mirror
        self._supervisor = supervisor
        self._reloader = reloader
        self.listener: Callable[[], str] = str

    def unwritable(self) -> str:
        """Return why the state file can't be written, or why pipelines wait until it can; empty if neither is so."""
        # A full disk may have space for the small writes of the delivery, while none of a source fits.
        return self._supervisor.paused or self._mirror.unwritable

    def own(self) -> tuple[str, ...]:
        """Return the sentences about the daemon itself."""
        return tuple(one for one in (self.unwritable(), self._reloader.refusal, self.listener()) if one)

    def every(self) -> tuple[OperatorNotice, ...]:
        """Return the notices about the daemon and its sources."""
        own = (OperatorNotice(pipeline="", sentence=sentence) for sentence in self.own())
        return (*own, *self._supervisor.notices())
