"""A program that archives or deletes a file many times, and is killed before each file operation in turn.

``python -m tests.support.file_crash_sweep HOW DROP ARCHIVE …`` makes one sweep for each three arguments. In run j = 1, 2, … of a
sweep, in new sub-folders, a forked child is killed by its audit hook before its j-th changing operation. Then another child
repeats the work without interruption. The sweep ends when no child is killed. The parent only reads the folders, because a fork
does not copy the threads of polars. It prints a line of JSON for each sweep: the content of the folders in each run.

HOW: ``archive`` or ``delete`` the file; ``with-receipt``: archive it with receipt and rejected rows; ``unreadable``: move it to
the folder of failed files.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from connectors.beneath import RootedPath
from connectors.directory import DirectoryOptions, disposal
from connectors.directory.archiver import Archiver
from connectors.files.identity import Identity
from connectors.files.receipt import AcknowledgedFile
from connectors.files.resubmission import format_for
from ingestd.sdk import Rejected
from ingestd.sdk.testing import acknowledgement

CONTENT = b"part,mass\nP-1,0.10\n,7\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OLDER = b"of a file of the same name\n"
_OPERATIONS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.utime", "os.truncate"}


def dispose(how: str, path: Path, archive: Path, identity: Identity) -> bool:
    place = RootedPath(path.parents[1], "sub/a.csv")
    if how == "delete":
        return disposal.delete(place, identity=identity)
    if how in {"with-receipt", "unreadable"}:
        return as_connector(how, path, archive, identity)
    return disposal.archive(place, RootedPath(archive), "sub/a.csv", identity=identity, sha256=SHA256)


def as_connector(how: str, path: Path, archive: Path, identity: Identity) -> bool:
    """Archive the file as the connector does; its second row was rejected. Do nothing if the file no longer exists."""
    if not path.exists():
        return False
    base = path.parents[2]
    options = DirectoryOptions(path=Path(path.parents[1].name), after="archive", archive=archive)
    away = Archiver(options, base, format_for=lambda name: format_for(name, None, "*"), other_readers=lambda _: ())
    if how == "unreadable":
        return away.move_to_failed("sub/a.csv", identity, "It has no header.")
    facts = {"file.sha256": SHA256}
    bad = Rejected(
        reference="1-00aa", subject="record", position=3, reason="It is empty.", field="part",
        record={"part": "", "mass": "7"}, facts=facts,
    )  # fmt: skip
    result = acknowledgement(rejects=[bad], records=2, facts=facts)
    (failure,) = away.dispose(
        [AcknowledgedFile(name="sub/a.csv", identity=identity, sha256=SHA256, acknowledgement=result)]
    )
    if failure is not None:
        raise failure
    return True


def run_child(how: str, path: Path, archive: Path, identity: Identity, at: int = 0) -> str:
    """Run a child that is killed before its operation ``at`` (0: never). Return ``killed``, or ``through`` if it completed."""
    child = os.fork()
    if child == 0:
        left = at

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            if event in _OPERATIONS and (event != "open" or args[2] & os.O_CREAT):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        dispose(how, path, archive, identity)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return "killed"
    if status:
        raise AssertionError(f"the child failed before operation {at}: wait status {status}")
    return "through"


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def sweep(how: str, drop: Path, archive: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    while not runs or runs[-1]["outcome"] == "killed":
        at = len(runs) + 1
        here, there = drop / str(at), archive / str(at)
        path = here / "sub" / "a.csv"
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENT)
        if at % 2:
            for older in ("sub/a.csv", "failed/sub/a.csv"):
                (there / older).parent.mkdir(parents=True)
                (there / older).write_bytes(OLDER)
        identity = Identity.from_status(path.stat())
        outcome = run_child(how, path, there, identity, at)
        between = [tree(here), tree(there)]
        run_child(how, path, there, identity)
        runs.append({"outcome": outcome, "between": between, "drop": tree(here), "archive": tree(there)})
    return runs


def main() -> None:
    words = iter(sys.argv[1:])
    for how, drop, archive in zip(words, words, words, strict=True):
        print(json.dumps(sweep(how, Path(drop), Path(archive))))  # noqa: T201


if __name__ == "__main__":
    main()
