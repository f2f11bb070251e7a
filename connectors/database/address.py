"""Parsers of database URLs and table names. Messages show only parts of a URL that can't be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Literal, TypeAlias, cast
from urllib.parse import parse_qsl, unquote

import msgspec

Family: TypeAlias = Literal["sqlite", "postgresql", "mariadb", "sqlserver", "oracle"]

_FAMILIES: Mapping[str, Family] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mariadb",
    "mssql": "sqlserver",
    "sqlserver": "sqlserver",
    "oracle": "oracle",
}
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9]*)(\+[a-z0-9]+)?://"
    r"((?P<user>[^:@/]*)(:(?P<password>.*?))?@)?"
    r"(?P<hosts>[^@/?]*)(/(?P<database>[^?]*))?(\?(?P<query>.*))?",
    re.DOTALL,
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\],]*)(:(?P<port>\d*))?")
_NAME = re.compile(r"[A-Za-z_]+")
_PART = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^".`]+)')
_ADVICE = (
    "this is no database URL; write postgresql://user:password@host/database, and write %40, %2F, %3A, %3F and %23 for the"
    " characters @ / : ? # of a password; the address of a SQLite file is sqlite:///file.db"
)


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a database URL.

    User and password are percent-decoded. Several hosts are separated by commas. ``query``: the settings of the driver.
    """

    scheme: str
    family: Family
    user: str
    password: str | None
    host: str
    port: str
    database: str
    query: Mapping[str, str]

    def __str__(self) -> str:
        """Return the URL without its secrets: the password, and the query, which may have a password."""
        if self.family == "sqlite":
            return f"sqlite:///{self.database}"
        hosts = self.host or self.query.get("host", "")
        named = ",".join(
            (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
            for host, port in zip_longest(hosts.split(","), self.port.split(","), fillvalue="")
        )
        login = self.user + (":***" if self.password is not None else "")
        return f"{self.scheme}://{login}{'@' if login else ''}{named}{'/' if self.database else ''}{self.database}"


def parse_address(url: str) -> Address:
    """Return the parts of a URL.

    Raises:
        ValueError: ``url`` is not the URL of a supported database. Of the URL, the message shows only the scheme.
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError(_ADVICE)
    scheme = found["scheme"]
    if scheme not in _FAMILIES:
        raise ValueError(
            f"{scheme} databases are not known; known are sqlite, postgresql, mariadb, mysql, mssql and oracle"
        )
    hosts = [_HOST.fullmatch(host) for host in found["hosts"].split(",")]
    if not all(hosts):
        raise ValueError(_ADVICE)
    named = [cast("re.Match[str]", host) for host in hosts]
    ports = [host["port"] or "" for host in named]
    return Address(
        scheme=scheme,
        family=_FAMILIES[scheme],
        user=unquote(found["user"] or ""),
        password=None if found["password"] is None else unquote(found["password"]),
        host=",".join(unquote(host["host"]).strip("[]") for host in named),
        port=",".join(ports) if any(ports) else "",
        database=found["database"] or "",
        query=_settings(found["query"]),
    )


def _settings(query: str | None) -> Mapping[str, str]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise ValueError(_ADVICE) from None
    if not all(_NAME.fullmatch(name) for name, _ in pairs):
        raise ValueError(_ADVICE)
    return dict(pairs)


def parse_table(text: str) -> tuple[str, ...]:
    """Return the parts of a table name in SQL notation. Upper and lower case are kept, also without quotes.

    Raises:
        ValueError: a part is empty, or a quote has no end.
    """
    parts: list[str] = []
    rest = text.strip()
    while True:
        found = _PART.match(rest)
        end = found.end() if found is not None else 0
        if found is None or rest[end : end + 1] not in {"", "."}:
            raise ValueError('this is no name of a table; write schema.table, or "a.b" for a name with a dot')
        quoted, ticked, plain = found.groups()
        parts.append(quoted.replace('""', '"') if quoted else ticked.replace("``", "`") if ticked else plain)
        if end == len(rest):
            return tuple(parts)
        rest = rest[end + 1 :]
