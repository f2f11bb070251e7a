"""The workspace service: where it is, how it is reached, how this daemon presents itself, and how hard it may press."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator

from ingestd.core.plan import UpdateWith
from ingestd.settings.part import SettingsPart
from ingestd.settings.secrets import RepeatedSecret
from ingestd.settings.validation import problem

_CLIENT_ID = r"[!-~]{1,128}"
_SECONDS_AT_MOST = 3_600.0


def client_id_of(host: str) -> str:
    """A host's name as a client id: visible ASCII, 1 to 128 characters."""
    return re.sub(r"[^!-~]+", "-", host)[:128] or "ingestd"


def _service_url(text: str) -> str:
    expected = "Expected the service's address, such as http://127.0.0.1:8400 or https://workspace.example/api"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        # No resolver is asked about a name with an empty or endless label; it would not be a fault of the network.
        (parts.hostname or "").encode("idna")
    except ValueError:
        usable = False
    else:
        if usable and (parts.username is not None or parts.password is not None):
            raise problem(
                "The address holds a user name or a password; the service knows its clients by 'api_key'. Remove them."
            )
        if usable and (parts.query or parts.fragment):
            raise problem(f"{expected}: nothing may follow its path ('?' or '#').")
    if not usable or re.search(r"[^!-~]", text):
        raise problem(f"{expected}.")
    return text.rstrip("/")


def _api_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]+", key.get_secret_value()):
        raise problem("The API key is empty or holds a blank, a line end or a character beyond ASCII; copy it again.")
    return key


def _client_id(text: str) -> str:
    if not re.fullmatch(_CLIENT_ID, text):
        raise problem("Expected 1 to 128 visible ASCII characters without blanks.")
    return text


def _proxy(address: SecretStr) -> SecretStr:
    text = address.get_secret_value()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]", text):
        raise problem(
            "Expected a proxy's address, such as http://proxy.example:3128 or http://user:password@proxy:3128."
        )
    return address


class ServiceSettings(SettingsPart):
    """The workspace service, and how this daemon presents itself to it."""

    url: Annotated[str, AfterValidator(_service_url)] = Field(
        repr=False, description="The service's address.", examples=["http://127.0.0.1:8400"]
    )
    api_key: Annotated[SecretStr, AfterValidator(_api_key)] = Field(
        repr=False,
        description="The key that the service gave; keep it outside this file.",
        examples=["${env:INGESTD_API_KEY}", "${credential:api-key}"],
    )
    client_id: Annotated[str, AfterValidator(_client_id)] = Field(
        default_factory=lambda: client_id_of(socket.gethostname()),
        repr=False,
        description="The name by which subscribers recognise what this daemon wrote; the host's name where it is left out.",
        examples=["bench-3"],
    )
    connect_timeout_seconds: float = Field(
        default=5.0, gt=0, le=_SECONDS_AT_MOST, description="How long a connection may take to come about."
    )
    read_timeout_seconds: float = Field(
        default=30.0, gt=0, le=_SECONDS_AT_MOST, description="How long the service may be silent while it answers."
    )
    write_timeout_seconds: float = Field(
        default=30.0, gt=0, le=_SECONDS_AT_MOST, description="How long sending may stand still."
    )
    proxy: Annotated[SecretStr, AfterValidator(_proxy)] | None = Field(
        default=None,
        repr=False,
        description="A proxy on the way to the service, with user and password where it asks for them. The environment's "
        "HTTP_PROXY is not looked at.",
        examples=["http://proxy.example:3128"],
    )
    ca_file: Path | None = Field(
        default=None,
        repr=False,
        description="Whose certificates are trusted: a PEM file, instead of the usual authorities.",
        examples=["company-ca.pem"],
    )
    client_certificate: Path | None = Field(
        default=None, repr=False, description="A certificate that shows the service who we are (PEM)."
    )
    client_key: Path | None = Field(
        default=None,
        repr=False,
        description="The key of client_certificate, where it stands in a file of its own (PEM).",
    )
    client_key_password: SecretStr | None = Field(
        default=None, repr=False, description="The password of the key, where it is encrypted."
    )
    requests_at_most: int = Field(
        default=32,
        ge=1,
        le=256,
        description="How many requests may be under way at once. It begins with one and finds by itself how many are best.",
    )
    retry_after_at_most_seconds: float = Field(
        default=300.0,
        gt=0,
        le=86_400.0,
        description="How long a wait that the service asks for (Retry-After) is kept at the most.",
    )
    gather_seconds: float = Field(
        default=0.0,
        ge=0,
        le=60,
        description="How long to wait for more entries before the first of a batch is sent; 0: what is there goes at once.",
    )
    compress: Literal["auto", "never"] = Field(
        default="auto",
        description="Bodies by gzip: auto (to a service that takes it and is not on this machine) or never.",
    )
    update_with: UpdateWith = Field(
        default="mass",
        description="How an entry is updated where the service takes no batches: mass or patch (the document has both).",
    )
    missing_sink: Literal["create", "stop"] = Field(
        default="create",
        description="When somebody has deleted a sink: create it again with all its entries, or stop and say so.",
    )

    _api_key_source: RepeatedSecret | None = PrivateAttr(default=None)

    def read_api_key(self) -> SecretStr:
        """The API key as it is now: a file that it is kept in may have changed since the configuration was read.

        Raises:
            PlaceholderError: the file can't be read.
            ValueError: what it holds can't be a key.
        """
        if self._api_key_source is None:
            return self.api_key
        return _api_key(SecretStr(self._api_key_source.read()))

    @model_validator(mode="after")
    def _key_belongs_to_a_certificate(self) -> Self:
        if self.client_certificate is None and (self.client_key is not None or self.client_key_password is not None):
            raise problem("A client key needs the certificate it belongs to: set 'client_certificate', too.")
        return self
