from __future__ import annotations

import json
from pathlib import Path

from ingestd.registry import connector_class
from ingestd.settings.schema import schema_text

COMMITTED = Path(__file__).parents[2] / "config" / "ingestd.schema.json"
OWN = ("database", "directory", "file", "http", "log", "mqtt", "opcua", "push", "remote")


def test_the_committed_schema_equals_the_generated_one() -> None:
    expected = schema_text({name: connector_class(name) for name in OWN})
    assert json.loads(COMMITTED.read_text(encoding="utf-8")) == json.loads(expected), "`make schema` rewrites it"
