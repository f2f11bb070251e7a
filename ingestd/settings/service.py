"""Settings of the connection to the workspace service: address, authentication, timeouts and limits."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator

from ingestd.core.plan import UpdateWith
from ingestd.settings.part import SettingsPart
from ingestd.settings.secrets import RepeatedSecret
from ingestd.settings.validation import problem

_CLIENT_ID = r"[!-~]{1,128}"
_SECONDS_AT_MOST = 3_600.0
_INSIDE_THE_SERVICE = re.compile(r"/(ui(/.*)?|openapi\.json)$")
"""Paths that a person may copy from a browser: the paths of the service's pages, and of its OpenAPI document."""


def client_id_of(host: str) -> str:
    """Return a client id (1 to 128 visible ASCII characters) that is made of a host name."""
    return re.sub(r"[^!-~]+", "-", host)[:128] or "ingestd"


def _split_address(text: str) -> SplitResult | None:
    """Return the parts of a server's address; None if the text is no address, or has a character that is not permitted."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        # A resolver rejects a name with an empty or too long label, so such a name is a mistake, not a failure of the network.
        (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts if usable and re.fullmatch(r"[!-~]+", text) else None


def _service_url(text: str) -> str:
    expected = "Expected the service's address, such as http://127.0.0.1:8400 or https://workspace.example/api"
    parts = _split_address(text)
    if parts is None:
        raise problem(f"{expected}.")
    if parts.username is not None or parts.password is not None:
        raise problem(
            "The address contains a user name or a password. Remove them; the service authenticates clients by 'api_key'."
        )
    if parts.query or parts.fragment:
        raise problem(f"{expected}, without a query ('?') or a fragment ('#').")
    if inside := _INSIDE_THE_SERVICE.search(parts.path):
        address = parts._replace(path=parts.path[: inside.start()]).geturl()
        raise problem(f"'{inside[0]}' is a path of the service itself. Write its address: {address}")
    return text.rstrip("/")


def _api_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]+", key.get_secret_value()):
        raise problem(
            "The API key is empty or contains a space, a line end or a character that is not ASCII. Copy it again."
        )
    return key


def _client_id(text: str) -> str:
    if not re.fullmatch(_CLIENT_ID, text):
        raise problem("Expected 1 to 128 visible ASCII characters without spaces.")
    return text


def _proxy(address: SecretStr) -> SecretStr:
    if _split_address(address.get_secret_value()) is None:
        raise problem(
            "Expected the address of a proxy, such as http://proxy.example:3128 or http://user:password@proxy:3128."
        )
    return address


class ServiceSettings(SettingsPart):
    """The workspace service and the connection to it."""

    url: Annotated[str, AfterValidator(_service_url)] = Field(
        repr=False, description="The address of the service.", examples=["http://127.0.0.1:8400"]
    )
    api_key: Annotated[SecretStr, AfterValidator(_api_key)] = Field(
        repr=False,
        description="The API key that the service issued; store it outside this file.",
        examples=["${env:INGESTD_API_KEY}", "${credential:api-key}"],
    )
    client_id: Annotated[str, AfterValidator(_client_id)] = Field(
        default_factory=lambda: client_id_of(socket.gethostname()),
        repr=False,
        description="The name that events of the service show for changes by this daemon. Default: the host name.",
        examples=["bench-3"],
    )
    connect_timeout_seconds: float = Field(
        default=5.0, gt=0, le=_SECONDS_AT_MOST, description="The longest time to establish a connection."
    )
    read_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=_SECONDS_AT_MOST,
        description="The longest time without data from the service while it responds.",
    )
    write_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=_SECONDS_AT_MOST,
        description="The longest time in which the service accepts no data of a request.",
    )
    proxy: Annotated[SecretStr, AfterValidator(_proxy)] | None = Field(
        default=None,
        repr=False,
        description="A proxy for all requests to the service, with user and password if the proxy needs them. The environment "
        "variable HTTP_PROXY is not used.",
        examples=["http://proxy.example:3128"],
    )
    ca_file: Path | None = Field(
        default=None,
        repr=False,
        description="A PEM file with the trusted certificate authorities, instead of the authorities of the system.",
        examples=["company-ca.pem"],
    )
    client_certificate: Path | None = Field(
        default=None, repr=False, description="The certificate that authenticates this daemon to the service (PEM)."
    )
    client_key: Path | None = Field(
        default=None,
        repr=False,
        description="The key of client_certificate, if it is in a separate file (PEM).",
    )
    client_key_password: SecretStr | None = Field(
        default=None, repr=False, description="The password of the key, if it is encrypted."
    )
    requests_at_most: int = Field(
        default=32,
        ge=1,
        le=256,
        description="The maximum number of concurrent requests. The daemon begins with one request, and adapts the "
        "number to the service.",
    )
    retry_after_at_most_seconds: float = Field(
        default=300.0,
        gt=0,
        le=86_400.0,
        description="The longest wait that the service can request with Retry-After.",
    )
    gather_seconds: float = Field(
        default=0.0,
        ge=0,
        le=60,
        description="How long to collect entries before a batch is sent; 0 sends pending entries immediately.",
    )
    compress: Literal["auto", "never"] = Field(
        default="auto",
        description="Compress request bodies with gzip: auto (if the service accepts it and is not on this machine) or never.",
    )
    update_with: UpdateWith = Field(
        default="mass",
        description="The request that updates an entry if the service does not accept batches: mass or patch.",
    )
    missing_sink: Literal["create", "stop"] = Field(
        default="create",
        description="If the service deleted a sink: create it again with all entries, or stop its delivery and report it.",
    )

    _api_key_source: RepeatedSecret | None = PrivateAttr(default=None)

    def read_api_key(self) -> SecretStr:
        """Return the current API key. The file of the key may have changed since the configuration was read.

        Raises:
            PlaceholderError: the file cannot be read.
            ValueError: the content of the file is not an API key.
        """
        if self._api_key_source is None:
            return self.api_key
        return _api_key(SecretStr(self._api_key_source.read()))

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if self.client_certificate is None and (self.client_key is not None or self.client_key_password is not None):
            raise problem("'client_key' is set without a certificate. Set 'client_certificate', too.")
        return self
