"""The options of the database connector."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.database.address import Address, parse_address, parse_table
from connectors.option_types import ConnectorOptions, as_tuple, checked_by

_Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]+$")]

LONGEST_NAME = 63
"""PostgreSQL's limit for names, in bytes."""


class DatabaseOptions(ConnectorOptions):
    """A table or a query of one database."""

    url: SecretStr = Field(
        description=(
            "The address of the database: sqlite:///file.db (relative to the configuration file's folder; four slashes for an"
            " absolute path), postgresql://user:password@host:5432/database, mariadb://user:password@host:3306/database,"
            " mssql://user:password@host:1433/database or oracle://user:password@host:1521/service."
        )
    )
    table: Annotated[_Text, checked_by(parse_table)] | None = Field(
        default=None,
        description=(
            "A table or view, with its schema and a dot before it if needed. Upper and lower case are kept. A part that holds a"
            ' dot is in quotes: "My Schema"."Part.List".'
        ),
    )
    query: _Text | None = Field(default=None, description="A SELECT, instead of a table.")
    mode: Literal["snapshot", "changes"] = Field(
        default="snapshot",
        description=(
            "Read everything each time, or only the rows that may have changed; `ingestd check` reports what that guarantees."
        ),
    )
    cursor: _Text | None = Field(
        default=None,
        description=(
            "Changes: the column with the time of a row's last change, such as updated_at. A PostgreSQL or Oracle table and a"
            " SQLite file need none; SQL Server needs a column of the type rowversion."
        ),
    )
    cursor_timezone: _Text | None = Field(
        default=None, description="Changes: the time zone of cursor if its values have none (default: the server's)."
    )
    slack_seconds: float = Field(
        default=10, ge=0, description="Changes: how far the clocks that set cursor may differ from the server's."
    )
    lag_seconds: float | None = Field(
        default=None,
        gt=0,
        description=(
            "Changes: how long a row may remain invisible after its cursor was set (default: 300). It is used only if the"
            " running transactions can't be listed, or if cursor is a number."
        ),
    )
    sweep_seconds: float = Field(
        default=3600,
        ge=0,
        description=(
            "Changes: the interval of sweeps, which find deleted rows and changed keys. A sweep reads the keys and compares row"
            " hashes; 0: none."
        ),
    )
    whole_seconds: float = Field(
        default=604_800,
        ge=0,
        description="Changes: the interval in which a sweep reads everything (default: a week); 0: only when needed.",
    )
    key: _Text | Annotated[list[_Text], Field(min_length=1)] | None = Field(
        default=None, description="The column or columns that identify a row; required for changes."
    )
    notify: _Text | None = Field(
        default=None,
        description=(
            "PostgreSQL: a channel of NOTIFY. A notification starts a reading at once; the schedule remains."
            " `ingestd database sql` prints a trigger that notifies."
        ),
    )
    notify_url: SecretStr | None = Field(
        default=None,
        description="The server's own address for notify, if url is the address of a pooler such as PgBouncer.",
    )
    slot: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9_]{1,63}$",
        description=(
            "Changes of a PostgreSQL table: a logical replication slot with pgoutput, which also finds removed rows. `ingestd"
            " database sql` prints how it is created. One source reads one slot."
        ),
    )
    publication: _Text | None = Field(default=None, description="The publication of the table; required for slot.")
    slot_bytes: int = Field(
        default=1024**3,
        gt=0,
        description="The maximum unread log in slot. If there is more, the slot is skipped and the table is read whole.",
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep", description="Whether entries of rows that vanished are removed."
    )
    binary: Literal["keep", "hex", "base64", "reject"] = Field(
        default="keep",
        description=(
            "Bytes: keep the database's own text if it has one (PostgreSQL: \\x00ff) and reject the row otherwise, write them in"
            " hexadecimal or base64, or reject the row."
        ),
    )
    char_padding: Literal["keep", "trim"] = Field(
        default="keep",
        description="Spaces at the end of char(n) columns: keep them as the database returns them, or trim.",
    )
    money: Literal["keep", "number"] = Field(
        default="keep",
        description="PostgreSQL's money: keep the text in the server's locale ($1,234.50), or write the number (1234.50).",
    )
    nan: Literal["keep", "empty", "reject"] = Field(
        default="keep",
        description="NaN and infinite numbers: keep the database's text, read no value, or reject the row.",
    )
    batch_rows: int = Field(default=50_000, gt=0, description="The largest number of rows in a batch.")
    batch_bytes: int = Field(
        default=16 * 1024 * 1024,
        gt=0,
        description="The size of a batch in bytes of text. A batch ends with the row that exceeds it.",
    )
    spool_bytes: int = Field(
        default=2 * 1024**3,
        gt=0,
        description=(
            "SQLite without WAL: the largest file that is copied to the system's temporary folder for a reading, so that it is"
            " locked during the copy only."
        ),
    )
    connect_timeout_seconds: int = Field(default=10, ge=1, description="How long to wait for a connection.")
    lock_timeout_seconds: float = Field(
        default=30, gt=0, description="How long a reading may wait for a lock that another program holds."
    )
    statement_timeout_seconds: float = Field(
        default=300, gt=0, description="How long the database may send nothing before the reading is canceled."
    )
    read_timeout_seconds: float = Field(default=21_600, gt=0, description="How long one whole reading may take.")

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the setting ``key`` as a tuple; empty without a key."""
        return as_tuple(self.key)

    def address(self) -> Address:
        """Return the parts of the URL."""
        return parse_address(self.url.get_secret_value())

    @field_validator("url")
    @classmethod
    def _known_database(cls, url: SecretStr) -> SecretStr:
        address = parse_address(url.get_secret_value())
        if address.family == "sqlite" and address.database in {"", ":memory:"}:
            raise ValueError("name the database file, as in sqlite:///file.db")
        return url

    @property
    def incremental(self) -> bool:
        """True with ``mode: changes``: most readings yield only changed rows. The checks of groups and guards use this."""
        return self.mode != "snapshot"

    @field_validator("notify_url")
    @classmethod
    def _known_server(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and parse_address(url.get_secret_value()).family != "postgresql":
            raise ValueError("notify_url is for PostgreSQL")
        return url

    @field_validator("notify")
    @classmethod
    def _known_channel(cls, channel: str | None) -> str | None:
        if channel is not None and len(channel.encode()) > LONGEST_NAME:
            raise ValueError(f"the name of a channel has at most {LONGEST_NAME} bytes")
        return channel

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either table or query")
        if self.incremental and self.key is None:
            raise ValueError(f"mode: {self.mode} needs key (the columns that identify a row)")
        if self.notify is not None and self.address().family != "postgresql":
            raise ValueError("notify is for PostgreSQL")
        if self.notify_url is not None and self.notify is None:
            raise ValueError("notify_url is for notify")
        if (self.slot is None) != (self.publication is None):
            raise ValueError("slot needs publication, and publication needs slot")
        if self.slot is not None and (
            self.address().family != "postgresql" or self.table is None or not self.incremental
        ):
            raise ValueError("slot is for mode: changes of a table of PostgreSQL")
        if self.cursor is not None and not self.incremental:
            raise ValueError("cursor is for mode: changes")
        return self
