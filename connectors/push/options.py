"""The options of the push connector."""

from __future__ import annotations

import base64
import binascii
from ipaddress import ip_address
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.formats import FormatSetting

_MODEL = ConfigDict(extra="forbid", frozen=True, defer_build=True)
_MIN_SECRET = 16
_PREFIX = "whsec_"


class BearerToken(BaseModel):
    """Each request has the header ``Authorization: Bearer TOKEN``."""

    model_config = _MODEL
    type: Literal["bearer"]
    token: SecretStr = Field(description="At least 16 characters; `openssl rand -hex 32` creates one.")

    @field_validator("token")
    @classmethod
    def _long_enough(cls, token: SecretStr) -> SecretStr:
        text = token.get_secret_value()
        if len(text) < _MIN_SECRET or not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("the token needs at least 16 printable ASCII characters, without blanks")
        return token


class WebhookSignature(BaseModel):
    """Each request is signed as Standard Webhooks says: the headers webhook-id, webhook-timestamp and webhook-signature.

    Svix names them svix-id, svix-timestamp and svix-signature.
    """

    model_config = _MODEL
    type: Literal["hmac"]
    secret: SecretStr | Annotated[list[SecretStr], Field(min_length=1, max_length=5)] = Field(
        description=(
            "The secret, as base64 after whsec_. Several while it is replaced: a signature by any of them is accepted."
        )
    )
    tolerance_seconds: float = Field(
        default=300, gt=0, le=3600, description="How old or early the time of a request may be."
    )

    @field_validator("secret")
    @classmethod
    def _decodable(cls, secret: SecretStr | list[SecretStr]) -> SecretStr | list[SecretStr]:
        for one in secret if isinstance(secret, list) else [secret]:
            if len(_decoded(one)) < _MIN_SECRET:
                raise ValueError("a secret is base64 of at least 16 bytes, after whsec_")
        return secret

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of the signatures."""
        return tuple(_decoded(one) for one in (self.secret if isinstance(self.secret, list) else [self.secret]))


PushAuth: TypeAlias = Annotated[BearerToken | WebhookSignature, Field(discriminator="type")]


class PushOptions(BaseModel):
    """A path at which clients send records."""

    model_config = _MODEL

    address: str = Field(
        default="127.0.0.1:8403",
        description=(
            "Where the daemon listens: an IP address and a port. Several pipelines may have one address and different paths. The"
            " listener has no TLS: beyond this machine, put a reverse proxy with TLS before it."
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
            "records: the body has records. wake: the body is ignored, and the pipelines of wakes are read now; use it for"
            " services that only report that something changed."
        ),
    )
    wakes: list[str] = Field(default_factory=list, description="wake: the names of the pipelines that are read.")
    max_body: int = Field(
        default=2**20, ge=1, le=2**26, description="The largest body, in bytes; a larger one gets status 413."
    )
    requests_per_second: float = Field(
        default=50, gt=0, le=10_000, description="More requests get status 429; twice as many may arrive at once."
    )

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str) -> str:
        host, separator, port = address.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        is_complete = separator and bare and port.isdecimal() and int(port) < 65_536
        if not is_complete or not _is_ip(bare) or (":" in bare) != host.startswith("["):
            raise ValueError(f"{address!r} is no address; write one like 127.0.0.1:8403 or [::1]:8403")
        return address

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mode == "wake") != bool(self.wakes):
            raise ValueError("mode wake and wakes belong together")
        return self


def _is_ip(host: str) -> bool:

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _decoded(secret: SecretStr) -> bytes:
    try:
        return base64.b64decode(secret.get_secret_value().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a secret is base64 of at least 16 bytes, after whsec_") from None
