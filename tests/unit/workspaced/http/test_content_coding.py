from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.core.asgi import Message
from workspaced.core.problems import Invalid, TooLargeProblem, UnsupportedCoding
from workspaced.http.bodies import read_body
from workspaced.http.headers import RequestHeaders


async def body(content: bytes, *, coding: str = "gzip", limit: int = 1_000, cut: int = 7) -> bytes:
    """Return the decoded body of a request that arrives in pieces of ``cut`` bytes."""
    pieces = [content[at : at + cut] for at in range(0, len(content), cut)] or [b""]

    async def receive() -> Message:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-encoding", coding.encode())] if coding else []
    return await read_body(receive, RequestHeaders({"headers": headers}), limit=limit)


@given(content=st.binary(max_size=1_000), cut=st.integers(1, 1_000))
async def test_a_compressed_body_is_decoded(content: bytes, cut: int) -> None:
    # contract G32
    assert await body(gzip.compress(content), cut=cut) == content


@pytest.mark.parametrize("coding", ["", "identity", "GZIP", "x-gzip"])
async def test_names_of_codings_are_parsed_as_in_http(coding: str) -> None:
    content = gzip.compress(b"[]") if "zip" in coding.lower() else b"[]"
    assert await body(content, coding=coding) == b"[]"


async def test_the_limit_applies_to_the_decoded_size_and_decoding_stops_there() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 60_000
    with pytest.raises(TooLargeProblem):
        await body(bomb, limit=100_000, cut=1_000)
    assert await body(gzip.compress(bytes(100_000)), limit=100_000) == bytes(100_000)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", gzip.compress(b"[]")[:-1], gzip.compress(b"[]") + b"x", gzip.compress(b"[]") + gzip.compress(b"[]")],
    ids=["empty", "plain", "cut off", "something after it", "two members"],
)
async def test_an_incomplete_gzip_body_is_rejected(content: bytes) -> None:
    with pytest.raises(Invalid):
        await body(content)


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate"])
async def test_another_coding_is_rejected_and_the_response_names_the_supported_ones(coding: str) -> None:
    # contract G32
    with pytest.raises(UnsupportedCoding) as refused:
        await body(b"[]", coding=coding)
    assert refused.value.status == 415
    assert refused.value.headers == (("Accept-Encoding", "gzip"),)
