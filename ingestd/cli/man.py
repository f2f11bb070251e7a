"""`ingestd man`."""

from __future__ import annotations

from importlib.metadata import version

from ingestd.process.manual_page import man_command

man = man_command(
    "ingestd",
    version("ingestd"),
    variables=(
        ("INGESTD_CONFIG", "The configuration file, if -c names none."),
        ("NO_COLOR", "Any value disables colours."),
    ),
    files=(
        ("./ingestd.yaml", "The configuration, if neither -c nor INGESTD_CONFIG names another file."),
        ("/etc/ingestd/ingestd.yaml", "The configuration if there is no ./ingestd.yaml."),
    ),
)
