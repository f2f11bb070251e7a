"""An attack on a drop folder by another account: ``python -m tests.support.name_race FOLDER SECONDS``, as root.

A child with another account exchanges names in ``FOLDER/drop`` while this process reads, archives and rejects the files there.
The child puts in their place links to files that it may not read, links to its own folder with prepared names, and pipes. At the
end, the program prints a JSON object: counts of what was done, and the data that escaped.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.file import FileConnector, FileOptions
from connectors.log import LogConnector, LogOptions
from ingestd.sdk import AcknowledgeLater, Batch, Connector, Rejected, SourceBroken, SourceContext, SourceError
from ingestd.sdk.testing import acknowledgement

OTHER = 65534
SECRET = "part,mass\nSECRET,1\n"
STATE = "the state file"


def prepare(folder: Path) -> None:
    """Create the secret folder of another test bench, the state file, the drop folder, and the attacker's folder."""
    for name, owner in (("secret", 0), ("drop", OTHER), ("own", OTHER)):
        (folder / name).mkdir()
        os.chown(folder / name, owner, owner)
    for name in ("a.csv", "b.csv", "masses.csv", "run.csv"):
        (folder / "secret" / name).write_text(SECRET)
        (folder / "secret" / name).chmod(0o600)
    (folder / "state").write_text(STATE)
    for name in (
        "a.csv.receipt.json",
        "b.csv.receipt.json",
        ".a.csv.receipt.json.part",
        ".b.csv.receipt.json.part",
        "a.csv",
        "b.csv",
    ):
        (folder / "own" / name).symlink_to(folder / "state")


def swap_names(folder: Path, seed: int) -> None:
    """Exchange names without an end. Runs as the attacker's account."""
    rng, drop, count = random.Random(seed), folder / "drop", 0
    while True:
        count += 1
        with contextlib.suppress(OSError):
            swap_one(rng, folder, drop, count)


def swap_one(rng: random.Random, folder: Path, drop: Path, count: int) -> None:
    name = rng.choice(["a.csv", "a.csv", "sub/b.csv", "masses.csv", "run.csv", "sub", "done", ".ingestd-self-test.tmp"])
    path, made = drop / name, drop / f".new{count % 7}"
    base = path.name
    if base in {"sub", "done"}:
        if path.is_symlink():
            path.unlink()
            (drop / f".{base}").rename(path)
        elif path.is_dir():
            path.rename(drop / f".{base}")
            path.symlink_to(folder / ("secret" if base == "sub" else "own"))
        else:
            path.mkdir()
        return
    made.unlink(missing_ok=True)
    match rng.choice(["file", "file", "file", "bad", "link", "pipe"]):
        case "link":
            made.symlink_to(folder / "secret" / base)
        case "pipe":
            os.mkfifo(made)
        case "bad":
            made.write_text("part,part\n1,2\n")
        case _:
            made.write_text(f"part,mass\nA{count},1\n,7\n")
    made.rename(path)


def work_once(connector: Connector, done: Counter[str], escaped: list[str]) -> None:
    """Read and acknowledge all partitions, as a pass of the daemon does."""
    try:
        partitions = list(connector.partitions())
    except SourceError:
        done["failed scans"] += 1
        return
    for partition in partitions:
        done["partitions"] += 1
        try:
            batches = [batch for batch in connector.read(partition, None) if isinstance(batch, Batch)]
        except SourceBroken as error:
            done["rejected"] += 1
            with contextlib.suppress(SourceError):
                connector.failed(partition, str(error))
            continue
        except SourceError:
            done["unavailable"] += 1
            continue
        escaped += [f"{partition.name}: delivered" for batch in batches if "SECRET" in str(batch.records.rows())]
        if batches:
            done["read"] += 1
            facts = {"file.sha256": "x"}
            bad = Rejected(
                reference="1-00aa", subject="record", position=3, reason="It is empty.", field="part",
                record={"part": "", "mass": "7"}, facts=facts,
            )  # fmt: skip
            try:
                connector.acknowledge(
                    partition, batches[-1].cursor, acknowledgement(rejects=[bad], records=2, facts=facts)
                )
            except (AcknowledgeLater, SourceError):
                done["not acknowledged"] += 1
            else:
                done["acknowledged"] += 1


def main() -> None:
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    prepare(folder)
    attacker = os.fork()
    if not attacker:
        os.setgroups([])
        os.setgid(OTHER)
        os.setuid(OTHER)
        swap_names(folder, 1)
    try:
        done, escaped = work(folder, seconds)
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)
    print(json.dumps({"done": done, "escaped": sorted({*escaped, *find_escapes(folder)})}))  # noqa: T201


def work(folder: Path, seconds: float) -> tuple[Counter[str], list[str]]:
    """Make passes with each connector for ``seconds``; return counts of what was done, and the data that escaped."""
    context = SourceContext(pipeline="race", base=folder, now=time.time)
    common = {
        "path": "drop",
        "settle_seconds": 0,
        "pattern": ["a.csv", "b.csv"],
        "recursive": True,
        "ready": ["complete"],
    }
    folders = [
        DirectoryConnector(DirectoryOptions.model_validate(common | more), context)
        for more in (
            {"after": "archive", "archive": "drop/done"},
            {"after": "delete", "receipts": "drop/done", "quarantine": "drop/done"},
            {"after": "keep", "receipts": "drop/done", "quarantine": "drop/done"},
        )
    ]
    first = folders[0]
    sources: list[Connector] = [*folders]
    sources.append(FileConnector(FileOptions(path=Path("drop/masses.csv"), settle_seconds=0), context))
    sources.append(LogConnector(LogOptions(path=Path("drop"), pattern="run.csv"), context))
    done: Counter[str] = Counter()
    escaped: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done["passes"] += 1
        for source in sources:
            work_once(source, done, escaped)
        if not done["passes"] % 50:
            list(first.verify())
    return done, escaped


def find_escapes(folder: Path) -> list[str]:
    """Return a sentence for each secret that got into the drop folder, and for each change outside the drop folder."""
    escaped: list[str] = []
    secret = {
        path.name: (path.read_text(), path.stat().st_mode & 0o777, path.stat().st_uid)
        for path in (folder / "secret").iterdir()
    }
    if secret != dict.fromkeys(("a.csv", "b.csv", "masses.csv", "run.csv"), (SECRET, 0o600, 0)):
        escaped.append(f"the other bench's folder holds {secret}")
    if (folder / "state").read_text() != STATE:
        escaped.append("the state file was overwritten")
    escaped += [
        f"{path.name}: written into the attacker's folder"
        for path in (folder / "own").iterdir()
        if not path.is_symlink()
    ]
    for path in (folder / "drop").rglob("*"):
        if path.is_file() and not path.is_symlink() and "SECRET" in path.read_text(errors="replace"):
            escaped.append(f"{path}: shown in the drop folder")
    return escaped


if __name__ == "__main__":
    main()
