"""The plan of a sync that reads only the sample, with the configuration that `ingestd init` will write."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ingestd.commands.initial_configuration.sample import DRAFT_KEY
from ingestd.commands.initial_configuration.text import InitialFolder, InitialSettings, configuration_text
from ingestd.commands.loop import run_to_end
from ingestd.commands.sync_plan.execution import plan
from ingestd.commands.sync_plan.values import PartitionPlan
from ingestd.core.errors import SourceBroken
from ingestd.daemon.configuration import read_configuration
from ingestd.telemetry import log_event

SHOWN = 5
"""The maximum number of changes of each kind, and of rejected records, in the plan."""


def plan_of_sample(settings: InitialSettings, *, sample: Path | None, address: str) -> PartitionPlan:
    """Return what a sync of the sample would do. The state file, the folder and the service are not used.

    ``sample``: the file, if the source is a folder. ``address``: the address of the database, if the source is a table.

    Raises:
        SourceBroken: the sample can't be read with the configuration, or has nothing to read.
        ConfigurationError: the configuration has a mistake.
    """
    with TemporaryDirectory(prefix="ingestd-init-") as name:
        folder = Path(name)
        source = settings.source
        if isinstance(source, InitialFolder):
            drop = folder / "drop"
            drop.mkdir()
            if sample is not None:
                shutil.copy2(sample, drop)
            source = msgspec.structs.replace(source, path="drop")
        else:
            source = msgspec.structs.replace(source, url="${env:ADDRESS}")
        drafted = msgspec.structs.replace(
            settings, url="http://127.0.0.1", api_key="${env:API_KEY}", state="none.db", source=source
        )
        path = folder / "draft.yaml"
        path.write_text(configuration_text(drafted), encoding="utf-8")
        environment = {"API_KEY": DRAFT_KEY, "ADDRESS": address}
        configuration = read_configuration(path, environment=environment, cwd=folder)
        made = run_to_end(plan(configuration, [settings.pipeline], rows=SHOWN, emit=log_event)).plan
    failures = made.pipelines[0].failures
    if failures or not made.partitions:
        raise SourceBroken(" ".join(failures) or "The sample has nothing to read.")
    return made.partitions[0]
