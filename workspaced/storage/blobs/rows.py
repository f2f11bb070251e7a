"""The rows of stored bytes: one for each SHA-256, with the name of its bytes in the store.

A row is committed before its bytes are written, and is deleted before its bytes are deleted. A name is never used again. So
even a late process can't delete bytes that a row names, and can't leave bytes that no row names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs.port import new_name
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage.blobs", "queries.sql")


class StoredBlob(NamedTuple):
    """The row of stored bytes. ``unused_since``: when the bytes were announced or found unused (milliseconds); None: in use."""

    sha256: str
    name: str
    size: int
    unused_since: int | None


def find(reader: ReadTransaction, sha256: str) -> StoredBlob | None:
    """Return the row of bytes, if there is one."""
    row = reader.one(_SQL["find"], {"sha256": sha256})
    return StoredBlob(sha256, *row) if row else None


def announce(tx: Transaction, sha256: str, *, size: int, now: int) -> str:
    """Return the name under which bytes must be stored before `use`; insert the row if there is none."""
    values = {"sha256": sha256, "name": new_name(sha256), "size": size, "now": now}
    return str(tx.existing(_SQL["announce"], values)[0])


def use(tx: Transaction, kept: Mapping[str, str]) -> None:
    """Mark rows as used, in the transaction that refers to them. ``kept``: the names of the bytes, by SHA-256.

    Raises:
        UnavailableProblem: a row was deleted meanwhile, because it was announced too long ago.
    """
    for sha256, name in sorted(kept.items()):
        if not tx.run(_SQL["use"], {"sha256": sha256, "name": name}):
            detail = "It took too long to record the bytes that were received: send them again."
            raise UnavailableProblem("bytes_dropped", detail)


def page(reader: ReadTransaction, *, after: str, most: int) -> list[StoredBlob]:
    """Return up to ``most`` rows after the SHA-256 ``after``, in the order of their SHA-256."""
    return [StoredBlob._make(row) for row in reader.all(_SQL["page"], {"after": after, "most": most})]
