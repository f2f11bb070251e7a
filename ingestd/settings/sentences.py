"""Converts errors of pydantic to sentences for the author of the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo

from ingestd.core.phrases import as_sentence, counted, nearest, shortened
from ingestd.settings.node import FoundNode, Node, Scalar, described, resolve
from ingestd.settings.validation import SENTENCE

Context = Mapping[str, Any]

WRONG_KIND: Final[Mapping[str, str]] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "dataclass_type": "a mapping of keys to values",
    "path_type": "a path",
    "none_required": "nothing",
}
_WRONG_VALUE: Final[Mapping[str, Callable[[Context], str]]] = {
    "greater_than": lambda context: f"a number above {context['gt']:g}",
    "greater_than_equal": lambda context: f"a number of {context['ge']:g} or more",
    "less_than": lambda context: f"a number below {context['lt']:g}",
    "less_than_equal": lambda context: f"a number of {context['le']:g} or less",
    "multiple_of": lambda context: f"a multiple of {context['multiple_of']:g}",
    "finite_number": lambda _: "a finite number",
    "string_too_short": lambda context: f"text of {counted(context['min_length'], 'character')} or more",
    "string_too_long": lambda context: f"text of {counted(context['max_length'], 'character')} or fewer",
    "string_pattern_mismatch": lambda context: f"text of the form {context['pattern']}",
    "too_short": lambda context: f"a list of {counted(context['min_length'], 'item')} or more",
    "too_long": lambda context: f"a list of {counted(context['max_length'], 'item')} or fewer",
    "literal_error": lambda context: str(context["expected"]),
    "enum": lambda context: str(context["expected"]),
}
_YAML_1_1_BOOLEANS: Final = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
QUOTES_THE_VALUE: Final = frozenset({SENTENCE, "value_error", "assertion_error"})
"""Errors with a text from a validator, which may quote the value."""


def expected(kind: str, context: Context) -> str | None:
    """Return what the setting expects, for the pydantic error ``kind``; None if only the error's message says this."""
    if kind in WRONG_KIND:
        return WRONG_KIND[kind]
    return _WRONG_VALUE[kind](context) if kind in _WRONG_VALUE else None


def mismatch(kinds: list[tuple[str, Context]], found: FoundNode, *, hidden: bool) -> str:
    """Return a sentence with the expected alternatives and the value found."""
    if isinstance(found.node, Scalar):
        # For a secret text of the wrong length, pydantic reports the error of a list.
        kinds = [(f"string_{kind}" if kind in {"too_short", "too_long"} else kind, context) for kind, context in kinds]
    phrases = list(dict.fromkeys(phrase for kind, context in kinds if (phrase := expected(kind, context))))
    node = found.node
    shown = "a value that is not shown" if hidden else described(node)
    hints = "" if hidden else "".join(dict.fromkeys(_hint(kind, context, node) for kind, context in kinds))
    if (
        any(kind == "string_type" for kind, _ in kinds)
        and isinstance(node, Scalar)
        and isinstance(node.value, int | float)
    ):
        hints = " Put it in quotes." if hidden else f' Put it in quotes: "{shortened(node.text)}".'
    return f"Expected {' or '.join(phrases)}, found {shown}.{hints}"


def unknown(key: str, names: Mapping[str, FieldInfo]) -> str:
    """Return the sentence for an unknown key."""
    return f"There is no key '{shortened(key)}' here.{nearest(key, names) or _listed(names)}"


def missing(key: str, field: FieldInfo | None) -> str:
    """Return the sentence for a missing key."""
    meaning = f": {field.description}" if field is not None and field.description else "."
    return f"The key '{key}' is missing{meaning}"


def misspelled(written: str, key: str) -> str:
    """Return a hint that ``written`` may be a misspelled ``key``, with a leading space; empty if they are not similar."""
    return f" There is '{shortened(written)}'.{hint}" if (hint := nearest(written, [key])) else ""


def withheld(field: FieldInfo | None, written: str | None, *, is_empty: bool) -> str:
    """Return the sentence for an error if its reason may contain a secret. The sentence omits the reason."""
    meaning = f" Expected: {field.description}" if field is not None and field.description else ""
    what = f"The value of {shortened(written)}" if written is not None else "This value"
    if is_empty:
        return f"{what} is empty.{meaning}"
    return f"{what} is not valid. The reason may contain a secret, so it is not shown.{meaning}"


def from_message(kind: str, message: str, context: Context) -> str:
    """Return the message of a validator or of pydantic as a sentence."""
    if kind == SENTENCE:
        return str(context["sentence"])
    text = re.sub(r"^(Value error|Assertion failed), ", "", message).strip() or "This value is not valid"
    return as_sentence(text)


def _hint(kind: str, context: Context, node: Node) -> str:
    if not isinstance(node, Scalar):
        return ""
    if kind in {"literal_error", "enum"}:
        return nearest(node.text, re.findall(r"'([^']*)'", str(context["expected"])))
    wanted = WRONG_KIND.get(kind)
    if wanted == "true or false" and node.text.lower() in _YAML_1_1_BOOLEANS:
        return f" In YAML 1.2 '{node.text}' is a text; write {_YAML_1_1_BOOLEANS[node.text.lower()]}."
    if wanted in {"a number", "a whole number"}:
        return _number_hint(node)
    return ""


def _number_hint(node: Scalar) -> str:
    without = node.text.replace("_", "")
    if without != node.text and isinstance(resolve(without), int | float):
        return f" In YAML 1.2 a number has no '_'; write {without}."
    return " Remove the quotes." if not node.plain and isinstance(resolve(node.text), int | float) else ""


def _listed(names: Mapping[str, FieldInfo]) -> str:
    return f" Expected one of: {', '.join(names)}." if names else ""
