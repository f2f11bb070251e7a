"""Each readiness rule on real files: what a file waits for, when it is read, and when it is rejected."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.directory.readiness import not_open
from ingestd.sdk import AcknowledgeLater, SourceBroken
from tests.support.watched_files import Drop, acknowledge, read_all, ready_names

ROWS = "part,mass\nA,0.10\n"


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def why(connector: DirectoryConnector, name: str) -> str:
    return connector.explain(name) or ""


def test_a_marker_makes_a_file_ready_and_is_not_read_itself(drop: Drop) -> None:
    drop.write("run.csv")
    connector = drop.connector(ready=["marker"], pattern="*")
    assert ready_names(connector) == []
    assert "waits for its marker run.csv.done, which does not exist" in why(connector, "run.csv")
    drop.write("run.csv.done", "")
    assert ready_names(connector) == ["run.csv"]
    assert "belongs to other files" in why(connector, "run.csv.done")


def test_a_marker_of_an_earlier_file_is_ignored(drop: Drop) -> None:
    os.utime(drop.write("run.ready", ""), (1000, 1000))
    path = drop.write("run.csv")
    connector = drop.connector(ready=[{"type": "marker", "name": "{stem}.ready"}])
    assert ready_names(connector) == []
    assert "made for an earlier file" in why(connector, "run.csv")
    os.utime(path, (5_000_000_000, 5_000_000_000))  # a time in the future is no evidence
    assert ready_names(connector) == ["run.csv"]
    os.utime(path, (1001, 1001))  # within the resolution of a coarse file system
    assert ready_names(connector) == ["run.csv"]


@pytest.mark.parametrize(
    "form", ["{hex}", "{HEX}  run.csv\n", "{hex} *run.csv\n{zero}  other.csv\n", "SHA256 (run.csv) = {hex}\n"]
)
def test_a_checksum_in_any_common_form_makes_a_file_ready(drop: Drop, form: str) -> None:
    digest = hashlib.sha256(drop.write("run.csv").read_bytes()).hexdigest()
    connector = drop.connector(ready=["sha256"])
    assert ready_names(connector) == []
    assert "run.csv.sha256, which does not exist" in why(connector, "run.csv")
    drop.write("run.csv.sha256", form.format(hex=digest, HEX=digest.upper(), zero="0" * 64))
    assert ready_names(connector) == ["run.csv"]


def test_a_wrong_checksum_rejects_the_file_until_it_or_the_checksum_changes(drop: Drop) -> None:
    path = drop.write("run.csv")
    connector = drop.connector(ready=["sha256"])
    drop.write("run.csv.sha256", "")
    assert ready_names(connector) == []
    assert "is still empty" in why(connector, "run.csv")
    drop.write("run.csv.sha256", "0" * 64)
    assert ready_names(connector) == ["run.csv"]
    with pytest.raises(SourceBroken, match=r"has the SHA-256 \w{12}…, run\.csv\.sha256 says 000000000000…"):
        read_all(connector, "run.csv")
    assert ready_names(connector) == []
    drop.write("run.csv.sha256", "no hash at all")
    assert ready_names(connector) == ["run.csv"]
    with pytest.raises(SourceBroken, match="holds no SHA-256 for it"):
        read_all(connector, "run.csv")
    drop.write("run.csv.sha256", hashlib.sha256(path.read_bytes()).hexdigest())
    assert ready_names(connector) == ["run.csv"]
    assert read_all(connector, "run.csv")[0].records.height == 1
    path.write_text("part,mass\nB,1\n")
    assert ready_names(connector) == ["run.csv"]
    with pytest.raises(SourceBroken, match="SHA-256"):
        read_all(connector, "run.csv")


WRITER = "import sys; file = open(sys.argv[1], 'a'); print('open', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("leases", [True, False])
def test_a_file_that_another_process_writes_waits(drop: Drop, monkeypatch: pytest.MonkeyPatch, *, leases: bool) -> None:
    if not leases:  # as on a file system, or with an account, without this information
        monkeypatch.setattr(not_open, "_request_lease", lambda _: None)
    path = drop.write("run.csv")
    connector = drop.connector(ready=["not-open"])
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert ready_names(connector) == []
        assert f"(process {writer.pid})" in why(connector, "run.csv")
    finally:
        writer.communicate(b"", timeout=10)
    with path.open():  # a reader is no writer
        assert ready_names(connector) == ["run.csv"]


def whole_files(folder: Path) -> dict[str, bytes]:
    """Return a complete file of each format that has a structure."""
    frame = pl.DataFrame({"part": ["A"] * 1000, "mass": [str(number) for number in range(1000)]})
    frame.write_parquet(folder / "made")
    parquet = (folder / "made").read_bytes()
    frame.write_ipc(folder / "made")
    arrow = (folder / "made").read_bytes()
    frame.write_ipc_stream(folder / "made")
    stream = (folder / "made").read_bytes()
    with zipfile.ZipFile(folder / "made", "w") as archive:
        archive.writestr("a.csv", frame.write_csv())
    text = frame.write_csv().encode()
    return {
        "a.parquet": parquet, "a.arrow": arrow, "b.arrow": stream, "a.zip": (folder / "made").read_bytes(),
        "a.csv.gz": gzip.compress(text), "a.json": b'[{"part": "A", "mass": 1}]',
    }  # fmt: skip


def test_a_truncated_file_waits_until_it_is_complete_or_its_time_has_expired(drop: Drop) -> None:
    files = whole_files(drop.base)
    connector = drop.connector(ready=["complete"])
    for name, content in files.items():
        (drop.folder / name).write_bytes(content[: len(content) * 2 // 3])
    assert ready_names(connector) == []
    for name in files:
        assert f"{name} is stable, but it is not complete: " in why(connector, name)
    drop.now += 300
    assert sorted(ready_names(connector)) == sorted(files), "read now, so that it is rejected with its reason"
    for name, content in files.items():
        (drop.folder / name).write_bytes(content)
    assert sorted(ready_names(connector)) == sorted(files)
    drop.write("plain.csv", "part,mass\nA")
    assert "plain.csv" in ready_names(connector)


def test_a_trailer_has_the_number_of_records_and_is_no_record(drop: Drop) -> None:
    path = drop.write("run.csv", "part,mass\nA,1\nB\n")
    connector = drop.connector(ready=["trailer"])
    assert ready_names(connector) == []
    assert "does not state the number of its records" in why(connector, "run.csv")
    with path.open("a") as file:
        file.write("# rows: 2\n\n")
    assert ready_names(connector) == ["run.csv"]
    (batch,) = read_all(connector, "run.csv")
    assert (batch.records.rows(), [reject.position for reject in batch.rejects]) == ([("A", "1")], [3])
    assert batch.cursor["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text("part,mass\nA,1\n# rows: 2\n")
    assert ready_names(connector) == ["run.csv"]
    with pytest.raises(SourceBroken, match="its last line says 2 records, but the file holds 1"):
        read_all(connector, "run.csv")
    assert ready_names(connector) == []


PARTS = {"type": "parts", "name": "run-{id}_{part}.csv", "parts": ["head", "data"]}


def test_parts_are_read_together_and_in_order(drop: Drop) -> None:
    drop.write("run-7_data.csv")
    drop.write("run-8_head.csv")
    drop.write("stray.csv")
    connector = drop.connector(ready=[PARTS])
    assert ready_names(connector) == []
    assert "read together with run-7_head.csv, missing" in why(connector, "run-7_data.csv")
    assert "does not have the form of the rule parts" in why(connector, "stray.csv")
    drop.write("run-7_head.csv")
    assert ready_names(connector) == ["run-7_head.csv", "run-7_data.csv"]


def test_a_group_is_archived_as_a_whole_even_after_a_restart(drop: Drop) -> None:
    drop.write("run-7_head.csv")
    drop.write("run-7_data.csv")
    options = {"ready": [PARTS], "after": "archive", "archive": "done", "receipt": False}
    connector = drop.connector(**options)
    assert len(ready_names(connector)) == 2
    head = read_all(connector, "run-7_head.csv")[-1].cursor
    with pytest.raises(AcknowledgeLater, match=r"leaves the folder together with run-7_data\.csv"):
        acknowledge(connector, "run-7_head.csv", head)
    assert tree(drop.folder) == ["run-7_data.csv", "run-7_head.csv"]
    again = drop.connector(**options)  # After a restart an acknowledgement is repeated.
    with pytest.raises(AcknowledgeLater):
        acknowledge(again, "run-7_head.csv", head)
    assert ready_names(again) == ["run-7_head.csv", "run-7_data.csv"]
    acknowledge(again, "run-7_data.csv", read_all(again, "run-7_data.csv")[-1].cursor)
    acknowledge(again, "run-7_head.csv", head)
    assert (tree(drop.folder), tree(drop.done)) == ([], ["run-7_data.csv", "run-7_head.csv"])


def test_a_kept_group_is_read_whole_when_one_file_changes(drop: Drop) -> None:
    for part in ("head", "data"):
        drop.write(f"run-7_{part}.csv")
    connector = drop.connector(ready=[PARTS])
    for name in ready_names(connector):
        acknowledge(connector, name, read_all(connector, name)[-1].cursor)
    assert ready_names(connector) == []
    drop.write("run-7_data.csv", "part,mass\nA,9\n")
    assert ready_names(connector) == ["run-7_data.csv"]


def test_a_manifest_makes_its_files_ready_and_is_archived_with_the_last(drop: Drop) -> None:
    digest = hashlib.sha256(drop.write("b.csv", "part,mass\nB,2\n").read_bytes()).hexdigest()
    connector = drop.connector(ready=["manifest"], after="archive", archive="done", receipt=False)
    assert ready_names(connector) == []
    assert "waits for a manifest (*.manifest) that lists it" in why(connector, "b.csv")
    drop.write("export.manifest", f"# two files\n{digest}  b.csv\na.csv\n")
    assert ready_names(connector) == []
    assert "export.manifest also lists a.csv: missing" in why(connector, "b.csv")
    drop.write("a.csv")
    assert ready_names(connector) == ["b.csv", "a.csv"]
    cursor = read_all(connector, "b.csv")[-1].cursor
    with pytest.raises(AcknowledgeLater):
        acknowledge(connector, "b.csv", cursor)
    acknowledge(connector, "a.csv", read_all(connector, "a.csv")[-1].cursor)
    assert (tree(drop.folder), tree(drop.done)) == ([], ["a.csv", "b.csv", "export.manifest"])


def test_a_wrong_hash_in_a_manifest_rejects_that_file_and_delays_the_others(drop: Drop) -> None:
    drop.write("a.csv")
    drop.write("b.csv")
    drop.write("export.manifest", f"{'0' * 64}  a.csv\nb.csv\n")
    connector = drop.connector(ready=["manifest"])
    assert ready_names(connector) == ["a.csv"]
    with pytest.raises(SourceBroken, match=r"export\.manifest says 000000000000…"):
        read_all(connector, "a.csv")
    assert ready_names(connector) == []
    assert "read together with a.csv, not ready yet" in why(connector, "b.csv")
    drop.write("export.manifest", "a.csv\nb.csv\n")
    assert sorted(ready_names(connector)) == ["a.csv", "b.csv"]


def test_all_rules_must_be_met_and_companions_are_archived_with_their_file(drop: Drop) -> None:
    path = drop.write("sub/run.csv")
    connector = drop.connector(
        ready=["marker", "sha256"], recursive=True, after="archive", archive="done", receipt=False
    )
    drop.write("sub/run.csv.done", "")
    assert ready_names(connector) == []
    assert "checksum" in why(connector, "sub/run.csv")
    drop.write("sub/run.csv.sha256", hashlib.sha256(path.read_bytes()).hexdigest())
    assert ready_names(connector) == ["sub/run.csv"]
    acknowledge(connector, "sub/run.csv", read_all(connector, "sub/run.csv")[-1].cursor)
    assert tree(drop.folder) == []
    assert tree(drop.done) == ["sub/run.csv", "sub/run.csv.done", "sub/run.csv.sha256"]


def test_rules_are_evaluated_only_for_stable_files(drop: Drop) -> None:
    connector = drop.connector(ready=["complete"], settle_seconds=2)
    assert ready_names(connector) == []
    drop.write("a.json", "[")
    assert ready_names(connector) == []
    assert "must be unchanged" in why(connector, "a.json")
    drop.now += 2
    assert ready_names(connector) == []
    assert "not complete" in why(connector, "a.json")


def test_an_empty_file_waits_and_is_then_rejected_until_it_has_content(drop: Drop) -> None:
    connector = drop.connector(empty_seconds=60)
    assert ready_names(connector) == []
    path = drop.write("a.csv", "")
    assert ready_names(connector) == []
    assert "rejected if it is still empty in 60 seconds" in why(connector, "a.csv")
    drop.now += 60
    assert ready_names(connector) == ["a.csv"]
    with pytest.raises(SourceBroken, match=r"a\.csv is empty and has been for 60 seconds"):
        read_all(connector, "a.csv")
    assert ready_names(connector) == []
    assert "is rejected because it is still empty" in why(connector, "a.csv")
    path.write_text(ROWS)
    assert ready_names(connector) == ["a.csv"]


@pytest.mark.parametrize(
    ("ready", "sentence"),
    [
        ([{"type": "marker", "name": "done"}], "must have {name}"),
        ([{"type": "marker", "name": "{name}"}], "differ from the file's own name"),
        ([{"type": "sha256", "name": "sums/{name}"}], "no slash"),
        ([{"type": "trailer", "pattern": "rows: [0-9]+"}], "one pair of brackets"),
        ([{"type": "trailer", "pattern": "("}], "no regular expression"),
        ([{"type": "parts", "name": "run.csv", "parts": ["a", "b"]}], "{part} exactly once"),
        ([PARTS | {"parts": ["a", "a"]}], "must not have a name twice"),
        (["marker", {"type": "marker", "name": "{stem}.ok"}], "the rule marker twice"),
    ],
)
def test_an_ineffective_rule_is_a_mistake_in_the_configuration(ready: list[Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        DirectoryOptions.model_validate({"path": "drop", "ready": ready})
