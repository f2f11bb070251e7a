"""How many rejections have which reason, without the values that a reason quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice

from ingestd.mirror.rejections import Rejection

MOST = 100_000
"""Rejections that are counted, the oldest first."""
_KINDS = 200
_WORDS = """
a above accept an and another are as at be been before below bytes can cell character characters column columns contract
converted date decimal digits does duplicate duration each empty entry error expected expression fields file format
found greater group has have header in integer invalid is it its json key keys large less lines list long lookup longer
mapping maximum measure member members minimum missing more must need needs name named no none not null number of one
only or over own permitted permits pipeline pipelines point quantity quote range record records refused rejected row
rows same schema service several short sink source suffix table text than that the there time to too truth two type
types unit unknown used value values whole with without write written wrong zone
"""
_KNOWN_WORDS = frozenset(_WORDS.split())
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_TOKEN = re.compile(r"[^\s.,;:()]+")


def reason_form(reason: str) -> str:
    """Return a reason with only the ordinary words of our own sentences. Everything else becomes an ellipsis."""
    words = [
        token.lower() if token.lower() in _KNOWN_WORDS else "…" for token in _TOKEN.findall(_QUOTED.sub(" … ", reason))
    ]
    kept = [word for index, word in enumerate(words) if word != "…" or index == 0 or words[index - 1] != "…"]
    return " ".join(kept)


def counts_by_reason(rejections: Iterable[Rejection], *, known: Collection[str]) -> list[dict[str, object]]:
    """Return the numbers of the first ``MOST`` rejections by pipeline, subject, HTTP status and form of the reason."""
    found = Counter(
        (one.pipeline if one.pipeline in known else "<text>", one.subject, one.status, reason_form(one.reason))
        for one in islice(rejections, MOST)
    )
    return [
        {"pipeline": pipeline, "subject": subject, "status": status, "reason": form, "rejections": count}
        for (pipeline, subject, status, form), count in found.most_common(_KINDS)
    ]
