"""A separate process that reads a source for the suites, so that they can measure its memory or kill it.

The process gets the settings of a source as JSON from its input, and writes a JSON object to its output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingestd.sdk.batches import attach_rejects
from ingestd.sdk.connector import Connector
from ingestd.sdk.plugins import load_connector
from ingestd.sdk.source_context import SourceContext
from ingestd.sdk.testing.source_reader import check

_WAIT_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReading:
    """The result of a complete reading: the number of records, and the peak memory of the process (resident set) in bytes."""

    records: int
    peak_bytes: int


def read_in_child(source: Mapping[str, Any], base: Path) -> ChildReading:
    """Read a source with these settings to its end in a new process, which commits each batch and does not store it."""
    done = _run(source, base, kept=base / "kept", kill=False)
    check(done.returncode == 0, f"The source can't be read: {done.stderr}")
    found = json.loads(done.stdout)
    return ChildReading(records=found["records"], peak_bytes=found["peak_bytes"])


def kill_before_commit(source: Mapping[str, Any], base: Path, *, kept: Path) -> None:
    """Read the first batch of a source in a new process, which is then killed by SIGKILL. The batch is not committed."""
    done = _run(source, base, kept=kept, kill=True)
    check(done.returncode == -signal.SIGKILL, f"The source yields no batch: {done.stdout}{done.stderr}")


def _run(source: Mapping[str, Any], base: Path, *, kept: Path, kill: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - this module
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        input=json.dumps({"source": dict(source), "base": str(base), "kept": str(kept), "kill": kill}),
        cwd=base,
        capture_output=True,
        text=True,
        timeout=_WAIT_SECONDS,
        check=False,
    )


def _open(source: Mapping[str, Any], base: Path, kept: Path) -> Connector:
    kind = load_connector(source["connector"])
    options = {name: value for name, value in source.items() if name != "connector"}
    context = SourceContext(pipeline="kit", base=base, now=time.time, steady=time.monotonic, kept_folder=kept)
    return kind(kind.Options.model_validate(options), context)


def main() -> None:
    """Read the source that the input describes, and print the result; or kill this process at the first batch."""
    work = json.load(sys.stdin)
    connector = _open(work["source"], Path(work["base"]), Path(work["kept"]))
    records = 0
    for partition in connector.partitions():
        for batch in attach_rejects(connector.read(partition, None)):
            if work["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
            records += batch.record_count
            if not partition.snapshot:
                connector.committed(partition, batch.cursor)
    connector.close()
    json.dump({"records": records, "peak_bytes": _peak_bytes()}, sys.stdout)


def _peak_bytes() -> int:
    """Return the largest resident set so far. `resource.getrusage` would include the parent's resident set at the fork."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
