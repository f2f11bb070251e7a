"""Checks of a folder of logs, for `ingestd check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connectors.filesystem import list_names
from connectors.log.folder import LogFolder
from connectors.log.names import LogNames
from connectors.log.options import LogOptions
from ingestd.sdk import SourceBroken, SourceUnavailable, Step, counted

_NAMED = 5


def run_checks(
    folder: LogFolder, names: LogNames, options: LogOptions, format_for: Callable[[str], object]
) -> Iterator[Step]:
    """Yield the results of the checks in order. If the folder can't be listed, only this failure is yielded."""
    try:
        files = folder.files()
    except SourceUnavailable as error:
        yield Step(name="folder", outcome="failed", sentence=str(error))
        return
    yield Step(name="folder", outcome="passed", sentence=f"{folder.path} can be listed.")
    matching = [name for name in files if names.log_of(name) is not None]
    if unreadable := sorted(name for name in matching if not folder.is_readable(name)):
        sentence = f"{counted(len(unreadable), 'file')} can't be read ({list_names(unreadable)}): allow reading them."
        yield Step(name="reading files", outcome="failed", sentence=sentence)
    if folder.unread:
        sentences = list(folder.unread.values())
        more = [f"{len(sentences) - _NAMED} more links are not read."] if len(sentences) > _NAMED else []
        yield Step(name="links", outcome="failed", sentence=" ".join([*sentences[:_NAMED], *more]))
    logs = names.logs(files)
    listed = f": {list_names(logs)}" if logs else ""
    yield Step(name="logs", outcome="passed", sentence=f"{len(logs)} match {', '.join(options.patterns)}{listed}.")
    older = sorted(name for name in matching if not names.is_log(name))
    listed = f": {list_names(older)}" if older else ""
    sentence = f"{counted(len(older), 'rotated file')} for {', '.join(options.rotations)}{listed}."
    yield Step(name="rotated files", outcome="passed", sentence=sentence)
    reasons = []
    for log in logs:
        try:
            format_for(log)
        except SourceBroken as error:
            reasons.append(str(error))
    if reasons:
        yield Step(name="format", outcome="failed", sentence=" ".join(reasons[:_NAMED]))
