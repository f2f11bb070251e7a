from __future__ import annotations

import hashlib
import io
import json

import pytest

from connectors.log.cursor import CursorPart, FileTop, LogCursor, read_log_cursor
from connectors.log.followed_files import Prefix, find_common_prefix, starts_with


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_cursor_is_unchanged_by_a_json_round_trip() -> None:
    top = FileTop(encoding="cp1252", delimiter=";", header_row=3, end=40, rows=4)
    part = CursorPart(
        device=1, inode=2, size=3, mtime_ns=4, offset=5, sha256="a", top=top, half=6, half_row=7, marks=((1, "b"),)
    )
    trail = LogCursor(
        rows=9, parts=(CursorPart(device=1, inode=1, packed=True, done=True, lost=True, skips=True), part)
    )
    assert read_log_cursor(json.loads(json.dumps(trail.to_token()))) == trail
    assert read_log_cursor(None) == LogCursor()


def test_marks_are_few_and_include_all_recent_ones() -> None:
    part = CursorPart(device=1, inode=1, top=FileTop(encoding="utf-8"))
    for offset in range(1, 1000):
        part = CursorPart(
            **{**{name: getattr(part, name) for name in part.__struct_fields__}, "offset": offset}
        ).with_mark()
        assert len(part.marks) <= 16
    offsets = [offset for offset, _ in part.marks]
    assert offsets == sorted(offsets)
    assert offsets[-4:] == [996, 997, 998, 999]


def test_a_prefix_identifies_a_whole_file_and_a_mark_a_shorter_one() -> None:
    read, marks = b"header\none\ntwo\n", [(7, digest(b"header\n")), (11, digest(b"header\none\n"))]
    whole = (len(read), digest(read))
    assert find_common_prefix(io.BytesIO(read + b"three\n"), *whole, marks) == whole
    assert find_common_prefix(io.BytesIO(b"header\none\ntw"), *whole, marks) == marks[1]
    assert find_common_prefix(io.BytesIO(b"header\nON"), *whole, marks) == marks[0]
    assert find_common_prefix(io.BytesIO(b"header\nONE\nTWO\nTHREE\n"), *whole, marks) is None
    assert find_common_prefix(io.BytesIO(b"head"), *whole, marks) is None
    assert find_common_prefix(io.BytesIO(b"header\none\n"), *whole, []) is None


@pytest.mark.parametrize(
    ("longer", "shorter", "held"), [(b"ab", b"a", True), (b"ab", b"ab", True), (b"ab", b"abc", False)]
)
def test_a_file_contains_another_file_that_is_its_beginning(longer: bytes, shorter: bytes, held: bool) -> None:
    assert starts_with(io.BytesIO(longer), io.BytesIO(shorter)) is held


def test_a_prefix_is_the_hash_of_all_added_bytes() -> None:
    prefix = Prefix()
    for piece in (b"a" * 70_000, b"", b"b" * 70_000):
        prefix.add(piece)
    assert (prefix.offset, prefix.sha256) == (140_000, digest(b"a" * 70_000 + b"b" * 70_000))
