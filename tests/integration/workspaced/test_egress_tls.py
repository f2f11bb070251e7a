"""The TLS certificate is verified for the name in the URL, although the socket connects to an address."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from tests.support.certificates import self_signed
from workspaced.security.egress.client import Bounds, EgressClient, ReceiverUnreachable
from workspaced.security.egress.rules import Address, EgressRules

_RULES = EgressRules(allowed_networks=(ip_network("127.0.0.0/8"),))


async def _resolve(_host: str, _port: int) -> Sequence[Address]:
    return (ip_address("127.0.0.1"),)


def _recording(asked_for: list[str | None]) -> Callable[..., None]:
    def note(_socket: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        asked_for.append(name)

    return note


@pytest.mark.parametrize(("name", "trusted"), [("hooks.example", True), ("other.example", False)])
async def test_tls_uses_the_name_of_the_url(tmp_path: Path, name: str, *, trusted: bool) -> None:
    certificate, key = self_signed(tmp_path, "hooks.example")
    asked_for: list[str | None] = []
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    serving.sni_callback = _recording(asked_for)
    received = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        received += 1
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving) as server:
        port = server.sockets[0].getsockname()[1]
        trust = ssl.create_default_context(cafile=certificate)
        async with EgressClient(_RULES, bounds=Bounds(), resolve=_resolve, trust=trust) as client:
            if trusted:
                response = await client.post(f"https://{name}:{port}/", headers=(), body=b"")
                assert response.status == 204
            else:
                with pytest.raises(ReceiverUnreachable) as refused:
                    await client.post(f"https://{name}:{port}/", headers=(), body=b"")
                assert refused.value.code == "connection_failed"
    assert asked_for == [name]
    assert received == int(trusted)
