"""Exit codes of the commands. click uses 2 for mistakes in the command line; sysexits(3) defines the codes above 64."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes. A number has the same meaning in all commands."""

    DONE = 0
    """The command succeeded."""
    CASE_FAILED = 1
    """`test`: a case is not as expected."""
    BUG = 70
    """An unexpected error; the log has the traceback."""
    OUTPUT_UNWRITABLE = 73
    """The output of a command could not be written."""
    REJECTED = 3
    """`sync`, `plan`: records or entries of the chosen pipelines are rejected."""
    PENDING = 4
    """`sync`: entries were still pending at the end of the time limit."""
    SOURCE_FAILED = 5
    """`sync`, `plan`, `check`: a source is unavailable or can't be read as configured; all other sources were read."""
    DRIFT = 6
    """`drift`: other programs or people added, changed or removed keys of a sink. A repair does not change this code."""
    SINK_UNREADABLE = 7
    """`drift`: a sink could not be read back; all other sinks were compared."""
    HELD = 8
    """`sync`, `plan`: a run of the chosen pipelines waits for approval or discard, or one of these pipelines is paused."""
    CHANGES = 9
    """`plan --exit-code`: a sync would change or deliver entries."""
    PLAN_REFUSED = 10
    """`sync --plan`: the effect differs from the plan; nothing was delivered."""
    STATE_UNUSABLE = 74
    """The state file is damaged, of a newer version, or not accessible for this account. Nothing was changed."""
    STATE_BUSY = 75
    """The state file can't be used now: another process holds it, or the disk is full. A later attempt may succeed.

    `run --standby`: another daemon has taken over; the next start is a standby."""
    CONFIGURATION = 78
    """The configuration has mistakes that a person must correct."""
