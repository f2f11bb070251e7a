from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from workspaced.core.bodies import Body, body_schema, read_body
from workspaced.core.json_schema import Timestamp, record_schemas
from workspaced.core.members import Whole
from workspaced.core.problems import Invalid
from workspaced.resources.api_keys.rules import KeyRotation, NewApiKey
from workspaced.resources.blocks.values import BlockChanges, NewBlock
from workspaced.resources.cloud_storage.rules import ConversionRetry, FileChanges, NewUpload, UploadCompletion
from workspaced.resources.data_sinks.rules import (
    DataSinkChanges,
    DataSinkEntryChanges,
    MassRemoval,
    MassSetting,
    NewDataSink,
    NewDataSinkEntry,
)
from workspaced.resources.webhooks.values import NewWebhook, SecretRotation, WebhookChanges
from workspaced.resources.workspaces.rules import NewWorkspace, WorkspaceChanges
from workspaced.settings.model import Limits

CREATED = [
    NewApiKey,
    NewBlock,
    NewUpload,
    NewDataSink,
    NewDataSinkEntry,
    MassRemoval,
    MassSetting,
    NewWebhook,
    NewWorkspace,
]
CHANGED = [BlockChanges, FileChanges, DataSinkChanges, DataSinkEntryChanges, WebhookChanges, WorkspaceChanges]
OPTIONAL = [KeyRotation, SecretRotation, UploadCompletion, ConversionRetry]


def _wrong(body_type: type[Body], body: object) -> dict[str, str]:
    """Return the pointers and codes of the mistakes in a body."""
    try:
        read_body(body_type, body, Limits())
    except Invalid as invalid:
        return {mistake.pointer: mistake.code for mistake in invalid.mistakes}
    return {}


@pytest.mark.parametrize("body_type", [*CREATED, *OPTIONAL])
def test_an_empty_body_lacks_exactly_the_required_members_of_its_schema(body_type: type[Body]) -> None:
    required = body_schema(body_type, Limits()).get("required", [])
    assert _wrong(body_type, {}) == {f"/{name}": "required" for name in required}


@pytest.mark.parametrize("body_type", CHANGED)
def test_an_update_requires_no_member(body_type: type[Body]) -> None:
    assert "required" not in body_schema(body_type, Limits())
    changes, ignored = read_body(body_type, {}, Limits())
    assert (changes.given(), ignored) == ({}, ())


@pytest.mark.parametrize("body_type", [*CREATED, *OPTIONAL, *CHANGED])
def test_null_is_accepted_exactly_where_the_schema_permits_it(body_type: type[Body]) -> None:
    properties = body_schema(body_type, Limits())["properties"]
    nullable = {f"/{name}" for name, schema in properties.items() if {"type": "null"} in schema.get("anyOf", ())}
    refused = _wrong(body_type, dict.fromkeys(properties))
    assert refused.keys() == {f"/{name}" for name in properties} - nullable


@pytest.mark.parametrize("body_type", [*CREATED, *OPTIONAL, *CHANGED])
def test_a_value_of_another_json_type_than_in_the_schema_is_a_mistake(body_type: type[Body]) -> None:
    schema = body_schema(body_type, Limits())
    assert _wrong(body_type, 7) == {"": "wrong_type"}
    wrong = _wrong(body_type, {name: [7] for name in schema["properties"]})
    assert wrong.keys() >= {f"/{name}" for name in schema["properties"]} - {"/entries", "/origins", "/expiresAt"}


def test_a_bound_in_a_schema_is_the_configured_limit() -> None:
    schema = body_schema(NewWorkspace, Limits(label_length=9, statuses=2))
    assert schema["properties"]["label"]["maxLength"] == 9
    assert schema["properties"]["statuses"]["anyOf"][0]["anyOf"][0]["maxItems"] == 2


class _InnerRecord(msgspec.Struct):
    """The inner record."""

    at: Timestamp | None


class _OuterRecord(msgspec.Struct, rename="camel"):
    """The outer record."""

    first_inner: _InnerRecord
    title: str | UnsetType = UNSET


def test_a_record_is_published_with_its_nested_records() -> None:
    instant = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
    assert record_schemas(_OuterRecord) == {
        "_Outer": {
            "type": "object",
            "description": "The outer record.",
            "properties": {"firstInner": {"$ref": "#/components/schemas/_Inner"}, "title": {"type": "string"}},
            "required": ["firstInner"],
        },
        "_Inner": {
            "type": "object",
            "description": "The inner record.",
            "properties": {"at": instant},
            "required": ["at"],
        },
    }


class _Sample(Body):
    n: Annotated[int, Whole(highest=7)]


@pytest.mark.parametrize("value", [7, Decimal("7.0"), Decimal("0.7e1")])
def test_a_whole_number_may_have_a_zero_fraction(value: object) -> None:
    assert read_body(_Sample, {"n": value}, Limits())[0].n == 7


@pytest.mark.parametrize("value", [8, -1, Decimal("6.5"), "7", True, Decimal("1e400")])
def test_an_invalid_or_out_of_range_whole_number_is_a_mistake(value: object) -> None:
    with pytest.raises(Invalid, match=r"/n (must be|may have)"):
        read_body(_Sample, {"n": value}, Limits())


@pytest.mark.parametrize("body_type", [KeyRotation, SecretRotation])
def test_grace_periods_are_whole_numbers_of_seconds(body_type: type[KeyRotation | SecretRotation]) -> None:
    assert read_body(body_type, {"gracePeriodSeconds": Decimal("60.0")}, Limits()) == (
        body_type.model_construct(seconds=60),
        (),
    )
    assert read_body(body_type, {"gracePeriodSeconds": None}, Limits()) == read_body(body_type, {}, Limits())
