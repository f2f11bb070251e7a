"""Samples as text: each value in a form that reads back as the same value of its type. Performs no I/O."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from connectors.formats.columnar.text import columns_as_text

_POLARS_KINDS = "iub"
_POLARS_FLOAT_BYTES = (4, 8)
_POLARS_TIME_UNITS = ("ns", "us", "ms")


def sample_texts(samples: npt.NDArray[Any]) -> pl.Series:
    """Return samples as text; a masked sample and a missing instant are null.

    A float32 has the fewest digits that read back as the same float32, never those of its float64. Instants follow ISO 8601.
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
    return pl.Series("sample", [_text(one) for one in samples], dtype=pl.String)


def sample_text(sample: Any) -> str:
    """Return one sample as text; a missing instant is the empty text."""
    if isinstance(sample, (np.generic, int, float)):
        return str(sample_texts(np.asarray(sample).reshape(1))[0] or "")
    return _text(sample)


def _text(sample: Any) -> str:
    match sample:
        case bytes():
            return sample.rstrip(b"\0").decode("utf-8", "backslashreplace")
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
