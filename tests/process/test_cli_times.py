"""Commands print times in the zone of the account, and in UTC with `--utc`; JSON is in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest

from ingestd.core.clock import moment
from ingestd.daemon.control.time_zone import local_zone, zone_of
from tests.support.engineering_folder import Folder

WINTER, SUMMER = 1_795_723_391.0, 1_782_000_000.0
TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (\w+)")
BERLIN = {"TZ": "Europe/Berlin"}


def test_a_time_has_the_zone_that_was_valid_then() -> None:
    berlin = zone_of("Europe/Berlin")
    assert moment(WINTER, berlin) == "2026-11-26 21:03:11 CET"
    assert moment(SUMMER, berlin) == "2026-06-21 02:00:00 CEST"
    assert moment(WINTER, UTC) == "2026-11-26 20:03:11 UTC"


@pytest.mark.parametrize("name", ["Moon/Base", "../../etc/passwd", "/etc/passwd", "CET-1CEST,M3.5.0", "a\0b"])
def test_a_zone_that_can_not_be_used_is_utc(name: str) -> None:
    assert moment(WINTER, zone_of(name)) == "2026-11-26 20:03:11 UTC"


def test_without_a_name_the_zone_is_that_of_the_machine(tmp_path: Path) -> None:
    tokyo = next(path for folder in TZPATH if (path := Path(folder) / "Asia" / "Tokyo").exists())
    assert moment(WINTER, zone_of("", tokyo)) == "2026-11-27 05:03:11 JST"
    assert moment(WINTER, zone_of("", tmp_path / "none")) == "2026-11-26 20:03:11 UTC"
    assert (local_zone({"TZ": ":Asia/Tokyo"}), local_zone({})) == ("Asia/Tokyo", "")


def zones(text: str) -> set[str]:
    found = TIME.findall(text)
    now = datetime.now(UTC)
    for time, zone in found:
        read = datetime.fromisoformat(time).replace(tzinfo=UTC if zone == "UTC" else ZoneInfo("Europe/Berlin"))
        assert abs(now - read) < timedelta(minutes=10), (time, zone)
    return {zone for _, zone in found}


def here(folder: Folder, *words: str, **variables: str) -> str:
    done = folder.here(*words, **variables)
    assert done.stderr == ""
    return done.stdout


READING = (
    ("status",),
    ("top", "--once"),
    ("why", "budget.csv"),
    ("trace", "00417.mass"),
    ("rejected", "show", "--pipeline", "budget"),
)


def test_every_reading_command_prints_local_times_and_with_utc_the_others(folder: Folder) -> None:
    folder.write("part,mass\n00417,0.10\n,2\n")
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged")
        for words in READING:  # the daemon, which runs in UTC, makes the text of `status` and the sentences of `why`
            local = zones(here(folder, *words, **BERLIN))
            assert local in ({"CET"}, {"CEST"}), words
            assert zones(here(folder, *words, "--utc", **BERLIN)) == {"UTC"}, words
        assert daemon.stop() == 0
    for words in READING:
        assert zones(here(folder, *words, **BERLIN)) in ({"CET"}, {"CEST"}), words
        assert zones(here(folder, *words, "--utc", **BERLIN)) == {"UTC"}, words


def test_sentences_in_json_have_their_times_in_utc(folder: Folder) -> None:
    folder.write("part,mass\n00417,0.10\n")
    assert folder.here("sync").returncode == 0
    for words in (("why", "budget.csv", "--json"), ("why", "--json", "--utc", "budget.csv")):
        assert zones(here(folder, *words, **BERLIN)) == {"UTC"}
