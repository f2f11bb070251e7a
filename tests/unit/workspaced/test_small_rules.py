from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.core.problems import PreconditionFailedProblem
from workspaced.core.text import as_uuid, has_controls
from workspaced.core.timestamps import microseconds, stamp
from workspaced.http.operations import not_modified, require_match
from workspaced.resources.data_sinks.sink_address import ID_MULTIPLIER, SinkName, row_number, sink_name
from workspaced.settings.model import Limits


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (-57_560_859_372_000, "0145-12-20T08:23:48.000Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_777_636_800_007, "2026-05-01T12:00:00.007Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_with_milliseconds(milliseconds: int, text: str) -> None:
    # contract G3
    assert stamp(milliseconds) == text
    assert microseconds(text) == milliseconds * 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01T14:00:00+02:00", 1_777_636_800_000_000),
        ("2026-05-01t12:00:00.123456789z", 1_777_636_800_123_456),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("0001-01-01T01:00:00+01:00", -62_135_596_800_000_000),
        ("9999-12-31T22:59:59.999999-01:00", 253_402_300_799_999_999),
    ],
)
def test_rfc_3339_is_parsed_to_the_microsecond(text: str, expected: int) -> None:
    # contract G3
    assert microseconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-05-01",
        "2026-05-01T12:00:00",
        "2026-13-01T12:00:00Z",
        "12:00",
        "now",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_an_invalid_time_is_rejected(text: str) -> None:
    # contract G3
    with pytest.raises(ValueError, match=r"."):
        microseconds(text)


@given(st.integers(1, 1 << 40), st.integers(0, (1 << 48) - 1))
def test_an_id_is_converted_to_its_row_and_back(number: int, id_offset: int) -> None:
    made = f"00000000-0000-4000-8000-{(number * ID_MULTIPLIER + id_offset) & 0xFFFFFFFFFFFF:012x}"
    assert row_number(made, id_offset=id_offset) == number
    assert number * ID_MULTIPLIER + id_offset < 1 << 63


def test_a_path_names_a_sink_by_uuid_or_visible_id() -> None:
    # contract S5
    assert sink_name("snk-12", prefix="SNK") == SinkName(serial=12)
    assert sink_name("123E4567-E89B-12D3-A456-426614174000", prefix="SNK") == SinkName(
        id="123e4567-e89b-12d3-a456-426614174000"
    )
    for text in ("list", "SNK-0", "SNK-1234567890", "ABC-1", "SNK-\uff11", "{123e4567-e89b-12d3-a456-426614174000}"):
        assert sink_name(text, prefix="SNK") is None


@pytest.mark.parametrize(
    "text", ["", "123e4567e89b12d3a456426614174000", "urn:uuid:123e4567-e89b-12d3-a456-426614174000"]
)
def test_only_the_form_with_hyphens_is_a_uuid(text: str) -> None:
    # contract G1
    assert as_uuid(text) is None


def test_control_characters_are_found_and_other_unprintable_ones_are_not() -> None:
    # contract G7
    assert has_controls("a\x85")
    assert not has_controls("a\u00ad\u3000\u200b")


def test_conditions_compare_versions() -> None:
    # contract G17
    assert not_modified('"1", W/"2"', 2)
    assert not_modified("*", 2)
    assert not not_modified(None, 2)
    assert not not_modified("2", 2)
    require_match('"2"', 2)
    require_match(None, 2)
    for wrong in ('W/"2"', '"1"', "2"):
        with pytest.raises(PreconditionFailedProblem):
            require_match(wrong, 2)


def test_limits_come_from_the_environment_and_a_quota_may_be_none() -> None:
    limits = Limits.from_environment({"WORKSPACED_BULK_ITEMS": "7", "WORKSPACED_ENTRIES_PER_SINK": "0", "OTHER": "x"})
    assert (limits.bulk_items, limits.entries_per_sink, limits.key_length) == (7, 0, 255)
    for name, text in (("BULK_ITEMS", "0"), ("KEY_LENGTH", "-1"), ("TAGS_LENGTH", "1.5")):
        with pytest.raises(ValueError, match=re.escape(f"WORKSPACED_{name} is '{text}'")):
            Limits.from_environment({f"WORKSPACED_{name}": text})
