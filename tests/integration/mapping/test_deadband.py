"""The dead-band with real files and a real mirror: what is sent, and what is not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec
from tests.support.file_flow import FileFlow


def flow_in(folder: Path, band: str | None, held: dict[str, str] | None = None) -> FileFlow:
    spec = EntrySpec(key="{part}", value="{mass}", type="{type}", deadband=band)
    found = FileFlow(folder, spec=spec, after="keep", archive=None)
    found.held = held or {}
    return found


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[FileFlow]:
    found = flow_in(tmp_path, "0.5")
    yield found
    found.close()


def read(flow: FileFlow, *masses: str, kind: str = "scalar") -> None:
    rows = "".join(f"P-{number},{mass},{kind}\n" for number, mass in enumerate(masses, start=1))
    flow.write("a.csv", "part,mass,type\n" + rows)
    flow.pass_once()


def test_slow_drift_is_sent_as_soon_as_it_leaves_the_band_around_the_sent_value(flow: FileFlow) -> None:
    delivered = []
    for mass in ("10.0", "10.3", "10.5", "10.6", "10.2", "10.1", "10.05"):
        read(flow, mass)
        delivered.append(flow.held["P-1"])
    assert delivered == ["10.0", "10.0", "10.0", "10.6", "10.6", "10.6", "10.05"]


def test_the_comparison_is_exact(tmp_path: Path) -> None:
    flow = flow_in(tmp_path, "0.1")
    for mass, wanted in (("0.1", "0.1"), ("0.2", "0.1"), ("0.30000000000000000001", "0.30000000000000000001")):
        read(flow, mass)
        assert flow.held["P-1"] == wanted
    flow.close()


def test_a_percentage_is_one_of_the_sent_value(tmp_path: Path) -> None:
    flow = flow_in(tmp_path, "1%")
    for mass, wanted in (("-200", "-200"), ("-202", "-200"), ("-202.1", "-202.1"), ("0", "0"), ("0.001", "0.001")):
        read(flow, mass)
        assert flow.held["P-1"] == wanted
    flow.close()


def test_a_new_type_a_text_and_a_removed_entry_are_sent(flow: FileFlow) -> None:
    read(flow, "10", "20")
    read(flow, "10.1", "20", kind="number")
    assert flow.held["P-1"] == "10.1"
    read(flow, "broken", "20.1", kind="number")
    assert flow.held == {"P-1": "broken", "P-2": "20"}
    read(flow, "10.1", "20.1", kind="number")
    assert flow.held == {"P-1": "10.1", "P-2": "20"}


def test_a_value_near_one_that_the_service_rejected_is_sent(flow: FileFlow) -> None:
    read(flow, "10")
    flow.refuses = {"12"}
    read(flow, "12")
    assert flow.held["P-1"] == "10"
    read(flow, "12.1")
    assert flow.held["P-1"] == "12.1"


def test_repeated_keys_have_the_dead_band_too(flow: FileFlow) -> None:
    for mass, wanted in (("10", "10"), ("10.4", "10"), ("10.6", "10.6")):
        flow.write("a.csv", f"part,mass,type\nP-1,99,scalar\nP-1,{mass},scalar\n")
        flow.pass_once()
        assert flow.held["P-1"] == wanted


def test_the_mirror_knows_the_value_that_was_read_until_another_one_is_sent(flow: FileFlow) -> None:
    seen = []
    for mass in ("10", "10.3", "10.4", "10", "10.2", "11"):
        read(flow, mass)
        [origin] = flow.mirror.status.origins("P-1")
        seen.append((origin.value, origin.last_read))
    assert seen == [("10", None), ("10", "10.3"), ("10", "10.4"), ("10", None), ("10", "10.2"), ("11", None)]


def test_a_smaller_band_is_applied_to_the_values_that_were_read(tmp_path: Path) -> None:
    wide = flow_in(tmp_path, "0.5")
    read(wide, "10", "20")
    read(wide, "10.4", "20.1")
    assert wide.held == {"P-1": "10", "P-2": "20"}
    wide.close()
    narrow = flow_in(tmp_path, "0.2", wide.held)
    narrow.pass_once()
    assert narrow.held == {"P-1": "10.4", "P-2": "20"}
    narrow.close()
    without = flow_in(tmp_path, None, narrow.held)
    without.pass_once()
    assert without.held == {"P-1": "10.4", "P-2": "20.1"}
    assert [origin.last_read for origin in without.mirror.status.origins("P-2")] == [None]
    without.close()


def test_an_unchanged_file_within_the_band_maps_nothing(flow: FileFlow) -> None:
    read(flow, "10", "20")
    read(flow, "10.1", "20.1")
    flow.write("a.csv", "part,mass,type\nP-1,10.1,scalar\nP-2,20.1,scalar\n")
    [summary] = flow.pass_once().read or [None]
    assert summary is None or (summary.updated, summary.unchanged) == (0, 0)


MASSES = st.sampled_from(["10", "10.0", "10.2", "10.4", "10.5", "10.50001", "9.5", "9", "11", "-10", "0", "1e1", "x"])
READINGS = st.lists(
    st.tuples(st.lists(MASSES, min_size=1, max_size=3), st.sampled_from(["deliver", "read", "restart"])), max_size=7
)


def number(text: str) -> Decimal | None:
    return None if text == "x" else Decimal(text)


def is_near(sent: str, mass: str, band: str) -> bool:
    old, new = number(sent), number(mass)
    if old is None or new is None:
        return False
    limit = Decimal(band.rstrip("%")) / 100 * abs(old) if band.endswith("%") else Decimal(band)
    return abs(new - old) <= limit


@example("0.5", [(["10", "10.4"], "read"), (["10.5", "11"], "restart"), (["10.50001", "11"], "deliver")])
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["0.5", "5%", "0", "0.4"]), READINGS)
def test_what_is_delivered_is_as_by_plain_python_and_never_farther_than_the_band(
    band: str, readings: list[tuple[list[str], str]]
) -> None:
    wanted: dict[str, str] = {}
    last: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        flow = flow_in(Path(folder), band)
        for masses, then in readings:
            for at, mass in enumerate(masses, start=1):
                last[f"P-{at}"] = mass
                if f"P-{at}" not in wanted or not is_near(wanted[f"P-{at}"], mass, band):
                    wanted[f"P-{at}"] = mass
            rows = "".join(f"P-{at},{mass},scalar\n" for at, mass in enumerate(masses, start=1))
            flow.write("a.csv", "part,mass,type\n" + rows)
            if then == "deliver":
                flow.pass_once()
            else:
                flow.reader.read_pass()
            if then == "restart":
                flow.close()
                flow = flow_in(Path(folder), band, flow.held)
        flow.pass_once()
        assert flow.held == wanted
        assert all(held == last[key] or is_near(held, last[key], band) for key, held in flow.held.items())
        for key, read_last in last.items():
            [origin] = flow.mirror.status.origins(key)
            assert origin.last_read == (None if origin.value == read_last else read_last)
        flow.close()
