"""The options of the database connector."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

_Column = Annotated[str, Field(min_length=1)]


class DatabaseOptions(BaseModel):
    """A table or a query of one database."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr = Field(
        description=(
            "The address of the database: sqlite:///file.db (relative to the configuration file's folder; four slashes for an"
            " absolute path) or postgresql://user:password@host:5432/database."
        )
    )
    table: _Column | None = Field(
        default=None, description="A table or view, with its schema and a dot before it if needed."
    )
    query: _Column | None = Field(default=None, description="A SELECT, instead of a table.")
    mode: Literal["snapshot", "incremental"] = Field(
        default="snapshot", description="Read everything each time, or only rows from the last cursor value on."
    )
    cursor: _Column | None = Field(
        default=None, description="Incremental: the column that grows with every change, such as updated_at."
    )
    key: _Column | Annotated[list[_Column], Field(min_length=1)] | None = Field(
        default=None, description="The column or columns that identify a row; required for incremental."
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep", description="Snapshot: whether entries of rows that vanished are removed."
    )
    batch_rows: int = Field(default=50_000, gt=0, description="The number of rows in a batch.")
    connect_timeout_seconds: int = Field(default=10, ge=1, description="How long to wait for a connection.")
    statement_timeout_seconds: float = Field(
        default=300, gt=0, description="How long the database may work on one request before it is canceled."
    )

    @property
    def keys(self) -> tuple[str, ...]:
        """The key's columns, always as a tuple; empty without a key."""
        if self.key is None:
            return ()
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    def address(self) -> URL:
        """Return the URL in its parts."""
        return make_url(self.url.get_secret_value())

    @field_validator("url")
    @classmethod
    def _known_database(cls, url: SecretStr) -> SecretStr:
        try:
            parts = make_url(url.get_secret_value())
        except (ArgumentError, ValueError):  # its message would show the password
            raise ValueError("this is no database URL; write postgresql://user:password@host/database") from None
        backend = parts.get_backend_name()
        if backend not in {"sqlite", "postgresql"}:
            raise ValueError(f"{backend} databases are not known; known are sqlite and postgresql")
        if backend == "sqlite" and parts.database in {None, "", ":memory:"}:
            raise ValueError("name the database file, as in sqlite:///file.db")
        return url

    @property
    def incremental(self) -> bool:
        """True if a reading has only the rows after the cursor."""
        return self.mode != "snapshot"

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either table or query")
        if self.mode == "incremental":
            if self.cursor is None or self.key is None:
                raise ValueError(
                    "mode: incremental needs cursor (a column that grows) and key (columns that identify a row)"
                )
            if self.deletes == "remove":
                raise ValueError("deletes: remove needs mode: snapshot; rows that vanish can't be seen incrementally")
        elif self.cursor is not None:
            raise ValueError("cursor is for mode: incremental")
        return self
