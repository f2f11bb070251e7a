"""Files with extreme headers and keys: four times the columns, or the length of a name, is about four times the work.

The work is in single calls of the interpreter and of libraries, so processor time is compared, with room for a slow machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ingestd.sdk import SourceBroken
from tests.support.mapped_files import map_files

QUADRATIC = 10.0
"""A quadratic reading takes 16 times as long for four times the size."""
ATTEMPTS = 3
"""One attempt must show linear work. Another program on the same processor may disturb an attempt."""
SURE_SECONDS = 2.0
"""A reading that takes less is no danger, and too short to be compared."""

CASES: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "columns without a name": ("x.csv", "{type: csv}", lambda size: "," * size + "\n1,2\n"),
    "repeated columns": (
        "x.csv",
        "{type: csv, repeated_columns: number}",
        lambda size: ",".join(["a"] * size) + "\n1,2\n",
    ),
    "refused columns": ("x.csv", "{type: csv}", lambda size: ",".join(["://a:"] * size) + "\n1,2\n"),
    "a long header": ("x.csv", "{type: csv}", lambda size: f"a,{'://a:' * size}\n1,2\n"),
    "a long value": ("x.csv", "{type: csv}", lambda size: f"a,b\n{'://a:' * size},2\n"),
    "members": (
        "x.ndjson",
        "{type: ndjson}",
        lambda size: "{{{}}}".format(",".join(f'"k{at}":1' for at in range(size))),
    ),
    "a long member": ("x.ndjson", "{type: ndjson}", lambda size: '{"a":1,"b":2,"%s":3}' % ("://a:" * size)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_header_of_four_times_the_size_takes_about_four_times_as_long(tmp_path: Path, case: str) -> None:
    pairs = ((_seconds(tmp_path, case, 10_000), _seconds(tmp_path, case, 40_000)) for _ in range(ATTEMPTS))
    assert any(large < max(SURE_SECONDS, QUADRATIC * small) for small, large in pairs)


def _seconds(folder: Path, case: str, size: int) -> float:
    name, file_format, content = CASES[case]
    began = time.process_time()
    with suppress(SourceBroken):
        map_files(folder, 'key: "{a}"\nvalue: "{b}"', {name: content(size)}, file_format=file_format)
    return time.process_time() - began
