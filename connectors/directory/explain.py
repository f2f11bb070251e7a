"""Explanations of why files are not read in their present state. The functions change nothing, and are thread-safe."""

from __future__ import annotations

from connectors.directory.drop_options import DropOptions
from connectors.directory.folder_state import FolderState
from connectors.directory.scan import is_temporary
from connectors.files.identity import Identity
from connectors.formats import PATTERNS
from ingestd.sdk import Cursor, SourceUnavailable, WaitingFile


def explain_file(state: FolderState, name: str, cursor: Cursor | None) -> str | None:
    """Scan the folder, and return why the file is not read; None if the cursor describes it, or if it does not exist.

    Raises:
        OSError: the file system of the folder does not respond.
    """
    try:
        found = state.drop.scan()
    except SourceUnavailable as error:
        return str(error)
    if name in found.skipped:
        return f"{name} is skipped: {found.skipped[name]}."
    if state.readiness.is_companion(name):
        exists = name in found.files or name in found.empty or state.drop.kind(name) != "absent"
        return f"{name} belongs to other files and is not read itself (ready)." if exists else None
    if name in found.empty:
        return _explain_empty(state, name, found.empty[name])
    identity = found.files.get(name)
    return _explain_unmatched(state, name) if identity is None else _explain_matched(state, name, identity, cursor)


def explain_waiting(state: FolderState, limit: int) -> list[WaitingFile]:
    """Return at most ``limit`` files that the last scan did not select, each with its reason. No new scan is made."""
    found = state.found
    waiting: list[WaitingFile] = []
    for reason, names in state.waiting.items():
        for name in sorted(names)[: limit - len(waiting)]:
            identity = found.files.get(name) or found.empty.get(name)
            if identity is None:
                continue  # a later scan did not find the file
            if name in found.empty:
                sentence: str | None = _explain_empty(state, name, identity)
            else:
                sentence = _explain_matched(state, name, identity, None)
            if sentence is not None:
                waiting.append(WaitingFile(name=name, reason=reason, sentence=sentence))
    return waiting


def _explain_empty(state: FolderState, name: str, identity: Identity) -> str:
    if state.read_files.broken_reason(name, identity) is not None:
        return f"{name} is rejected because it is still empty; it is read once it has content."
    left = state.empty_stability.seconds_left(name, state.context.elapsed())
    limit = f", and rejected if it is still empty in {left:.0f} seconds" if left else ""
    return f"{name} is empty; it is read once it has content and is stable{limit}."


def _explain_matched(state: FolderState, name: str, identity: Identity, cursor: Cursor | None) -> str | None:
    if (reason := state.read_files.broken_reason(name, identity)) is not None:
        return f"{name} can't be read, and is not read again until it changes. {reason}"
    if identity.matches_cursor(cursor):
        return None
    if state.read_files.is_done(name, identity):
        return f"{name} was read, and everything from it is delivered or rejected."
    return _explain_waiting(state, name)


def _explain_waiting(state: FolderState, name: str) -> str:
    left = state.stability.seconds_left(name, state.context.elapsed())
    if left is None:
        return f"{name} has just arrived; the next scan considers it."
    if left > 0:
        return f"{name} must be unchanged for {left:.1f} more seconds (settle_seconds)."
    if missed := state.read_files.missed(state.context.elapsed()).get(name):
        return missed
    if rejection := state.readiness.rejection_reason(name):
        return f"{name} is about to be rejected. {rejection}"
    if reason := state.readiness.waiting_reason(name):
        return f"{name} is stable, but {reason}."
    return f"{name} is stable: it is read next, or what was read from it is not delivered yet."


def _explain_unmatched(state: FolderState, name: str) -> str | None:
    kind = state.drop.kind(name)
    return None if kind == "absent" else f"{name} is skipped: {_mismatch(state.options, name, kind)}."


def _mismatch(options: DropOptions, name: str, kind: str) -> str:
    if kind != "file":
        return "it is not a regular file"
    if is_temporary(name):
        return "it has the name of a hidden, incomplete or system file, such as .name, ~$name, name.part, name~ or desktop.ini"
    if "/" in name and not options.recursive:
        return "it is in a sub-folder, and sub-folders are not scanned (recursive)"
    if options.pattern == PATTERNS:
        return "its name has no suffix of a known format; set pattern, and format if needed"
    return f"its name matches none of {options.patterns_in_words} (pattern)"
