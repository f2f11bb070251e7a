"""Whatever the sources, the configuration and the earlier syncs were: a plan shows exactly what the sync then does."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.support.plan_scene import apply_plan, plan_scene

PARTS = st.sampled_from(["a", "b", "c", "d", "e", "f", "", "ä"])  # a record without a part is rejected
MASSES = st.sampled_from(["1", "2", "0.30", "x", "1000", ""])
ROWS = st.lists(st.tuples(PARTS, MASSES), max_size=7)


@dataclass(frozen=True, slots=True)
class Round:
    """What changes before a sync; None: nothing of this source."""

    parts: dict[str, str] | None
    drop: dict[str, list[tuple[str, str]]]
    readings: list[tuple[str, str]]
    value: str
    executed: bool


ROUNDS = st.builds(
    Round,
    parts=st.none() | st.dictionaries(PARTS, MASSES, max_size=6),
    drop=st.dictionaries(st.sampled_from(["one.csv", "two.csv"]), ROWS, max_size=2),
    readings=ROWS,
    value=st.sampled_from(["{mass}", "{mass}", "{mass} kg"]),
    executed=st.booleans(),
)


@settings(max_examples=12)
@given(rounds=st.lists(ROUNDS, min_size=1, max_size=4))
def test_the_effect_of_a_plan_is_that_of_the_sync(rounds: list[Round]) -> None:
    with tempfile.TemporaryDirectory() as folder, plan_scene(Path(folder) / "scene") as scene:
        scene.write_parts({"a": "1", "b": "2", "c": "0.30", "d": "4", "e": "5"})
        scene.write_drop("one.csv", [("f", "6")])
        assert scene.here("sync").returncode in {0, 5}
        for one in rounds:
            scene.configure(value=one.value)
            if one.parts is not None:
                scene.write_parts(one.parts)
            for name, rows in one.drop.items():
                scene.write_drop(name, rows)
            scene.append_readings(one.readings)
            saved = str(scene.path / "plan.json")
            before = scene.values()
            made = scene.plan("--save", saved)
            again = scene.plan()
            assert {**again, "made": ""} == {**made, "made": ""}, "a plan changes nothing, so a second one is equal"
            assert scene.values() == before
            for part in made["partitions"]:
                kinds = sorted({change["kind"] for change in part["changes"]})
                event(f"{part['pipeline']}: {'held ' if part['held'] else ''}{' '.join(kinds)}")
            sync = scene.here("sync", "--plan", saved) if one.executed else scene.here("sync")
            assert sync.returncode in {0, 3, 5, 8}, sync.stderr
            assert scene.values() == apply_plan(before, made)
            held = {(run["pipeline"], run["partition"]) for run in _held(scene.here("status", "--json").stdout)}
            assert held == {(part["pipeline"], part["partition"]) for part in made["partitions"] if part["held"]}


def _held(status: str) -> list[dict[str, str]]:
    runs: list[dict[str, str]] = json.loads(status)["held"]
    return runs
