"""Sinks by their names: finding them, reading them as frames, and pushing frames, against a real service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ingestd.client import Client
from ingestd.client.errors import Forbidden, NameAmbiguous, NameUnknown
from ingestd.client.push import PushResult
from ingestd.client.records import NewEntry, Workspace
from tests.support.document_server import DocumentServer, Refuse, Store
from tests.support.recorded_workspaced import RecordedWorkspaced
from workspaced.settings.model import Limits


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedWorkspaced]:
    """A service that takes 5 entries and 1,000 bytes at once, and values of at most 40 bytes."""
    limits = Limits(requests_per_minute=0, bulk_items=5, bulk_body_bytes=1_000, value_bytes=40)
    with RecordedWorkspaced(tmp_path_factory.mktemp("small") / "data", limits=limits) as running:
        yield running


@pytest.fixture
def client(small: RecordedWorkspaced) -> Iterator[Client]:
    with Client(small.url, api_key=small.api_key) as opened:
        yield opened


@pytest.fixture
def workspace(client: Client, request: pytest.FixtureRequest) -> Workspace:
    """A workspace with a label of its own."""
    return client.create_workspace(f"Rover {request.node.name}")


def counts(result: PushResult) -> tuple[int, int, int, int]:
    return result.created, result.updated, result.unchanged, len(result.rejected)


def test_a_sink_is_found_by_label_visible_id_and_id(client: Client, workspace: Workspace) -> None:
    made = client.create_sink(workspace.id, label="Mass büdget")
    for place in (workspace.label, workspace.id):
        for name in ("Mass büdget", " Mass bu\u0308dget ", made.visible_id.lower(), made.id.upper()):
            assert client.sink(place, name).id == made.id


def test_an_error_about_an_unknown_name_has_the_nearest_one(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass budget")
    with pytest.raises(NameUnknown, match=r"There is no sink 'Mass bugdet' .* Did you mean 'Mass budget'"):
        client.sink(workspace.id, "Mass bugdet")
    with pytest.raises(NameUnknown, match="may read: 'Mass budget', 'SNK-1'"):
        client.sink(workspace.id, "zzz")
    with pytest.raises(NameUnknown, match=f"Did you mean '{workspace.label}'"):
        client.sink(f"{workspace.label}s", "Mass budget")


def test_an_ambiguous_name_lists_the_candidates_and_an_id_decides(client: Client, workspace: Workspace) -> None:
    first, second = (client.create_sink(workspace.id, label="Mass") for _ in range(2))
    with pytest.raises(NameAmbiguous, match=f"2 sinks .*SNK-1, id {first.id}.*SNK-2, id {second.id}") as found:
        client.sink(workspace.id, "Mass")
    assert found.value.ids == (first.id, second.id)
    assert client.sink(workspace.id, second.id).id == second.id
    labelled = client.create_sink(workspace.id, label="SNK-1")
    with pytest.raises(NameAmbiguous):
        client.sink(workspace.id, "SNK-1")
    assert client.sink(workspace.id, labelled.id).id == labelled.id
    twin = client.create_workspace(workspace.label)
    with pytest.raises(NameAmbiguous, match=f"2 workspaces .*{workspace.id}.*{twin.id}"):
        client.sink(workspace.label, "Mass")


def test_frames_have_a_type_for_each_column_and_keep_the_exact_text(client: Client, workspace: Workspace) -> None:
    values = {
        "a": "0.10",
        "b": "1e400",
        "c": "1e-400",
        "d": "12 kg",
        "e": None,
        "f": "0.1000000000000000055511151231257827",
    }
    entries = [NewEntry(key=key, data_type="scalar", value=value) for key, value in values.items()]
    made = client.create_sink(
        workspace.id, label="Mass", entries=[*entries, NewEntry(key="t", data_type="text", value="00417")]
    )
    sink = client.sink(workspace.id, "Mass")
    assert sink.to_dict() == {**values, "t": "00417"}
    frame = sink.to_polars()
    assert frame.schema == {
        "key": pl.String, "value": pl.String, "number": pl.Float64, "data_type": pl.String,
        "created_at": pl.Datetime("us", "UTC"), "updated_at": pl.Datetime("us", "UTC"),
        "created_by": pl.String, "updated_by": pl.String,
    }  # fmt: skip
    assert dict(frame.select("key", "value").iter_rows()) == {**values, "t": "00417"}
    # Out of the range of 64 bits is no number; a text is one only if its type is.
    assert frame["number"].to_list() == [0.1, None, None, None, None, 0.1, None]
    assert frame["updated_at"][0] == made.entries[0].updated_at
    assert sink.to_polars(numeric=("scalar", "text"))["number"][-1] == 417.0
    pandas = sink.to_pandas()
    assert {name: str(kind) for name, kind in pandas.dtypes.items()} == {
        "key": "string", "value": "string", "number": "float64", "data_type": "string",
        "created_at": "datetime64[us, UTC]", "updated_at": "datetime64[us, UTC]",
        "created_by": "string", "updated_by": "string",
    }  # fmt: skip
    assert pandas["key"].tolist() == frame["key"].to_list()
    assert pandas["value"].isna().tolist() == [value is None for value in (*values.values(), "")]
    assert pandas["updated_at"][0].to_pydatetime() == made.entries[0].updated_at


def test_an_empty_sink_has_the_same_columns(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    assert sink.to_polars().width == len(sink.to_pandas().columns) == 8
    assert sink.to_polars().is_empty()
    assert "object" not in {str(kind) for kind in sink.to_pandas().dtypes}


def test_to_pandas_without_pandas_names_it(
    client: Client, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_sink(workspace.id, label="Mass")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas, which is not installed"):
        client.sink(workspace.id, "Mass").to_pandas()


def test_only_what_differs_is_sent_in_requests_of_the_size_that_the_service_takes(
    client: Client, workspace: Workspace, small: RecordedWorkspaced
) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    frame = pl.DataFrame({"part": [f"P{n:02}" for n in range(12)], "mass": [f"{n}.50" for n in range(12)]})
    small.forget_requests()
    assert counts(sink.push(frame, key="{part}.mass", value="mass")) == (12, 0, 0, 0)
    assert len(small.writes()) == 3
    assert sink.to_dict() == {f"P{n:02}.mass": f"{n}.50" for n in range(12)}
    small.forget_requests()
    assert counts(sink.push(frame, key="{part}.mass", value="mass")) == (0, 0, 12, 0)
    assert small.writes() == []
    changed = frame.with_columns(mass=pl.when(pl.col("part") == "P03").then(pl.lit("9")).otherwise("mass"))
    assert counts(sink.push(changed, key="{part}.mass", value="mass")) == (0, 1, 11, 0)
    assert [request.body for request in small.writes()] == [b'[{"key":"P03.mass","value":"9"}]']


def test_requests_have_at_most_the_bytes_that_the_service_takes(
    client: Client, workspace: Workspace, small: RecordedWorkspaced
) -> None:
    client.create_sink(workspace.id, label="Mass")
    rows = [{"part": f"{n}-{'x' * 240}", "mass": "1"} for n in range(7)]
    small.forget_requests()
    assert counts(client.sink(workspace.id, "Mass").push(rows, key="part", value="mass")) == (7, 0, 0, 0)
    assert [request.status for request in small.writes()] == [200, 200, 200]
    assert max(len(request.body) for request in small.writes()) <= 1_000


def test_a_row_that_the_service_refuses_is_rejected_with_its_number_and_the_rest_is_stored(
    client: Client, workspace: Workspace
) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    rows = [{"part": "a", "mass": "1"}, {"part": "b", "mass": "2" * 41}, {"part": "c" * 256, "mass": "3"}]
    result = sink.push([*rows, {"part": "d", "mass": "4"}], key="part", value="mass")
    assert counts(result) == (2, 0, 0, 2)
    assert [(one.row, one.key[:1]) for one in result.rejected] == [(1, "b"), (2, "c")]
    assert all(one.reason.startswith("The service refuses the entry (400)") for one in result.rejected)
    assert sink.to_dict() == {"a": "1", "d": "4"}


def test_an_entry_that_is_larger_than_a_request_is_rejected_alone(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    rows = [{"part": "a", "mass": "1"}, {"part": "b", "mass": "2" * 1_100}, {"part": "c", "mass": "3"}]
    result = sink.push(rows, key="part", value="mass")
    assert counts(result) == (2, 0, 0, 1)
    assert (result.rejected[0].row, "413" in result.rejected[0].reason) == (1, True)


def test_a_data_type_is_written_and_compared_and_without_one_the_stored_type_stays(
    client: Client, workspace: Workspace
) -> None:
    client.create_sink(workspace.id, label="Mass", entries=[NewEntry(key="a", data_type="text", value="1")])
    sink = client.sink(workspace.id, "Mass")
    row = [{"part": "a", "mass": "1"}]
    assert counts(sink.push(row, key="part", value="mass")) == (0, 0, 1, 0)
    assert counts(sink.push(row, key="part", value="mass", data_type="scalar")) == (0, 1, 0, 0)
    assert sink.to_polars()["data_type"].to_list() == ["scalar"]


@pytest.mark.parametrize("mass_creates", [False, True])
def test_a_service_without_bulk_gets_one_request_for_each_entry(mass_creates: bool) -> None:
    with DocumentServer(Store(mass_creates=mass_creates)) as server, Client(server.url, api_key="test-key") as client:
        place = server.workspace()
        entries = [NewEntry(key=key, data_type=kind, value="1") for key, kind in (("a", "scalar"), ("b", "text"))]
        client.create_sink(place, label="Mass", entries=entries)
        sink = client.sink(place, "Mass")
        server.forget_requests()
        rows = [
            {"part": "a", "mass": "1"},
            {"part": "b", "mass": "2"},
            {"part": "c", "mass": "3"},
            {"part": "..", "mass": "4"},
        ]
        assert counts(sink.push(rows, key="part", value="mass", data_type="scalar")) == (2, 1, 1, 0)
        assert server.values("Mass") == {
            "a": ("1", "scalar"), "b": ("2", "scalar"), "c": ("3", "scalar"), "..": ("4", "scalar"),
        }  # fmt: skip
        server.fail(Refuse(status=400), when=lambda request: request.writes)
        server.fail(Refuse(status=403), when=lambda request: request.writes)
        with pytest.raises(Forbidden) as refused:
            sink.push([{"part": "x", "mass": "1"}, {"part": "y", "mass": "1"}], key="part", value="mass")
        assert refused.value.__notes__ == ["1 entry of 2 were sent before. A repeated push sends the rest."]


PANDAS = pd.DataFrame({
    "part": ["a", "b", None, "d"], "mass": np.array([0.1, np.nan, 1, 2.5], dtype="float32"),
    "n": pd.array([1, None, 3, 4], dtype="Int64"),
})  # fmt: skip


def test_numbers_are_written_by_the_rule_that_the_caller_chose(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    frame = pl.DataFrame({"part": ["a", "b"], "mass": [2.675, 1e-05]})
    sink.push(frame, key="part", value="mass", number="repr")
    assert sink.to_dict() == {"a": "2.675", "b": "1e-05"}
    sink.push(frame, key="part", value="mass", decimals=2)
    assert sink.to_dict() == {"a": "2.68", "b": "0.00"}
    sink.push(frame, key="part", value="mass", digits=3, unit={"from": "g", "to": "kg"})
    assert sink.to_dict() == {"a": "0.00268", "b": "0.00000001"}
    sink.push([{"part": "a", "mass": Decimal("1.50")}, {"part": "b", "mass": 10**20}], key="part", value="mass")
    assert sink.to_dict() == {"a": "1.50", "b": "1" + "0" * 20}


def test_numbers_with_32_bits_have_the_text_of_32_bits(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    result = sink.push(PANDAS, key="part", value="mass", number="repr")
    assert sink.to_dict() == {"a": "0.1", "d": "2.5"}
    assert [(one.row, one.key, one.reason) for one in result.rejected] == [
        (1, "b", "The value of column 'mass' is nan, which is no number."),
        (2, "", "The record has no 'part', which the key '{part}' needs."),
    ]
    frame = pl.DataFrame({"part": ["p"], "mass": [0.1]}, schema={"part": pl.String, "mass": pl.Float32})
    sink.push(frame, key="part", value="mass", number="repr")
    assert sink.to_dict()["p"] == "0.1"


def test_integers_of_pandas_with_missing_values_are_exact(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    result = sink.push(PANDAS, key="part", value="n")
    assert sink.to_dict() == {"a": "1", "d": "4"}
    assert next((one.row, one.reason) for one in result.rejected) == (1, "There is no value: 'n' is missing.")


def test_a_key_in_several_rows_rejects_all_of_them(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    rows = [{"part": "a\u0308", "mass": "1"}, {"part": "b", "mass": "2"}, {"part": "ä", "mass": "3"}]
    result = sink.push(rows, key="part", value="mass")
    assert sink.to_dict() == {"b": "2"}
    assert [(one.row, one.key) for one in result.rejected] == [(0, "ä"), (2, "ä")]
    assert result.rejected[0].reason == "The key 'ä' is in the rows 0, 2. Keep one of them."


def test_a_datetime_a_list_and_a_truth_have_no_exact_text(client: Client, workspace: Workspace) -> None:
    client.create_sink(workspace.id, label="Mass")
    sink = client.sink(workspace.id, "Mass")
    odd = [True, [1], datetime(2026, 1, 1, tzinfo=UTC), Decimal("NaN"), float("inf"), "\ud800", "a\0b"]
    result = sink.push(
        ({"part": f"p{n}", "mass": one} for n, one in enumerate(odd)), key="part", value="mass", number="repr"
    )
    assert counts(result) == (0, 0, 0, len(odd))
    assert [one.key for one in result.rejected] == [f"p{n}" for n in range(len(odd))]
    assert sink.to_dict() == {}
