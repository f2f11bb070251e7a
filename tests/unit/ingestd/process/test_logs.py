from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from ingestd.process.logs import configure_logs

KEY = "edw_AbCd1234_" + "x" * 43 + "Zz9911"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_without_a_terminal_an_event_is_one_json_line_that_starts_with_time_level_and_name() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    structlog.get_logger().info("batch_committed", pipeline="mass", changed=3)
    (line,) = lines(stream)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("timestamp"))
    assert line == {"level": "info", "event": "batch_committed", "pipeline": "mass", "changed": 3}


def test_on_a_terminal_an_event_is_a_readable_line() -> None:
    stream = Terminal()
    configure_logs(stream=stream)
    structlog.get_logger().warning("source_unavailable", pipeline="mass")
    text = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
    assert text != stream.getvalue()
    assert re.search(r"\[warning\s*\] source_unavailable\s+pipeline=mass\n$", text)


def test_readable_lines_without_a_terminal_have_no_colours() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream, json=False)
    structlog.get_logger().error("stopped")
    assert "\x1b" not in stream.getvalue()
    assert "stopped" in stream.getvalue()


def test_events_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream, level="warning")
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_messages_of_libraries_are_logged_from_warning_with_the_name_of_the_library() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream, level="debug")
    logging.getLogger("httpx").info("HTTP Request: GET /")
    logging.getLogger("watchdog.observers").warning("job %s was late", "mass")
    (line,) = lines(stream)
    assert (line["level"], line["event"]) == ("warning", "library_log")
    assert (line["library"], line["message"]) == ("watchdog.observers", "job mass was late")


def test_secrets_are_masked_in_fields_texts_and_tracebacks() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    log = structlog.get_logger()
    log.info("a", api_key="geheim", url="http://user:geheim@host/")
    log.info("b", nested={"password": ["geheim"]}, text=f"key {KEY}")
    logging.getLogger("sqlalchemy").warning("can't connect to %s", "postgresql://reader:geheim@db/pdm")
    try:
        int(f"postgresql://reader:geheim@db/pdm refused {KEY}")
    except ValueError:
        log.exception("c")
        logging.getLogger("uvicorn.error").exception("library failed")
    assert len(lines(stream)) == 5
    assert "ValueError" in stream.getvalue()
    assert "geheim" not in stream.getvalue()
    assert KEY not in stream.getvalue()


def test_configuring_again_replaces_the_first_handler_and_keeps_foreign_handlers() -> None:
    foreign = logging.NullHandler()
    logging.getLogger().addHandler(foreign)
    first, second = io.StringIO(), io.StringIO()
    configure_logs(stream=first)
    configure_logs(stream=second)
    structlog.get_logger().info("once")
    logging.getLogger("lib").warning("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 2
    assert foreign in logging.getLogger().handlers
