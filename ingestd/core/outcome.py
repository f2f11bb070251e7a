"""What an answer of the service, or its absence, means: one table, no I/O.

An outcome is one of the glossary's five words, a remedy (what the lane does next) and a sentence that tells the
operator what is wrong and what to do. Nothing here gives up: an entry is parked only where the service judged the entry
itself (400, 413 for one alone, 422, 414); every other refusal leaves it pending.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Literal, TypeAlias

Word: TypeAlias = Literal["accepted", "partly rejected", "rejected", "throttled", "unreachable"]

Remedy: TypeAlias = Literal["none", "park", "retry", "pause", "shrink", "missing", "conflict"]
"""none: it worked · park: the service refuses what was sent, find which entry · retry: back off · pause: a person has
to act, ask again now and then · shrink: send less at once · missing: the sink or the key is not there · conflict: it is
there already."""


Denied: TypeAlias = Literal["", "service", "workspace"]
"""What a refusal for want of rights concerns: every request with this key, or those to one workspace."""


class Fault(Enum):
    """What kept a usable answer from us."""

    REFUSED = "refused"
    UNRESOLVED = "unresolved"
    TLS = "tls"
    PROXY = "proxy"
    CONNECT_TIMEOUT = "connect timeout"
    WRITE_TIMEOUT = "write timeout"
    READ_TIMEOUT = "read timeout"
    POOL_TIMEOUT = "pool timeout"
    BROKEN = "broken connection"
    PROTOCOL = "protocol"
    UNREADABLE = "unreadable"
    """A 2xx whose body is not what the operation answers: HTML of a proxy, truncated, no JSON."""
    MISMATCH = "mismatch"
    """A 2xx whose body speaks of other entries than were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of one request.

    ``status`` is None where no answer came. ``fault`` is also set for a 2xx that can't be believed. ``words`` and
    ``code`` are the service's own, out of its problem body. ``refused``: items refused within a 2xx with results by item.
    ``retry_after_seconds``: how long the service asks to wait. ``recognized``: a refusal's body has the form of the
    service's errors.
    """

    status: int | None = None
    fault: Fault | None = None
    words: str = ""
    code: str = ""
    location: str = ""
    retry_after_seconds: float | None = None
    refused: int = 0
    recognized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a request and what to do next. ``retry_after_seconds``: what the service asked for."""

    word: Word
    remedy: Remedy
    sentence: str
    retry_after_seconds: float | None = None
    denied: Denied = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRule:
    """A row of the table. ``sentence`` may name ``{status}``, ``{words}`` and ``{location}``."""

    word: Word
    remedy: Remedy
    sentence: str
    denied: Denied = ""


FAULTS: dict[Fault, OutcomeRule] = {
    Fault.REFUSED: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="Nothing listens at the service's address. Is the service running, and is service.url right?",
    ),
    Fault.UNRESOLVED: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service's host name can't be resolved. Check service.url and the name server.",
    ),
    Fault.TLS: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="No trusted TLS connection to the service. Check its certificate, and that service.url says https.",
    ),
    Fault.PROXY: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The proxy does not lead to the service. Check service.proxy with its user and password, and whether it may "
        "reach service.url.",
    ),
    Fault.CONNECT_TIMEOUT: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service took too long to take the connection. Check the network and firewalls on the way.",
    ),
    Fault.WRITE_TIMEOUT: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service took too long to read the request; whether it took effect is not known. It is sent again; if "
        "this stays, look at the service, or raise service.write_timeout_seconds.",
    ),
    Fault.READ_TIMEOUT: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service took too long to answer; whether the request took effect is not known. It is sent again; if "
        "this stays, look at the service, or raise service.read_timeout_seconds.",
    ),
    Fault.POOL_TIMEOUT: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="All connections to the service were busy for too long. If this stays, lower service.requests_at_most.",
    ),
    Fault.BROKEN: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The connection broke before the answer was complete; whether the request took effect is not known. It is "
        "sent again; if this stays, look at the service and at proxies on the way.",
    ),
    Fault.PROTOCOL: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="What answered does not speak HTTP as it should. Check service.url.",
    ),
    Fault.UNREADABLE: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The answer has status {status} but not the content that the service gives. Does a proxy answer in its place?",
    ),
    Fault.MISMATCH: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The answer has status {status} but does not account for exactly what was sent. {words} It is sent again; if "
        "this stays, report it to whoever runs the service.",
    ),
}

_PROXY = OutcomeRule(
    word="unreachable",
    remedy="retry",
    sentence="A proxy answers that the service behind it does not ({status}). Is the service running? {words}",
)

