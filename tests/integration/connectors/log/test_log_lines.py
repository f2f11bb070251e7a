"""What counts as a row of a log, when it is read, and what happens to other lines."""

from typing import Any

import pytest

from connectors.log import rows, tail
from ingestd.sdk import Partition, SourceBroken, SourceUnavailable
from tests.support.watched_files import Bench, Reading


def test_only_appended_rows_are_read_even_after_a_restart(bench: Bench) -> None:
    connector, run = bench.connector(), Reading()
    bench.append("t,value\n0,0.10\n1,1e-7\n")
    assert run.look(connector) == [(2, "0", "0.10"), (3, "1", "1e-7")]
    assert run.look(connector) == []
    bench.append("2,00417\n")
    assert run.look(connector) == [(4, "2", "00417")]
    bench.append("3,x\n")
    assert run.look(bench.connector()) == [(5, "3", "x")]
    facts = run.batches[-1].facts
    assert (facts["file.name"], facts["file.stem"], facts["file.read_from"]) == ("run.csv", "run", "run.csv")
    assert (facts["file.encoding"], facts["file.delimiter"], facts["file.header_row"]) == ("utf-8", "comma", "1")


def test_a_header_waits_for_its_line_end_and_only_its_row_decides(bench: Bench) -> None:
    connector, run = bench.connector(), Reading()
    bench.append("t;val")
    assert run.look(connector) == []
    bench.append("ue\n")
    assert run.look(connector) == []
    bench.append("0;1,5\n1;2,5\n")
    assert run.look(connector) == [(2, "0", "1,5"), (3, "1", "2,5")]


def test_an_incomplete_line_waits_until_nothing_is_appended_and_is_read_again_when_it_grows(bench: Bench) -> None:
    connector, run = bench.connector(idle_seconds=5), Reading()
    path = bench.append("t,value\n0,1\n1,")
    assert run.look(connector) == [(2, "0", "1")]
    assert connector.waiting() == pytest.approx(5 - (bench.now - path.stat().st_mtime), abs=0.2)
    assert "has no line end yet" in str(connector.explain("run.csv"))
    bench.now += 3
    bench.append("23")
    assert run.look(connector) == []
    bench.now += 3  # six seconds after its first byte, three after its last
    assert run.look(connector) == []
    bench.now += 3
    assert run.look(connector) == [(3, "1", "23")]
    assert connector.waiting() is None
    assert run.look(bench.connector()) == []
    bench.append("4\n2,9\n")
    assert run.look(bench.connector()) == [(3, "1", "234"), (4, "2", "9")]


def test_an_old_last_line_without_a_line_end_is_read_immediately(bench: Bench) -> None:
    bench.append("t,value\n0,1\n1,2")
    bench.now += 3600
    assert Reading().look(bench.connector()) == [(2, "0", "1"), (3, "1", "2")]


def test_an_invalid_row_is_rejected_with_its_number_and_counting_continues(bench: Bench) -> None:
    connector, run = bench.connector(), Reading()
    bench.append("t,value\n0,1\n")
    run.look(connector)
    bench.append("1\n\n2,3\n")
    assert run.look(bench.connector()) == [(5, "2", "3")]
    assert run.rejects == [(3, "The row has 1 field but the header names 2.")]


def test_a_header_in_another_order_is_kept_over_a_restart_and_for_the_next_file(bench: Bench) -> None:
    run = Reading()
    path = bench.append("t;value\n0;1\nvalue;t\n2;1\n")
    assert named(run, bench) == [{"t": "0", "value": "1"}, {"t": "1", "value": "2"}]
    [(row, reason)] = run.rejects
    assert (row, "in another order, because another file was appended here" in reason) == (3, True)
    bench.append("3;2\n")
    assert named(run, bench) == [{"t": "2", "value": "3"}]
    path.rename(path.with_name("run.csv.1"))
    bench.append("4;3\nt;value\n4;5\n")
    assert named(run, bench) == [{"t": "3", "value": "4"}, {"t": "4", "value": "5"}]
    path = bench.append("5;6\nvalue;t\n")
    assert named(run, bench) == [{"t": "5", "value": "6"}]
    path.rename(path.with_name("run.csv.1"))
    bench.append("7;6\n")
    assert named(run, bench) == [{"t": "6", "value": "7"}]


