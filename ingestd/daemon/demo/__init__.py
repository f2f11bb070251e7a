"""`ingestd demo`: both daemons on one machine, sample files, and the proof that their numbers arrived."""

from ingestd.daemon.demo.child import DemoFailed
from ingestd.daemon.demo.walkthrough import tell

__all__ = ["DemoFailed", "tell"]
