"""Settings of the listener of `ingestd run`: metrics, health and the page."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import problem
from ingestd.wire.hosts import is_loopback

_TOKEN = r"[!-~]{16,512}"  # noqa: S105 - a pattern
_URL = r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!-\"$->@-~]*)?"
_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"


def split_address(text: str) -> tuple[str, int]:
    """Return the IP address and the port in a text such as ``[::1]:8402``; ``localhost`` is 127.0.0.1.

    Raises:
        ValueError: the text does not have this form.
    """
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError(text)
    if host == "localhost":
        return "127.0.0.1", int(port)
    if host.startswith("[") and host.endswith("]"):
        return str(ipaddress.IPv6Address(host[1:-1])), int(port)
    return str(ipaddress.IPv4Address(host)), int(port)


def _address(text: str) -> str:
    try:
        split_address(text)
    except ValueError:
        raise problem("Expected an IP address and a port, such as 127.0.0.1:8402 or [::1]:8402.") from None
    return text


def _token(token: SecretStr) -> SecretStr:
    if not re.fullmatch(_TOKEN, token.get_secret_value()):
        raise problem(
            "Expected 16 to 512 visible ASCII characters without spaces, such as `openssl rand -hex 32` prints."
        )
    return token


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    lowered = tuple(name.lower() for name in names)
    if not all(re.fullmatch(_NAME, name) for name in lowered):
        raise problem("Expected names of this machine without a port, such as bench-3.example.")
    return lowered


def _page_url(url: str) -> str:
    if not re.fullmatch(_URL, url):
        raise problem(
            "Expected an address such as https://bench-3.example/ingestd, without a user, a query or a fragment."
        )
    return url.rstrip("/")


class ListenSettings(SettingsPart):
    """Where the running daemon serves its metrics, its health and its page."""

    address: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None,
        description="The IP address and the port. An address that other machines can reach needs a token.",
        examples=["127.0.0.1:8402"],
    )
    socket: Path | None = Field(
        default=None,
        description="A Unix socket instead of an address. Only the daemon's account can connect to it.",
        examples=["var/ingestd.http"],
    )
    token: Annotated[SecretStr, AfterValidator(_token)] | None = Field(
        default=None,
        repr=False,
        description="The token that every request must have, as a bearer token or as the password; store it outside this file.",
        examples=["${env:INGESTD_LISTEN_TOKEN}", "${credential:listen-token}"],
    )
    hosts: Annotated[tuple[str, ...], AfterValidator(_hosts)] = Field(
        default=(),
        description="Names by which browsers reach the listener. IP addresses and localhost are always accepted.",
        examples=[["bench-3.example"]],
    )

    url: Annotated[str, AfterValidator(_page_url)] | None = Field(
        default=None,
        description="The address at which people open the page, such as the address of a proxy. The service then links from each "
        "value to the page of its file.",
        examples=["http://bench-3.example:8402"],
    )

    @model_validator(mode="after")
    def _check_reachability(self) -> Self:
        if (self.address is None) == (self.socket is None):
            raise problem("Set either 'address' or 'socket'.")
        if self.address is not None and self.token is None:
            host, _ = split_address(self.address)
            if not is_loopback(host):
                raise problem(
                    f"Other machines can reach {host}. Set 'token' from a secret, such as ${{env:INGESTD_LISTEN_TOKEN}}, "
                    "or listen on 127.0.0.1."
                )
        return self
