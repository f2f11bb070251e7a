"""The settings of the service, including every limit that a client can reach."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingestd.process.postgres_address import PostgresAddress
from workspaced.security.egress.rules import EgressRules
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.workers import ConversionSettings, DeliverySettings, whole_numbers
from workspaced.storage.address import Address, sqlite_address
from workspaced.storage.blobs.address import BucketAddress

MOST_CHANGES: Final = 1_000
MOST_DAYS: Final = 3_650
MOST_KEY_DAYS: Final = 36_500
_PUBLIC_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.IGNORECASE)
_PREFIX = re.compile(r"[A-Za-z]{1,8}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """The default history of sinks: at most ``changes`` changes of each entry (0: none) are kept for ``days`` days."""

    changes: int = 0
    days: int = 90

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> HistorySettings:
        """Return the defaults, replaced by ``WORKSPACED_HISTORY_CHANGES`` and ``WORKSPACED_HISTORY_DAYS``.

        Raises:
            ValueError: a value is not a whole number, or is out of range; the sentence names the variable.
        """
        lowest, highest = {"changes": 0, "days": 1}, {"changes": MOST_CHANGES, "days": MOST_DAYS}
        return cls(**whole_numbers(environment, "WORKSPACED_HISTORY_", lowest, highest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of requests (contract G8, G9, G19, G35, M3). Lengths are in code points, unless the name contains ``bytes``.

    A quota or a rate (``…_per_…``) of 0 means no limit. Processes that share a PostgreSQL database count rates together; with
    SQLite, each process counts separately.
    """

    label_length: int = 255
    description_length: int = 10_000
    tags_length: int = 1_024
    key_length: int = 255
    key_bytes: int = 1_024
    value_bytes: int = 65_536
    data_type_length: int = 64
    icon_bytes: int = 4_096
    client_id_length: int = 128
    statuses: int = 1_000
    status_length: int = 2_048
    block_text_length: int = 2_048
    block_list_items: int = 1_000
    block_list_item_length: int = 2_048
    block_depth: int = 64
    body_bytes: int = 1_048_576
    bulk_body_bytes: int = 16_777_216
    bulk_items: int = 5_000
    bulk_origins: int = 1_000
    origin_length: int = 255
    origin_link_length: int = 2_048
    new_sink_entries: int = 5_000
    page_length: int = 1_000
    walked_rows: int = 50_000
    searched_characters: int = 16_777_216
    requests_per_minute: int = 1_200
    request_burst: int = 200
    failed_authentications_per_minute: int = 20
    key_days: int = 365
    deleted_days: int = 30
    audit_days: int = 400
    webhook_url_length: int = 2_048
    webhook_headers: int = 20
    webhook_header_length: int = 2_048
    webhook_list_items: int = 1_000
    webhooks_per_owner: int = 50
    sinks_per_workspace: int = 10_000
    blocks_per_workspace: int = 100_000
    entries_per_sink: int = 5_000_000
    page_session_hours: int = 12
    live_streams: int = 64
    live_streams_per_key: int = 16
    live_streams_per_address: int = 32
    connections: int = 2_000
    connections_per_address: int = 256
    head_seconds: int = 15
    idle_seconds: int = 75
    stall_seconds: int = 20
    least_bytes_per_second: int = 512
    head_bytes: int = 32_768
    header_lines: int = 100
    target_bytes: int = 8_192
    streams_per_key: int = 8
    spool_bytes: int = 1_073_741_824
    files_per_workspace: int = 100_000
    file_bytes_per_workspace: int = 0
    versions_per_file: int = 1_000
    file_bytes: int = 2_147_483_648
    file_name_length: int = 255
    metadata_bytes: int = 65_536
    metadata_depth: int = 16
    upload_link_minutes: int = 15

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Limits:
        """Return the defaults, replaced by the variables ``WORKSPACED_<NAME>``.

        Raises:
            ValueError: a value is not a whole number, or is out of range; the sentence names the variable.
        """
        lowest = {field.name: 0 if "_per_" in field.name else 1 for field in dataclasses.fields(cls)}
        return cls(**whole_numbers(environment, "WORKSPACED_", lowest, {"key_days": MOST_KEY_DAYS}))

    @property
    def compared_changes(self) -> int:
        """How many changes a page of a comparison may examine. One change costs as much as about four entries of a search."""
        return min(self.walked_rows, 20_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspacedSettings:
    """The settings of one service. ``data`` is the folder of its files and its SQLite database.

    Each field except ``data`` has an environment variable (`workspaced.settings.environment`). At most ``group_callers``
    writes share a commit. ``log_requests``: log successful requests, too. ``drain_seconds``: how long requests are accepted
    after SIGTERM, so that a proxy has time to see that /readyz is 503. ``visible_id_prefix`` empty: the prefix with which the
    data was created, or SNK. ``public_url`` is the beginning of upload links; empty: the scheme and host of the caller's
    request. ``lost_encryption_key`` is the fingerprint of the lost key that ``encryption_key`` replaces.
    """

    data: Path
    limits: Limits = dataclasses.field(default_factory=Limits)
    egress: EgressRules = dataclasses.field(default_factory=EgressRules)
    deliveries: DeliverySettings = dataclasses.field(default_factory=DeliverySettings)
    conversion: ConversionSettings = dataclasses.field(default_factory=ConversionSettings)
    history: HistorySettings = dataclasses.field(default_factory=HistorySettings)
    encryption_key: bytes | None = dataclasses.field(default=None, repr=False)
    lost_encryption_key: str = ""
    visible_id_prefix: str = ""
    proxies: Proxies = dataclasses.field(default_factory=Proxies)
    icon_as_text: bool = False
    mass_creates: bool = True
    docs: bool = True
    key_cache_seconds: float = 1.0
    idempotency_hours: float = 24.0
    busy_seconds: float = 5.0
    maintenance_seconds: float = dataclasses.field(
        default=3_600.0, metadata={"variable": "WORKSPACED_MAINTENANCE_SECONDS"}
    )
    readers: int = 4
    streams: int = 16
    group_callers: int = 256
    log_requests: bool = False
    drain_seconds: float = 0.0
    public_url: str = ""
    postgres: PostgresAddress | None = None
    bucket: BucketAddress | None = None

    @property
    def blobs(self) -> Path | BucketAddress:
        """The store of the bytes of files: the bucket if it is set, else the folder."""
        return self.bucket or self.blob_folder

    @property
    def blob_folder(self) -> Path:
        """The folder of the bytes of files if there is no bucket. Uploads are received below this folder in both cases."""
        return self.data / "blobs"

    @property
    def database_kind(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return "postgresql" if self.postgres else "sqlite"

    @property
    def database(self) -> Address:
        """The address of the database: a SQLite file in the data folder, unless PostgreSQL is set."""
        return self.postgres or sqlite_address(self.data)


def visible_id_prefix(environment: Mapping[str, str]) -> str:
    """Return ``WORKSPACED_VISIBLE_ID_PREFIX`` in upper case; empty if it is not set.

    Raises:
        ValueError: the value is not one to eight letters.
    """
    text = environment.get("WORKSPACED_VISIBLE_ID_PREFIX", "")
    if text and not _PREFIX.fullmatch(text):
        raise ValueError(f"WORKSPACED_VISIBLE_ID_PREFIX is '{text}', but must be one to eight letters A-Z.")
    return text.upper()


def public_url(environment: Mapping[str, str]) -> str:
    """Return ``WORKSPACED_PUBLIC_URL`` without a slash at its end; empty if it is not set.

    Raises:
        ValueError: the value is not an http or https URL, or has a user name, a query or a fragment.
    """
    text = environment.get("WORKSPACED_PUBLIC_URL", "").rstrip("/")
    if text and not _PUBLIC_URL.fullmatch(text):
        raise ValueError(f"WORKSPACED_PUBLIC_URL is '{text}', but must be like https://data.example.org.")
    return text
