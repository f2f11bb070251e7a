"""The URL of a PostgreSQL database with a schema for the shipments and the leases. Needs no driver."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ingestd.process.postgres_address import PostgresAddress, postgres_address
from ingestd.process.redaction import mask_secrets
from ingestd.standby.mistake import standby_mistake

_SCHEMA = "ingestd_standby"
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """A schema of a database."""

    address: PostgresAddress
    name: str

    def __str__(self) -> str:
        return str(self.address) + (f"?schema={self.name}" if self.name != _SCHEMA else "")


def schema_of(url: str) -> DatabaseSchema:
    """Return the schema that a URL in libpq's form names, with ``schema=`` in the query. The password is masked from now on.

    Raises:
        ConfigurationError: the URL names no PostgreSQL database, or the schema's name is malformed.
    """
    mask_secrets([url])
    try:
        address = postgres_address(url)
    except ValueError as error:
        raise standby_mistake(str(error)) from None
    given = dict(address.parameters)
    name = given.pop("schema", _SCHEMA)
    if not _SCHEMA_NAME.fullmatch(name):
        raise standby_mistake(
            f"schema={name} is no name of a schema: expected a-z, 0-9 and _, and no pg_ at the start."
        )
    mask_secrets([given.get("password", "")])
    return DatabaseSchema(replace(address, parameters=tuple(given.items())), name)
