"""Archives and deletes a file with SIGKILL before each file operation in turn; a process of its own, because it forks.

``python -m tests.support.file_crash_sweep HOW DROP ARCHIVE`` with ``archive`` or ``delete`` does this for j = 1, 2, … in fresh
sub-folders until one life gets through: a forked child whose audit hook kills it at its j-th file operation, then, in
the parent, the same again undisturbed. Prints what is then in the folders, a JSON object a line.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from connectors.directory import after
from connectors.files.identity import Identity, identity_of

CONTENT = b"part,mass\nP-1,0.10\n"
OLDER = b"of a file of the same name\n"
_OPERATIONS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.utime", "os.truncate"}


def put_away(how: str, path: Path, archive: Path, identity: Identity) -> bool:
    if how == "delete":
        return after.delete(path, identity=identity)
    return after.archive(path, archive, "sub/a.csv", identity=identity, sha256=hashlib.sha256(CONTENT).hexdigest())


def live(how: str, path: Path, archive: Path, identity: Identity, at: int) -> str:
    """What became of a child that is killed before its operation ``at``: ``killed`` or ``through``."""
    child = os.fork()
    if child == 0:
        left = at

        def hook(event: str, _: tuple[object, ...]) -> None:
            nonlocal left
            if event in _OPERATIONS:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        put_away(how, path, archive, identity)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return "killed"
    if status:
        raise AssertionError(f"the child failed before operation {at}: wait status {status}")
    return "through"


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    how, drop, archive = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    at, life = 0, "killed"
    while life == "killed":
        at += 1
        here, there = drop / str(at), archive / str(at)
        here.mkdir(parents=True)
        path = here / "a.csv"
        path.write_bytes(CONTENT)
        if at % 2:
            (there / "sub").mkdir(parents=True)
            (there / "sub" / "a.csv").write_bytes(OLDER)
        identity = identity_of(path.stat())
        life = live(how, path, there, identity, at)
        between = [tree(here), tree(there)]
        put_away(how, path, there, identity)
        print(json.dumps({"life": life, "between": between, "drop": tree(here), "archive": tree(there)}))  # noqa: T201


if __name__ == "__main__":
    main()
