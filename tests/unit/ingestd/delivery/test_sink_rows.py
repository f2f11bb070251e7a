"""The rows that a drift check reads: value, type, author, who changed it last, and when."""

from __future__ import annotations

from typing import Any

import pytest

from ingestd.delivery.sink_rows import signed_row_of

AT = "2026-12-01T10:00:00.000Z"


@pytest.mark.parametrize(
    ("members", "author", "changed_by", "changed_at"),
    [
        ({"createdBy": "Ada", "updatedBy": "Ada", "updatedAt": AT}, "Ada", None, AT),
        ({"createdBy": "Ada", "updatedBy": "Bo", "updatedAt": AT}, None, "Bo", AT),
        ({"updatedBy": "Bo"}, None, "Bo", None),
        ({}, None, None, None),
        ({"createdBy": "", "updatedBy": "", "updatedAt": ""}, None, None, ""),
        ({"createdBy": 1, "updatedBy": 1, "updatedAt": 3}, None, None, None),
        ({"createdBy": "\ud800", "updatedBy": "\ud800", "updatedAt": "\ud800"}, "\\ud800", None, None),
    ],
)
def test_a_row_names_who_changed_an_entry_as_far_as_the_service_says(
    members: dict[str, Any], author: str | None, changed_by: str | None, changed_at: str | None
) -> None:
    row = signed_row_of({"key": "a", "value": "1", "dataType": "scalar", **members})
    assert row == ("a", "1", "scalar", author, changed_by, changed_at)
