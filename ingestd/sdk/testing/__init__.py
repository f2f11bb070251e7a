"""The conformance suite for connectors. The daemon never imports it.

A test module runs the suite with these lines::

    class TestCounter(ConnectorConformance):
        @pytest.fixture
        def rig(self, tmp_path):
            return CounterRig(tmp_path)
"""

from ingestd.sdk.testing.conformance import ConnectorConformance
from ingestd.sdk.testing.rig import Rig
from ingestd.sdk.testing.settlements import settlement

__all__ = ["ConnectorConformance", "Rig", "settlement"]
