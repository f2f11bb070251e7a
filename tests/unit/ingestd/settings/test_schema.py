from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from ingestd.registry import connector_class, connector_names
from ingestd.settings.schema import DIALECT, configuration_schema, schema_text
from tests.support.json_schema import fits
from tests.support.sample_connectors import CONNECTORS, GOOD, with_source


def accepted(text: str) -> bool:
    schema = configuration_schema(CONNECTORS)
    return fits(YAML(typ="safe", pure=True).load(io.StringIO(text)), schema, schema)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD + "    schedule: on-change\n",
        GOOD + "    schedule: {every: 1h30m}\n",
        GOOD + '    schedule: {cron: "0 2 * * *", timezone: Europe/Berlin}\n',
        GOOD.replace('value: "{mass}"', "columns: [a, b]"),
        GOOD.replace('{key: "{part}.mass", value: "{mass}"}', "[{key: a, value: b}, {key: '{column}', columns: [c]}]"),
        with_source("{connector: lax, depth: 3}"),
        with_source("{connector: rig, path: drop, pattern: ['*.csv'], after: archive, archive: done}"),
        with_source("{connector: rig, path: drop, settle_seconds: '${env:S}', strict: '${file:t}', after: '${env:A}'}"),
    ],
)
def test_every_loadable_configuration_is_valid_under_the_schema(text: str) -> None:
    assert accepted(text)


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("state:", "stat:"),
        GOOD.replace("name: bench", "name: Bench"),
        GOOD.replace("label: Bench", "label: Bench, id: x"),
        GOOD.replace(", label: Bench", ""),
        GOOD.replace(', value: "{mass}"', ""),
        GOOD.replace(', value: "{mass}"', ', value: "{mass}", columns: [a]'),
        GOOD + "    schedule: sometimes\n",
        GOOD + "    schedule: {every: 15 min}\n",
        with_source("{connector: none, path: drop}"),
        with_source("{path: drop}"),
        with_source("{connector: rig, path: drop, pth: x}"),
        with_source("{connector: rig, path: drop, settle_seconds: '2'}"),
        with_source("{connector: rig, path: drop, retries: 10}"),
        with_source("{connector: rig, path: drop, after: keeep}"),
        with_source("{connector: lax, path: drop}"),
    ],
)
def test_a_mistake_is_invalid_under_the_schema(text: str) -> None:
    assert not accepted(text)


def test_the_schema_does_not_depend_on_the_order_of_the_connectors() -> None:
    reversed_connectors = {name: CONNECTORS[name] for name in reversed(list(CONNECTORS))}
    assert schema_text(CONNECTORS) == schema_text(reversed_connectors)
    assert json.loads(schema_text(CONNECTORS))["$schema"] == DIALECT


def test_every_setting_has_a_description() -> None:
    def bare(schema: Any, path: str) -> list[str]:
        found: list[str] = []
        if isinstance(schema, dict):
            for name, part in schema.get("properties", {}).items():
                found += [] if "description" in part else [f"{path}.{name}"]
            for name, part in schema.items():
                found += bare(part, f"{path}.{name}")
        return found

    assert bare(configuration_schema({"rig": CONNECTORS["rig"]}), "") == []


def test_a_secret_has_no_default_in_the_schema() -> None:
    service = configuration_schema(CONNECTORS)["$defs"]["ServiceSettings"]["properties"]
    assert "default" not in service["api_key"]
    assert "default" not in service["client_id"]


def test_the_description_of_a_required_key_says_more_than_its_name() -> None:
    """The error about a missing key has it: "The key 'pipelines' is missing: The pipelines." says nothing."""
    needed = list(_required(configuration_schema({name: connector_class(name) for name in connector_names()})))
    assert len(needed) > 10
    for key, description in needed:
        words = set(re.findall(r"\w+", description.lower())) - {"the", "a", "an", "of", key, f"{key}s"}
        assert words, f"{key}: {description}"


def _required(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the required keys of a schema that have a description."""
    for name in node.get("required", ()) if isinstance(node, dict) else ():
        if description := node.get("properties", {}).get(name, {}).get("description"):
            yield name, description
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _required(inner)
