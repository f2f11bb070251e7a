"""For a connector's author: the suite that every connector passes. Never imported by the daemon.

Three lines of a test module give all of it::

    class TestCounter(ConnectorConformance):
        @pytest.fixture
        def rig(self, tmp_path):
            return CounterRig(tmp_path)
"""

from ingestd.sdk.testing.conformance import ConnectorConformance
from ingestd.sdk.testing.rig import Rig
from ingestd.sdk.testing.settlements import settlement

__all__ = ["ConnectorConformance", "Rig", "settlement"]
