"""The address of a service says the same as httpx does, which the other transport uses."""

from __future__ import annotations

import httpx
import pytest

from ingestd.client.fast_transport import ServerAddress

URLS = (
    "http://127.0.0.1:8400",
    "http://localhost/",
    "http://localhost:80/api/",
    "https://workspace.example:443/a b/c%20d",
    "https://Workspace.Example/v1",
    "http://[::1]:8400/x",
    "http://user:secret@host.example:81",
    "http://prüfstand.example/daten/größe",
)


@pytest.mark.parametrize("url", URLS)
def test_an_address_is_that_of_httpx(url: str) -> None:
    address, expected = ServerAddress.of(url), httpx.URL(url)
    assert (address.tls, address.host) == (expected.scheme == "https", expected.raw_host.decode("ascii").strip("[]"))
    assert address.port == (expected.port or (443 if address.tls else 80))
    assert address.host_header == expected.netloc
    assert address.prefix == expected.raw_path.rstrip(b"/")


@pytest.mark.parametrize("url", ["ftp://host", "host:80", "http://", ""])
def test_what_is_no_address_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no http"):
        ServerAddress.of(url)
