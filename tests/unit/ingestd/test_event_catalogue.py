from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import ingestd.telemetry.catalogue
from ingestd.telemetry import Event, event_name


def events() -> list[type[Event]]:
    modules = [
        importlib.import_module(f"ingestd.telemetry.catalogue.{module.name}")
        for module in pkgutil.iter_modules(ingestd.telemetry.catalogue.__path__)
    ]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind in kinds if issubclass(kind, Event) and kind.__module__ in {one.__name__ for one in modules}]


def test_every_event_documents_when_it_is_emitted_and_has_a_unique_name() -> None:
    names = [event_name(kind) for kind in events()]
    assert names
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in names)
    assert all(kind.__doc__ for kind in events())


def sources() -> dict[str, str]:
    """Return the text of each module of the installed package by its path, without the catalogue's own modules."""
    package = Path(ingestd.__file__).parent
    texts = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    return {name: text for name, text in texts.items() if not name.startswith("telemetry/catalogue/")}


def test_every_event_is_emitted_somewhere() -> None:
    made = {name for text in sources().values() for name in re.findall(r"([A-Z][A-Za-z]+)\(", text)}
    assert [kind.__name__ for kind in events() if kind.__name__ not in made] == []


def test_the_daemon_logs_only_events_of_the_catalogue() -> None:
    found = {name for name, text in sources().items() if re.search("get_logger|getLogger", text)}
    assert found == {"telemetry/event.py", "process/logs.py", "telemetry/otlp.py"}  # the last one sends to a collector
