from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, json
from ingestd.process.cycle_collection import begin_program, paused

def searches():
    return sum(generation["collections"] for generation in gc.get_stats())

def make_objects():
    return [[] for _ in range(100_000)]

def searched(block):
    before = searches()
    kept = block()
    return searches() > before

def in_pause():
    with paused():
        return make_objects()

found = {"a library": searched(in_pause)}
begin_program()
found |= {"a program": searched(in_pause), "later": searched(make_objects), "frozen": gc.get_freeze_count() > 0}
print(json.dumps(found))
"""


def test_only_a_program_imports_without_a_search_and_searches_again_later() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stdout == '{"a library": true, "a program": false, "later": true, "frozen": true}\n'
