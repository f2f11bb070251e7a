"""The options of the opcua connector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.opcua.node_names import BrowsePattern, NodeName
from connectors.option_types import ConnectorOptions, as_tuple, checked_by, split_address

Policy: TypeAlias = Literal["Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"]

PAUSE_SECONDS = 5.0
"""The time for which a source waits after a failed connection or request."""

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def _parse_patterns(browse: str | list[str]) -> list[BrowsePattern]:
    return [BrowsePattern.parse(text) for text in as_tuple(browse)]


def _check_url(url: str) -> None:
    parts = split_address(url, ("opc.tcp",), credentials="user and password")
    if parts.query or parts.fragment:
        raise ValueError("an address has a host, a port and a path only")


class OpcuaOptions(ConnectorOptions):
    """Variables of an OPC UA server."""

    url: Annotated[str, checked_by(_check_url)] = Field(
        description="The server: opc.tcp://host:4840/path. Without credentials."
    )
    nodes: Annotated[list[Annotated[str, checked_by(NodeName.parse)]], Field(max_length=100_000)] = Field(
        default_factory=list,
        description=(
            "Variables by node id, with the URI of the namespace: nsu=urn:line-1;s=Temperature. The number of a namespace"
            " (ns=2) may change when the server restarts, so it is refused."
        ),
    )
    browse: Annotated[str | Annotated[list[str], Field(max_length=100)], checked_by(_parse_patterns)] = Field(
        default_factory=list,
        description=(
            "Variables by their path of browse names below Objects, such as Line1/Oven/*. The wildcard * is any part of a"
            " name, ** any number of levels."
        ),
    )
    mode: Literal["subscribe", "poll"] = Field(
        default="subscribe",
        description=(
            "subscribe: the server reports which variables have changed. poll: all variables are read every sampling seconds,"
            " or at the times of the pipeline's schedule."
        ),
    )
    sampling: float = Field(
        default=1.0,
        ge=0.05,
        le=86_400,
        description="How often, in seconds, the server looks for changes (subscribe), or variables are read (poll).",
    )
    deadband: float = Field(
        default=0.0,
        ge=0,
        description="subscribe: the server reports a number only if it changed by more than this. Complete readings ignore it.",
    )
    full_seconds: float = Field(
        default=600.0,
        ge=1,
        le=86_400,
        description="subscribe: all variables are read again after this number of seconds, and after each connection.",
    )
    security: Literal["auto", "none"] | Policy = Field(
        default="auto",
        description=(
            "auto: the strongest policy that the server offers, signed and encrypted, never none. Or the name of a policy. none:"
            " neither signed nor encrypted."
        ),
    )
    trust: Annotated[list[str], Field(max_length=20)] = Field(
        default_factory=list,
        description="Fingerprints (SHA-256) of certificates of the server. `ingestd check` shows the fingerprint of the server.",
    )
    certificate: Literal["keep"] | Path = Field(
        default="keep",
        description=(
            "keep: a certificate of this source, made at the first connection and kept beside the state file. Or a file with"
            " a certificate, as PEM or DER."
        ),
    )
    key_file: Path | None = Field(
        default=None, description="The private key of a certificate in a file, as PEM or DER."
    )
    user: str = Field(default="", description="The user name; empty: anonymous.")
    password: SecretStr = Field(default=SecretStr(""), description="The password; empty: none.")
    bad_quality: Literal["reject", "missing"] = Field(
        default="reject",
        description=(
            "A variable with a bad status. reject: it is rejected with its status, and its last good value stays. missing:"
            " its record has no value."
        ),
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "remove: entries of variables that browse no longer finds, or that nodes no longer names, are removed. A rejected"
            " variable keeps its entry."
        ),
    )
    timestamps: bool = Field(
        default=False,
        description=(
            "Whether a record also has the field timestamp, the time of the value at its source. With it, each"
            " reading of a variable is a change."
        ),
    )
    timeout_seconds: float = Field(default=10.0, ge=0.5, le=120, description="How long a response may take.")
    max_nodes: int = Field(
        default=20_000,
        ge=1,
        le=200_000,
        description=("The maximum number of variables; with more, the reading is refused."),
    )

    @field_validator("trust")
    @classmethod
    def _check_trust(cls, fingerprints: list[str]) -> list[str]:
        plain = [one.replace(":", "").replace(" ", "").lower() for one in fingerprints]
        for given, one in zip(fingerprints, plain, strict=True):
            if not _FINGERPRINT.fullmatch(one):
                raise ValueError(f"{given!r} is no SHA-256 fingerprint; it has 64 hexadecimal digits")
        return plain

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.nodes and not self.browse:
            raise ValueError("set nodes, browse or both")
        if self.password.get_secret_value() and not self.user:
            raise ValueError("password needs user")
        if self.user and self.security == "none":
            raise ValueError("user needs another security than none: none would send the password readable")
        if (self.key_file is None) != (self.certificate == "keep"):
            raise ValueError("certificate and key_file are set together")
        if self.deadband and self.mode == "poll":
            raise ValueError("deadband needs mode: subscribe; the pipeline's own deadband is for every source")
        return self

    @property
    def patterns(self) -> list[BrowsePattern]:
        """The parsed patterns of ``browse``."""
        return _parse_patterns(self.browse)

    @property
    def address(self) -> str:
        """Host, port and path of the server without ``opc.tcp://``, as shown to users."""
        parts = urlsplit(self.url)
        place = parts.netloc.lower() if parts.port else f"{parts.netloc.lower().rstrip(':')}:4840"
        return f"{place}{parts.path.rstrip('/')}"
