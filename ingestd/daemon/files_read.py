"""The files that the pipelines of the current configuration read."""

from __future__ import annotations

from collections.abc import Callable

from ingestd.core.claims import ClaimedFiles
from ingestd.daemon.configuration import Configuration
from ingestd.registry import connector_class


class FilesRead:
    """Knows which files the pipelines of a configuration read. ``current`` returns it; a reload replaces it. Thread-safe."""

    def __init__(self, current: Callable[[], Configuration]) -> None:
        self._current = current
        self._known: tuple[Configuration, ClaimedFiles] | None = None

    def includes(self, path: str) -> bool:
        """See `SourceContext.is_read`."""
        configuration, known = self._current(), self._known
        if known is None or known[0] is not configuration:
            known = self._known = (configuration, _claimed(configuration))
        return path in known[1]


def _claimed(configuration: Configuration) -> ClaimedFiles:
    sources = [pipeline.source for pipeline in configuration.settings.pipelines if pipeline.source.complete]
    return ClaimedFiles(
        claim
        for source in sources
        for claim in connector_class(source.connector).claims(source.options, configuration.base)
    )
