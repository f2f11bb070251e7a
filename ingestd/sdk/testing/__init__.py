"""The conformance suites for connectors. The daemon never imports them.

A test module runs the suite with these lines::

    class TestCounter(ConnectorConformance):
        @pytest.fixture
        def rig(self, tmp_path):
            return CounterRig(tmp_path)

For a source that yields each record only once, such as a queue, use `ConsumeConformance` and `ConsumeRig`. `FaultConformance`
is for sources that are servers: it breaks connections with a `WireProxy`. `KillConformance` kills the daemon while it reads.
`MemoryConformance` measures memory. `FormatConformance` is for file formats; for example, it compares the number of records
with a known number. `ingestd connector check` runs all suites of a package.
"""

from ingestd.sdk.testing.conformance import ConnectorConformance, Rig
from ingestd.sdk.testing.consume import ConsumeConformance, ConsumeRig
from ingestd.sdk.testing.faults import FaultConformance, FaultRig
from ingestd.sdk.testing.format_suite import FormatConformance, FormatSample
from ingestd.sdk.testing.kills import KillConformance, KillRig
from ingestd.sdk.testing.memory import MemoryConformance, MemoryRig
from ingestd.sdk.testing.source_reader import acknowledgement
from ingestd.sdk.testing.wire_proxy import WireProxy

__all__ = [
    "ConnectorConformance",
    "ConsumeConformance",
    "ConsumeRig",
    "FaultConformance",
    "FaultRig",
    "FormatConformance",
    "FormatSample",
    "KillConformance",
    "KillRig",
    "MemoryConformance",
    "MemoryRig",
    "Rig",
    "WireProxy",
    "acknowledgement",
]
