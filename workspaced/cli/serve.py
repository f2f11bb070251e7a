"""``workspaced serve``."""

from __future__ import annotations

import os
from pathlib import Path

import click
import uvloop

from ingestd.process.logs import configure_logs
from ingestd.process.notify import Notifier
from workspaced import server
from workspaced.cli.database import database_option
from workspaced.cli.failure import AWAY, UNUSABLE, Failure
from workspaced.cloud_storage.conversion_rules import ConversionPace
from workspaced.egress.rules import EgressRules
from workspaced.settings import Limits, Settings, docs, public_url, visible_id_prefix
from workspaced.storage.address import postgres_address
from workspaced.storage.port import StorageUnusable
from workspaced.web.addresses import Proxies
from workspaced.webhooks.pace import Pace
from workspaced.webhooks.sealing import encryption_key


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder that holds everything."
)
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--dev",
    is_flag=True,
    help="For work on this machine: logs every request, lets webhooks use plain http and this machine's own addresses.",
)
def serve(data: Path, database: str, host: str, port: int, *, dev: bool) -> None:
    """Serve until SIGTERM or Ctrl-C. Prints the URL once it answers."""
    configure_logs(level="debug" if dev else "info")
    try:
        settings = Settings(
            data=data,
            limits=Limits.from_environment(os.environ),
            egress=EgressRules.from_environment(os.environ, dev=dev),
            pace=Pace.from_environment(os.environ),
            conversion=ConversionPace.from_environment(os.environ),
            encryption_key=encryption_key(os.environ),
            visible_id_prefix=visible_id_prefix(os.environ),
            docs=docs(os.environ),
            proxies=Proxies.from_environment(os.environ),
            public_url=public_url(os.environ),
            postgres=postgres_address(database) if database else None,
        )
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error
    try:
        with server.listen(host, port) as listener:
            uvloop.run(server.serve(settings, listener, notifier=Notifier.from_environment(), announce=click.echo))
    except server.PortTaken as error:
        raise Failure(str(error), AWAY) from error
    except StorageUnusable as error:
        raise Failure(str(error), UNUSABLE) from error
