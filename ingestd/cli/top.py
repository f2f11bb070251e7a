"""`ingestd top`."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ingestd.cli.options import utc_option, with_configuration_path
from ingestd.cli.status import status_text
from ingestd.commands.top_screen import StatusReading, top_screen
from ingestd.process.terminal_text import echo

_ENTER = "\x1b[?1049h\x1b[?25l"
"""The alternate screen, without a cursor."""
_LEAVE = "\x1b[?25h\x1b[?1049l"


@click.command()
@click.option(
    "--interval",
    type=click.FloatRange(min=0.2, max=3600),
    default=1.0,
    show_default=True,
    help="Seconds between readings.",
)
@click.option(
    "--once", is_flag=True, help="Print one screen as text and exit; the default if the output is no terminal."
)
@utc_option
@with_configuration_path
def top(path: Path | None, interval: float, once: bool) -> None:
    """Show pipelines and sinks live: state, pending, rejected, throughput and lag.

    Asks the running daemon, or reads the state file if no daemon runs. The lag of a pipeline is the time since its last run.
    Rates are averages between two readings. q or Ctrl-C ends the display. For programs, use 'ingestd status --json'.

    Example: ingestd top --interval 5
    """

    def read() -> StatusReading:
        return StatusReading(status=json.loads(status_text(path, as_json=True)), at=time.time())

    if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for line in top_screen(read(), None, width=shutil.get_terminal_size().columns):
            echo(line)
        return
    first = read()  # before the screen changes, so that an error stays visible
    with _screen() as wait:
        _show(first, read, wait, interval)


def _show(
    first: StatusReading, read: Callable[[], StatusReading], wait: Callable[[float], str], interval: float
) -> None:
    """Redraw after each interval with a new reading, and at once after a change of the terminal's size."""
    before, now = None, first
    due = time.monotonic() + interval
    while True:
        size = shutil.get_terminal_size()
        lines = top_screen(now, before, width=size.columns, height=size.lines)
        # Each line is cleared to its end, so that the screen does not flicker.
        _write("\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[K\x1b[J")
        if "q" in wait(max(0.0, due - time.monotonic())):
            return
        if time.monotonic() >= due:
            before, now = now, read()
            due = time.monotonic() + interval


@contextmanager
def _screen() -> Iterator[Callable[[float], str]]:
    """Use the terminal for a live display, and always restore it.

    Yield a function that waits for some seconds, for a key, or for a change of the terminal's size, and returns the keys.
    """
    keyboard = sys.stdin.fileno()
    saved = termios.tcgetattr(keyboard)
    awake, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    former_wakeup = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    handlers = {
        signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate),
    }

    def wait(seconds: float) -> str:
        ready = select.select([keyboard, awake], [], [], seconds)[0]
        if awake in ready:
            os.read(awake, 1_024)
        if keyboard not in ready:
            return ""
        return os.read(keyboard, 1_024).decode(errors="replace") or "q"  # a closed terminal reads as end of file: quit

    try:
        tty.setcbreak(keyboard)
        _write(_ENTER)
        yield wait
    except KeyboardInterrupt:
        return
    finally:
        _write(_LEAVE)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, saved)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(former_wakeup)
        os.close(awake)
        os.close(wakeup)


def _terminate(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
