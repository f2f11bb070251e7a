"""One parser process, seen from the parent: start, parsing of one file at a time, cause of death."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import msgspec

import ingestd
from ingestd.sdk import SourceBroken, SourceUnavailable, child_environment, reports_no_memory
from ingestd.sdk.formats.parser_process.messages import (
    Accepted,
    Broken,
    ConnectionEnded,
    Crashed,
    DiskFailed,
    FinalMessage,
    ParseOrder,
    ParserLimits,
    ParsingEnded,
    receive,
    send_order,
)
from ingestd.sdk.formats.record_chunk import RecordChunk

_CHILD = "ingestd.sdk.formats.parser_process.child"
_STDERR_BYTES = 65_536


class ParserProcess:
    """One child process. One thread at a time calls `parse`; any thread may call `kill`."""

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._channel, channel = socket.socketpair()
        self._channel.settimeout(limits.silent_seconds)
        lifeline, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a module of this package, no shell
                [
                    sys.executable,
                    "-P",
                    "-m",
                    _CHILD,
                    str(channel.fileno()),
                    str(lifeline),
                    msgspec.json.encode(limits).decode(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                cwd="/",
                env=child_environment(ingestd.__file__),
                pass_fds=(channel.fileno(), lifeline),
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            self._channel.close()
            os.close(self._lifeline)
            raise SourceUnavailable(f"The parser process can't be started: {error.strerror}.") from error
        finally:
            channel.close()
            os.close(lifeline)
        self.pid = self._process.pid
        self.is_reusable = False
        """True if the last file was read to its end and the process can parse another file."""

    def parse(self, order: ParseOrder, descriptor: int) -> Iterator[RecordChunk]:
        """Yield the chunks of one file. If the caller stops before the file's end, it must `end` the process.

        Raises:
            SourceBroken: the file can't be read, or parsing it ended the process.
            SourceUnavailable: the process could not be started.
            OSError: the system could not read the file.
        """
        self.is_reusable = False
        os.ftruncate(self._stderr.fileno(), 0)
        os.lseek(self._stderr.fileno(), 0, os.SEEK_SET)  # the child shares this offset
        accepted = False
        try:
            send_order(self._channel, order, descriptor)
            while True:
                message = receive(self._channel)
                if isinstance(message, Accepted):
                    accepted = True
                elif isinstance(message, RecordChunk):
                    yield message
                else:
                    self._finish(message, order.file)
                    return
        except TimeoutError as error:
            self.kill()
            raise SourceBroken(self._describe_silence(order.file)) from error
        except (ConnectionEnded, ConnectionError) as error:
            code = self._process.wait()
            if not accepted:
                raise SourceUnavailable(f"The parser process can't be started: {self._describe_end(code)}.") from error
            raise SourceBroken(self._describe_death(order.file, code)) from error

    def _finish(self, message: FinalMessage, file: str) -> None:
        match message:
            case ParsingEnded(reusable=reusable):
                self.is_reusable = reusable
            case Broken(sentence=sentence, reusable=reusable):
                self.is_reusable = reusable
                raise SourceBroken(sentence)
            case DiskFailed(number=number):
                raise OSError(number, os.strerror(number))
            case Crashed(error=error, no_memory=no_memory):
                raise SourceBroken(self._describe_no_memory(file) if no_memory else _describe_failure(file, error))

    def kill(self) -> None:
        """Kill the process. This also ends a call of `parse` that waits for the process."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process, and close its channel, pipe and files."""
        self._process.kill()
        self._process.wait()
        self._channel.close()
        os.close(self._lifeline)
        self._stderr.close()

    def _describe_death(self, file: str, code: int) -> str:
        if code == -signal.SIGXCPU:
            return (
                f"{file} can't be read: parsing it takes more than {self._limits.cpu_seconds} seconds of processor time."
                f" {_ADVICE}"
            )
        if reports_no_memory(self._stderr_tail()):
            return self._describe_no_memory(file)
        if code == -signal.SIGKILL:
            return f"{file} can't be read: the system killed its parser, most often because memory ran out. {_ADVICE}"
        return _describe_failure(file, self._describe_end(code))

    def _describe_no_memory(self, file: str) -> str:
        return (
            f"{file} can't be read: parsing it needs more than {self._limits.memory_bytes >> 20} MiB of memory. The"
            f" file may be damaged. {_ADVICE}"
        )

    def _describe_silence(self, file: str) -> str:
        return (
            f"{file} can't be read: its parser reported nothing for {self._limits.silent_seconds:g} seconds and was"
            f" stopped. {_ADVICE}"
        )

    def _describe_end(self, code: int) -> str:
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self._stderr_tail().decode("utf-8", "replace").strip().splitlines()
        return f"it ended with {how}" + (f" ({lines[-1][:300]})" if lines else "")

    def _stderr_tail(self) -> bytes:
        size = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), _STDERR_BYTES, max(0, size - _STDERR_BYTES))


_ADVICE = "Open it in the program that wrote it, save it again and drop it, or save the data as CSV."


def _describe_failure(file: str, error: str) -> str:
    return f"{file} can't be read: its parser failed, {error}. {_ADVICE}"
