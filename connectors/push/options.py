"""The options of the push connector."""

from __future__ import annotations

import base64
import binascii
from ipaddress import ip_address
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.formats import FormatSetting
from connectors.option_types import ConnectorOptions, as_tuple, checked_by

_MIN_SECRET = 16
_PREFIX = "whsec_"


def _check_token(token: SecretStr) -> None:
    text = token.get_secret_value()
    if len(text) < _MIN_SECRET or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("the token needs at least 16 printable ASCII characters, without blanks")


class BearerToken(ConnectorOptions):
    """Each request has the header ``Authorization: Bearer TOKEN``."""

    type: Literal["bearer"]
    token: Annotated[SecretStr, checked_by(_check_token)] = Field(
        description="At least 16 characters; `openssl rand -hex 32` creates one."
    )


class WebhookSignature(ConnectorOptions):
    """Each request is signed according to Standard Webhooks, in webhook-id, webhook-timestamp and webhook-signature.

    Svix names these headers svix-id, svix-timestamp and svix-signature.
    """

    type: Literal["hmac"]
    secret: SecretStr | Annotated[list[SecretStr], Field(min_length=1, max_length=5)] = Field(
        description=(
            "The secret, as base64 after whsec_. To replace it, give a list: a signature by any of these secrets is accepted."
        )
    )
    tolerance_seconds: float = Field(
        default=300, gt=0, le=3600, description="How old or early the time of a request may be."
    )

    @field_validator("secret")
    @classmethod
    def _decodable(cls, secret: SecretStr | list[SecretStr]) -> SecretStr | list[SecretStr]:
        for one in as_tuple(secret):
            if len(_decoded(one)) < _MIN_SECRET:
                raise ValueError("a secret is base64 of at least 16 bytes, after whsec_")
        return secret

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The decoded secrets, which are the keys of the signatures."""
        return tuple(_decoded(one) for one in as_tuple(self.secret))


PushAuth: TypeAlias = Annotated[BearerToken | WebhookSignature, Field(discriminator="type")]


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        is_ip = bool(ip_address(bare))
    except ValueError:
        is_ip = False
    if not is_ip or not port.isdecimal() or int(port) > 65_535 or (":" in bare) != host.startswith("["):
        raise ValueError(f"{address!r} is no address; write one like 127.0.0.1:8403 or [::1]:8403")


class PushOptions(ConnectorOptions):
    """A path at which clients send records."""

    address: Annotated[str, checked_by(_check_address)] = Field(
        default="127.0.0.1:8403",
        description=(
            "Where the daemon listens: an IP address and a port. Several pipelines may have one address and different paths. The"
            " listener has no TLS: if clients are on other machines, put a reverse proxy with TLS before it."
        ),
    )
    path: str = Field(
        description="The path of the requests, such as /bench-3.", pattern=r"^(/[A-Za-z0-9._~-]+)+$", max_length=200
    )
    auth: PushAuth = Field(description="How clients prove who they are. Every request needs it.")
    format: FormatSetting = Field(
        default=None, description="The format of the bodies; see the formats of files. Default: json."
    )
    mode: Literal["records", "wake"] = Field(
        default="records",
        description=(
            "records: the body has records. wake: the body is ignored, and the pipelines listed in wakes are read now; use it for"
            " services that only report that something changed."
        ),
    )
    wakes: list[str] = Field(default_factory=list, description="wake: the names of the pipelines that are read.")
    acknowledge: Literal["stored", "delivered"] = Field(
        default="stored",
        description=(
            "stored: a request gets its response when its records are in the state file. delivered: it gets its response when"
            " the service has the records, so that the loss of this machine loses nothing acknowledged. A client may repeat a"
            " request safely if each record has an id."
        ),
    )
    max_body: int = Field(
        default=2**20, ge=1, le=2**26, description="The largest body, in bytes; a larger body gets status 413."
    )
    requests_per_second: float = Field(
        default=50,
        gt=0,
        le=10_000,
        description="The permitted rate; requests above it get status 429. A burst may have twice this number.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mode == "wake") != bool(self.wakes):
            raise ValueError("mode: wake needs wakes, and wakes needs mode: wake")
        if self.mode == "wake" and self.acknowledge == "delivered":
            raise ValueError("mode wake stores no records, so acknowledge: delivered has no meaning there")
        return self


def _decoded(secret: SecretStr) -> bytes:
    try:
        return base64.b64decode(secret.get_secret_value().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a secret is base64 of at least 16 bytes, after whsec_") from None
