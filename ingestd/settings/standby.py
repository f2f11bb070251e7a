"""Settings of a standby: its lease and its shipments."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import problem

_KEY_BYTES = 32


def read_encryption_key(key: SecretStr) -> bytes:
    """Return the bytes of an encryption key.

    Raises:
        ValueError: the key is not 32 bytes in base64.
    """
    try:
        found = base64.b64decode(key.get_secret_value(), validate=True)
    except binascii.Error:
        raise ValueError("it is no base64") from None
    if len(found) != _KEY_BYTES:
        raise ValueError(f"it has {len(found)} bytes")
    return found


def _check_key(key: SecretStr) -> SecretStr:
    try:
        read_encryption_key(key)
    except ValueError as error:
        raise problem(f"Expected 32 bytes in base64, such as of 'openssl rand -base64 32', but {error}.") from None
    return key


class StandbySettings(SettingsPart):
    """How several daemons share a configuration with `ingestd run --standby`."""

    lease_seconds: int = Field(
        default=10,
        ge=2,
        le=600,
        description="How long the active daemon may be unreachable before a standby takes over.",
    )
    ship_seconds: float = Field(
        default=30.0, ge=1, le=3_600, description="How often the changes of the state file are shipped."
    )
    keep: int = Field(default=3, ge=1, le=1_000, description="How many shipments are kept.")
    encryption_key: Annotated[SecretStr, AfterValidator(_check_key)] | None = Field(
        default=None,
        description="Encrypts the shipments by AES-256-GCM: 32 bytes in base64, such as ${file:/etc/ingestd/standby.key}. All "
        "hosts need the same key. Default: no encryption.",
    )
    endpoint: str = Field(
        default="",
        description="s3: the address of your own server, such as https://minio.example. Default: the provider's.",
    )
    region: str = Field(default="us-east-1", description="s3: the region of the bucket.")
    access_key: str = Field(
        default="", description="s3: the ID of the access key. Default: from the environment or the machine's identity."
    )
    secret_key: SecretStr | None = Field(default=None, description="s3: the secret of access_key.")
