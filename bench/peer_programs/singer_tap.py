"""A tap of the Singer SDK that reads the CSV files of the folder in TAP_FOLDER."""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sdk: Any = importlib.import_module("singer_sdk")
types: Any = importlib.import_module("singer_sdk.typing")


class Entries(sdk.Stream):  # type: ignore[misc]
    name = "entries"
    primary_keys = ("key",)
    schema = types.PropertiesList(
        types.Property("key", types.StringType), types.Property("value", types.StringType)
    ).to_dict()

    def get_records(self, context: object) -> Iterator[dict[str, str]]:  # noqa: ARG002  the SDK's
        for path in sorted(Path(os.environ["TAP_FOLDER"]).glob("*.csv")):
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    yield {
                        "key": f"{row['part_number']}/{row['property']}",
                        "value": f"{row['value']} {row['unit']} {row['revision']}",
                    }


class Files(sdk.Tap):  # type: ignore[misc]
    name = "tap-files"
    config_jsonschema = types.PropertiesList().to_dict()

    def discover_streams(self) -> list[Entries]:
        return [Entries(self)]


if __name__ == "__main__":
    Files.cli()
