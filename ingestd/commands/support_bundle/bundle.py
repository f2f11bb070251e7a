"""The files of a support bundle, and their archive."""

from __future__ import annotations

import asyncio
import io
import json
import platform
import re
import shutil
import sqlite3
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from itertools import islice
from pathlib import Path

from ingestd.commands.configuration_check import CheckFinding, check_access, check_configuration, check_service
from ingestd.commands.machine_check import check_machine
from ingestd.commands.rejected_export import iter_rejections
from ingestd.commands.status import observe, read_status
from ingestd.commands.support_bundle.log_tail import last_events
from ingestd.commands.support_bundle.structure import TEXT, structure_of
from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.mirror.rejections import Rejection, Selection
from ingestd.mirror.sqlite import state_exists
from ingestd.mirror.sqlite.state_file.facts import state_facts
from ingestd.registry import GROUP, connector_names
from ingestd.settings.log import LogSettings

_SECONDS = 20.0
"""Time limit for counting rows, and for the service manager."""
_SENTENCES = frozenset({"versions", "clock", "descriptors", "watches"})
"""Steps of the machine check. Their sentences contain neither a path nor a setting."""
_UNIT_PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "Result", "NRestarts", "ExecMainCode", "ExecMainStatus", "MemoryCurrent",
    "CPUUsageNSec", "TasksCurrent", "ActiveEnterTimestampMonotonic",
)  # fmt: skip
_MANAGER = Path("/run/systemd/system")
_README = """This is a support bundle of ingestd. It describes the structure of a configuration and the state of a daemon.

It contains no secret, no value, no key and no record: every text that the program itself does not define is replaced by
<text>, <path> or <secret>. Names of pipelines and connectors, numbers of the configuration, and times are kept.

  versions.json       ingestd, Python, libraries, connectors
  configuration.json  the settings without their texts, or where the configuration has mistakes
  doctor.json         the steps of 'ingestd doctor' and their outcomes
  status.json         the numbers of 'ingestd status'
  state.json          sizes and schema of the state file
  rejected.json       numbers of rejections by the form of their reasons
  log.json            the last events of the log, without texts
  unit.json           the state of the systemd unit

A file with the member "failed" could not be made; it has the kind of the error.
"""


