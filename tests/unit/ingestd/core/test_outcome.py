from __future__ import annotations

import pytest

from ingestd.core.outcome import CLASSES, CODES, FAULTS, STATUSES, Facts, Fault, Outcome, classify, rule_for


def of(status: int, code: str = "", *, words: str = "", retry_after_seconds: float | None = None) -> Outcome:
    return classify(Facts(status=status, code=code, words=words, retry_after_seconds=retry_after_seconds))


@pytest.mark.parametrize(
    ("status", "word", "remedy"),
    [
        (200, "accepted", "none"),
        (201, "accepted", "none"),
        (301, "rejected", "pause"),
        (400, "rejected", "reject"),
        (401, "rejected", "pause"),
        (403, "rejected", "pause"),
        (404, "rejected", "missing"),
        (405, "rejected", "pause"),
        (408, "unreachable", "retry"),
        (409, "rejected", "conflict"),
        (410, "rejected", "missing"),
        (413, "rejected", "shrink"),
        (415, "rejected", "pause"),
        (418, "rejected", "pause"),
        (422, "rejected", "reject"),
        (425, "unreachable", "retry"),
        (429, "throttled", "retry"),
        (500, "unreachable", "retry"),
        (501, "rejected", "pause"),
        (502, "unreachable", "retry"),
        (503, "throttled", "retry"),
        (599, "unreachable", "retry"),
    ],
)
def test_each_status_has_its_outcome(status: int, word: str, remedy: str) -> None:
    outcome = of(status)
    assert (outcome.word, outcome.remedy) == (word, remedy)
    assert str(status) in outcome.sentence


def test_every_possible_status_has_an_outcome() -> None:
    for status in range(100, 600):
        assert of(status).sentence


def test_an_entry_is_rejected_only_for_a_response_about_the_entry_itself() -> None:
    assert {status for status in range(100, 600) if of(status).remedy == "reject"} == {400, 414, 422}


CHANGED = {Fault.KEY_CHANGED, Fault.VALUE_CHANGED}


@pytest.mark.parametrize("fault", sorted({*Fault} - CHANGED, key=str))
def test_a_fault_is_no_success_with_any_status(fault: Fault) -> None:
    for status in (None, 200):
        outcome = classify(Facts(fault=fault, status=status))
        assert (outcome.word, outcome.remedy) == ("unreachable", "retry")


@pytest.mark.parametrize("fault", sorted(CHANGED, key=str))
def test_an_entry_with_another_key_or_value_is_rejected_alone(fault: Fault) -> None:
    outcome = classify(Facts(fault=fault, status=200, words="The response has 'a' in the place of 'A'."))
    assert (outcome.word, outcome.remedy) == ("rejected", "reject")


def test_an_exhausted_quota_waits_for_an_operator_and_running_work_for_its_end() -> None:
    assert of(409, "quota_exceeded").remedy == "pause"
    assert of(409, "request_in_progress").remedy == "retry"
    assert of(409, "duplicate_key").remedy == "conflict"


def test_results_by_item_with_rejections_are_a_partial_rejection() -> None:
    outcome = classify(Facts(status=200, refused=3))
    assert (outcome.word, outcome.remedy, outcome.sentence) == (
        "partly rejected",
        "none",
        "Accepted except 3 items (200).",
    )


def test_the_message_of_the_service_is_in_the_sentence_even_with_braces() -> None:
    assert "{x} too long" in of(400, words="{x} too long").sentence


def test_the_wait_that_the_service_requests_is_kept() -> None:
    assert of(429, retry_after_seconds=7).retry_after_seconds == 7


def test_each_sentence_contains_only_known_facts() -> None:
    rules = [*FAULTS.values(), *STATUSES.values(), *CODES.values(), *CLASSES.values()]
    for rule in rules:
        rule.sentence.format(status=1, words="", location="", refused="")
        assert rule.sentence[0].isupper()
    assert set(FAULTS) == set(Fault)
    assert rule_for(Facts()) is FAULTS[Fault.PROTOCOL]
