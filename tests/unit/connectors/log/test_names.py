from __future__ import annotations

import pytest

from connectors.files.identity import Identity
from connectors.log.names import LogNames


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("run.csv", "run.csv"),
        ("run.csv.1", "run.csv"),
        ("run.csv.1.gz", "run.csv"),
        ("run.csv-20261121", "run.csv"),
        ("run.csv-20261121.zst", "run.csv"),
        ("run [7].csv.2", "run [7].csv"),
        ("a.csv-b.csv.1", "a.csv-b.csv"),
        ("run.csv.1.zip", None),
        (".run.csv", None),
        ("~$run.csv", None),
        ("run.csvx", None),
        ("notes.txt", None),
    ],
)
def test_a_file_belongs_to_the_log_with_the_longest_matching_name(name: str, log: str | None) -> None:
    names = LogNames(["*.csv"], ["{name}.*", "{name}-*"])
    assert names.log_of(name) == names.log_of(name) == log


def test_a_log_with_a_literal_name_has_rotated_files_of_any_suffix() -> None:
    names = LogNames(["run.csv"], ["run-*.csv"])
    assert [names.log_of(name) for name in ("run.csv", "run-1.csv", "run-1.csv.gz", "old.csv")] == [
        "run.csv", "run.csv", "run.csv", None,
    ]  # fmt: skip


def test_rotated_files_are_sorted_by_time_then_by_descending_number() -> None:
    names = LogNames(["*.csv"], ["{name}.*"])
    times = {"a.csv": 9, "a.csv.1": 5, "a.csv.2": 5, "a.csv.10.gz": 5, "a.csv.3": 7, "b.csv.1": 1}
    files = {name: Identity(1, at, 1, time, time) for at, (name, time) in enumerate(times.items())}
    assert names.older("a.csv", files) == ["a.csv.10.gz", "a.csv.2", "a.csv.1", "a.csv.3"]
    assert names.logs(files) == ["a.csv", "b.csv"]


def test_case_is_ignored_unless_configured_otherwise() -> None:
    names = LogNames(["*.csv"], ["{name}.*"])
    assert [names.log_of(name) for name in ("RUN.CSV", "RUN.CSV.1", "RUN.csv.GZ")] == ["RUN.CSV", "RUN.CSV", "RUN.csv"]
    exact = LogNames(["*.csv"], ["{name}.*"], case_sensitive=True)
    assert [exact.log_of(name) for name in ("RUN.CSV", "RUN.CSV.1", "run.csv.1")] == [None, None, "run.csv"]


def test_a_log_with_a_literal_name_keeps_that_name_for_files_of_another_case() -> None:
    names = LogNames(["run.csv"], ["run-*.csv"])
    files = {"Run.CSV": Identity(1, 1, 1, 2, 2), "RUN-1.csv": Identity(1, 2, 1, 1, 1)}
    assert names.logs(files) == ["run.csv"]
    assert names.current("run.csv", files) == "Run.CSV"
    assert names.older("run.csv", files) == ["RUN-1.csv"]


def test_of_two_files_that_differ_in_case_only_the_one_that_matches_the_pattern_is_the_log() -> None:
    names = LogNames(["run.csv"], ["run-*.csv"])
    files = {"RUN.csv": Identity(1, 1, 1, 1, 1), "run.csv": Identity(1, 2, 1, 2, 2)}
    assert names.current("run.csv", files) == "run.csv"
    assert names.older("run.csv", files) == []
