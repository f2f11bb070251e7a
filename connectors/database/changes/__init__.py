"""Readings of only those rows of a table, view or query that may have changed since the last reading.

A row can become visible long after its time or number was assigned, because its transaction commits late. A method therefore
never takes its bound from the values of rows. `selection` chooses the method by the kind of the source. Each method states its
`Guarantee`. A sweep compares all rows, and so finds what no method can detect: deletes, changed keys and back-dated rows.
"""

from connectors.database.changes.method import Guarantee
from connectors.database.changes.reader import ChangeReader, ReadRows

__all__ = ["ChangeReader", "Guarantee", "ReadRows"]
