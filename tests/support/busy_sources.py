"""Sources that change continuously: a folder in which files appear in two ways, and a table."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

STABLE_SECONDS = 0.5
_KEYS = 40


class BusySources:
    """A thread that changes the sources until the context ends. The attributes have the expected results afterwards.

    ``entries``: the last value of each key over all files. ``files``: the bytes of each file by its unique name. ``rows``: the
    final mass of each part in the table.
    """

    def __init__(self, folder: Path, database: Path, *, seed: int) -> None:
        self.entries: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self.rows: dict[str, str] = {}
        self._folder = folder
        self._database = database
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="busy sources", daemon=True)
        folder.mkdir()
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("CREATE TABLE part (number TEXT PRIMARY KEY, mass TEXT NOT NULL)")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            with closing(sqlite3.connect(self._database, timeout=30)) as connection:
                while not self._ended.wait(self._random.uniform(0.02, 0.2)):
                    self._drop_renamed()
                    self._drop_slowly()
                    self._change_table(connection)
        except BaseException as error:  # noqa: BLE001 - raised in the test's thread
            self._failure = error

    def _drop_renamed(self) -> None:
        """Write the file outside the folder, then rename it into the folder, as exporters should."""
        self._rename_into_place(*self._new_file())

    def _drop_slowly(self) -> None:
        """Write a file in place, line by line. No pause is as long as `STABLE_SECONDS`."""
        name, lines = self._new_file()
        longest, before = 0.0, time.monotonic()
        with (self._folder / name).open("w", newline="") as file:
            for line in lines:
                file.write(line)
                file.flush()
                self._ended.wait(0.005)
                now = time.monotonic()
                longest, before = max(longest, now - before), now
        if longest > STABLE_SECONDS * 0.8:
            # A slow machine made a pause too long, so the daemon may have read an incomplete file. Write all rows as a new file.
            self._rename_into_place(self._register(lines), lines)

    def _rename_into_place(self, name: str, lines: Sequence[str]) -> None:
        written = self._folder.with_name("being-written")
        written.write_text("".join(lines), newline="")
        written.rename(self._folder / name)

    def _register(self, lines: Sequence[str]) -> str:
        """Record a file with these lines; return its unique name. Names sort in the order of the drops."""
        name = f"{len(self.files):05}.csv"
        self.files[name] = "".join(lines).encode()
        return name

    def _new_file(self) -> tuple[str, list[str]]:
        serial = len(self.files)
        made = [
            (f"P-{self._random.randrange(_KEYS):02}", f"{serial}.{row}0") for row in range(self._random.randint(1, 8))
        ]
        lines = ["part,mass\n", *(f"{key},{value}\n" for key, value in made)]
        self.entries.update(made)
        return self._register(lines), lines

    def _change_table(self, connection: sqlite3.Connection) -> None:
        number = f"D-{self._random.randrange(_KEYS):02}"
        with connection:
            if number in self.rows and self._random.random() < 0.3:
                connection.execute("DELETE FROM part WHERE number = ?", (number,))
                del self.rows[number]
            else:
                mass = f"{self._random.random():.6f}0"
                connection.execute("INSERT OR REPLACE INTO part VALUES (?, ?)", (number, mass))
                self.rows[number] = mass
