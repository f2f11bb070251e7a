"""The client's table of operations compared with that of the contract."""

from __future__ import annotations

from collections import Counter

from ingestd.client.operations import OPERATIONS

# The operations of the contract: the row, the method, and the path with placeholders.
CONTRACT = """
DS1 GET /v1/workspace/*/data-sink/*
DS2 GET /v1/workspace/*/data-sink
DS3 GET /v1/workspace/*/data-sink/list
DS4 GET /v1/workspace/*/data-sink/*/*
DS5 POST /v1/workspace/*/data-sink
DS6 PATCH /v1/workspace/*/data-sink/*
DS7 DELETE /v1/workspace/*/data-sink/*
DS8 POST /v1/workspace/*/data-sink/*
DS9 PATCH /v1/workspace/*/data-sink/*/*
DS10 DELETE /v1/workspace/*/data-sink/*/*
DS11 POST /v1/workspace/*/data-sink/*/mass
BL1 GET /v1/workspace/*/blocks
BL2 POST /v1/workspace/*/blocks
BL3 GET /v1/workspace/*/blocks/*
BL4 DELETE /v1/workspace/*/blocks/*
BL5 PATCH /v1/workspace/*/blocks/*
WS1 GET /v1/workspace
WS2 POST /v1/workspace
WS3 GET /v1/workspace/*
WS4 DELETE /v1/workspace/*
WS5 PATCH /v1/workspace/*
CS1 DELETE /v1/cloud-storage/*
CS2 PATCH /v1/cloud-storage/*
CS3 GET /v1/cloud-storage/metadata/*
CS4 PUT /v1/cloud-storage/metadata/*
CS5 POST /v1/cloud-storage/retry-conversion/*
WH1 GET /v1/webhooks
WH2 POST /v1/webhooks
WH3 GET /v1/webhooks/*
WH4 DELETE /v1/webhooks/*
WH5 PATCH /v1/webhooks/*
WH6 POST /v1/webhooks/*/rotate-secret
"""


def _pattern(path: str) -> str:
    return "/".join("*" if part.startswith("{") else part for part in path.split("/"))


def test_each_row_of_the_contract_has_exactly_one_operation() -> None:
    rows = [f"{one.row} {one.method} {_pattern(one.path)}" for one in OPERATIONS if one.row]
    assert sorted(rows) == sorted(CONTRACT.split("\n")[1:-1])
    assert len(rows) == 32


def test_the_client_id_is_required_on_rows_five_to_ten_of_the_sinks() -> None:
    demanding = {operation.row for operation in OPERATIONS if operation.client_id}
    assert demanding == {"DS5", "DS6", "DS7", "DS8", "DS9", "DS10"}


def test_names_and_addresses_of_operations_are_unique() -> None:
    assert Counter(one.name for one in OPERATIONS).most_common(1)[0][1] == 1
    assert Counter((one.method, _pattern(one.path)) for one in OPERATIONS).most_common(1)[0][1] == 1
