from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.core.errors import SourceUnavailable
from ingestd.core.mapping import TableSource
from ingestd.intake import LookupFiles, lookup_files
from ingestd.intake.lookup_files import parse_table
from tests.support.swapped_names import by_pipe

SOURCE = TableSource(file="t.csv", key="k", value="v")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it has no column 'k'; its columns are none."),
        (b"k,w\n", "it has no column 'v'; its columns are k, w."),
        (b"k,v,v\n", "it has more than one column 'v'; its columns are k, v, v."),
        (b"k,v\n1,2\n\n1,3\n", "line 4 has the same 'k' as line 2: '1'. Remove one of them."),
        (b"k,v\n1,2,3\n", "line 2 has 3 fields, and the header has 2."),
        (b"k,v\n1,\xe4\n", "byte 7 is not UTF-8. Save the file as UTF-8."),
        (b'k,v\n1,"2"3\n', "line 2 is no CSV: ',' expected after '\"'."),
        (b'k,v\n1,"2\n', "line 2 is no CSV: unexpected end of data."),
    ],
)
def test_a_mistake_in_a_file_is_reported_with_its_line(content: bytes, sentence: str) -> None:
    with pytest.raises(SourceUnavailable) as raised:
        parse_table(content, SOURCE, Path("t.csv"))
    assert str(raised.value) == f"The lookup file t.csv can't be used: {sentence}"


def test_a_file_that_is_too_large_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_files, "_BYTES", 2**20)
    (tmp_path / "t.csv").write_bytes(b"k,v\n".ljust(2**20 + 1, b"x"))
    with pytest.raises(SourceUnavailable, match="is larger than 1 MiB"):
        LookupFiles([SOURCE], base=tmp_path).read()


def test_a_pipe_that_replaces_the_file_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,v\n1,2\n")
    opened = os.open

    def exchanged(name: Path, flags: int) -> int:
        by_pipe(path, path)
        return opened(name, flags)

    monkeypatch.setattr(os, "open", exchanged)
    with pytest.raises(SourceUnavailable, match="it is not a regular file"):
        LookupFiles([SOURCE], base=tmp_path).read()


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(SourceUnavailable, match="it is not a regular file"):
        LookupFiles([SOURCE], base=tmp_path).read()


def test_content_is_read_again_only_if_the_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,v\n1,2\n")
    os.utime(path, (1000, 1000))
    files = LookupFiles([SOURCE], base=tmp_path)
    assert files.may_differ()
    assert files.read() == {SOURCE: {"1": "2"}}
    assert not files.may_differ()
    assert files.read() is None
    path.write_text("k,v\n1,3\n")
    os.utime(path, (1000, 1000))  # as programs do that unpack an archive
    assert files.may_differ()
    assert files.read() == {SOURCE: {"1": "3"}}


def test_a_file_written_just_now_is_compared_by_content(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,v\n1,2\n")
    os.utime(path, (1000, 1000))
    files = LookupFiles([SOURCE], base=tmp_path, now=lambda: 1001.0)
    assert files.read() == {SOURCE: {"1": "2"}}
    path.write_text("k,v\n1,3\n")
    os.utime(path, (1000, 1000))
    assert files.may_differ()
    assert files.read() == {SOURCE: {"1": "3"}}


def test_a_missing_file_is_not_tried_again_until_it_exists(tmp_path: Path) -> None:
    files = LookupFiles([SOURCE], base=tmp_path)
    with pytest.raises(SourceUnavailable, match=r"t\.csv can't be read: No such file or directory"):
        files.read()
    assert not files.may_differ()
    (tmp_path / "t.csv").write_text("k,v\n")
    assert files.may_differ()
    assert files.read() == {SOURCE: {}}
