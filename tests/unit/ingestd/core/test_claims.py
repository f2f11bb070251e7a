"""Detection of files that two sources would both read."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.core import globs
from ingestd.core.claims import ClaimedFiles, FileClaim, common_file, fed_folder


def claim(folder: str, *patterns: str, **more: Any) -> FileClaim:
    return FileClaim(folder=folder, patterns=patterns or ("*",), **more)


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("*.csv", "*.csv", True),
        ("*.csv", "*.CSV", True),
        ("*.csv", "*.txt", False),
        ("run*.csv", "*_final.csv", True),
        ("run_[0-9]*.csv", "run_a*.csv", False),
        ("run_[0-9]*.csv", "run_[!0-8]*.csv", True),
        ("run_[!a-z].csv", "run_[b-y].csv", False),
        ("?.csv", "??.csv", False),
        ("a*b", "*c", False),
        ("a*b*", "*c", True),
        ("[]]x", "?x", True),
        ("[x", "[[]?", True),
        ("", "*", True),
    ],
)
def test_globs_overlap_if_one_name_matches_both(first: str, second: str, common: bool) -> None:
    assert (common_file(claim("/d", first), claim("/d", second)) is not None) is common
    assert (common_file(claim("/d", second), claim("/d", first)) is not None) is common


GLOBS = st.text(alphabet="ab*?[!-]", max_size=7)


@settings(max_examples=1000)
@given(first=GLOBS, second=GLOBS, names=st.lists(st.text(alphabet="abc", max_size=6), max_size=20))
def test_an_example_matches_both_globs_and_without_one_no_name_does(first: str, second: str, names: list[str]) -> None:
    matches = [re.compile(fnmatch.translate(glob), re.IGNORECASE).match for glob in (first, second)]
    found = globs.common(globs.parse(first), globs.parse(second), first_ignores=True, second_ignores=True, folders=True)
    if found is not None:
        assert all(match(found) for match in matches), found
    else:
        assert not [name for name in names if all(match(name) for match in matches)]


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        (claim("/d"), claim("/d/in"), False),
        (claim("/d", recursive=True), claim("/d/in"), True),
        (claim("/d", recursive=True), claim("/d/.in"), False),
        (claim("/d", recursive=True, excluded=("/d/in",)), claim("/d/in"), False),
        (claim("/d", recursive=True, excluded=("/d/in",)), claim("/d/in/deep"), False),
        (claim("/d", recursive=True), claim("/dd"), False),
        (claim("/d", "in/*.csv", recursive=True), claim("/d/in", "*.csv"), True),
        (claim("/d", "out/*.csv", recursive=True), claim("/d/in", "*.csv"), False),
        (claim("/d", "*/a.csv", recursive=True), claim("/d/in", "b.csv"), False),
        (claim("/d", "in/x/*.csv", recursive=True), claim("/d/in", "*.csv"), False),
        (claim("/d", "in/x/*.csv", recursive=True), claim("/d/in", "*.csv", recursive=True), True),
        (claim("/", recursive=True), claim("/d"), True),
        (claim("/d", "A*", ignore_case=False), claim("/d", "a*", ignore_case=False), False),
        (claim("/d", "A*", ignore_case=False), claim("/d", "a*"), True),
    ],
)
def test_folders_overlap_as_far_as_their_files_do(first: FileClaim, second: FileClaim, common: bool) -> None:
    assert (common_file(first, second) is not None) is common
    assert (common_file(second, first) is not None) is common


@pytest.mark.parametrize(
    ("writer", "reader", "folder"),
    [
        (claim("/a", puts=("/done",)), claim("/done"), "/done"),
        (claim("/a", puts=("/b/done",)), claim("/b"), None),
        (claim("/a", puts=("/b/done",)), claim("/b", recursive=True), "/b/done"),
        (claim("/a", "*.csv", puts=("/b/done",)), claim("/b", "*.txt", recursive=True), None),
        (claim("/a", "x/*.csv", recursive=True, puts=("/b",)), claim("/b", "*.csv"), "/b"),
        (claim("/a", "x/a*.csv", recursive=True, puts=("/b",)), claim("/b", "b*.csv"), "/b"),
        (claim("/a", "x/a.csv", recursive=True, puts=("/b",)), claim("/b", "b.csv"), None),
    ],
)
def test_writing_into_a_folder_of_another_source_is_detected(
    writer: FileClaim, reader: FileClaim, folder: str | None
) -> None:
    assert fed_folder(writer, reader) == folder


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/drop/a.csv", True),
        ("/drop/A.CSV", True),
        ("/drop/a.txt", False),
        ("/drop/sub/a.csv", False),
        ("/drop/deep/sub/run.log", True),
        ("/drop/deep/RUN.LOG", False),
        ("/drop/deep/.hidden/run.log", False),
        ("/drop/deep/done/run.log", False),
        ("/drop/deep/[x]/a.dat", True),
        ("/drop/deep/x/a.dat", False),
        ("/other/a.csv", False),
    ],
)
def test_a_file_is_found_among_the_files_of_all_sources(path: str, expected: bool) -> None:
    claims = [
        claim("/drop", "*.csv"),
        claim("/drop/deep", "*.log", recursive=True, excluded=("/drop/deep/done",), ignore_case=False),
        claim("/drop/deep", "[[]x]/*.dat", recursive=True),
    ]
    assert (path in ClaimedFiles(claims)) == expected


@given(
    below=st.sampled_from(["", "x/", "x/y/"]),
    name=st.text("ab.[]*", min_size=1, max_size=4),
    pattern=st.text("ab.*?[]/", min_size=1, max_size=6),
)
def test_a_found_file_is_one_that_the_overlap_of_claims_finds(below: str, name: str, pattern: str) -> None:
    reader = claim("/drop", pattern, recursive=True)
    file = FileClaim(folder=f"/drop/{below}".rstrip("/"), patterns=(re.sub(r"([*?[])", r"[\1]", name),))
    assert (f"/drop/{below}{name}" in ClaimedFiles([reader])) == (common_file(reader, file) is not None)
