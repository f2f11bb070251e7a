"""The table that classifies responses and missing responses. Performs no I/O.

An outcome has one of five words (`Word`) and a remedy: what the lane does next. Its sentence states for the
operator what is wrong and what to do. An entry is rejected only if the service refuses the entry itself (400, 413 for a single
entry, 414, 422). After every other refusal the entry stays pending.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Literal, TypeAlias

import msgspec

Word: TypeAlias = Literal["accepted", "partly rejected", "rejected", "throttled", "unreachable"]

Remedy: TypeAlias = Literal["none", "reject", "retry", "pause", "shrink", "missing", "conflict"]
"""none: success · reject: find the entry that the service refuses and reject it · retry: back off · pause: a person must act;
retry periodically · shrink: send smaller requests · missing: the sink or the key does not exist · conflict: the sink or the key
exists already."""


Denied: TypeAlias = Literal["", "service", "workspace"]
"""The requests to which access was denied: every request with this API key, or the requests to one workspace."""


class Fault(Enum):
    """The reason why there is no usable response."""

    REFUSED = "refused"
    NO_ROUTE = "no route"
    NOT_PERMITTED = "not permitted"
    NO_DESCRIPTORS = "no descriptors"
    UNRESOLVED = "unresolved"
    TLS = "tls"
    NO_TLS = "no tls"
    PROXY = "proxy"
    CONNECT_TIMEOUT = "connect timeout"
    WRITE_TIMEOUT = "write timeout"
    READ_TIMEOUT = "read timeout"
    POOL_TIMEOUT = "pool timeout"
    BROKEN = "broken connection"
    PROTOCOL = "protocol"
    UNREADABLE = "unreadable"
    """A 2xx response with an invalid body for the operation: HTML of a proxy, truncated, or no JSON."""
    MISMATCH = "mismatch"
    KEY_CHANGED = "key_changed"
    VALUE_CHANGED = "value_changed"
    """MISMATCH: a 2xx response that does not match the request. KEY_CHANGED, VALUE_CHANGED: the service has changed the key or
    the value of an entry."""


NEVER_SENT = frozenset(
    {
        *(Fault.REFUSED, Fault.NO_ROUTE, Fault.NOT_PERMITTED, Fault.NO_DESCRIPTORS),
        *(Fault.UNRESOLVED, Fault.TLS, Fault.NO_TLS, Fault.PROXY, Fault.CONNECT_TIMEOUT, Fault.POOL_TIMEOUT),
    }
)
"""Faults that occur before anything of the request is sent."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one request that its outcome depends on.

    ``status``: None without a response. ``fault`` is also set for a 2xx response that is not credible. ``words`` and ``code``
    are from the service's problem body. ``refused``: the number of refused items in a 2xx response with results by item.
    ``retry_after_seconds``: the requested wait. ``recognized``: the body of a refusal has the form of the service's errors.
    """

    status: int | None = None
    fault: Fault | None = None
    words: str = ""
    code: str = ""
    location: str = ""
    retry_after_seconds: float | None = None
    refused: int = 0
    recognized: bool = True


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a request. ``retry_after_seconds``: the wait that the service requests."""

    word: Word
    remedy: Remedy
    sentence: str
    retry_after_seconds: float | None = None
    denied: Denied = ""


