from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
from pathlib import Path

import ingestd.telemetry.catalogue
from ingestd.telemetry import Event, event_name

ROOT = Path(__file__).parents[3]


def events() -> list[type[Event]]:
    modules = [
        importlib.import_module(f"ingestd.telemetry.catalogue.{module.name}")
        for module in pkgutil.iter_modules(ingestd.telemetry.catalogue.__path__)
    ]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind in kinds if issubclass(kind, Event) and kind is not Event]


def test_every_event_says_when_it_is_emitted_and_has_a_name_of_its_own() -> None:
    names = [event_name(kind) for kind in events()]
    assert names
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in names)
    assert all(kind.__doc__ for kind in events())


def test_every_event_is_emitted_somewhere() -> None:
    sources = subprocess.run(["git", "grep", "-h", "-o", "-E", r"[A-Z][A-Za-z]+\(", "--", "ingestd"], cwd=ROOT,
        capture_output=True, text=True, check=True).stdout.splitlines()  # fmt: skip
    made = {line.rstrip("(") for line in sources}
    assert [kind.__name__ for kind in events() if kind.__name__ not in made] == []


def test_nothing_of_the_daemon_logs_past_the_catalogue() -> None:
    found = subprocess.run(["git", "grep", "-l", "-E", r"get_logger|getLogger", "--", "ingestd"], cwd=ROOT,
        capture_output=True, text=True, check=False).stdout.splitlines()  # fmt: skip
    assert set(found) <= {"ingestd/telemetry/event.py", "ingestd/process/logs.py"}
