"""The options of the mqtt connector, and topic filters with named levels: ``bench/{bench}/+`` matches like ``bench/+/+``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec
from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.formats.csv import Csv
from connectors.formats.fixed_width import FixedWidth
from connectors.formats.json import Json
from connectors.formats.ndjson import Ndjson
from connectors.formats.xml import Xml
from connectors.option_types import CaFile, ConnectorOptions, checked_by, split_address

PayloadFormat: TypeAlias = Annotated[Csv | Ndjson | Json | FixedWidth | Xml, Field(discriminator="type")]

Version: TypeAlias = Literal["5", "3.1.1"]

LARGEST_PAYLOAD = 16 * 2**20
_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_BYTES = 65_535


class TopicFilter(msgspec.Struct, frozen=True):
    """A topic filter. ``subscribed``: the filter for the broker. ``names``: the name of each level, or an empty text."""

    subscribed: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TopicFilter:
        """Parse the text of a setting. Raise `ValueError` if it is not a topic filter."""
        levels, names = [], []
        for level in text.split("/"):
            named = _NAMED.fullmatch(level)
            if named is None and ("{" in level or "}" in level):
                raise ValueError(f"the level {level!r} of {text!r} must be one name in braces, such as {{bench}}")
            if len(level) > 1 and ("+" in level or "#" in level):
                raise ValueError(f"the level {level!r} of {text!r} has a wildcard, which must be a whole level")
            levels.append("+" if named is not None else level)
            names.append(named[1] if named is not None else "")
        if "#" in levels[:-1]:
            raise ValueError(f"{text!r} has # before its end")
        if levels[0] in {"$share", "$queue"}:
            raise ValueError(
                f"{text!r} is a shared subscription, which has no order; subscribe to the topics themselves"
            )
        given = [name for name in names if name]
        if len(set(given)) < len(given):
            raise ValueError(f"{text!r} has a name twice")
        subscribed = "/".join(levels)
        if not subscribed or "\0" in subscribed or len(subscribed.encode()) > _MOST_BYTES:
            raise ValueError(f"{text[:100]!r} is no topic filter: it must have 1 to {_MOST_BYTES} bytes, without NUL")
        return cls(subscribed, tuple(names))

    def match(self, topic: str) -> dict[str, str] | None:
        """Return the named levels of a topic, by name; None if the filter does not match the topic."""
        levels, wanted = topic.split("/"), self.subscribed.split("/")
        if wanted[-1] == "#":
            wanted.pop()
            if len(levels) < len(wanted):
                return None
        elif len(levels) != len(wanted):
            return None
        if topic.startswith("$") and self.subscribed[0] in "+#":
            return None
        if any(want not in {"+", level} for want, level in zip(wanted, levels, strict=False)):
            return None
        return {name: level for name, level in zip(self.names, levels, strict=False) if name}


def topic_facts(filters: Sequence[TopicFilter], topic: str) -> Mapping[str, str] | None:
    """Return the facts of a topic according to the first matching filter; None if no filter matches."""
    for one in filters:
        parts = one.match(topic)
        if parts is not None:
            return {"mqtt.topic": topic, **{f"mqtt.part.{name}": level for name, level in parts.items()}}
    return None


class TopicOptions(ConnectorOptions):
    """A subscription."""

    filter: Annotated[str, checked_by(TopicFilter.parse)] = Field(
        description=(
            "The topic filter, with the wildcards + and #. A level in braces, as in bench/{bench}/+, matches like + and names the"
            " level: the mapping uses it as {mqtt.part.bench}."
        )
    )
    qos: int = Field(
        default=1,
        ge=0,
        description="1: the broker repeats a message until ingestd has stored it. 0: it is sent at most once.",
    )

    @field_validator("qos")
    @classmethod
    def _check_qos(cls, qos: int) -> int:
        if qos > 1:
            raise ValueError(
                "qos must be 0 or 1: the MQTT library acknowledges messages with qos 2 before they are stored, so a crash"
                " would lose them. Use 1; a repeated message is recognized"
            )
        return qos


def _check_url(url: str) -> None:
    parts = split_address(url, ("mqtt", "mqtts"), credentials="user and password")
    try:
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ValueError(f"{url!r} is no address: {error}") from None
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("an address has a host and a port only; the topics are set by topics")


class MqttOptions(ConnectorOptions):
    """Topics of an MQTT broker."""

    url: Annotated[str, checked_by(_check_url)] = Field(
        description="The broker: mqtt://host:1883, or mqtts://host:8883 for TLS. Without credentials and path."
    )
    topics: Annotated[list[TopicOptions], Field(min_length=1, max_length=100)] = Field(
        description="The subscriptions, at most 100. If several filters match a topic, the first one names its levels."
    )
    payload: Literal["json", "text"] | PayloadFormat = Field(
        default="json",
        description=(
            "json: an object is a record, and any other value but an array is the field value. text: the payload is the field"
            " value. Or a format with its type, such as {type: csv}: each payload is a file with any number of records."
        ),
    )
    acknowledge: Literal["stored", "delivered"] = Field(
        default="stored",
        description=(
            "stored: the broker forgets a message when its records are in the state file. delivered: when the service has the"
            " records, so that the loss of this machine loses nothing. Set client_id then, so that another"
            " machine continues the session."
            " `ingestd sync` acknowledges what is stored."
        ),
    )
    retained: Literal["take", "ignore"] = Field(
        default="take",
        description=(
            "take: the broker sends the retained message of each topic when a subscription is new, or was lost. ignore: only"
            " messages that are published later are read."
        ),
    )
    session_expiry: int = Field(
        default=604_800,
        ge=60,
        lt=2**32 - 1,
        description="For how many seconds the broker keeps messages while the source is not connected; a broker may limit it.",
    )
    client_id: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        default="auto",
        description="The name of the session at the broker. auto: a random name, which is kept beside the state file.",
    )
    sync_seconds: float = Field(
        default=5,
        gt=0,
        le=3600,
        description="`ingestd sync` ends the reading after this number of seconds without a message.",
    )
    version: Literal["auto"] | Version = Field(
        default="auto",
        description=(
            "The version of MQTT. auto: 5, or 3.1.1 if the broker refuses 5. With 3.1.1 the broker alone decides how long it"
            " keeps a session, how many messages it sends before the first is acknowledged, and why it refuses."
        ),
    )
    user: str = Field(default="", description="The user name; empty: none.")
    password: SecretStr = Field(default=SecretStr(""), description="The password; empty: none.")
    ca_file: CaFile = None
    max_payload_bytes: int = Field(
        default=2**20, ge=1, le=LARGEST_PAYLOAD, description="A message with a larger payload is rejected."
    )

    @field_validator("version", mode="before")
    @classmethod
    def _take_number(cls, version: object) -> object:
        return str(version) if isinstance(version, int) else version  # YAML reads 5 as a number

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        filters = [one.subscribed for one in self.filters]
        if len(set(filters)) < len(filters):
            raise ValueError("two topics have the same filter")
        if self.password.get_secret_value() and not self.user:
            raise ValueError("password needs user")
        if self.ca_file is not None and not self.is_secure:
            raise ValueError("ca_file needs an address with mqtts://")
        return self

    @property
    def filters(self) -> tuple[TopicFilter, ...]:
        """The parsed filters, in the order of the topics."""
        return tuple(TopicFilter.parse(one.filter) for one in self.topics)

    @property
    def is_secure(self) -> bool:
        """True if the connection uses TLS."""
        return self.url.startswith("mqtts:")

    @property
    def host(self) -> str:
        """The host name of the broker."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port of the broker."""
        return urlsplit(self.url).port or (8883 if self.is_secure else 1883)

    @property
    def address(self) -> str:
        """Host and port of the broker, as shown to users."""
        return f"{self.host}:{self.port}"
