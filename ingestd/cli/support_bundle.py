"""`ingestd support-bundle`."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from ingestd.cli.options import with_configuration_path
from ingestd.commands.output_file import OutputUnwritable, write_private
from ingestd.commands.support_bundle.bundle import archive, bundle_files
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.terminal_text import echo
from ingestd.settings.configuration_file import find_configuration


@click.command("support-bundle")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@with_configuration_path
def support_bundle(path: Path | None, file: Path | None) -> None:
    """Write a bundle of facts for a report of a problem, without secrets and values.

    FILE is a tar.gz with mode 0600; default: ingestd-support-TIME.tar.gz in the current folder. It has the structure of the
    configuration, versions, the steps of 'ingestd doctor', status, the schema and the sizes of the state file, counts of
    rejections by reason, the last events of the log, and the state of the systemd unit. Every text that the program itself does
    not define, such as an address, a key, a value, a path or a reason, is replaced. The daemon may run.

    Exit codes: 0 done, 73 FILE exists or can't be written.

    Example: ingestd support-bundle bundle.tar.gz
    """
    name = f"ingestd-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    target = file if file is not None else Path(f"{name}.tar.gz")
    files = bundle_files(find_configuration(path, os.environ, Path.cwd()).absolute(), environment=os.environ)
    try:
        write_private(target, archive(files, name=name), replace=False)
    except OutputUnwritable as error:
        echo(str(error), err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    echo(f"{target} contains no secret and no value. Look at it before you pass it on: tar -xzOf {target}")
