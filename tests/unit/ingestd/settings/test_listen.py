from __future__ import annotations

import pytest
from pydantic import ValidationError

from ingestd.settings.listen import ListenSettings, split_address

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8402", ("127.0.0.1", 8402)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:65535", ("::1", 65_535)),
    ],
)
def test_an_address_is_an_ip_address_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert split_address(text) == expected
    assert ListenSettings(address=text).token is None


@pytest.mark.parametrize(
    "text", ["8402", "127.0.0.1", "bench.example:8402", "::1:8402", "127.0.0.1:65536", "127.0.0.1:+1"]
)
def test_another_text_is_no_address(text: str) -> None:
    with pytest.raises(ValidationError, match="Expected an IP address and a port"):
        ListenSettings(address=text)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.7:1", "[::ffff:10.0.0.7]:1"])
def test_an_address_that_other_machines_may_reach_needs_a_token(address: str) -> None:
    with pytest.raises(ValidationError, match="Set 'token' from a secret"):
        ListenSettings(address=address)
    assert ListenSettings.model_validate({"address": address, "token": TOKEN}).address == address


@pytest.mark.parametrize("settings", [{}, {"address": "127.0.0.1:1", "socket": "x"}])
def test_either_an_address_or_a_socket_is_set(settings: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="Set either 'address' or 'socket'"):
        ListenSettings.model_validate(settings)


@pytest.mark.parametrize("token", ["short", "with a space in it", "x" * 513])
def test_a_weak_or_unusable_token_is_refused_without_quoting_it(token: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ListenSettings.model_validate({"address": "127.0.0.1:1", "token": token})
    assert "Expected 16 to 512 visible ASCII characters" in str(refused.value)
    assert TOKEN not in repr(ListenSettings.model_validate({"address": "127.0.0.1:1", "token": TOKEN}))


@pytest.mark.parametrize("url", ["http://bench-3.example:8402", "https://[::1]/ingestd"])
def test_the_address_of_the_page_has_no_slash_at_its_end(url: str) -> None:
    assert ListenSettings.model_validate({"address": "127.0.0.1:1", "url": f"{url}/"}).url == url


@pytest.mark.parametrize("url", ["bench-3.example", "ftp://bench-3", "http://me@bench-3", "http://a/?b", "http://a/#b"])
def test_another_text_is_no_address_of_the_page(url: str) -> None:
    with pytest.raises(ValidationError, match="Expected an address such as https"):
        ListenSettings.model_validate({"address": "127.0.0.1:1", "url": url})
