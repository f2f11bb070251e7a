"""The client's operations compared with the table of the contract."""

from __future__ import annotations

import httpx
import pytest

from ingestd.client.methods import Method
from ingestd.client.operations import ServiceMethods
from ingestd.client.request_builder import RenewableKey, RequestBuilder

METHODS = [one for one in vars(ServiceMethods).values() if isinstance(one, Method)]

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
    rows = {row.partition(" ")[2] for row in CONTRACT.split("\n")[1:-1]}
    known = {(one.operation.name, f"{one.operation.method} {_pattern(one.operation.path)}") for one in METHODS}
    assert {address for _, address in known} == rows
    assert len(rows) == len(known) == len({name for name, _ in known}) == 32


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.function.__name__)
def test_every_write_names_the_client(method: Method[..., object]) -> None:
    builder = RequestBuilder(key=RenewableKey("k"), client_id="bench-3")
    names = ["x" for part in method.operation.path.split("/") if part.startswith("{")]
    with httpx.Client(base_url="http://service.test") as http:
        message = builder.build(http, method.encoded(b"{}", *names))
    assert message.headers.get("ClientId") == (None if method.operation.method == "GET" else "bench-3")
