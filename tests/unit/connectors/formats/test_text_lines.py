"""Patterns of text lines that are refused, and records at the borders of blocks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.formats import text_lines
from connectors.formats.text_lines import TextLines
from tests.support.format_records import located, read, rejects

TRACE = TextLines(pattern=r"(?P<time>t\d) (?P<text>.*)", multiline=r"^\S")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pattern": "(a+)+$"}, "it has no named group"),
        ({"pattern": ""}, "it has no named group"),
        ({"pattern": "(?P<a>x(?=y))"}, "look-around, including look-ahead and look-behind, is not supported"),
        ({"pattern": r"(?P<a>x)\1"}, "backreferences are not supported"),
        ({"pattern": "(?P<a"}, "it is no regular expression that can be used here: unclosed capture group name"),
        ({"pattern": "(?P<a>x)(?P<a>y)"}, "duplicate capture group name"),
        ({"pattern": "(?P<1>x)"}, "invalid capture group character"),
        ({"pattern": r"(?P<a>(\w{1000}){1000})"}, "Compiled regex exceeds size limit"),
        ({"pattern": "a)|(?P<b>c"}, "unopened group"),
        ({"pattern": "(?x)(?P<a>x) # open"}, "unclosed group"),
        ({"pattern": "(?P<a>x)", "multiline": "("}, "multiline\n.*unclosed group"),
        ({"pattern": "(?P<a>x)", "unmatched": "drop"}, "'reject' or 'ignore'"),
        ({}, "pattern\n.*[Ff]ield required"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_a_mistake_of_the_configuration(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TextLines.model_validate(settings)


@given(
    lines=st.lists(st.sampled_from(["t1 a", "t2 b", "  at x", "", "µ", "t3", "\ufeff  y"]), max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 40),
)
def test_the_size_of_blocks_has_no_effect_on_records(lines: list[str], end: str, block_bytes: int) -> None:
    data = f"t0 first{end}{end.join(lines)}".encode()
    whole = read(TRACE, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "BLOCK_BYTES", block_bytes)
        parts = read(TRACE, data)
    assert located(parts) == located(whole)
    assert rejects(parts) == rejects(whole)
    assert parts[-1].end == whole[-1].end


def test_a_record_above_the_size_limit_is_rejected_and_the_next_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 50)
    monkeypatch.setattr(text_lines, "RECORD_BYTES", 200)
    line = b"t1 a\nt2 " + b"x" * 1000 + b"\nt3 c\n"
    found = read(TextLines(pattern=r"(?P<time>t\d) (?P<text>.*)"), line)
    assert [(at, fields["time"]) for at, fields in located(found)] == [(1, "t1"), (3, "t3")]
    assert rejects(found) == {2: "Line 2 begins a record that is larger than 200 bytes, the limit for a record."}
    assert found[-1].end.offset == len(line)
    trace = b"t1 a\nt2 b\n" + b"  at x\n" * 50 + b"t3 c\n  at y\n"
    found = read(TRACE, trace)
    assert [(at, fields["time"]) for at, fields in located(found)] == [(1, "t1"), (53, "t3")]
    assert set(rejects(found)) == {2}
    assert found[-1].end.offset == len(trace)


@pytest.mark.parametrize("line", [b"  at x\n", b"  " + b"x" * 300 + b"\n"])
@pytest.mark.parametrize("end", [b"", b"\n", b"t3 c", b"t3 c\n", b"\nt3 c\n  at y\nt4 d", b"  at the end"])
@pytest.mark.parametrize("block_bytes", [1, 7, 50, 150])
def test_all_lines_of_a_record_above_the_size_limit_are_rejected_with_it(
    monkeypatch: pytest.MonkeyPatch, line: bytes, end: bytes, block_bytes: int
) -> None:
    monkeypatch.setattr(text_lines, "RECORD_BYTES", 200)
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", block_bytes)
    head = b"t1 a\nt2 b\n" + line * 60
    found = read(TRACE, head + end)
    texts = [text.split(" ")[0] for text in end.decode().split("\n")]
    assert [(at, fields["time"]) for at, fields in located(found) if at != 1] == [
        (63 + at, text) for at, text in enumerate(texts) if text.startswith("t")
    ]
    assert set(rejects(found)) == {2}
    assert found[-1].end.offset == len(head + end)
    assert found[-1].end.row == len((head + end).removesuffix(b"\n").split(b"\n"))


def test_a_record_may_be_longer_than_what_is_searched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(b"t%d a\n%s" % (at % 10, b"  at x\n" * (at % 4)) for at in range(100))
    whole = read(TRACE, data)
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 60)
    for tail in range(1, 60):
        monkeypatch.setattr(text_lines, "_TAIL_BYTES", tail)
        assert located(read(TRACE, data)) == located(whole)


def test_ignored_lines_are_counted_over_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 4)
    settings = TextLines(pattern="v=(?P<v>.*)", unmatched="ignore")
    assert read(settings, b"v=1\nx\ny\nv=2\nz\n")[-1].facts["file.notice"].endswith("(unmatched): 3.")
    assert "file.notice" not in read(settings, b"v=1\n")[-1].facts
