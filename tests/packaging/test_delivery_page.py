"""The page about delivery has the table of outcomes of the code. INGESTD_WRITE_GOLDEN=1 rewrites it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ingestd.core.outcome import (
    ANYWHERE,
    CLASSES,
    CODES,
    FAULTS,
    PARTLY,
    STATUSES,
    UNRECOGNIZED,
    Fault,
    OutcomeRule,
    Remedy,
)
from ingestd.settings.service import ServiceSettings

PAGE = Path(__file__).parents[2] / "docs" / "delivery.md"
BLOCK = re.compile(r"(?<=<!-- outcomes: begin -->\n).*?(?=<!-- outcomes: end -->)", re.DOTALL)


_FAULTS: dict[Fault, str] = {
    Fault.REFUSED: "connection refused",
    Fault.NO_ROUTE: "no route to the host",
    Fault.NOT_PERMITTED: "the connection is not permitted on this machine",
    Fault.NO_DESCRIPTORS: "no free file descriptor for the connection",
    Fault.UNRESOLVED: "the host name cannot be resolved",
    Fault.TLS: "an untrusted certificate, or another failure of TLS",
    Fault.NO_TLS: "no TLS at an address with https",
    Fault.PROXY: "the proxy refuses the connection",
    Fault.CONNECT_TIMEOUT: "no connection in time",
    Fault.WRITE_TIMEOUT: "the request cannot be sent in time",
    Fault.READ_TIMEOUT: "no response in time",
    Fault.POOL_TIMEOUT: "no pooled connection is free in time",
    Fault.BROKEN: "the connection breaks, before or after the request was sent, or within the response",
    Fault.PROTOCOL: "the response is not HTTP",
    Fault.UNREADABLE: "2xx with a body that is HTML, truncated, or otherwise malformed",
    Fault.MISMATCH: "2xx with a body about other entries than were sent",
    Fault.KEY_CHANGED: "2xx with the entry under a key that differs in case, in the space around it or in a compatible character",
    Fault.VALUE_CHANGED: "2xx with the entry with another value than was sent, twice in a row",
}
_CLASSES = {1: "any other 1xx", 2: "any other 2xx", 3: "3xx", 4: "any other 4xx", 5: "any other 5xx"}
_REMEDIES: dict[Remedy, str] = {
    "none": "acknowledged",
    "reject": "the bad entry is found and rejected, the other entries are delivered",
    "retry": "stays pending; sent again after a wait",
    "pause": "stays pending; a person must act; retried periodically",
    "shrink": "sent again in halves; rejected if it is a single entry",
    "missing": "the entry, or the whole sink, is created again",
    "conflict": "updated instead of created",
}


def outcome_table() -> str:
    """Return the whole table in Markdown."""
    rows = [f"| {what} | {rule.word} | {_REMEDIES[rule.remedy]} | {_sentence(rule)} |" for what, rule in _rows()]
    return "\n".join(
        ["| response | outcome | effect on the entries | sentence in the log |", "|---|---|---|---|", *rows]
    )


def _rows() -> Iterator[tuple[str, OutcomeRule]]:
    yield "2xx with the body of the operation", CLASSES[2]
    yield "2xx with results by item, some refused", PARTLY
    for status, rule in sorted(STATUSES.items()):
        yield str(status), rule
        yield from ((f"{status} with code `{code}`", special) for (of, code), special in CODES.items() if of == status)
    others = ", ".join(str(status) for status in sorted(ANYWHERE))
    yield f"4xx except {others}, without the form of the service's errors", UNRECOGNIZED
    yield from ((what, CLASSES[number]) for number, what in _CLASSES.items() if number != 2)
    yield from ((_FAULTS[fault], rule) for fault, rule in FAULTS.items())


def _sentence(rule: OutcomeRule) -> str:
    return rule.sentence.format(
        status="*status*", words="*the service's message*", location="*address*", refused="*number*"
    )


def test_the_table_of_outcomes_is_that_of_the_code() -> None:
    # contract M7
    text = PAGE.read_text(encoding="utf-8")
    table = outcome_table() + "\n"
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        PAGE.write_text(BLOCK.sub(lambda _: table, text), encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
    found = BLOCK.search(text)
    assert found is not None
    assert found[0] == table


def test_every_setting_named_on_the_page_exists() -> None:
    named = set(re.findall(r"`([a-z_]+)(?:: [a-z]+)?`", PAGE.read_text(encoding="utf-8")))
    assert {"requests_at_most", "missing_sink", "compress", "gather_seconds"} <= named & set(
        ServiceSettings.model_fields
    )