STATUSES: dict[int, OutcomeRule] = {
    400: OutcomeRule(word="rejected", remedy="park", sentence="The service refuses what was sent (400). {words}"),
    401: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service does not know the API key (401). Put a valid key where service.api_key points to. {words}",
        denied="service",
    ),
    403: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The API key may not do this (403). Ask the workspace's owner for the right to write its data sinks. {words}",
        denied="workspace",
    ),
    404: OutcomeRule(
        word="rejected", remedy="missing", sentence="The service does not have what was addressed (404). {words}"
    ),
    408: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service gave up waiting for the request (408). If this stays, look at the network. {words}",
    ),
    409: OutcomeRule(word="rejected", remedy="conflict", sentence="It is there already (409). {words}"),
    410: OutcomeRule(
        word="rejected", remedy="missing", sentence="What was addressed is gone from the service (410). {words}"
    ),
    413: OutcomeRule(
        word="rejected", remedy="shrink", sentence="The request is larger than the service takes (413). {words}"
    ),
    414: OutcomeRule(
        word="rejected", remedy="park", sentence="The key makes an address longer than the service takes (414). {words}"
    ),
    422: OutcomeRule(word="rejected", remedy="park", sentence="The service can't act on what was sent (422). {words}"),
    425: OutcomeRule(word="unreachable", remedy="retry", sentence="The service asks to send it again (425). {words}"),
    429: OutcomeRule(
        word="throttled",
        remedy="retry",
        sentence="The service asks to send less often (429), and is obeyed. If too much waits, ask for a higher limit. {words}",
    ),
    501: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service does not offer this operation (501). Does service.url point to the workspace service? {words}",
    ),
    502: _PROXY,
    503: OutcomeRule(
        word="throttled",
        remedy="retry",
        sentence="The service is not available for now (503). It is asked again; if this stays, look at the service. {words}",
    ),
    504: _PROXY,
}

CODES: dict[tuple[int, str], OutcomeRule] = {
    (409, "quota_exceeded"): OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="A quota of the service is used up (409). Ask its operator for more room, or remove what is not needed. {words}",
    ),
    (409, "request_in_progress"): OutcomeRule(
        word="throttled", remedy="retry", sentence="The service is still at work on the same request (409)."
    ),
}

CLASSES: dict[int, OutcomeRule] = {
    1: OutcomeRule(
        word="unreachable", remedy="retry", sentence="The service answered {status}, which is no final answer."
    ),
    2: OutcomeRule(word="accepted", remedy="none", sentence="Accepted ({status})."),
    3: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service redirects ({status}) to {location}. Redirects are not followed, for the API key would "
        "travel along; put the service's own address into service.url.",
    ),
    4: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service refuses the request as such ({status}). Does service.url point to the workspace service? {words}",
    ),
    5: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service failed ({status}). It is asked again; if this stays, look at its log. {words}",
    ),
}

ANYWHERE = frozenset({401, 403, 408, 413, 425, 429})
"""Refusals that mean the same from a proxy as from the service."""

UNRECOGNIZED = OutcomeRule(
    word="unreachable",
    remedy="retry",
    sentence="A proxy seems to answer in place of the service: the body of this {status} has not the form of the service's "
    "errors. Nothing is given up; it is sent again. If this stays, look at the proxies on the way, and at service.url.",
)
"""For a refusal (4xx) that is not the service's: it says nothing about an entry or a sink."""

PARTLY = OutcomeRule(word="partly rejected", remedy="none", sentence="Accepted but for {refused} ({status}).")


def rule_for(facts: Facts) -> OutcomeRule:
    """The row of the table that holds."""
    if facts.fault is not None:
        return FAULTS[facts.fault]
    status = facts.status or 0
    if status // 100 == 2 and facts.refused:
        return PARTLY
    if status // 100 == 4 and status not in ANYWHERE and not facts.recognized:
        return UNRECOGNIZED
    found = CODES.get((status, facts.code)) or STATUSES.get(status) or CLASSES.get(status // 100)
    return found or FAULTS[Fault.PROTOCOL]


def judge(facts: Facts) -> Outcome:
    """Return the outcome of a request."""
    if facts.status in {200, 201} and facts.fault is None and not facts.refused:
        return _accepted(facts.status)
    rule = rule_for(facts)
    sentence = rule.sentence.format(
        status=facts.status,
        words=facts.words,
        location=facts.location or "another address",
        refused=f"{facts.refused} item{'s' if facts.refused != 1 else ''}",
    ).strip()
    return Outcome(
        word=rule.word,
        remedy=rule.remedy,
        sentence=sentence,
        retry_after_seconds=facts.retry_after_seconds,
        denied=rule.denied,
    )


@cache
def _accepted(status: int) -> Outcome:
    """The same value for each of thousands of successes."""
    rule = rule_for(Facts(status=status))
    return Outcome(word=rule.word, remedy=rule.remedy, sentence=rule.sentence.format(status=status))


def service_is_away(outcome: Outcome, status: int | None) -> bool:
    """Whether a request's end says that the service as a whole is not there, rather than that it refuses this request.

    No answer, a proxy's answer in its place (502, 504, or a 2xx that can't be believed), or its own word for it (503).
    """
    if status is None or status in {502, 503, 504}:
        return outcome.remedy == "retry"
    return outcome.word == "unreachable" and status < 400
