"""Notices for the operator of a running daemon, for the status, the pages and the status line of the service manager."""

from __future__ import annotations

from collections.abc import Callable

from ingestd.core.clock import Now, moment
from ingestd.daemon.reload import Reloader
from ingestd.intake import SourceSupervisor
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.sqlite import SqliteMirror

_KEY_SECONDS = 14 * 86_400.0


class DaemonNotices:
    """Collects the notices about the daemon itself and about its sources. Thread-safe.

    ``listener`` returns why the listener can't be opened; empty if it is open or not configured. ``key_expires_at`` returns
    when the API key expires; see `RequestCounts`.
    """

    def __init__(
        self,
        mirror: SqliteMirror,
        supervisor: SourceSupervisor,
        reloader: Reloader,
        *,
        key_expires_at: Callable[[], float | None],
        now: Now,
    ) -> None:
        self._key_expires_at = key_expires_at
        self._now = now
        self._mirror = mirror
        self._supervisor = supervisor
        self._reloader = reloader
        self.listener: Callable[[], str] = str

    def unwritable(self) -> str:
        """Return why the state file can't be written, or why pipelines wait until it can be written; else empty."""
        # A full disk may have space for the small writes of the delivery, but no space for the writes of a source.
        return self._supervisor.paused or self._mirror.unwritable

    def own(self) -> tuple[str, ...]:
        """Return the sentences about the daemon itself."""
        return tuple(one for one in (self.unwritable(), self._reloader.refusal, self.listener(), self._key()) if one)

    def _key(self) -> str:
        """Return a sentence if the API key expires within 14 days; empty if it expires later, or at an unknown time."""
        ends = self._key_expires_at()
        if ends is None or ends - self._now() > _KEY_SECONDS:
            return ""
        return (
            f"The API key of the service expires {moment(ends)}. Create a new key, store it, and use 'ingestd reload'."
        )

    def every(self) -> tuple[OperatorNotice, ...]:
        """Return the notices about the daemon and its sources."""
        own = (OperatorNotice(pipeline="", sentence=sentence) for sentence in self.own())
        return (*own, *self._supervisor.notices())
