from __future__ import annotations

from pathlib import Path

from ingestd.registry import connector_class
from ingestd.settings.schema import schema_text

COMMITTED = Path(__file__).parents[2] / "config" / "ingestd.schema.json"
OWN = ("database", "directory", "file", "http", "log", "mqtt", "opcua", "push", "remote")


def test_the_committed_schema_equals_the_generated_one() -> None:
    expected = schema_text({name: connector_class(name) for name in OWN})
    assert COMMITTED.read_text() == expected, "`make schema` rewrites it"
