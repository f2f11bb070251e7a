"""The recording: the channels of an open measurement file, with their samples in pieces and as text."""

from __future__ import annotations

import fnmatch
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from connectors.formats.columnar.text import columns_as_text
from ingestd.sdk import first_names
from ingestd.sdk.formats.record_chunk import escape_stray_bytes

PIECE_BYTES = 8 * 2**20
"""The number of bytes of samples that are held at a time, for each channel that is read."""

Samples: TypeAlias = npt.NDArray[Any]
Properties: TypeAlias = Mapping[str, str]

_SHOWN = 10
_POLARS_KINDS = "iub"
_POLARS_FLOAT_BYTES = (4, 8)
_POLARS_TIME_UNITS = ("ns", "us", "ms")


class MeasuredChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel: its own properties as text, and the number of its samples. ``name`` is unique in its group.

    ``fault``: why its samples can't be read, as a clause; empty: they can be read. The texts may have stray bytes (`is_text`).
    """

    group: str
    name: str
    length: int
    properties: Properties = msgspec.field(default_factory=dict)
    fault: str = ""

    @property
    def path(self) -> str:
        """The text that is compared with the setting ``select``."""
        return f"{self.group}/{self.name}" if self.group else self.name


class Recording(ABC):
    """The content of a measurement file. Its attributes are known before samples are read.

    ``group_properties``: the properties of each group, by its name. ``notice``: a sentence about the file for users; may be
    empty.
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
    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """Yield all samples of the channels ``wanted`` in pieces: the index of a channel, and its next samples.

        A piece has about `PIECE_BYTES` and one dimension. Pieces of different channels may alternate.
        """

    def stream(self, index: int) -> Iterator[Samples]:
        """Yield the samples of a channel in order, in pieces."""
        return (piece for _, piece in self.pieces([index]))


def is_selected(path: str, select: str) -> bool:
    """Return whether ``select`` may match the object at a path, or an object below this path."""
    return fnmatch.fnmatchcase(path, select) or select.startswith(f"{path}/") or fnmatch.fnmatchcase(f"{path}/", select)


def left_out_notice(paths: Sequence[str]) -> str:
    """Return the sentence about parts of a file that have no text; empty if there are none."""
    return (
        f"Not read, because they have no form as text: {escape_stray_bytes(first_names(paths, _SHOWN))}."
        if paths
        else ""
    )


def decode_text(data: bytes, encoding: str = "utf-8") -> str:
    """Return bytes as text. If they are not valid in their encoding, `is_text` is false for the result."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode("ascii", "surrogateescape")


def is_text(text: str) -> bool:
    """Return whether a text has no stray bytes, which Python represents by lone surrogates."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def property_text(value: Any) -> str:
    """Return a property as text: a single value like a sample, several values as a JSON list of texts."""
    return sample_text(value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value)


def sample_texts(samples: npt.NDArray[Any]) -> pl.Series:
    """Return samples as text; a masked sample, a missing instant and a text with stray bytes (`stray_samples`) are null.

    A float32 has the fewest digits that read back as the same float32, never the digits of its float64. Instants follow ISO
    8601.
    """
    if isinstance(samples, np.ma.MaskedArray):
        return sample_texts(samples.data).set(pl.Series(np.ma.getmaskarray(samples)), None)
    kind, size = samples.dtype.kind, samples.dtype.itemsize
    if kind in _POLARS_KINDS or (kind == "f" and size in _POLARS_FLOAT_BYTES):
        native = np.ascontiguousarray(samples, dtype=samples.dtype.newbyteorder("="))
        return columns_as_text(pl.DataFrame({"sample": native})).get_column("sample")
    if kind == "M":
        if np.datetime_data(samples.dtype)[0] not in _POLARS_TIME_UNITS:
            samples = samples.astype("datetime64[us]")
        return columns_as_text(pl.DataFrame({"sample": np.ascontiguousarray(samples)})).get_column("sample")
    texts = map(_text, samples)
    return pl.Series("sample", [text if is_text(text) else None for text in texts], dtype=pl.String)


def stray_samples(samples: npt.NDArray[Any]) -> list[int]:
    """Return the indexes of texts with stray bytes."""
    return [] if samples.dtype.kind in "iubfMc" else [at for at, one in enumerate(samples) if not is_text(_text(one))]


def sample_text(sample: Any) -> str:
    """Return one sample as text, which may have stray bytes (`is_text`); a missing instant is the empty text."""
    if isinstance(sample, (np.generic, int, float)) and not isinstance(sample, (bytes, str, np.void)):
        return str(sample_texts(np.asarray(sample).reshape(1))[0] or "")
    return _text(sample)


def _text(sample: Any) -> str:
    match sample:
        case bytes():
            return decode_text(sample.rstrip(b"\0"))
        case complex() | np.complexfloating():
            imaginary = sample_text(sample.imag)
            return f"{sample_text(sample.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
        case np.void() | np.ndarray():
            content = _content(sample)
            return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return str(sample)


def _content(sample: Any) -> Any:
    """Return a structure as an object of texts, an array as a list of texts, and raw bytes as hexadecimal digits."""
    if isinstance(sample, np.ndarray):
        return [_content(one) for one in sample.reshape(-1)]
    if not isinstance(sample, np.void):
        return sample_text(sample)
    names = sample.dtype.names
    return sample.tobytes().hex() if names is None else {name: _content(sample[name]) for name in names}
