"""Small files that are stored together have the effects of files that are stored one after the other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.file_flow import FileFlow

MEASURED = {"seconds", "map_seconds", "store_seconds"}
NAMES = ["a.csv", "b.csv", "c.csv", "d.csv"]
HEADER = "part,mass\n"
ROWS = st.lists(st.sampled_from(["A,1", "A,2", "B,1", "B,2", "C,1", ",1", "C"]), max_size=4)
CONTENTS = st.one_of(
    ROWS.map(lambda rows: HEADER + "".join(f"{row}\n" for row in rows)),
    st.sampled_from(["", "part,weight\nA,1\n", "part,part\nA,1\n"]),
)
STEPS = st.lists(st.dictionaries(st.sampled_from(NAMES), CONTENTS, min_size=1), min_size=1, max_size=3)


def effects(base: Path, steps: Sequence[dict[str, str]], *, after: str, together: bool) -> list[Any]:
    """Return what each pass reports and leaves behind. A clock that runs fast has each file stored alone."""
    base.mkdir()
    flow = FileFlow(base, after=after)
    ticks = count()
    flow.reader._clock = (lambda: 0.0) if together else (lambda: float(next(ticks)))
    found = []
    for step in steps:
        for name, content in step.items():
            os.utime(flow.write(name, content), (flow.now, flow.now))
        flow.now += 10
        flow.events.clear()
        report = flow.pass_once()
        events = [(type(one).__name__, msgspec.structs.asdict(one)) for one in flow.events]
        events = [(name, {key: value for key, value in one.items() if key not in MEASURED}) for name, one in events]
        found.append(
            (
                msgspec.structs.replace(report, began=0.0),
                events,
                dict(flow.held),
                flow.rejected(),
                flow.files(flow.drop),
                flow.files(flow.done),
            )
        )
    flow.close()
    return found


@settings(max_examples=30)  # each opens two state files, and flushes them
@given(steps=STEPS, after=st.sampled_from(["keep", "archive"]))
# b.csv takes a key from a.csv, so it is read again; the value of c.csv is later.
@example(
    steps=[{"a.csv": HEADER + "A,1\n", "b.csv": HEADER + "B,1\n"}, {"b.csv": HEADER + "B,1\nA,2\n", "c.csv": HEADER + "A,3\n"}],
    after="keep",
)  # fmt: skip
def test_small_files_that_are_stored_together_have_the_effects_of_each_alone(
    steps: list[dict[str, str]], after: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        alone = effects(Path(folder, "alone"), steps, after=after, together=False)
        together = effects(Path(folder, "together"), steps, after=after, together=True)
    assert together == alone
