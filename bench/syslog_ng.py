"""syslog-ng with its reliable disk buffer, for comparison with ingestd. The benchmarks do not install syslog-ng.

Like ingestd, syslog-ng sends the lines to the counting server. It has the best settings that were found: a window as large as one
file, large fetches, two workers, and a timer of 50 ms for the last batch. Bodies of 5000 lines were not faster than of 500.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from bench.child import ChildFailed, Running, running
from bench.sample import COLUMNS

PROGRAM = Path("/usr/sbin/syslog-ng")
_MODULES = Path("/usr/lib/syslog-ng")

Form: TypeAlias = Literal["csv", "ndjson"]

_CONFIGURATION = """@version: {version}
options {{ stats-freq(0); keep-hostname(yes); use-dns(no); chain-hostnames(no); threaded(yes); log-fifo-size(400000); }};
source s_drop {{ wildcard-file(
  base-dir("{folder}/drop") filename-pattern("*.{form}") recursive(no) monitor-method("inotify") flags(no-parse)
  log-fetch-limit(10000) log-iw-size(200000) max-files(10) follow-freq({follow}) read-old-records(yes) log-msg-size(65536)
); }};
parser p_csv {{ csv-parser(
  columns({columns}) delimiters(",") quotes('""') flags(escape-double-char)
); }};
filter f_records {{ not ("${{c.part_number}}" eq "part_number"); }};
destination d_http {{ http(
  url("{url}/lines") method("POST") headers("Content-Type: application/json")
  body({body}) body-prefix("[") delimiter(",") body-suffix("]")
  batch-lines({lines}) batch-timeout(50) workers(2) persist-name("d_http")
  disk-buffer(reliable(yes) mem-buf-size({memory_bytes}) disk-buf-size({disk_bytes}) dir("{folder}/buffer"))
); }};
log {{ source(s_drop); {steps} destination(d_http); flags(flow-control); }};
"""
_MAPPED = '\'$(format-json key="${c.part_number}/${c.property}" value="${c.value} ${c.unit} ${c.revision}")\''


def missing() -> str:
    """Return why syslog-ng cannot be measured; empty if it can."""
    if not PROGRAM.exists():
        return "syslog-ng is not installed (Debian: syslog-ng-core and syslog-ng-mod-http), so it was not measured"
    if not any(_MODULES.rglob("libhttp.so")):
        return "syslog-ng has no HTTP module (Debian: syslog-ng-mod-http), so it was not measured"
    return ""


@contextlib.contextmanager
def syslog_ng(
    folder: Path, url: str, form: Form, *, lines: int = 500, follow_seconds: float = 1
) -> Iterator[tuple[Running, Path]]:
    """Run syslog-ng that watches ``<folder>/drop``; yield the process and the folder.

    ``follow_seconds``: the interval in which it looks for new lines in a file that it has read.
    """
    drop = folder / "drop"
    drop.mkdir(parents=True)
    (folder / "buffer").mkdir()
    parsed = form == "csv"
    configuration = folder / "syslog-ng.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            version=_version(),
            folder=folder,
            form=form,
            url=url,
            lines=lines,
            follow=follow_seconds,
            columns=" ".join(f'"c.{name}"' for name in COLUMNS),
            body=_MAPPED if parsed else '"${MESSAGE}"',
            steps="parser(p_csv); filter(f_records);" if parsed else "",
            memory_bytes=4_000_000,
            disk_bytes=200_000_000,
        )
    )
    control = folder / "control"
    command = [
        str(PROGRAM), "-F", "--no-caps", "-f", str(configuration), "-R", str(folder / "persist"),
        "-p", str(folder / "pid"), "-c", str(control),
    ]  # fmt: skip
    with running(command, log=folder / "syslog-ng.log") as child:
        _wait_for(control, child)
        yield child, drop


def _version() -> str:
    text = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\((\d+\.\d+)", text)
    return found[1] if found else "3.38"


def _wait_for(control: Path, child: Running) -> None:
    """Wait until the control socket of syslog-ng listens: then its sources and destinations have started."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if child.process.poll() is not None:
            raise ChildFailed(f"syslog-ng ended with {child.process.returncode}; see {os.fspath(control.parent)}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(control))
            return
        time.sleep(0.02)
    raise ChildFailed("syslog-ng did not open its control socket within 20 s")
