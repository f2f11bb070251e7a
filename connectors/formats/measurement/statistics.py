"""Statistics of a channel, from its samples in pieces. Performs no I/O."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from connectors.formats.measurement.channels import Samples, sample_text

_NUMBERS = "iufb"
_ORDERED = "iufbM"


class ChannelStatistics:
    """The statistics of the samples so far.

    They equal the results of numpy for the whole channel: nanmin, nanmax, nanmean and the square root of the mean of the
    squares. Sums have the precision of a long double, so that their result doesn't depend on the pieces. A NaN or a missing
    instant is used only for ``count``, ``first`` and ``last``, and is counted in ``nan_count``. The same applies to a masked
    sample, but a masked first or last sample is absent.
    """

    def __init__(self) -> None:
        self.count = 0
        self.missing = 0
        self._first: Any = None
        self._last: Any = None
        self._min: Any = None
        self._max: Any = None
        self._sum = np.longdouble(0)
        self._squares = np.longdouble(0)
        self._numbers = 0

    def add(self, samples: Samples) -> None:
        """Include the next samples of the channel."""
        if not samples.size:
            return
        if not self.count:
            self._first = samples[0].copy() if isinstance(samples[0], np.generic) else _unmasked(samples[0])
        self._last = _unmasked(samples[-1])
        self.count += samples.size
        used = samples.compressed() if isinstance(samples, np.ma.MaskedArray) else samples
        kind = samples.dtype.kind
        if kind in "fM":
            is_missing = np.isnan(used) if kind == "f" else np.isnat(used)
            if is_missing.any():
                used = used[~is_missing]
        self.missing += samples.size - used.size
        if kind not in _ORDERED or not used.size:
            return
        low, high = used.min(), used.max()
        self._min = low if self._min is None or low < self._min else self._min
        self._max = high if self._max is None or high > self._max else self._max
        if kind in _NUMBERS:
            with np.errstate(all="ignore"):  # infinite samples have infinite sums, and infinite sums may have no mean
                exact = used.astype(np.longdouble)
                self._sum += exact.sum()
                self._squares += np.square(exact, out=exact).sum()
            self._numbers += used.size

    def texts(self, statistics: Collection[str]) -> dict[str, str]:
        """Return the statistics as fields; statistics that the samples don't have are absent.

        ``nan_count`` is present if it is not 0.
        """
        found: dict[str, Any] = {
            "count": self.count,
            "min": self._min,
            "max": self._max,
            "mean": self._rounded(self._sum),
            "rms": self._root(),
            "first": self._first,
            "last": self._last,
        }
        fields: dict[str, Any] = {name: found[name] for name in statistics if found[name] is not None}
        if self.missing and statistics:
            fields["nan_count"] = self.missing
        return {name: sample_text(value) for name, value in fields.items()}

    def _rounded(self, total: np.longdouble) -> float | None:
        with np.errstate(all="ignore"):
            return float(total / self._numbers) if self._numbers else None

    def _root(self) -> float | None:
        with np.errstate(all="ignore"):
            return float(np.sqrt(self._squares / self._numbers)) if self._numbers else None


def _unmasked(sample: Any) -> Any:
    return None if sample is np.ma.masked else sample