def bundle_files(path: Path, *, environment: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of a bundle for the configuration file ``path``. Blocks.

    If a file can't be made, all other files are still made.
    """
    configuration, mistakes = _configuration(path, environment)
    settings = configuration.settings if configuration is not None else None
    known = frozenset([*connector_names(), *(one.name for one in settings.pipelines)] if settings is not None else ())
    yield "README.txt", _README.encode()
    yield _file("versions", versions)
    log = settings.log if settings is not None else LogSettings()
    yield _file("log", lambda: list(last_events(log, known=known)))
    yield _file("unit", lambda: unit_state(log.unit))
    if configuration is None or settings is None:
        yield _file("configuration", lambda: {"mistakes": mistakes})
        return
    shown = {"mistakes": mistakes, "settings": structure_of(settings, known=known)}
    yield _file("configuration", lambda: shown)
    yield _file("doctor", lambda: [_step(one) for one in _findings(configuration)])
    yield _file("status", lambda: structure_of(read_status(configuration), known=known))
    yield _file("state", lambda: state_facts(settings.state, seconds=_SECONDS))
    yield _file("rejected", lambda: _rejected(configuration, known))


def archive(files: Iterator[tuple[str, bytes]], *, name: str) -> bytes:
    """Return a tar.gz archive with the files in a folder ``name``. The files have mode 0600 and no owner."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for file, data in files:
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def versions() -> dict[str, object]:
    """Return the versions of the program, of its platform, and of the installed connectors and libraries."""
    names = sorted({re.split(r"[ ;<>=\[!~]", one)[0] for one in requires("ingestd") or () if "extra ==" not in one})
    return {
        "ingestd": version("ingestd"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libraries": {name: _installed(name) for name in names},
        "connectors": {
            point.name: f"{point.dist.name} {point.dist.version}" if point.dist is not None else TEXT
            for point in entry_points(group=GROUP)
        },
    }


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # a library that only other versions of Python need
        return "not installed"


def unit_state(unit: str, *, manager: Path = _MANAGER, program: str = "systemctl") -> dict[str, object]:
    """Return the states and numbers of a systemd unit. Without systemd, return only ``systemd``: False."""
    found = shutil.which(program)
    if found is None or not manager.exists():
        return {"systemd": False}
    command = [found, "show", f"--property={','.join(_UNIT_PROPERTIES)}", "--", unit]
    done = subprocess.run(  # noqa: S603 - fixed options; the unit's name is validated
        command, capture_output=True, text=True, timeout=_SECONDS, check=True, stdin=subprocess.DEVNULL
    )
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {"systemd": True, **{name: value for name, _, value in pairs if name in _UNIT_PROPERTIES}}


def _file(name: str, make: Callable[[], object]) -> tuple[str, bytes]:
    try:
        made = make()
    except Exception as error:  # noqa: BLE001 - other files are made; a message may quote a value
        made = {"failed": type(error).__name__}
    return f"{name}.json", json.dumps(made, ensure_ascii=False, indent=2).encode() + b"\n"


def _configuration(path: Path, environment: Mapping[str, str]) -> tuple[Configuration | None, list[dict[str, int]]]:
    """Return the configuration and the locations of mistakes. Sentences are omitted, because they may quote the file."""
    mistakes: list[dict[str, int]] = []
    for secrets in (True, False):  # this account may not be able to read the secrets
        try:
            return read_configuration(path, environment=environment, cwd=path.parent, secrets=secrets), mistakes
        except ConfigurationError as error:
            mistakes = [{"line": one.line, "column": one.column} for one in error.mistakes]
    return None, mistakes


def _findings(configuration: Configuration) -> Iterator[CheckFinding]:
    yield from check_configuration(configuration)
    yield from check_machine(configuration)
    if configuration.secrets:
        yield from check_access(configuration)
        yield from asyncio.run(_service(configuration))


async def _service(configuration: Configuration) -> list[CheckFinding]:
    return [finding async for finding in check_service(configuration)]


def _step(finding: CheckFinding) -> dict[str, str]:
    step = finding.step
    shown = {"subject": finding.subject, "step": step.name, "outcome": step.outcome}
    if finding.subject == "machine" and step.name in _SENTENCES:
        shown["sentence"] = step.sentence
    return shown


def _rejected(configuration: Configuration, known: frozenset[str]) -> dict[str, object]:
    if not state_exists(configuration.settings.state):
        return {"rejections": 0, "by_reason": []}
    with observe(configuration) as mirror:
        counts = counts_by_reason(iter_rejections(mirror, Selection()), known=known)
        return {"rejections": mirror.count(Selection()), "by_reason": counts}


MOST = 100_000
"""The maximum number of rejections that are counted by reason; the oldest are counted first."""
_KINDS = 200
_WORDS = """
a above accept an and another are as at be been before below bytes can cell character characters column columns contract
converted date decimal digits does duplicate duration each empty entry error expected expression fields file format
found greater group has have header in integer invalid is it its json key keys large less lines list long lookup longer
mapping maximum measure member members minimum missing more must need needs name named no none not null number of one
only or over own permitted permits pipeline pipelines point quantity quote range record records refused rejected row
rows same schema service several short sink source suffix table text than that the there time to too truth two type
types unit unknown used value values whole with without write written wrong zone
"""
_KNOWN_WORDS = frozenset(_WORDS.split())
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_TOKEN = re.compile(r"[^\s.,;:()]+")


def reason_form(reason: str) -> str:
    """Return a reason with only the words of ``_WORDS``. All other words and quoted texts become an ellipsis."""
    words = [
        token.lower() if token.lower() in _KNOWN_WORDS else "…" for token in _TOKEN.findall(_QUOTED.sub(" … ", reason))
    ]
    kept = [word for index, word in enumerate(words) if word != "…" or index == 0 or words[index - 1] != "…"]
    return " ".join(kept)


def counts_by_reason(rejections: Iterable[Rejection], *, known: Collection[str]) -> list[dict[str, object]]:
    """Return counts of the first ``MOST`` rejections by pipeline, subject, HTTP status and form of the reason."""
    found = Counter(
        (one.pipeline if one.pipeline in known else TEXT, one.subject, one.status, reason_form(one.reason))
        for one in islice(rejections, MOST)
    )
    return [
        {"pipeline": pipeline, "subject": subject, "status": status, "reason": form, "rejections": count}
        for (pipeline, subject, status, form), count in found.most_common(_KINDS)
    ]
