"""The writer fence: a rank in each request of a writer, by which a service refuses late requests (service contract M11)."""

from __future__ import annotations

import re

import msgspec

HEADER = "X-Writer"
FENCE_HEADER = "X-Writer-Fence"
FENCE = "epoch, attempt"
"""The announcement of a service that refuses requests with an older epoch or attempt."""

NAME = "[A-Za-z0-9._-]{1,64}"
"""The form of a writer's name, as a regular expression."""

_FORM = re.compile(rf"(?P<name>{NAME});(?P<epoch>[0-9]{{1,18}});(?P<attempt>[0-9]{{1,18}})")


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """A writer, which the header of each write names.

    ``epoch`` rises when another process takes over the writer. ``attempt`` rises at a start, and after an unknown outcome.
    """

    name: str
    epoch: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.name};{self.epoch};{self.attempt}"

    @property
    def rank(self) -> tuple[int, int]:
        """The order of a writer's requests: a request with a lower rank is late."""
        return self.epoch, self.attempt


def parse_writer(text: str | None) -> Writer | None:
    """Return the writer that a header names; None if the header is missing or malformed."""
    match = _FORM.fullmatch(text or "")
    return Writer(name=match["name"], epoch=int(match["epoch"]), attempt=int(match["attempt"])) if match else None
