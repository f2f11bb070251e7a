"""The recording: the channels of an open measurement file, and how their samples are read in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from connectors.formats.measurement.text import sample_text

PIECE_BYTES = 8 * 2**20
"""How many bytes of samples are held at a time, for each channel that is read."""

Samples: TypeAlias = npt.NDArray[Any]
Properties: TypeAlias = Mapping[str, str]


class MeasuredChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel: its own properties as text, and the number of its samples. ``name`` is unique in its group."""

    group: str
    name: str
    length: int
    properties: Properties = msgspec.field(default_factory=dict)

    @property
    def path(self) -> str:
        """What the setting ``select`` is compared with."""
        return f"{self.group}/{self.name}" if self.group else self.name


class Recording(ABC):
    """The content of a file. Its attributes need no samples.

    ``group_properties``: by the name of the group. ``notice``: a sentence on what was found out about the file; empty: nothing.
    """

    def __init__(
        self,
        channels: Sequence[MeasuredChannel],
        *,
        properties: Properties,
        group_properties: Mapping[str, Properties],
        notice: str = "",
    ) -> None:
        self.channels = channels
        self.properties = properties
        self.group_properties = group_properties
        self.notice = notice

    @abstractmethod
    def stream(self, index: int) -> Iterator[Samples]:
        """Yield the samples of a channel in order, in pieces of about `PIECE_BYTES` and one dimension."""

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """Yield the index of a channel and some of its samples, each channel in order, until all ``wanted`` are complete."""
        for index in wanted:
            for piece in self.stream(index):
                yield index, piece


def property_text(value: Any) -> str:
    """Return a property as text: a single value as a sample, several as a JSON list of texts."""
    return sample_text(value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value)
