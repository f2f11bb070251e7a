"""The address of a PostgreSQL database, from a URL. This module performs no I/O and imports no driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from urllib.parse import parse_qsl, unquote, urlsplit

_SCHEMES = {"postgresql", "postgres"}
# The longest waits for a server: for a login (s), and for the confirmation of sent data (ms). A connection without traffic is
# tested by keepalives, so that it ends after the same time.
_WAITS = {
    "connect_timeout": "5",
    "tcp_user_timeout": "5000",
    "keepalives_idle": "3",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}
FROM_ADDRESS = {
    **dict.fromkeys(("host", "hostaddr", "port", "user", "dbname", "options"), ""),
    "target_session_attrs": "any",
}
"""The built-in defaults of libpq. Without them, PGHOSTADDR, PGOPTIONS… would lead to another server or schema than the URL.

A URL that names a ``service`` must not be combined with them, because its server comes from the definition of the service.
"""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A PostgreSQL database. ``shown`` and repr contain no password."""

    shown: str
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    """The parameters of libpq, which include limits for waits. Libpq also reads PGPASSWORD, PGSSLMODE… and ~/.pgpass.

    If there are several hosts, libpq uses the host that accepts writes, unless the URL sets ``target_session_attrs``.
    """

    def __str__(self) -> str:
        return self.shown

    def preferring(self, host: str, port: int, *, first: bool = True) -> PostgresAddress:
        """Return an address of the same database with which this host is tried first, or last if ``first`` is False."""
        given = dict(self.parameters)
        places = sorted(_places(given), key=lambda place: (place[0] == host and place[1] in {"", str(port)}) != first)
        if len(places) == 1 or given.get("hostaddr"):
            return self
        hosts, ports = zip(*places, strict=True)
        return replace(self, parameters=tuple({**given, "host": ",".join(hosts), "port": ",".join(ports)}.items()))


def names_database(url: str) -> bool:
    """Return whether an address names a PostgreSQL database."""
    return url.partition("://")[0] in _SCHEMES


def postgres_address(url: str) -> PostgresAddress:
    """Return the database that a URL names (``postgresql://user@host:5432,other:5432/name?sslmode=verify-full``).

    Raises:
        ValueError: the URL names no database; the message does not repeat the URL, which may contain a password.
    """
    rest = url.partition("://")[2]
    server = _SERVER.match(rest)[0]  # type: ignore[index]  # it matches every text
    login, _, places = server.rpartition("@")
    try:
        parts = urlsplit(rest.removeprefix(server))
        hosts = [_host_and_port(place) for place in places.split(",")]
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise ValueError(f"The database's URL can't be read. {_FORM}") from error
    name = unquote(parts.path.removeprefix("/"))
    if not names_database(url) or not name or "/" in name or parts.fragment:
        raise ValueError(f"The database's URL must name a database of a PostgreSQL server. {_FORM}")
    user, _, password = login.partition(":")
    parameters = {
        "host": ",".join(host for host, _ in hosts),
        "port": ",".join(port for _, port in hosts) if any(port for _, port in hosts) else "",
        "user": unquote(user),
        "password": unquote(password),
        "dbname": name,
        **dict(given),
    }
    own = {} if "service" in parameters else FROM_ADDRESS
    several = {"target_session_attrs": "read-write"} if "," in parameters["host"] else {}
    return PostgresAddress(
        shown=_shown(parameters),
        parameters=tuple(
            {**own, **_WAITS, **several, **{name: value for name, value in parameters.items() if value}}.items()
        ),
    )


def _host_and_port(place: str) -> tuple[str, str]:
    """Return the host and the port in a text; a missing port is empty.

    Raises ValueError: the text is not a host, or the port is not a number.
    """
    parts = urlsplit(f"//{place}")
    return unquote(parts.hostname or ""), str(parts.port or "")


def _places(parameters: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each host with its port. A single port applies to all hosts."""
    hosts, ports = parameters.get("host", "").split(","), parameters.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return list(zip_longest(hosts, ports, fillvalue=""))


def _shown(parameters: Mapping[str, str]) -> str:
    places = [
        (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "") for host, port in _places(parameters)
    ]
    user = f"{parameters['user']}@" if parameters["user"] else ""
    return f"postgresql://{user}{','.join(places)}/{parameters['dbname']}"


_SERVER = re.compile(r"[^/?#]*")

_FORM = (
    "An example is postgresql://user@host:5432/name, or with several hosts postgresql://user@a:5432,b:5432/name. A password is "
    "better kept in PGPASSWORD or ~/.pgpass; in the URL, percent-encode its special characters (%40 for @)."
)