def named(run: Reading, bench: Bench) -> list[dict[str, str]]:
    """Return the new records of a connector that was just started."""
    before = len(run.batches)
    run.look(bench.connector())
    return [record for batch in run.batches[before:] for record in batch.records.to_dicts()]


def test_a_quoted_line_end_is_part_of_its_row(bench: Bench) -> None:
    connector, run = bench.connector(), Reading()
    bench.append('t,text\n0,"two\n')
    assert run.look(connector) == []
    bench.append('lines"\n')
    assert run.look(connector) == [(2, "0", "two\nlines")]


def test_a_quote_that_is_never_closed_rejects_only_its_own_line(bench: Bench) -> None:
    connector, run = bench.connector(idle_seconds=5), Reading()
    bench.append('t,text\n0,a\n1,"b\n2,c\n')
    assert run.look(connector) == [(2, "0", "a")]
    assert "quote" in str(connector.explain("run.csv"))
    bench.now += 4
    bench.append("3,d\n")
    run.look(connector)
    bench.now += 2
    assert run.look(connector) == [(4, "2", "c"), (5, "3", "d")]
    assert [place for place, _ in run.rejects] == [3]
    assert "opens a quote" in run.rejects[0][1]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "utf-16-le"), ("utf-16-be", "utf-16-be"), ("windows-1252", "windows-1252"), ("shift-jis", "shift-jis")],
)
def test_the_encoding_is_detected_at_the_beginning_and_kept(encoding: str, name: str, bench: Bench) -> None:
    connector, run = bench.connector(), Reading()
    text = "部品番号,質量値\n" if encoding == "shift-jis" else "größe,Ångström\n"
    bench.append(text.encode(encoding))
    rest = encoding if encoding != "utf-16" else "utf-16-le"
    bench.append('1,"a\nb"\n2,Ċ\n'.replace("Ċ", "Ċ" if "16" in encoding else "x").encode(rest))
    assert run.look(connector) == [(2, "1", "a\nb"), (3, "2", "Ċ" if "16" in encoding else "x")]
    bench.append("3,z\n".encode(rest))
    assert run.look(bench.connector()) == [(4, "3", "z")]
    assert run.batches[-1].facts["file.encoding"] == name
    assert run.batches[-1].records.columns == text.strip().split(",")


def test_undecodable_bytes_reject_their_row(bench: Bench) -> None:
    run = Reading()
    bench.append("t,text\n0,µ\n")
    run.look(bench.connector())
    bench.append(b"1,\xff\n2,ok\n")
    assert run.look(bench.connector()) == [(4, "2", "ok")]
    assert [place for place, _ in run.rejects] == [3]


def test_units_and_a_lower_header_are_read_as_configured(bench: Bench) -> None:
    run = Reading()
    bench.append("Bench 7\nt,mass\ns,kg\n")
    connector = bench.connector(format={"type": "csv", "header_row": 2, "units_row": True})
    assert run.look(connector) == []
    bench.append("0,1\n")
    assert run.look(connector) == [(4, "0", "1")]
    assert run.batches[0].facts["units.mass"] == "kg"


def test_a_file_without_a_header_has_the_configured_columns(bench: Bench) -> None:
    bench.append("\ufeff0,1\n")
    run = Reading()
    assert run.look(bench.connector(format={"type": "csv", "columns": ["t", "mass"]})) == [(1, "0", "1")]


def test_ndjson_is_read_by_line_with_its_values_as_written(bench: Bench) -> None:
    run, connector = Reading("run.ndjson"), bench.connector()
    bench.append('{"t": 0.10}\nnonsense\n{"t": 1e-7, "more": {"a": 1}}\n{"t"', "run.ndjson")
    run.look(connector)
    assert [batch.records.to_dicts() for batch in run.batches] == [
        [{"t": "0.10", "more.a": None}, {"t": "1e-7", "more.a": "1"}]
    ]
    assert [place for place, _ in run.rejects] == [2]
    bench.append(": 5}\n", "run.ndjson")
    assert run.look(bench.connector()) == [(4, "5")]


