"""Links with the name of a log: they are followed within the folder, or reported."""

import os

import pytest

from connectors.log import LogConnector
from tests.support.watched_files import Bench, Reading

HEADER = "t,value\n"


@pytest.mark.parametrize("prefix", ["", "./", "../bench/"])
@pytest.mark.parametrize("names", [("run.2026-01.txt", "run.2026-02.txt"), ("current.csv.01", "current.csv.02")])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_link_to_the_latest_file_is_one_log(
    bench: Bench, prefix: str, names: tuple[str, str], is_restarted: bool
) -> None:
    first, second = names
    run = Reading("current.csv")
    link = bench.folder / "current.csv"
    bench.append(HEADER + "0,a\n", first)
    link.symlink_to(prefix + first)
    same = bench.connector()

    def connector() -> LogConnector:
        return bench.connector() if is_restarted else same

    assert [partition.name for partition in connector().partitions()] == ["current.csv"]
    assert run.look(connector()) == [(2, "0", "a")]
    bench.append("1,b\n", first)
    assert run.look(connector()) == [(3, "1", "b")]
    bench.append("2,c\n", first)
    bench.append(HEADER + "3,d\n", second)
    link.unlink()
    link.symlink_to(prefix + second)
    assert run.look(connector()) == [(4, "2", "c"), (6, "3", "d")]
    bench.append("4,e\n", second)
    assert run.look(connector()) == [(7, "4", "e")]
    assert run.look(connector()) == []
    assert bench.reported == []
    assert connector().locate(bench.folder / second) in {None, "current.csv"}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../outside.csv", "leads out of"),
        ("/etc/hostname", "leads out of"),
        ("absent.txt", "holds no regular file of this name"),
        ("folder", "holds no regular file of this name"),
        ("pipe", "holds no regular file of this name"),
        ("latest.csv", "holds no regular file of this name"),
    ],
)
def test_a_link_that_is_not_followed_is_reported_by_check_status_and_why(bench: Bench, target: str, words: str) -> None:
    (bench.base / "outside.csv").write_text(HEADER + "0,secret\n")
    (bench.folder / "folder").mkdir()
    os.mkfifo(bench.folder / "pipe")
    bench.append(HEADER + "0,a\n", "run.csv")
    (bench.folder / "latest.csv").symlink_to(target)
    connector = bench.connector()
    assert [partition.name for partition in connector.partitions()] == ["run.csv"]
    (step,) = [step for step in connector.verify() if step.name == "links"]
    assert step.outcome == "failed"
    assert words in step.sentence
    assert [words in sentence for sentence in connector.notices()] == [True]
    assert words in str(connector.explain(str(connector.locate(bench.folder / "latest.csv"))))


def test_only_one_of_two_links_to_a_file_is_read(bench: Bench) -> None:
    bench.append(HEADER + "0,a\n", "run.txt")
    for name in ("a.csv", "b.csv"):
        (bench.folder / name).symlink_to("run.txt")
    connector = bench.connector()
    assert Reading("a.csv").look(connector) == [(2, "0", "a")]
    assert [partition.name for partition in connector.partitions()] == ["a.csv"]
    assert list(connector.notices()) == []
    assert connector.explain("b.csv") == "b.csv is a link to run.txt, which is read under another name."


def test_a_link_to_a_log_is_no_second_log(bench: Bench) -> None:
    bench.append(HEADER + "0,a\n")
    (bench.folder / "latest.csv").symlink_to("run.csv")
    connector = bench.connector()
    assert Reading().look(connector) == [(2, "0", "a")]
    assert [partition.name for partition in connector.partitions()] == ["run.csv"]
    assert "links" not in [step.name for step in connector.verify()]
    assert connector.explain("latest.csv") == "latest.csv is a link to run.csv, which is read under another name."
