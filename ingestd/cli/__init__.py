"""The command line: one verb a module, each of them a few lines around what `ingestd.daemon` does."""

from ingestd.cli.app import main

__all__ = ["main"]
