"""The address of the database: a SQLite file, or a PostgreSQL database by URL. Pure; imports no driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

_SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A PostgreSQL database. ``shown`` and repr contain no password."""

    shown: str
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    """Libpq's parameters. Libpq takes others from PGPASSWORD, PGSSLMODE…, and ~/.pgpass."""

    def __str__(self) -> str:
        return self.shown


Address: TypeAlias = Path | PostgresAddress


def sqlite_address(data: Path) -> Path:
    """Return the SQLite file of a data folder."""
    return data / "workspaced.db"


def address_of(data: Path, url: str) -> Address:
    """Return the address of the database; without a URL, the SQLite file of the data folder.

    Raises:
        ValueError: the URL does not name a PostgreSQL database.
    """
    return postgres_address(url) if url else sqlite_address(data)


def postgres_address(url: str) -> PostgresAddress:
    """Return the database that a URL names (``postgresql://user@host:5432/name?sslmode=verify-full``).

    Raises:
        ValueError: it names none; the message does not repeat the URL, which may contain a password.
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
    shown_host = f"[{host}]" if ":" in host else unquote(host)
    return PostgresAddress(
        shown=f"postgresql://{user}{shown_host}{f':{port}' if port else ''}/{name}",
        parameters=tuple((key, value) for key, value in parameters.items() if value),
    )


_FORM = (
    "An example is postgresql://user@host:5432/name. A password is better kept in PGPASSWORD or ~/.pgpass; in the URL, "
    "percent-encode its special characters (%40 for @)."
)
