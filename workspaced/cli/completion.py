"""``workspaced completion``."""

from __future__ import annotations

from ingestd.process.completion import completion_command

completion = completion_command("workspaced")
