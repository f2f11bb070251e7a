"""Readings of changes: only the rows of a table, view or query that may have changed since the last reading.

A row can become visible long after its time or number was assigned, because its transaction commits late. So a method never
takes its bound from the values of rows it has just read. `selection` chooses the method for a source. Each method states its
`Guarantee`. A sweep compares all rows. It finds what no method detects: deletes, changed keys and back-dated rows.
"""

from connectors.database.changes.method import Guarantee
from connectors.database.changes.reader import ChangeReader, ReadRows

__all__ = ["ChangeReader", "Guarantee", "ReadRows"]
