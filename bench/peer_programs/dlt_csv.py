"""dlt reads the CSV files of a folder and posts their entries. Arguments: FOLDER URL STATE. The next run reads newer files."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

BODY = 500


def entry(row: dict[str, str]) -> dict[str, str]:
    return {
        "key": f"{row['part_number']}/{row['property']}",
        "value": f"{row['value']} {row['unit']} {row['revision']}",
    }


def main(folder: str, url: str, state: str) -> None:
    os.environ |= {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR", "DLT_DATA_DIR": state}
    dlt: Any = importlib.import_module("dlt")
    source: Any = importlib.import_module("dlt.sources.filesystem")
    session = importlib.import_module("requests").Session()
    session.trust_env = False

    def post(items: list[dict[str, Any]], table: object) -> None:  # noqa: ARG001  the arguments are dlt's
        body = [{"key": item["key"], "value": item["value"]} for item in items]
        session.post(f"{url}/lines", data=json.dumps(body, separators=(",", ":"))).raise_for_status()

    server = dlt.destination(
        post, batch_size=BODY, name="post", loader_file_format="typed-jsonl", max_table_nesting=0,
        skip_dlt_columns_and_tables=True, loader_parallelism_strategy="parallel",
    )  # fmt: skip
    newer = dlt.sources.incremental("modification_date")
    files = source.filesystem(f"file://{folder}", file_glob="*.csv", incremental=newer)
    rows = (files | source.read_csv(chunksize=50_000, dtype=str, keep_default_na=False)).add_map(entry)
    dlt.pipeline("parts", destination=server, pipelines_dir=state).run(rows.with_name("entries"))


if __name__ == "__main__":
    main(*sys.argv[1:])
