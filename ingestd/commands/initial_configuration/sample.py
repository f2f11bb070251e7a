"""The columns of a sample file or of a table, read with the connector that the configuration will name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from ingestd.commands.mapping_test.sample import read_sample
from ingestd.core.column_profile import ColumnProfile
from ingestd.core.errors import SourceBroken
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.parts import open_connector
from ingestd.intake.run import checked_batches


def columns_of_file(path: Path, report_sheet: Callable[[str], None]) -> ColumnProfile:
    """Read a file as a drop folder reads it. ``report_sheet`` is called with the name of the sheet that is read in a workbook.

    Raises:
        SourceBroken: its format is not known, or it can't be read.
    """
    profile, sheet = ColumnProfile(), ""
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        source = {"connector": "directory", "path": folder}
        configuration = _draft(Path(folder), source, {})
        for batch in read_sample(configuration, configuration.settings.pipelines[0], path):
            profile.add(batch.records)
            sheet = batch.facts.get("file.sheet", sheet)
    if sheet:
        report_sheet(sheet)
    return profile


def glob_of(name: str) -> str:
    """Return the glob of names with the format of ``name``, else with its last suffix. A date in a name is no suffix."""
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        configuration = _draft(Path(folder), {"connector": "directory", "path": folder}, {})
    globs: list[str] = configuration.settings.pipelines[0].source.options.model_dump()["pattern"]
    return next((glob for glob in globs if fnmatchcase(name.lower(), glob)), f"*{Path(name).suffix}")


def columns_of_table(url: str, table: str) -> ColumnProfile:
    """Read a table once. ``url`` may have a password; it is passed as a variable and written nowhere.

    Raises:
        SourceUnavailable, SourceBroken: the database is not reachable, or it has no such table.
        ConfigurationError: the address is not that of a database.
    """
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        source = {"connector": "database", "url": "${env:URL}", "table": table.replace("${", "$${")}
        configuration = _draft(Path(folder), source, {"URL": url}, schedule={"every": "1h"})
        profile = ColumnProfile()
        connector = open_connector(configuration, configuration.settings.pipelines[0])
        try:
            for partition in connector.partitions():
                for batch in checked_batches(connector.read(partition, None)):
                    profile.add(batch.records)
        finally:
            connector.close()
        return profile


def require_columns(profile: ColumnProfile, name: str) -> None:
    """Raise `SourceBroken` if a sample has no records."""
    if not profile.records:
        raise SourceBroken(f"{name} has no records, so its columns are not known. Name a sample with records.")


def _draft(
    folder: Path, source: Mapping[str, object], environment: Mapping[str, str], **pipeline: object
) -> Configuration:
    path = folder / "draft.yaml"
    draft = {
        # Every later message of the command masks this key, so it must not be a word of one.
        "service": {"url": "http://127.0.0.1", "api_key": secrets.token_hex()},
        "state": "none.db",
        "pipelines": [
            {
                "name": "draft",
                "source": source,
                "entries": {"key": "{k}", "value": "{v}"},
                "sink": {"workspace": "none", "label": "none"},
                **pipeline,
            }
        ],
    }
    path.write_text(json.dumps(draft), encoding="utf-8")
    return read_configuration(path, environment=environment, cwd=folder)
