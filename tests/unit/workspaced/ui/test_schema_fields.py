from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workspaced.app import create_app
from workspaced.settings.model import WorkspacedSettings
from workspaced.ui.edit.form import schema_fields

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "maxLength": 255, "description": "Its name, such as `a`."},
        "about": {"anyOf": [{"type": "string", "maxLength": 10_000}, {"type": "null"}]},
        "inOrder": {"type": "boolean"},
        "statuses": {"anyOf": [{"anyOf": [{"type": "array", "items": {}}, {"type": "string"}]}, {"type": "null"}]},
        "multiplicity": {"type": "number"},
        "signingSecret": {"type": "string"},
        "icon": {
            "anyOf": [
                {"type": "object", "properties": {"baseColor": {"type": "string"}, "metadata": {"type": "object"}}},
                {"type": "null"},
            ]
        },
        "id": {"type": "string", "format": "uuid"},
        "entries": {"type": "array", "items": {}},
    },
    "required": ["label"],
}


def test_a_field_follows_from_the_schema_of_its_member() -> None:
    fields = schema_fields(SCHEMA, ["inOrder", "label"], without=["entries"], inOrder={"value": "true"})
    assert [(one.name, one.label, one.kind, one.rare) for one in fields] == [
        ("inOrder", "In order", "check", False),
        ("label", "Label", "line", False),
        ("about", "About", "text", True),
        ("statuses", "Statuses", "lines", True),
        ("multiplicity", "Multiplicity", "number", True),
        ("signingSecret", "Signing secret", "secret", True),
        ("icon.baseColor", "Icon: base color", "line", True),
        ("icon.metadata", "Icon: metadata", "json", True),
    ]
    by_name = {one.name: one for one in fields}
    assert (by_name["label"].required, by_name["label"].hint) == (True, "Its name, such as a.")
    assert by_name["statuses"].hint == "One on each line."
    assert by_name["inOrder"].value == "true"


@pytest.mark.parametrize(
    "body", ["NewWorkspace", "WorkspaceChanges", "NewDataSink", "NewBlock", "BlockChanges", "NewWebhook"]
)
def test_every_member_of_a_body_has_a_field(body: str) -> None:
    schema = create_app(WorkspacedSettings(data=Path("unused"))).publication.schema_of(body)
    names = {one.name.partition(".")[0] for one in schema_fields(schema, ["label"])}
    assert names == schema["properties"].keys() - {"id"}
