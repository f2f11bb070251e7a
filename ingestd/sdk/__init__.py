"""All that a connector may import: the contract between ingestd and the systems it reads.

A connector is a class with an ``Options`` model and three methods; a connector over a Python generator is ten lines::

    from pydantic import BaseModel
    from ingestd.sdk import Connector, Partition, pack

    class CounterConnector(Connector):
        '''Counts to a number.'''
        class Options(BaseModel):
            upto: int = 3
        def partitions(self):
            return [Partition(name="counter")]
        def read(self, partition, cursor):
            yield pack([{"n": str(n)} for n in range(self.options.upto)], cursor={}, last=True)

Register it under the entry-point group ``ingestd.connectors``. `ingestd.sdk.testing` holds the suite that its author runs.

What the runtime promises: one thread at a time calls ``partitions``, ``read`` and ``settled`` of one source; a batch of an
incremental partition is durable before the next one is asked for, a snapshot as a whole at its end; ``settled`` is called
after everything up to the cursor has been delivered or parked, at least once (after a crash again, so it must bear
repetition), with what became of it; ``failed`` after it is on record that a partition can't be read.
"""

from ingestd.core.claims import FileClaim
from ingestd.core.errors import RecordUnreadable, SettleLater, SourceBroken, SourceError, SourceUnavailable
from ingestd.core.record import NOTICE, Batch, Cursor, Deletes, Partition, Position, Reject, Rejected, Settlement
from ingestd.process.child_limits import child_environment, limit_process, limit_work, reports_no_memory
from ingestd.sdk.batches import pack
from ingestd.sdk.connector import Connector, Explains, Holds, Locates, Notices, SourceContext, Step, Verifies, Watches

__all__ = [
    "NOTICE",
    "Batch",
    "Connector",
    "Cursor",
    "Deletes",
    "Explains",
    "FileClaim",
    "Holds",
    "Locates",
    "Notices",
    "Partition",
    "Position",
    "RecordUnreadable",
    "Reject",
    "Rejected",
    "SettleLater",
    "Settlement",
    "SourceBroken",
    "SourceContext",
    "SourceError",
    "SourceUnavailable",
    "Step",
    "Verifies",
    "Watches",
    "child_environment",
    "limit_process",
    "limit_work",
    "pack",
    "reports_no_memory",
]
