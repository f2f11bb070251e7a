"""An SVG picture of a run's results: first delivery, unchanged file, and time until dropped entries are readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from bench import cold, latency, peers, unchanged
from bench.comparison import ResultsUnusable

_WIDTH = 760
_LABEL = 300
_BAR = 330
_LINE = 24
_HEAD = 58
_NEEDED = ("cold", "unchanged", "peers", "latency")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.note{font-size:11px;fill:#59636e}"
    ".ours{fill:#0969da}.other{fill:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.ours{fill:#4493f8}.other{fill:#656c76}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """A bar chart within the picture. ``bars``: (name, value); names that begin with "ingestd" have the colour of ingestd."""

    title: str
    note: str
    bars: Sequence[tuple[str, float]]
    unit: str


def draw(benchmarks: Mapping[str, Any]) -> str:
    """Return an SVG picture of the results in a file of ``--json``.

    Raises:
        ResultsUnusable: the results lack a benchmark that the picture shows.
    """
    lacking = [name for name in _NEEDED if name not in benchmarks]
    if lacking:
        raise ResultsUnusable(f"The results have no {', '.join(lacking)}. Measure {' '.join(_NEEDED)} in one run.")
    parts, top = [], 0
    panels = _panels(benchmarks)
    for panel in panels:
        parts.append(_drawn(panel, top))
        top += _HEAD + _LINE * len(panel.bars)
    title = ". ".join(f"{one.title}: {', '.join(f'{n} {_shown(v)} {one.unit}' for n, v in one.bars)}" for one in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img" width="{_WIDTH}" height="{top}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{''.join(parts)}</svg>\n"
    )


def _panels(found: Mapping[str, Any]) -> list[_Panel]:
    first, rates = found["cold"], found["cold"]["entries_per_second"]
    slow, again = found["peers"], found["peers"]["seconds"]
    short = {peers.OURS: "ingestd sync", peers.DLT: "dlt", peers.SINGER: "Singer SDK"}
    seen = found["latency"]["milliseconds"]
    warm = found["unchanged"]["seconds"]
    return [
        _Panel(
            title="A CSV file for the first time, more is better",
            note=f"{first['rows']:,} rows to a server that counts; dlt and Singer: {slow['rows']:,} rows",
            unit="1000 entries/s",
            bars=[
                ("ingestd run, every entry durable", rates[cold.DAEMON] / 1000),
                *(
                    (name, rates[peer] / 1000)
                    for name, peer in (
                        ("syslog-ng, reliable, CSV parsed", cold.CSV),
                        ("syslog-ng, reliable, lines passed on", cold.NDJSON),
                    )
                    if peer in rates
                ),
                *(
                    (short[peer], slow["entries_per_second"][peer] / 1000)
                    for peer in (peers.DLT, peers.SINGER)
                    if peer in again
                ),
            ],
        ),
        _Panel(
            title="The file written again with the same rows, less is better",
            note=f"whole commands, {slow['rows']:,} rows; ingestd sends nothing, the other programs send all rows again",
            unit="s",
            bars=[(short[peer], seconds[peers.WRITTEN]) for peer, seconds in again.items()],
        ),
        _Panel(
            title="A second pass over an unchanged file, less is better",
            note=f"{first['rows']:,} rows, process running",
            unit="s",
            bars=[
                ("ingestd, file untouched", warm[unchanged.UNTOUCHED]),
                ("ingestd, rows in another order", warm[unchanged.REORDERED]),
                ("polars reads and hashes the file", warm[unchanged.POLARS]),
            ],
        ),
        _Panel(
            title="From the drop of a small file until its entries can be read, less is better",
            note="median of 500 files of 10 rows; the floor sees a file, writes one entry and reads it",
            unit="ms",
            bars=[
                ("ingestd run with workspaced", seen[f"{latency.KEPT} p50"]),
                ("floor", sum(seen[f"{name} p50"] for name in (latency.NOTICE, latency.WRITE, latency.READ))),
            ],
        ),
    ]


def _drawn(panel: _Panel, top: int) -> str:
    longest = max(value for _, value in panel.bars)
    parts = [
        f'<text class="title" x="8" y="{top + 22}">{escape(panel.title)} ({panel.unit})</text>\n',
        f'<text class="note" x="8" y="{top + 38}">{escape(panel.note)}</text>\n',
    ]
    for number, (name, value) in enumerate(panel.bars):
        line = top + _HEAD - 10 + _LINE * number
        width = max(1.0, _BAR * value / longest)
        kind = "ours" if name.startswith("ingestd") else "other"
        parts.append(
            f'<text x="{_LABEL - 8}" y="{line + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{kind}" x="{_LABEL}" y="{line}" width="{width:.1f}" height="17" rx="2"/>'
            f'<text x="{_LABEL + width + 7:.1f}" y="{line + 13}">{_shown(value)}</text>\n'
        )
    return "".join(parts)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
