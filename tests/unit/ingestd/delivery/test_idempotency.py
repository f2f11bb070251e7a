from __future__ import annotations

from ingestd.delivery.idempotency import IdempotencyKeys


def test_a_request_keeps_its_key_until_the_service_rejects_something() -> None:
    keys = IdempotencyKeys("run-1")
    first = keys.for_entries("w/s", [3, 4], b"[]")
    assert keys.for_entries("w/s", [3, 4], b"[]") == first
    keys.record_refusal()
    assert keys.for_entries("w/s", [3, 4], b"[]") != first


def test_another_segment_body_position_or_run_has_another_key() -> None:
    keys = IdempotencyKeys("run-1")
    all_keys = {
        keys.for_entries("w/s", [3], b"[]"),
        keys.for_entries("w/s", [4], b"[]"),
        keys.for_entries("w/s", [3], b"[1]"),
        keys.for_entries("w/t", [3], b"[]"),
        IdempotencyKeys("run-2").for_entries("w/s", [3], b"[]"),
        keys.for_sink("w/s", b"[]"),
    }
    assert len(all_keys) == 6


def test_creating_a_sink_has_the_same_key_in_a_later_run() -> None:
    assert IdempotencyKeys("run-1").for_sink("w/S", b"{}") == IdempotencyKeys("run-2").for_sink("w/S", b"{}")


def test_a_key_is_valid_in_the_header_of_the_draft() -> None:
    key = IdempotencyKeys("run-1").for_entries("w/s", [1], b"")
    assert key.isalnum()
    assert 1 <= len(key) <= 255
