"""Which database: a SQLite file, or one of a PostgreSQL server by URL. Pure, and knows no driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

_SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A database of a PostgreSQL server. Shown it has no password: not in a log, a message or a repr."""

    shown: str
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    """Libpq's parameters. What is not among them libpq takes from PGPASSWORD, PGSSLMODE…, and ~/.pgpass."""

    def __str__(self) -> str:
        return self.shown


Address: TypeAlias = Path | PostgresAddress


def sqlite_address(data: Path) -> Path:
    """The file in a data folder."""
    return data / "workspaced.db"


def address_of(data: Path, url: str) -> Address:
    """What holds the records of a data folder: where no URL is given, its SQLite file.

    Raises:
        ValueError: the URL is not one of a PostgreSQL database.
    """
    return postgres_address(url) if url else sqlite_address(data)


def postgres_address(url: str) -> PostgresAddress:
    """The database that a URL names (``postgresql://user@host:5432/name?sslmode=verify-full``).

    Raises:
        ValueError: it is none; the sentence does not repeat it, for it may hold a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise ValueError(f"The database's URL can't be read. {_FORM}") from error
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in _SCHEMES or not name or "/" in name or parts.fragment:
        raise ValueError(f"The database's URL must name a database of a PostgreSQL server. {_FORM}")
    parameters = {
        "host": unquote(host),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": name,
        **dict(given),
    }
    user = f"{unquote(parts.username)}@" if parts.username else ""
    place = f"[{host}]" if ":" in host else unquote(host)
    return PostgresAddress(
        shown=f"postgresql://{user}{place}{f':{port}' if port else ''}/{name}",
        parameters=tuple((key, value) for key, value in parameters.items() if value),
    )


_FORM = (
    "It looks like postgresql://user@host:5432/name; a password in it needs its special characters escaped (%40 for @), "
    "or stays out of it: in PGPASSWORD or ~/.pgpass."
)
