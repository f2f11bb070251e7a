"""The last pass over each source: whether the source was available, and when it was last read completely."""

from __future__ import annotations

from ingestd.intake import PassReport


class SourcePasses:
    """The results of the last passes in this process. The sources' threads write them; any thread can read them."""

    def __init__(self) -> None:
        self._failures: dict[str, str] = {}
        self._complete_at: dict[str, float] = {}
        self._unmounted: dict[str, bool] = {}

    def note(self, report: PassReport) -> None:
        """Record the report of a pass that has ended."""
        self._failures[report.pipeline] = report.failure
        self._unmounted[report.pipeline] = report.unmounted
        if report.complete:
            self._complete_at[report.pipeline] = report.began

    def failure(self, pipeline: str) -> str:
        """Return why the last pass could not read the source; empty if it read the source, or if there was no pass yet."""
        return self._failures.get(pipeline, "")

    def is_unmounted(self, pipeline: str) -> bool:
        """Return whether the last pass found the mount point of the source's share empty."""
        return self._unmounted.get(pipeline, False)

    def pipelines(self) -> tuple[str, ...]:
        """Return the pipelines with a pass that has ended."""
        return tuple(self._failures)

    def complete_at(self, pipeline: str) -> float | None:
        """Return when the last complete pass over the source began, in seconds since the epoch; None if there was none."""
        return self._complete_at.get(pipeline)
