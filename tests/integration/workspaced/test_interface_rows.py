"""The document's 32 rows, decoded by a client that is made from the tables of the document only."""

from __future__ import annotations

import dataclasses
from typing import Any

import httpx
import msgspec
import pytest

from tests.support.interface_rows import NO_CONTENT, ROWS, Row
from tests.support.sample_workspace import create_sample_workspace


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_a_client_made_from_the_tables_of_the_document_decodes_the_success(
    http: httpx.AsyncClient, row: Row
) -> None:
    # contract G22
    sample = await create_sample_workspace(http)
    names = dataclasses.asdict(sample)
    response = await http.request(
        row.method,
        row.path.format(**names),
        params={name: text.format(**names) for name, text in row.query.items()},
        json=_filled(row.json, names),
    )
    assert response.status_code == row.status, response.text
    if row.shape is NO_CONTENT:
        assert (response.content, response.headers["Content-Length"]) == (b"", "0")
        assert "Content-Type" not in response.headers
        return
    assert response.headers["Content-Type"] == "application/json"
    decoded = msgspec.json.decode(response.content, type=row.shape, strict=True)
    assert _length(decoded) > 0 or row.id == "CS3"


def _filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**names) if "{" in value else value
    if isinstance(value, dict):
        return {name: _filled(one, names) for name, one in value.items()}
    return [_filled(one, names) for one in value] if isinstance(value, list) else value


def _length(decoded: object) -> int:
    return len(decoded) if isinstance(decoded, list | dict) else 1
