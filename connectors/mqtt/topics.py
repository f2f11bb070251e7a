"""Topic filters with names: ``bench/{bench}/+`` matches like ``bench/+/+`` and names the second level."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_BYTES = 65_535


class TopicFilter(msgspec.Struct, frozen=True):
    """``subscribed``: the filter as the broker gets it. ``names``: the name of each level; empty: it has none."""

    subscribed: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TopicFilter:
        """Return the filter of a setting.

        Raises:
            ValueError: it is not a topic filter.
        """
        levels, names = [], []
        for level in text.split("/"):
            named = _NAMED.fullmatch(level)
            if named is None and ("{" in level or "}" in level):
                raise ValueError(f"the level {level!r} of {text!r} must be one name in braces, such as {{bench}}")
            if len(level) > 1 and ("+" in level or "#" in level):
                raise ValueError(f"the level {level!r} of {text!r} has a wildcard, which must be a whole level")
            levels.append("+" if named is not None else level)
            names.append(named[1] if named is not None else "")
        if "#" in levels[:-1]:
            raise ValueError(f"{text!r} has # before its end")
        if levels[0] in {"$share", "$queue"}:
            raise ValueError(
                f"{text!r} is a shared subscription, which has no order; subscribe to the topics themselves"
            )
        given = [name for name in names if name]
        if len(set(given)) < len(given):
            raise ValueError(f"{text!r} has a name twice")
        subscribed = "/".join(levels)
        if not subscribed or "\0" in subscribed or len(subscribed.encode()) > _MOST_BYTES:
            raise ValueError(f"{text[:100]!r} is no topic filter: it must have 1 to {_MOST_BYTES} bytes, without NUL")
        return cls(subscribed, tuple(names))

    def match(self, topic: str) -> dict[str, str] | None:
        """Return the named levels of a topic; None if the filter does not match it."""
        levels, wanted = topic.split("/"), self.subscribed.split("/")
        if wanted[-1] == "#":
            wanted.pop()
            if len(levels) < len(wanted):
                return None
        elif len(levels) != len(wanted):
            return None
        if topic.startswith("$") and self.subscribed[0] in "+#":
            return None
        if any(want not in {"+", level} for want, level in zip(wanted, levels, strict=False)):
            return None
        return {name: level for name, level in zip(self.names, levels, strict=False) if name}


def topic_facts(filters: Sequence[TopicFilter], topic: str) -> Mapping[str, str] | None:
    """Return the facts of a message by its topic, from the first filter that matches; None if none does."""
    for one in filters:
        parts = one.match(topic)
        if parts is not None:
            return {"mqtt.topic": topic, **{f"mqtt.part.{name}": level for name, level in parts.items()}}
    return None
