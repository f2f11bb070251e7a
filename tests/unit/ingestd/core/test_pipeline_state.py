"""The derivation of states: each combination of facts has the most severe state that one of them causes."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from ingestd.core.pipeline_state import DEFINITIONS, SEVERITY, PipelineFacts, State, derive_state

WORKS: Final = PipelineFacts()
CAUSES: Final[dict[str, tuple[object, State]]] = {
    "pause": ("It is paused.", "disabled"),
    "failures": (("The host key has changed.",), "failed"),
    "outages": (("The service does not respond.",), "unavailable"),
    "rejected": (2, "attention"),
    "drift": (1, "attention"),
    "notices": (("a.csv can't be moved.",), "attention"),
    "unreadable_files": (1, "attention"),
    "held": (1, "held"),
    "waiting_files": (3, "waiting"),
    "pending": (7, "waiting"),
    "has_run": (False, "waiting"),
}
"""Each fact with a value that matters, and the state that it causes alone."""


def test_every_fact_has_a_cause_and_every_state_is_caused() -> None:
    assert set(CAUSES) == set(PipelineFacts.__struct_fields__)
    assert {state for _, state in CAUSES.values()} | {"ok"} == set(DEFINITIONS)
    assert derive_state("a", WORKS).state == "ok"


def test_the_state_is_the_most_severe_one_that_a_fact_causes_for_every_combination() -> None:
    for size in range(len(CAUSES) + 1):
        for names in combinations(CAUSES, size):
            found = derive_state("a", replace(WORKS, **{name: CAUSES[name][0] for name in names}))
            caused = sorted((CAUSES[name][1] for name in names), key=SEVERITY.__getitem__, reverse=True)
            assert found.state == (caused[0] if caused else "ok"), names
            assert [reason.state for reason in found.reasons] == caused, names
            assert all(reason.sentence for reason in found.reasons)
            assert len({reason.cause for reason in found.reasons}) == size, "each fact has its own cause"


@pytest.mark.parametrize(
    ("name", "value", "phrase"),
    [("rejected", 1, "1 rejection"), ("rejected", 2, "2 rejections"), ("drift", 1, "1 key changed by others"),
     ("waiting_files", 2, "2 files not ready"), ("pending", 3, "3 pending entries"), ("has_run", False, "never ran")],
)  # fmt: skip
def test_a_count_is_a_phrase(name: str, value: object, phrase: str) -> None:
    (reason,) = derive_state("a", replace(WORKS, **{name: value})).reasons
    assert reason.sentence == phrase


def test_the_table_of_the_documentation_is_that_of_the_code() -> None:
    page = (Path(__file__).parents[4] / "docs" / "monitoring.md").read_text()
    table = page.split("<!-- states: begin -->")[1].split("<!-- states: end -->")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)) == dict(DEFINITIONS)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(DEFINITIONS), "the order is that of severity"
