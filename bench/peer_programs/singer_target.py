"""A target of the Singer SDK that posts entries, 500 a request, to the server in TARGET_URL."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

sdk: Any = importlib.import_module("singer_sdk")
session: Any = importlib.import_module("requests").Session()
session.trust_env = False


class Post(sdk.BatchSink):  # type: ignore[misc]
    max_size = 500

    def process_batch(self, context: dict[str, Any]) -> None:
        body = [{"key": record["key"], "value": record["value"]} for record in context["records"]]
        session.post(
            f"{os.environ['TARGET_URL']}/lines", data=json.dumps(body, separators=(",", ":"))
        ).raise_for_status()


class Lines(sdk.Target):  # type: ignore[misc]
    name = "target-lines"
    config_jsonschema = importlib.import_module("singer_sdk.typing").PropertiesList().to_dict()
    default_sink_class = Post


if __name__ == "__main__":
    Lines.cli()