def test_a_line_above_the_size_limit_is_rejected_in_bounded_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "BLOCK_BYTES", 50)
    monkeypatch.setattr(tail, "RECORD_BYTES", 200)
    monkeypatch.setattr(rows, "RECORD_BYTES", 200)
    run, connector = Reading(), bench.connector()
    bench.append("t,text\n0,a\n1," + "x" * 1000)
    assert run.look(connector) == [(2, "0", "a")]
    assert [place for place, _ in run.rejects] == [3]
    bench.append("x" * 1000 + "\n2,b\n")
    assert run.look(bench.connector()) == [(4, "2", "b")]
    assert len(run.rejects) == 1


def test_several_logs_of_one_folder_are_independent(bench: Bench) -> None:
    connector, first, second = bench.connector(), Reading("a.csv"), Reading("b.csv")
    bench.append("t,value\n0,a\n", "a.csv")
    bench.append("t,value\n0,b\n", "b.csv")
    bench.append("t,value\n0,old\n", "b.csv.1")
    assert [partition.name for partition in connector.partitions()] == ["a.csv", "b.csv"]
    assert first.look(connector) == [(2, "0", "a")]
    assert sorted(second.look(connector)) == [(2, "0", "old"), (4, "0", "b")]


def test_a_header_without_column_names_is_rejected(bench: Bench) -> None:
    bench.append("a,a\n1,2\n")
    with pytest.raises(SourceBroken, match="more than one column 'a'"):
        Reading().look(bench.connector())


def test_a_missing_folder_is_unavailable(bench: Bench) -> None:
    connector = bench.connector(path="nowhere")
    with pytest.raises(SourceUnavailable, match="can't be listed"):
        connector.partitions()
    assert [step.outcome for step in connector.verify()] == ["failed"]
    assert "can't be listed" in str(connector.explain("run.csv"))


def test_check_lists_logs_and_rotated_files(bench: Bench) -> None:
    bench.append("t\n")
    bench.append("t\n", "run.csv.1")
    sentences = {step.name: step.sentence for step in bench.connector().verify()}
    assert sentences["logs"].endswith(": run.csv.")
    assert sentences["rotated files"] == "1 rotated file for {name}.*, {name}-*: run.csv.1."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": "run*"}, "must end in"),
        ({"pattern": "*.csv", "rotated": "run-*.csv"}, "must contain {name}"),
        ({"pattern": "logs/*.csv"}, "no slash"),
    ],
)
def test_indistinguishable_names_are_a_mistake(options: dict[str, Any], words: str, bench: Bench) -> None:
    with pytest.raises(ValueError, match=words):
        bench.connector(**options)


def test_a_file_of_the_folder_is_recognised_by_its_path(bench: Bench) -> None:
    connector = bench.connector()
    bench.append("t\n0\n")
    assert connector.locate(bench.folder / "run.csv") == "run.csv"
    assert connector.locate(bench.folder / "run.csv.1.gz") == "run.csv"
    assert connector.locate(bench.folder / "notes.txt") is None
    assert connector.locate(bench.base / "run.csv") is None
    assert "has no whole row yet" in str(connector.explain("run.csv"))
    batches = list(connector.read(Partition(name="run.csv", snapshot=False), None))
    assert connector.explain("run.csv", batches[-1].cursor) is None
    assert connector.describe_location("run.csv", batches[-1].cursor).startswith("it stays in ")


def test_a_last_line_without_its_end_is_flagged_and_held_while_fields_are_missing(bench: Bench) -> None:
    run, connector = Reading(), bench.connector(idle_seconds=5)
    bench.append("t,value\n0,1.50\n1")
    assert run.look(connector) == [(2, "0", "1.50")]
    bench.now += 100
    assert run.look(connector) == []
    assert run.rejects == []
    assert "is not complete: for example, it has no line end" in str(connector.explain("run.csv", run.cursor))
    bench.append(",2")
    assert run.look(connector) == []  # it still grows
    bench.now += 100
    assert run.look(connector) == [(3, "1", "2")]
    assert [sentence for sentence in bench.reported if "has no line end" in sentence] != []
    bench.append("1.00\n")
    assert run.look(connector) == [(3, "1", "21.00")]
    bench.append("2")
    assert run.look(connector) == []
    bench.now += 100
    assert run.look(connector) == []
    (bench.folder / "run.csv").rename(bench.folder / "run.csv.1")
    bench.append("t,value\n3,4\n")
    assert run.look(connector) == [(6, "3", "4")]
    assert [(position, "it may be cut off here" in reason) for position, reason in run.rejects] == [(4, True)]
