"""The table of outcomes in words, for the documentation: one row for whatever can come of a request."""

from __future__ import annotations

from collections.abc import Iterator

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

_FAULTS: dict[Fault, str] = {
    Fault.REFUSED: "nothing listens there, or it refuses",
    Fault.UNRESOLVED: "the host name can't be resolved",
    Fault.TLS: "no TLS, or a certificate that is not trusted",
    Fault.PROXY: "the proxy on the way refuses",
    Fault.CONNECT_TIMEOUT: "no connection in time",
    Fault.WRITE_TIMEOUT: "sending stands still",
    Fault.READ_TIMEOUT: "no answer in time",
    Fault.POOL_TIMEOUT: "no connection of our own is free in time",
    Fault.BROKEN: "the connection breaks, before or after the request was sent, or within the answer",
    Fault.PROTOCOL: "what answers does not speak HTTP",
    Fault.UNREADABLE: "2xx whose body is HTML, cut off, or of another shape",
    Fault.MISMATCH: "2xx whose body speaks of other entries than were sent",
}
_CLASSES = {1: "any other 1xx", 2: "any other 2xx", 3: "3xx", 4: "any other 4xx", 5: "any other 5xx"}
_REMEDIES: dict[Remedy, str] = {
    "none": "settled",
    "park": "the entry at fault is found and parked, the others arrive",
    "retry": "stays pending; tried again after a wait",
    "pause": "stays pending; a person has to act, tried again now and then",
    "shrink": "sent again in halves; parked if it is one entry alone",
    "missing": "looked for: created again, or the sink is",
    "conflict": "updated instead of created",
}


def outcome_table() -> str:
    """The whole table in Markdown."""
    rows = [f"| {what} | {rule.word} | {_REMEDIES[rule.remedy]} | {_said(rule)} |" for what, rule in _rows()]
    return "\n".join(
        ["| what comes back | outcome | what becomes of it | what the log says |", "|---|---|---|---|", *rows]
    )


def _rows() -> Iterator[tuple[str, OutcomeRule]]:
    yield "2xx whose body is what the operation answers", CLASSES[2]
    yield "2xx with results by item, some refused", PARTLY
    for status, rule in sorted(STATUSES.items()):
        yield str(status), rule
        yield from ((f"{status} with code `{code}`", special) for (of, code), special in CODES.items() if of == status)
    others = ", ".join(str(status) for status in sorted(ANYWHERE))
    yield f"4xx but {others} without the form of the service's errors", UNRECOGNIZED
    yield from ((what, CLASSES[number]) for number, what in _CLASSES.items() if number != 2)
    yield from ((_FAULTS[fault], rule) for fault, rule in FAULTS.items())


def _said(rule: OutcomeRule) -> str:
    return rule.sentence.format(
        status="*status*", words="*the service's own words*", location="*address*", refused="*so many*"
    )
