"""Where files go: those of which everything is settled, with receipt and rejected rows, and those that can't be read.

The order is what a crash leaves whole. First the rejected rows, for they are read from the file; then the file, whose
receipt stands beside the name that it is about to take. Until it has gone, all of it is done again after a crash, to the same
names and with the same content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from connectors.directory import disposal
from connectors.directory.disposal import Note
from connectors.directory.options import DirectoryOptions
from connectors.files import receipt as receipts
from connectors.files.durable_write import shorten_name, write
from connectors.files.file_batches import open_file
from connectors.files.identity import Identity
from connectors.files.quarantine import Quarantined, Source, quarantine
from connectors.filesystem import describe_error
from connectors.formats import Format
from ingestd.sdk import SettleLater, Settlement, SourceBroken, SourceUnavailable

REASON_SUFFIX = ".reason.txt"
_DATES = {"none": "", "year": "%Y", "month": "%Y/%m", "day": "%Y/%m/%d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedFile:
    """A file of which everything is settled: where it is, its name below the folder, which file it is, what became of it."""

    path: Path
    name: str
    identity: Identity
    sha256: str
    settlement: Settlement


class Archiver:
    """Moves files out of a drop folder as its options say; ``base`` is what relative paths start at."""

    def __init__(
        self, options: DirectoryOptions, base: Path, *, format_for: Callable[[str], Format], now: Callable[[], float]
    ) -> None:
        archive = base / options.archive if options.archive is not None else None
        inner = archive if options.after == "archive" else None
        self._options = options
        self._base = base
        self._format_for = format_for
        self._now = now
        self.archive = archive
        self.quarantine = _folder(base, options.quarantine, inner, "rejected")
        self.failed = _folder(base, options.failed, inner, "failed")
        self.receipts = _folder(base, options.receipts, None, "") if options.receipt else None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder that files are written to; no scan goes there."""
        return (*([self.archive] if self.archive is not None else []), *self.places.values())

    @property
    def places(self) -> dict[str, Path]:
        """The folders besides the archive that files are written to, by the names of their settings."""
        found = {"quarantine": self.quarantine, "failed": self.failed, "receipts": self.receipts}
        return {name: folder for name, folder in found.items() if folder is not None}

    def check(self, path: Path, name: str, settlement: Settlement) -> None:
        """Whether a file may go now; looked at before anything that belongs to it goes.

        Raises:
            SettleLater: it is to stay for a while yet.
            SourceUnavailable: it can't be moved.
        """
        left = settlement.ended + self._options.delete_grace_seconds - self._now()
        if self._options.delete_grace_seconds and left > 0:
            raise SettleLater(f"{name} is deleted in {left:.0f} seconds if it is unchanged (delete_grace_seconds).")
        if self._options.after != "keep" and not os.access(path.parent, os.W_OK | os.X_OK):
            raise SourceUnavailable(
                f"{path} can't be moved: its folder can't be written to. It was read and is not read again; allow writing to"
                " the folder, or set after: keep."
            )

    def dispose(self, leaving: AcknowledgedFile) -> None:
        """A file is settled as it is, and may go.

        Raises:
            SourceUnavailable: something can't be written or moved; asked again, it is done then.
        """
        rows = self._quarantine(leaving)
        match self._options.after:
            case "keep":
                self._leave_word(leaving, rows, "It stays where it is.")
            case "archive":
                self._archive(leaving, rows)
            case "delete":
                self._leave_word(leaving, rows, "It is deleted.")
                disposal.delete(leaving.path, identity=leaving.identity)

    def dispose_companion(self, path: Path, name: str, identity: Identity, sha256: str, ended: float) -> None:
        """What lay beside a file goes where the file goes."""
        if self._options.after == "archive":
            disposal.archive(path, self._archive_of(ended), name, identity=identity, sha256=sha256)
        elif self._options.after == "delete":
            disposal.delete(path, identity=identity)

    def move_to_failed(self, path: Path, name: str, identity: Identity, reason: str) -> bool:
        """Move a file that can't be read where such files go, its reason beside it; whether it was moved.

        Raises:
            SourceUnavailable: it can't be moved now.
        """
        if self.failed is None or self._options.after == "keep":
            return False
        try:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {describe_error(error)}") from error
        said = (
            f"{name} could not be read.\n\n{reason}\n\nCorrect the file and drop it again; it may have the same name.\n"
        )
        note = Note(
            place=lambda taken: taken.with_name(taken.name + REASON_SUFFIX),
            content=lambda _: said.encode("utf-8", "backslashreplace"),
        )
        return disposal.archive(path, self.failed, name, identity=identity, sha256=sha256, note=note)

    def _archive(self, leaving: AcknowledgedFile, rows: Quarantined | None) -> None:
        def content(taken: Path) -> bytes:
            return self._word(leaving, rows, f"It is archived as {self._shown(taken)}.")

        note = Note(place=self._receipt_of, content=content) if self._options.receipt else None
        folder = self._archive_of(leaving.settlement.ended)
        disposal.archive(
            leaving.path, folder, leaving.name, identity=leaving.identity, sha256=leaving.sha256, note=note
        )

    def _archive_of(self, ended: float) -> Path:
        if self.archive is None:
            raise SourceBroken("after: archive needs to know where: set archive to a folder.")
        # By when it was read, not by today: done again after midnight, it must find what it did before.
        return self.archive / datetime.fromtimestamp(ended).astimezone().strftime(_DATES[self._options.archive_folders])

    def _receipt_of(self, taken: Path) -> Path:
        if self.receipts is not None and self.archive is not None:
            taken = self.receipts / taken.relative_to(self.archive)
        return taken.with_name(taken.name + receipts.SUFFIX)

    def _leave_word(self, leaving: AcknowledgedFile, rows: Quarantined | None, put: str) -> None:
        if self.receipts is None:
            return
        name = shorten_name(PurePosixPath(leaving.name))
        place = self.receipts / name.with_name(name.name + receipts.SUFFIX)
        try:
            write(place, [self._word(leaving, rows, put)])
        except OSError as error:
            raise SourceUnavailable(f"The receipt {place} can't be written: {describe_error(error)}") from error

    def _word(self, leaving: AcknowledgedFile, rows: Quarantined | None, put: str) -> bytes:
        return receipts.receipt(
            leaving.settlement,
            name=leaving.name,
            put=put,
            sha256=leaving.sha256,
            size=leaving.identity.size,
            quarantine=self._shown(rows.path) if rows is not None and rows.path is not None else "",
            remark=_remark(rows),
        )

    def _quarantine(self, leaving: AcknowledgedFile) -> Quarantined | None:
        if self.quarantine is None or not leaving.settlement.rejected:
            return None
        try:
            opened = open_file(leaving.path, leaving.name)
        except FileNotFoundError:
            return None
        with opened.file:
            if not opened.identity.same_content(leaving.identity):
                return None  # replaced: what is there now has not been read
            source = Source(
                file=cast("BinaryIO", opened.file),
                name=leaving.name,
                sha256=leaving.sha256,
                file_format=self._format_for(leaving.name),
                configured=self._options.format,
            )
            try:
                return quarantine(source, leaving.settlement, self.quarantine)
            except OSError as error:
                raise SourceUnavailable(
                    f"The rejected rows of {leaving.path} can't be written into {self.quarantine}: {describe_error(error)}"
                    " The file stays until they can."
                ) from error

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self._base) if path.is_relative_to(self._base) else path)


def _folder(base: Path, configured: Path | None, archive: Path | None, name: str) -> Path | None:
    if configured is not None:
        return base / configured
    return archive / name if archive is not None else None


def _remark(rows: Quarantined | None) -> str:
    if rows is None:
        return ""
    elsewhere = (
        f"{rows.elsewhere} are of an earlier content; `ingestd rejected list` has them." if rows.elsewhere else ""
    )
    return f"{rows.sentence} {elsewhere}".strip()
