"""`ingestd sync` without start-up: imports once, then makes one whole pass for each line of its standard input.

A pass does what the command does: it opens the state file, reads, delivers and closes, with the command's event loop and memory
settings. Only the loaded modules are kept between passes. ``python -m bench.passes CONFIGURATION`` prints one JSON line a pass.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from ingestd.commands.loop import run_to_end
from ingestd.commands.one_shot_sync import sync
from ingestd.daemon.configuration import chosen_pipelines, read_configuration
from ingestd.telemetry import Event


def _ignore(_event: Event) -> None:
    """Ignore an event of the command, because its output would mix with the results."""


def main(path: Path) -> None:
    configuration = read_configuration(path, environment=os.environ, cwd=Path.cwd())
    names = chosen_pipelines(configuration, ())
    print("ready", flush=True)
    for _ in sys.stdin:
        started, used = time.monotonic(), time.process_time()
        report = run_to_end(sync(configuration, names, timeout_seconds=None, emit=_ignore))
        response = {
            "seconds": time.monotonic() - started,
            "cpu_seconds": time.process_time() - used,
            "delivered": report.delivered,
            "exit_code": int(report.exit_code),
        }
        print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
