"""Configurations of the simulated daemon; the file is read once, because reading takes as long as a simulation."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.daemon.configuration import Configuration, read_configuration

Version: TypeAlias = Literal["first", "other key", "mistaken"]

WORKSPACE = "00000000-0000-4000-8000-000000000000"

_MOST_PIPELINES = 50
_SERVICE = 'service: {url: "http://service.test", api_key: "%s"}\nstate: state.db\npipelines:\n'
_PIPELINE = """\
  - name: p%d
    source: {connector: directory, path: drop%d}
    entries: {key: "{k}", value: "{v}"}
    sink: {workspace: %s, label: Sink %d}
"""


def configuration(version: Version = "first") -> Configuration:
    """Return the configuration of pipelines p0, p1, …, each with its sink.

    Raises:
        ConfigurationError: ``version`` has a mistake.
    """
    if version == "mistaken":
        raise ConfigurationError((Mistake(file="ingestd.yaml", line=1, column=1, key="", sentence="It is empty."),))
    return _versions()[version]


@cache
def _versions() -> dict[Version, Configuration]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ingestd.yaml"
        return {"first": _read(path, "simulated-key-1"), "other key": _read(path, "simulated-key-2")}


def _read(path: Path, api_key: str) -> Configuration:
    pipelines = (_PIPELINE % (number, number, WORKSPACE, number) for number in range(_MOST_PIPELINES))
    path.write_text(_SERVICE % api_key + "".join(pipelines))
    return read_configuration(path, environment={}, cwd=path.parent)
