"""A bare loop over small files: read each file as CSV, write and sync a receipt, and archive the file. Delivers nothing.

``python -m bench.limits.bare_files DROP ARCHIVE`` prints the seconds, without imports, and the number of rows.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from pathlib import Path


def main(drop: Path, archive: Path) -> None:
    archive.mkdir()
    rows = 0
    started = time.monotonic()
    for file in sorted(drop.iterdir()):
        with file.open(newline="") as text:
            found = list(csv.DictReader(text))
        with (archive / f"{file.name}.receipt.json").open("w") as receipt:
            json.dump({"file": file.name, "records": len(found)}, receipt)
            receipt.flush()
            os.fsync(receipt.fileno())
        file.rename(archive / file.name)
        rows += len(found)
    print(json.dumps({"seconds": time.monotonic() - started, "rows": rows}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
