from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import pytest

from workspaced.events.catalogue import EVENT_TYPES, is_well_formed, matches, unknown
from workspaced.events.payload import BODY_BYTES, DomainEvent, body_of, with_previous


@dataclass(frozen=True, slots=True, kw_only=True)
class _Author:
    actor: str = "svc:test"
    client_id: str | None = "tab-1"
    now: int = 1_700_000_000_123


def _body(event: DomainEvent) -> bytes:
    return body_of(event, event_id=f"evt_{'0' * 32}", origin=_Author(), workspace_id="w", sequence=7)


def test_the_catalogue_is_that_of_the_contract() -> None:
    # contract H6
    assert set(EVENT_TYPES) == {
        *(
            f"{prefix}.{verb}"
            for prefix in ("data_sink", "data_sink.entry", "block", "workspace", "cloud_storage.file")
            for verb in ("created", "updated", "deleted")
        ),
        "cloud_storage.metadata.updated",
        "cloud_storage.conversion.started",
        "cloud_storage.conversion.succeeded",
        "cloud_storage.conversion.failed",
        "webhook.test",
    }
    assert all(re.fullmatch(r"[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)*", name) for name in EVENT_TYPES)


@pytest.mark.parametrize(
    ("pattern", "name", "picked"),
    [
        ("*", "block.created", True),
        ("block.*", "block.created", True),
        ("data_sink.*", "data_sink.entry.created", True),
        ("data_sink.entry.*", "data_sink.created", False),
        ("data_sink.*", "data_sinks.created", False),
        ("block.created", "block.created", True),
        ("block", "block.created", False),
        ("*.created", "block.created", False),
        (".*", "block.created", False),
    ],
)
def test_a_pattern_matches_all_names_a_prefix_or_one_name(pattern: str, name: str, *, picked: bool) -> None:
    # contract H6
    assert matches(pattern, name) is picked


def test_event_names_that_are_never_emitted_are_recognized() -> None:
    # contract H6
    assert unknown(("*", "block.*", "block.moved", "typo.*", "data_sink.created")) == ("block.moved", "typo.*")


@pytest.mark.parametrize(("pattern", "good"), [("a/b:c-d.*", True), ("x" * 128, True), ("x" * 129, False), ("", False)])
def test_a_subscription_may_contain_names_of_other_services(pattern: str, *, good: bool) -> None:
    # contract H6
    assert is_well_formed(pattern) is good
    assert not is_well_formed("with space")
    assert not is_well_formed("ü")


def test_a_body_has_type_time_place_and_actor() -> None:
    # contract H8
    body = msgspec.json.decode(
        _body(DomainEvent(type="block.updated", id="b", record={"id": "b", "label": "new"}, previous={"label": "old"}))
    )
    assert body == {
        "id": f"evt_{'0' * 32}",
        "type": "block.updated",
        "timestamp": "2023-11-14T22:13:20.123Z",
        "workspaceId": "w",
        "clientId": "tab-1",
        "actor": "svc:test",
        "sequence": 7,
        "data": {"object": {"id": "b", "label": "new"}, "previous": {"label": "old"}},
    }


def test_a_large_record_is_reduced_to_its_identifiers() -> None:
    # contract H8
    record = {"id": "e", "dataSinkId": "s", "key": "k", "value": "x" * BODY_BYTES, "hugeId": "y" * 300}
    body = _body(
        DomainEvent(type="data_sink.entry.updated", id="e", record=record, previous={"value": "z" * BODY_BYTES})
    )
    assert len(body) < 1_000
    assert msgspec.json.decode(body)["data"] == {
        "object": {"id": "e", "dataSinkId": "s"},
        "previous": {},
        "truncated": True,
    }


def test_a_coalesced_update_has_the_difference_to_the_last_sent_values() -> None:
    first = _body(DomainEvent(type="t", id="e", record={"value": "2", "kind": "a"}, previous={"value": "1"}))
    second = _body(
        DomainEvent(type="t", id="e", record={"value": "3", "kind": "b"}, previous={"value": "2", "kind": "a"})
    )
    assert msgspec.json.decode(with_previous(second, first, event_id="evt_2"))["data"]["previous"] == {
        "value": "1",
        "kind": "a",
    }
    back = _body(DomainEvent(type="t", id="e", record={"value": "1", "kind": "a"}, previous={"value": "2"}))
    assert msgspec.json.decode(with_previous(back, first, event_id="evt_3"))["data"]["previous"] == {}
