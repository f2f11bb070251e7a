"""The contract between ingestd and its connectors. Connectors may import everything in this module.

A connector is a class with an ``Options`` model and at least two methods. The smallest connector has ten lines::

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

Register the class in the entry-point group ``ingestd.connectors``. `ingestd.sdk.testing` has the test suite for connectors.

A record that cannot be read does not end the reading. Raise `RecordUnreadable` in the function that parses one record and
give that function to `pack`. Or yield the error from ``read`` between two batches::

    def read(self, partition, cursor):
        yield pack(self.lines(), parse=self.parse, cursor={}, last=True)
    def parse(self, line):
        part, separator, mass = line.partition(";")
        if not separator:
            raise RecordUnreadable("The line has no semicolon.")
        return {"part": part, "mass": mass}

The runtime stores the record with its position and the reason, and reads the next record.

Guarantees of the runtime:

* One thread at a time calls the methods of a source, unless a method states otherwise.
* A batch of an incremental partition is durable before the next batch is requested. A snapshot becomes durable as a whole
  at the end of its reading.
* `Connector.committed()` is called after each durable batch of an incremental partition, even if entries are pending.
* `Connector.acknowledge()` is called at least once, after everything up to the cursor was delivered or rejected. After a crash it
  is called again, so it must be idempotent. A source with `AcknowledgesTogether` may receive several partitions in one call.
* A cursor never moves back, except by a retry, another mapping or an operator; see ``replayable`` of `Partition`.
* `SourceContext.stopping` is set before the source is closed. Only acknowledgements and `Connector.close` are called after it.
* After `SourceUnavailable` the source is read again after a growing delay of at least ``retry_after`` seconds.
* `Connector.failed()` is called after the daemon has stored why a partition cannot be read.
"""

from ingestd.core.claims import FileClaim
from ingestd.core.clock import moment, parse_time
from ingestd.core.errors import (
    AcknowledgeLater,
    RecordUnreadable,
    SourceBroken,
    SourceError,
    SourceUnavailable,
    SourceUnmounted,
)
from ingestd.core.json_depth import require_depth
from ingestd.core.phrases import counted, first_names, nearest, shortened
from ingestd.core.record import (
    CHILD_OF,
    NOTICE,
    Acknowledgement,
    Batch,
    Cursor,
    Deletes,
    Partition,
    Position,
    Reject,
    Rejected,
    Section,
    UnreadableColumn,
)
from ingestd.process.child_limits import child_environment, limit_process, limit_work, reports_no_memory
from ingestd.process.progress import note_progress
from ingestd.sdk.batches import mark_last, pack
from ingestd.sdk.connector import (
    CONTRACT,
    AcknowledgesTogether,
    ConnectionHealth,
    Connector,
    CursorMove,
    Explains,
    Holds,
    KnowsKey,
    Listens,
    LoadSections,
    Locates,
    ReadsCopies,
    ReadsSamples,
    ReadsSections,
    Step,
    Verifies,
    WaitingFile,
    WaitingReason,
    Watches,
)
from ingestd.sdk.kept_file import KeptFile
from ingestd.sdk.source_context import SourceContext

__all__ = [
    "CHILD_OF",
    "CONTRACT",
    "NOTICE",
    "AcknowledgeLater",
    "Acknowledgement",
    "AcknowledgesTogether",
    "Batch",
    "ConnectionHealth",
    "Connector",
    "Cursor",
    "CursorMove",
    "Deletes",
    "Explains",
    "FileClaim",
    "Holds",
    "KeptFile",
    "KnowsKey",
    "Listens",
    "LoadSections",
    "Locates",
    "Partition",
    "Position",
    "ReadsCopies",
    "ReadsSamples",
    "ReadsSections",
    "RecordUnreadable",
    "Reject",
    "Rejected",
    "Section",
    "SourceBroken",
    "SourceContext",
    "SourceError",
    "SourceUnavailable",
    "SourceUnmounted",
    "Step",
    "UnreadableColumn",
    "Verifies",
    "WaitingFile",
    "WaitingReason",
    "Watches",
    "child_environment",
    "counted",
    "first_names",
    "limit_process",
    "limit_work",
    "mark_last",
    "moment",
    "nearest",
    "note_progress",
    "pack",
    "parse_time",
    "reports_no_memory",
    "require_depth",
    "shortened",
]
