"""The files that the pipelines of the current configuration read."""

from __future__ import annotations

from collections.abc import Callable

from ingestd.core.claims import ClaimedFiles
from ingestd.daemon.configuration import Configuration
from ingestd.registry import connector_class


class FilesRead:
    """Knows which files the pipelines read. ``current`` returns the configuration, which a reload replaces. Thread-safe."""

    def __init__(self, current: Callable[[], Configuration]) -> None:
        self._current = current
        self._known: tuple[Configuration, ClaimedFiles] | None = None

    def readers(self, path: str) -> frozenset[str]:
        """Return the names of the pipelines that read a file; see `ClaimedFiles.readers`."""
        configuration, known = self._current(), self._known
        if known is None or known[0] is not configuration:
            known = self._known = (configuration, _claimed(configuration))
        return known[1].readers(path)


def _claimed(configuration: Configuration) -> ClaimedFiles:
    return ClaimedFiles(
        (pipeline.name, claim)
        for pipeline in configuration.settings.pipelines
        if pipeline.source.complete
        for claim in connector_class(pipeline.source.connector).claims(pipeline.source.options, configuration.base)
    )
