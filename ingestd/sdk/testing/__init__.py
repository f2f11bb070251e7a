"""The conformance suites for connectors. The daemon never imports them.

A test module runs the suite with these lines::

    class TestCounter(ConnectorConformance):
        @pytest.fixture
        def rig(self, tmp_path):
            return CounterRig(tmp_path)

A source that gives out each record once, such as a queue, has `ConsumeConformance` and a `ConsumeRig` instead. `FaultConformance`
is for sources that are servers: it breaks connections with a `WireProxy`. `KillConformance` kills the daemon while it reads.
`FormatConformance` is for file formats: among others, it compares the number of records with a known one.
`MemoryConformance` measures memory, and `OptionsConformance` loads options of former releases.
`ingestd connector check` runs all of them.
"""

from typing import TYPE_CHECKING, Any

from ingestd.sdk.former_names import FORMER_TEST_FUNCTIONS, present_name
from ingestd.sdk.testing.acknowledgements import acknowledgement
from ingestd.sdk.testing.conformance import ConnectorConformance
from ingestd.sdk.testing.consume import ConsumeConformance, ConsumeRig
from ingestd.sdk.testing.faults import FaultConformance, FaultRig
from ingestd.sdk.testing.format_suite import FormatConformance, FormatSample
from ingestd.sdk.testing.kills import KillConformance, KillRig
from ingestd.sdk.testing.memory import MemoryConformance, MemoryRig
from ingestd.sdk.testing.released_options import OptionsConformance, check_released_options
from ingestd.sdk.testing.rig import Rig
from ingestd.sdk.testing.wire_proxy import WireProxy

if not TYPE_CHECKING:  # a type checker would else accept any name

    def __getattr__(name: str) -> Any:
        return globals()[present_name(__name__, name, FORMER_TEST_FUNCTIONS)]


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
    "OptionsConformance",
    "Rig",
    "WireProxy",
    "acknowledgement",
    "check_released_options",
]
