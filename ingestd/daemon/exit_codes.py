"""How the daemon's commands end, as exit codes. Usage mistakes are click's 2; those above 64 are of sysexits(3)."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """One meaning a number, over all commands."""

    DONE = 0
    """All that was asked for was done."""
    BUG = 70
    """The daemon did something that its own rules exclude; the log has the traceback."""
    OUTPUT_UNWRITABLE = 73
    """What a command prints could not be written."""
    REJECTED = 3
    """`sync`: records or entries of these pipelines are parked with their reasons."""
    PENDING = 4
    """`sync`: something still waits for delivery when the time is over."""
    SOURCE_FAILED = 5
    """`sync`, `check`: a source is away or can't be read as configured; the others were served."""
    DRIFT = 6
    """`drift`: somebody else added, changed or removed keys of a sink, be it repaired by now or not."""
    SINK_UNREADABLE = 7
    """`drift`: a sink could not be read back; the others were compared."""
    STATE_UNUSABLE = 74
    """The state file is damaged, was written by a newer program, or is not for this account: nothing was touched."""
    STATE_BUSY = 75
    """The state file can't be used now (another process holds it, the disk is full): trying later may help."""
    CONFIGURATION = 78
    """The configuration is wrong: a person has to change it."""