class OutcomeRule(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table. ``sentence`` may contain ``{status}``, ``{words}`` and ``{location}``."""

    word: Word
    remedy: Remedy
    sentence: str
    denied: Denied = ""


_UNREACHABLE: dict[Fault, str] = {
    Fault.REFUSED: "Nothing listens at the service's address. Check that the service runs, and check service.url.",
    Fault.NO_ROUTE: "No network of this machine leads to the service. Check the network, and check service.url.",
    Fault.NOT_PERMITTED: (
        "This machine does not permit the connection to the service. Check its firewall and the sandbox of the unit."
    ),
    Fault.NO_DESCRIPTORS: (
        "The daemon may open no more files and connections. Raise LimitNOFILE of its unit, or the limit of the system."
    ),
    Fault.UNRESOLVED: "The service's host name cannot be resolved. Check service.url and the name server.",
    Fault.TLS: "No trusted TLS connection to the service. Check its certificate.",
    Fault.NO_TLS: (
        "The program that listens at the https address does not speak TLS. Write http:// in service.url, or correct its port."
    ),
    Fault.PROXY: (
        "The proxy does not connect to the service. Check service.proxy with its user and password, and whether the "
        "proxy may connect to service.url."
    ),
    Fault.CONNECT_TIMEOUT: "The service took too long to accept the connection. Check the network and the firewalls.",
    Fault.WRITE_TIMEOUT: (
        "The service took too long to read the request. Whether it took effect is unknown, and it is sent again. If "
        "this continues, check the service, or raise service.write_timeout_seconds."
    ),
    Fault.READ_TIMEOUT: (
        "The service took too long to respond. Whether the request took effect is unknown, and it is sent again. If "
        "this continues, check the service, or raise service.read_timeout_seconds."
    ),
    Fault.POOL_TIMEOUT: (
        "All connections to the service were busy for too long. If this continues, lower service.requests_at_most."
    ),
    Fault.BROKEN: (
        "The connection broke before the response was complete. Whether the request took effect is unknown, and it is "
        "sent again. If this continues, check the service and the proxies before it. If the service has TLS, service.url "
        "begins with https."
    ),
    Fault.PROTOCOL: "The response is not valid HTTP. Check service.url.",
    Fault.UNREADABLE: (
        "The response has status {status} but not the content of the service. Check whether a proxy responds "
        "instead. {words}"
    ),
    Fault.MISMATCH: (
        "The response has status {status} but does not cover exactly what was sent. {words} The request is sent again. "
        "If this continues, report it to the service's operator."
    ),
}

FAULTS: dict[Fault, OutcomeRule] = {
    **{fault: OutcomeRule(word="unreachable", remedy="retry", sentence=text) for fault, text in _UNREACHABLE.items()},
    Fault.KEY_CHANGED: OutcomeRule(
        word="rejected",
        remedy="reject",
        sentence="The service keeps this entry under another key (status {status}). {words} Other entries may have the same key "
        "in the service, so this entry cannot be followed. Make a key that the service does not change.",
    ),
    Fault.VALUE_CHANGED: OutcomeRule(
        word="rejected",
        remedy="reject",
        sentence="The service stores another value than was sent (status {status}). {words} Send a value that the service does "
        "not change.",
    ),
}

_PROXY = OutcomeRule(
    word="unreachable",
    remedy="retry",
    sentence="A proxy reports that the service does not respond ({status}). Check that the service runs. {words}",
)

STATUSES: dict[int, OutcomeRule] = {
    400: OutcomeRule(word="rejected", remedy="reject", sentence="The service refuses what was sent (400). {words}"),
    401: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service does not know the API key (401). Put a valid key in the place that service.api_key names. {words}",
        denied="service",
    ),
    403: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The API key may not do this (403). Ask the workspace's owner for the right to write its data sinks. {words}",
        denied="workspace",
    ),
    404: OutcomeRule(
        word="rejected", remedy="missing", sentence="The service does not have the requested resource (404). {words}"
    ),
    408: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service stopped waiting for the request (408). If this continues, check the network. {words}",
    ),
    409: OutcomeRule(word="rejected", remedy="conflict", sentence="The sink or entry exists already (409). {words}"),
    410: OutcomeRule(
        word="rejected", remedy="missing", sentence="The requested resource was removed from the service (410). {words}"
    ),
    413: OutcomeRule(
        word="rejected", remedy="shrink", sentence="The request is larger than the service accepts (413). {words}"
    ),
    414: OutcomeRule(
        word="rejected",
        remedy="reject",
        sentence="The key makes an address longer than the service accepts (414). {words}",
    ),
    422: OutcomeRule(
        word="rejected", remedy="reject", sentence="The service cannot process what was sent (422). {words}"
    ),
    425: OutcomeRule(
        word="unreachable", remedy="retry", sentence="The service asks to send the request again (425). {words}"
    ),
    429: OutcomeRule(
        word="throttled",
        remedy="retry",
        sentence="The service limits the request rate (429), and the daemon complies. If too much is pending, request a higher "
        "limit. {words}",
    ),
    501: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service does not offer this operation (501). Check that service.url is the workspace service. {words}",
    ),
    502: _PROXY,
    503: OutcomeRule(
        word="throttled",
        remedy="retry",
        sentence="The service is not available now (503). The request is sent again. If this continues, check the service. "
        "{words}",
    ),
    504: _PROXY,
}

CODES: dict[tuple[int, str], OutcomeRule] = {
    (409, "quota_exceeded"): OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="A quota of the service is used up (409). Request a larger quota, or remove what is not needed. {words}",
    ),
    (409, "request_in_progress"): OutcomeRule(
        word="throttled", remedy="retry", sentence="The service is still processing the same request (409)."
    ),
    (409, "writer_fenced"): OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="Another process writes with a copy of this state file, or has taken over from this one (409). Stop one of "
        "them, then restart the other one. {words}",
    ),
}

CLASSES: dict[int, OutcomeRule] = {
    1: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service responded with {status}, which is not a final response.",
    ),
    2: OutcomeRule(word="accepted", remedy="none", sentence="Accepted ({status})."),
    3: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service redirects ({status}) to {location}. Redirects are not followed, because they would send the API "
        "key there. Set service.url to the service's own address.",
    ),
    4: OutcomeRule(
        word="rejected",
        remedy="pause",
        sentence="The service refuses the request itself ({status}). Check that service.url is the workspace service. {words}",
    ),
    5: OutcomeRule(
        word="unreachable",
        remedy="retry",
        sentence="The service failed ({status}). The request is sent again. If this continues, check the service's log. {words}",
    ),
}

ANYWHERE = frozenset({401, 403, 408, 413, 425, 429})
"""Refusals with the same meaning from a proxy and from the service."""

UNRECOGNIZED = OutcomeRule(
    word="unreachable",
    remedy="retry",
    sentence="A proxy seems to respond instead of the service: the body of this {status} does not have the form of the service's "
    "errors. The request is sent again, and nothing is rejected. If this continues, check the proxies and service.url.",
)
"""The row for a refusal (4xx) by a program other than the service. The refusal states nothing about an entry or a sink."""

PARTLY = OutcomeRule(word="partly rejected", remedy="none", sentence="Accepted except {refused} ({status}).")


def rule_for(facts: Facts) -> OutcomeRule:
    """Return the row of the table that applies to these facts."""
    if facts.fault is not None:
        return FAULTS[facts.fault]
    status = facts.status or 0
    if status // 100 == 2 and facts.refused:
        return PARTLY
    if status // 100 == 4 and status not in ANYWHERE and not facts.recognized:
        return UNRECOGNIZED
    found = CODES.get((status, facts.code)) or STATUSES.get(status) or CLASSES.get(status // 100)
    return found or FAULTS[Fault.PROTOCOL]


def classify(facts: Facts) -> Outcome:
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
    """Return the outcome of a success; cached, because most responses are successes."""
    rule = rule_for(Facts(status=status))
    return Outcome(word=rule.word, remedy=rule.remedy, sentence=rule.sentence.format(status=status))


def may_take_effect(facts: Facts) -> bool:
    """Return whether a request may still take effect after its response, or after the client stopped waiting for a response.

    After a refusal by a proxy, or a server error, the request may still reach the service.
    """
    if facts.fault is not None:
        return facts.fault not in NEVER_SENT
    status = facts.status or 0
    if 200 <= status < 300:
        return False
    return not 400 <= status < 500 or status == 408 or (status not in ANYWHERE and not facts.recognized)


def service_is_away(outcome: Outcome, status: int | None) -> bool:
    """Return True if the service as a whole is unreachable or overloaded; False for a refusal of one request.

    True for: no response, a response of a proxy (502, 504, or a 2xx that is not credible), or a 503.
    """
    if status is None or status in {502, 503, 504}:
        return outcome.remedy == "retry"
    return outcome.word == "unreachable" and status < 400
