"""A configuration with twenty pipelines, each from its own drop folder to its own sink, and the files in the folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

PIPELINES = 20


def configure(folder: Path, url: str, key: str) -> None:
    """Write ``ingestd.yaml`` and make the drop folders. Acknowledged files move from ``drop0`` to ``done0``, and so on."""
    pipelines = []
    for number in range(PIPELINES):
        drop_folder(folder, number).mkdir()
        source = {
            "connector": "directory", "path": f"drop{number}", "pattern": "*.csv", "settle_seconds": 0,
            "after": "archive", "archive": f"done{number}",
        }  # fmt: skip
        entries = {"key": "{part}", "value": "{mass}"}
        sink = {"workspace": "Bench", "label": label(number)}
        pipelines.append({"name": name(number), "source": source, "entries": entries, "sink": sink})
    settings = {"service": {"url": url, "api_key": key}, "state": "ingestd.db", "pipelines": pipelines}
    (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is valid YAML.


def name(number: int) -> str:
    """Return the name of a pipeline."""
    return f"p{number}"


def label(number: int) -> str:
    """Return the label of a pipeline's sink."""
    return f"Sink {number}"


def drop_folder(folder: Path, number: int) -> Path:
    """Return the folder that a pipeline reads."""
    return folder / f"drop{number}"


def drop(folder: Path, number: int, file: str, masses: Mapping[str, str]) -> None:
    """Write a complete file with the mass of each part."""
    written = folder / "being-written"
    written.write_text("part,mass\n" + "".join(f"{part},{mass}\n" for part, mass in masses.items()))
    written.rename(drop_folder(folder, number) / file)
