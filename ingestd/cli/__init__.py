"""The command line: one module for each verb. The logic is in `ingestd.commands` and `ingestd.daemon`."""

from ingestd.cli.app import main

__all__ = ["main"]
