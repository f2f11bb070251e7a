"""`ingestd demo`: the daemon and the service on one machine, with sample files and a check of the entries."""

from ingestd.commands.demo.child import DemoFailed
from ingestd.commands.demo.walkthrough import run_demo

__all__ = ["DemoFailed", "run_demo"]
