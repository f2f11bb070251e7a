"""Settings of client libraries, so that no variable of the environment replaces the server that a source names."""

from __future__ import annotations

from ingestd.process.postgres_address import FROM_ADDRESS
from ingestd.process.s3_server import s3_server_settings

__all__ = ["FROM_ADDRESS", "s3_server_settings"]
