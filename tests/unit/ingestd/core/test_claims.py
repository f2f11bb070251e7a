"""Which pipelines read a file."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.claims import ClaimedFiles, FileClaim


def claim(folder: str, *patterns: str, **more: Any) -> FileClaim:
    return FileClaim(folder=folder, patterns=patterns or ("*",), **more)


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
    readers = ClaimedFiles([("mass", one) for one in claims]).readers(path)
    assert readers == ({"mass"} if expected else set())


def test_every_reader_of_a_file_is_found() -> None:
    files = ClaimedFiles(
        [
            ("all", claim("/drop", recursive=True, excluded=("/drop/done",))),
            ("runs", claim("/drop/in", "run*")),
            ("twice", claim("/drop/in", "run.csv")),
            ("twice", claim("/drop/in", "*.csv", ignore_case=False)),
            ("archive", claim("/drop/done")),
        ]
    )
    assert files.readers("/drop/in/RUN.CSV") == {"all", "runs", "twice"}
    assert files.readers("/drop/in/a.csv") == {"all", "twice"}
    assert files.readers("/drop/done/run.csv") == {"archive"}


@given(
    below=st.sampled_from(["", "x/", "x/y/"]),
    name=st.text("ab.[]*", min_size=1, max_size=4),
    pattern=st.text("ab.*?[]/", min_size=1, max_size=6),
)
def test_a_pattern_with_a_slash_matches_the_path_below_the_folder_and_another_one_the_name(
    below: str, name: str, pattern: str
) -> None:
    files = ClaimedFiles([("mass", claim("/drop", pattern, recursive=True))])
    matched = fnmatch.fnmatchcase(below + name if "/" in pattern else name, pattern)
    assert files.readers(f"/drop/{below}{name}") == ({"mass"} if matched else set())
