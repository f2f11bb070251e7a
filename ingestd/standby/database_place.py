"""Shipments in a PostgreSQL database: an object is a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingestd.standby.database import DatabaseUnavailable, StandbyDatabase
from ingestd.standby.database_url import DatabaseSchema
from ingestd.standby.place import OBJECT_BYTES, Place, PlaceUnavailable, is_name

_STATEMENT_SECONDS = 20.0


class DatabasePlace(Place):
    """A schema of a database."""

    def __init__(self, schema: DatabaseSchema) -> None:
        super().__init__(str(schema))
        self._database = StandbyDatabase(schema, statement_seconds=_STATEMENT_SECONDS)

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        """See `Place`."""
        return bool(self._rows("put_new_object" if new else "put_object", name=name, data=data))

    def get(self, name: str) -> bytes | None:
        """See `Place`."""
        found = self._rows("get_object", name=name, most=OBJECT_BYTES)
        return bytes(found[0][0]) if found else None

    def names(self, folder: str = "") -> Iterator[str]:
        """See `Place`."""
        first, end = (f"{folder}/", f"{folder}0") if folder else ("", "~")  # "0" follows "/"
        yield from (name for (name,) in self._rows("object_names", first=first, end=end) if is_name(name))

    def delete(self, name: str) -> None:
        """See `Place`."""
        self._rows("delete_object", name=name)

    def close(self) -> None:
        """See `Place`."""
        self._database.close()

    def _rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._database.rows(statement, values)
        except DatabaseUnavailable as error:
            raise PlaceUnavailable(str(error)) from None
