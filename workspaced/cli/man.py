"""``workspaced man``."""

from __future__ import annotations

from ingestd.process.manual_page import man_command
from workspaced import __version__

man = man_command(
    "workspaced",
    __version__,
    variables=(
        ("WORKSPACED_DATABASE_URL", "PostgreSQL instead of SQLite, if there is no --database."),
        ("WORKSPACED_ENCRYPTION_KEY", "32 bytes in base64 that encrypt secrets in the database."),
        ("WORKSPACED_SERVE_PORT", "The option --port of serve. Every option of a command has such a variable."),
        ("WORKSPACED_...", 'Other settings and limits. The documentation lists them under "Every variable".'),
    ),
    files=(
        ("DATA/workspaced.db", "The SQLite database in the data folder."),
        ("DATA/blobs", "The bytes of files, also with PostgreSQL."),
    ),
)
