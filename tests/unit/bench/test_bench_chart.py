"""The picture of the results: what it shows, and that the one in the documentation is drawn from the file beside it."""

import json
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from bench.__main__ import chart
from bench.chart import draw
from bench.comparison import read_results

FIGURES: Final = Path(__file__).parents[3] / "docs" / "figures"


def test_the_picture_of_the_documentation_is_drawn_from_the_results_beside_it() -> None:
    assert (FIGURES / "benchmarks.svg").read_text() == draw(read_results(FIGURES / "benchmarks.json"))


def test_the_length_of_a_bar_is_in_proportion_to_its_value() -> None:
    found = read_results(FIGURES / "benchmarks.json")
    rates = {
        "ingestd run, file dropped -> counting server": 400_000,
        "syslog-ng, reliable buffer, CSV -> counting server": 100_000,
    }
    found["cold"]["entries_per_second"] = rates
    found["peers"]["seconds"] = {"ingestd sync": found["peers"]["seconds"]["ingestd sync"]}
    picture = ET.fromstring(draw(found))
    ours, theirs = [float(bar.get("width", "")) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")][:2]
    assert ours == pytest.approx(4 * theirs, rel=0.01)
    assert "ingestd run, every entry durable 400 1000 entries/s" in (picture[0].text or "")


def test_results_without_a_needed_benchmark_are_named(tmp_path: Path) -> None:
    results, picture = tmp_path / "results.json", tmp_path / "picture.svg"
    results.write_text(json.dumps({"benchmarks": {"cold": {}, "unchanged": {}}}))
    done = CliRunner().invoke(chart, [str(results), str(picture)])
    assert done.exit_code == 1
    assert "The results have no peers, latency. Measure cold unchanged peers latency in one run." in done.output
    assert not picture.exists()
