"""The table of grades in docs/connectors.md says what the tests and the classes of our connectors show."""

from __future__ import annotations

import re
from pathlib import Path

from ingestd.registry import connector_class, connector_names
from ingestd.sdk import Connector, Explains, Verifies

ROOT = Path(__file__).parents[2]


def table() -> dict[str, list[str]]:
    """Return the cells by connector."""
    text = (ROOT / "docs" / "connectors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (yes .*) \|$", text, re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def test_every_connector_is_at_least_silver_and_its_grade_follows_from_its_row() -> None:
    rows = table()
    assert list(rows) == list(connector_names())
    for name, (_, faults, health, kills, explain, grade) in rows.items():
        kind = connector_class(name)
        assert "Conformance)" in (ROOT / "tests" / "contract" / f"test_connectors_{name}.py").read_text(
            encoding="utf-8"
        )
        assert issubclass(kind, Verifies), name
        assert all(field.description for field in kind.Options.model_fields.values()), name
        assert (health == "yes") == (kind.health is not Connector.health), name
        assert (explain == "yes") == issubclass(kind, Explains), name
        for path in re.findall(r"`(tests/[^`]+)`", f"{faults} {kills}"):
            assert name in (ROOT / path).read_text(encoding="utf-8").lower(), (name, path)
        assert grade == ("gold" if explain == "yes" and "tests/" in kills else "silver"), name
