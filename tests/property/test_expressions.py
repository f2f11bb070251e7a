"""An expression gives what plain Python computes with fractions, record by record, or rejects the same records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec, Mapping

Record: TypeAlias = dict[str, str | None]
Value: TypeAlias = Fraction | str | bool | None

LIMIT = Fraction(10) ** 19
UNIT = Fraction(1, 10**18)
FIELDS = ["a", "b", "mass kg"]
NUMBERS = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-10**6, max_value=10**6).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["0", "-0", "+1", "1e-7", "1E3", ".5", "2.", "0.1", "3", "9999999999999999999.999999999999999999", "1e19",
                     "1e-18", "1e-19", "1e999999999", "0.000000000000000001", "00417", "5e-1"]),
)  # fmt: skip
CELLS = st.one_of(
    st.none(), NUMBERS, st.sampled_from(["", " 1", "x", "1,5", "٣", "1_0", "NaN", "a-b", "Bolt", "bolt "])
)


class Refused(Exception):
    """The record can't be used."""


@dataclass(frozen=True)
class Made:
    """An expression: its SQL, and what it gives for a record."""

    sql: str
    of: Callable[[Record], Value]


def number(text: Value) -> Fraction | None:
    """Return text as a number."""
    if text is None or isinstance(text, Fraction):
        return text
    assert isinstance(text, str)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Refused
    decimal = Decimal(text)
    if decimal.adjusted() > 30 and decimal:
        raise Refused
    return fitting(Fraction(decimal))


def fitting(value: Fraction) -> Fraction:
    if abs(value) >= LIMIT or value % UNIT:
        raise Refused
    return value


def half_away(value: Fraction, step: Fraction) -> Fraction:
    size = (abs(value) / step + Fraction(1, 2)).__floor__() * step
    return size if value >= 0 else -size


def as_text(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, Fraction):
        return value
    digits = f"{abs(value.numerator) * 10**18 // value.denominator:019d}"
    text = f"{digits[:-18]}.{digits[-18:]}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text


def field(name: str) -> Made:
    return Made(name if name.isidentifier() else f'"{name}"', lambda record: record.get(name))


def literal(text: str) -> Made:
    return Made(text, lambda _: Fraction(Decimal(text)))


def arithmetic(left: Made, sign: str, right: Made) -> Made:
    def of(record: Record) -> Value:
        found = exact(record)
        return None if found is None else fitting(found)

    def exact(record: Record) -> Fraction | None:
        first, second = number(left.of(record)), number(right.of(record))
        if sign == "/" and second == 0:
            raise Refused
        if first is None or second is None:
            return None
        return {"+": lambda: first + second, "-": lambda: first - second, "*": lambda: first * second,
                "/": lambda: first / second}[sign]()  # fmt: skip

    made = Made(f"({left.sql} {sign} {right.sql})", of)
    _EXACT[made.sql] = exact
    return made


_EXACT: dict[str, Callable[[Record], Fraction | None]] = {}


def rounding(inner: Made, decimals: int) -> Made:
    def of(record: Record) -> Value:
        step = Fraction(1, 10**decimals)
        exact = _EXACT[inner.sql](record)
        if exact is None:
            return None
        first = round(exact / UNIT) * UNIT  # round() is half to even, as polars
        if abs(first) >= LIMIT:
            raise Refused
        if exact != first and (first / step) % 1 == Fraction(1, 2):
            raise Refused
        return half_away(first, step)

    return Made(f"ROUND({inner.sql}, {decimals})", of)


def unary(name: str, inner: Made, compute: Callable[[Fraction], Fraction]) -> Made:
    def of(record: Record) -> Value:
        found = number(inner.of(record))
        return None if found is None else fitting(compute(found))

    return Made(f"{name}({inner.sql})", of)


def text_function(sql: str, inner: Made, compute: Callable[[str], Value]) -> Made:
    def of(record: Record) -> Value:
        found = as_text(inner.of(record))
        return None if found is None else compute(found)

    return Made(sql.replace("?", inner.sql), of)


def compared(left: Made, sign: str, right: Made) -> Made:
    def of(record: Record) -> Value:
        first, second = number(left.of(record)), number(right.of(record))
        if first is None or second is None:
            return None
        return {"=": first == second, "<>": first != second, "<": first < second, ">=": first >= second}[sign]

    return Made(f"({left.sql} {sign} {right.sql})", of)


def both(left: Made, word: str, right: Made) -> Made:
    def of(record: Record) -> Value:
        decided = word == "OR"
        first = left.of(record)
        if first is decided:
            return decided
        second = right.of(record)
        if second is decided:
            return decided
        return None if first is None or second is None else not decided

    return Made(f"({left.sql} {word} {right.sql})", of)


def negated(inner: Made) -> Made:
    def of(record: Record) -> Value:
        found = inner.of(record)
        return None if found is None else not found

    return Made(f"(NOT {inner.sql})", of)


def chosen(condition: Made, first: Made, second: Made) -> Made:
    def of(record: Record) -> Value:
        return first.of(record) if condition.of(record) is True else second.of(record)

    return Made(f"CASE WHEN {condition.sql} THEN {first.sql} ELSE {second.sql} END", of)


def coalesced(first: Made, second: Made) -> Made:
    def of(record: Record) -> Value:
        found = first.of(record)
        return second.of(record) if found is None else found

    return Made(f"COALESCE({first.sql}, {second.sql})", of)


def is_missing(inner: Made) -> Made:
    return Made(f"({inner.sql} IS NULL)", lambda record: inner.of(record) is None)


fields = st.sampled_from(FIELDS).map(field)
literals = st.sampled_from(["1", "2", "3", "0.5", "1000", "7e-3", "25.4"]).map(literal)


def extended(inner: st.SearchStrategy[Made]) -> st.SearchStrategy[Made]:
    sums = st.builds(arithmetic, inner, st.sampled_from("+-"), inner)
    products = st.builds(arithmetic, inner, st.sampled_from("*/"), inner)
    conditions = st.one_of(
        st.builds(compared, inner, st.sampled_from(["=", "<>", "<", ">="]), literals), inner.map(is_missing)
    )
    combined = st.one_of(
        conditions, st.builds(both, conditions, st.sampled_from(["AND", "OR"]), conditions), conditions.map(negated)
    )
    return st.one_of(
        sums,
        products,
        st.builds(rounding, products, st.integers(0, 6)),
        inner.map(lambda made: unary("ABS", made, abs)),
        inner.map(lambda made: unary("-", made, lambda value: -value)),
        inner.map(lambda made: unary("FLOOR", made, lambda value: Fraction(value.__floor__()))),
        inner.map(lambda made: unary("CEIL", made, lambda value: Fraction(value.__ceil__()))),
        st.builds(chosen, combined, sums, products),
        st.builds(coalesced, products, literals),
    )


numeric = st.recursive(st.one_of(fields, literals), extended, max_leaves=6)
conditions = st.builds(
    both,
    st.builds(compared, numeric, st.sampled_from(["=", "<"]), literals),
    st.sampled_from(["AND", "OR"]),
    st.builds(compared, numeric, st.sampled_from(["<>", ">="]), literals),
)


@st.composite
def texts(draw: st.DrawFn) -> Made:
    made = draw(fields)
    for _ in range(draw(st.integers(1, 3))):
        made = draw(st.sampled_from(_TEXT_FUNCTIONS))(made)
    return made


_TEXT_FUNCTIONS: Sequence[Callable[[Made], Made]] = [
    lambda made: text_function("UPPER(?)", made, str.upper),
    lambda made: text_function("LOWER(?)", made, str.lower),
    lambda made: text_function("TRIM(?)", made, lambda text: text.strip(" ")),
    lambda made: text_function("LTRIM(?, '01')", made, lambda text: text.lstrip("01")),
    lambda made: text_function("SUBSTR(?, 2, 3)", made, lambda text: text[1:4]),
    lambda made: text_function("SUBSTR(?, 3)", made, lambda text: text[2:]),
    lambda made: text_function("LEFT(?, 2)", made, lambda text: text[:2]),
    lambda made: text_function("RIGHT(?, 2)", made, lambda text: text[-2:]),
    lambda made: text_function("REPLACE(?, '.', '$1')", made, lambda text: text.replace(".", "$1")),
    lambda made: text_function("(? || '/' || ?)", made, lambda text: f"{text}/{text}"),
    lambda made: text_function("LENGTH(?)", made, lambda text: Fraction(len(text))),
    lambda made: text_function("SPLIT_PART(?, '-', 2)", made, lambda text: [*text.split("-"), ""][1]),
    lambda made: text_function("STARTS_WITH(?, '1')", made, lambda text: text.startswith("1")),
    lambda made: text_function("CONTAINS(?, 'o')", made, lambda text: "o" in text),
    lambda made: text_function("(? LIKE '_o%')", made, lambda text: re.fullmatch(".o.*", text, re.DOTALL) is not None),
    lambda made: text_function("(? NOT LIKE '%.%')", made, lambda text: "." not in text),
    lambda made: text_function("NULLIF(LOWER(?), '')", made, lambda text: text.lower() or None),
    lambda made: text_function("REGEXP_EXTRACT(?, '([0-9]+)', 1)", made, _first_digits),
]


def _first_digits(text: str) -> str | None:
    found = re.search("[0-9]+", text)
    return found[0] if found else None


records = st.lists(st.fixed_dictionaries(dict.fromkeys(FIELDS, CELLS)), min_size=1, max_size=5)


def frame_of(rows: Sequence[Record]) -> pl.DataFrame:
    return pl.DataFrame({name: [row[name] for row in rows] for name in FIELDS}, schema=dict.fromkeys(FIELDS, pl.String))


def mapped(spec: EntrySpec, rows: Sequence[Record]) -> tuple[dict[int, str], set[int]]:
    """Return the values by position, and the positions of the rejected records."""
    rule = Mapping([spec])
    frame = frame_of(rows)
    positions = pl.Series("position", range(len(rows)), dtype=pl.Int64)
    found = rule.apply(frame, positions, rule.row_hashes(frame, {}), {})
    entries = dict(found.entries.select("position", "value").rows())
    assert all(reject.reason for reject, _ in found.rejects)
    return entries, {int(reject.position) for reject, _ in found.rejects}


def wanted(made: Made, rows: Sequence[Record]) -> tuple[dict[int, str], set[int]]:
    entries: dict[int, str] = {}
    refused: set[int] = set()
    for position, row in enumerate(rows):
        try:
            text = as_text(made.of(row))
        except Refused:
            refused.add(position)
        else:
            entries |= {position: text} if text is not None else {}
    return entries, refused


@given(made=numeric, rows=records)
def test_arithmetic_is_exact_or_rejects_the_record(made: Made, rows: list[Record]) -> None:
    assert mapped(EntrySpec(key="k", expression=made.sql), rows) == wanted(made, rows), made.sql


@given(made=texts(), rows=records)
def test_text_functions_do_what_python_does(made: Made, rows: list[Record]) -> None:
    assert mapped(EntrySpec(key="k", expression=made.sql), rows) == wanted(made, rows), made.sql


@given(made=conditions, rows=records)
def test_where_takes_the_records_for_which_the_condition_is_true(made: Made, rows: list[Record]) -> None:
    values, refused = wanted(made, rows)
    taken = {position: "v" for position, text in values.items() if text == "true"}
    assert mapped(EntrySpec(key="k", value="v", where=made.sql), rows) == (taken, refused), made.sql


@given(inner=numeric, rows=records)
def test_a_named_expression_is_the_expression(inner: Made, rows: list[Record]) -> None:
    direct = mapped(EntrySpec(key="k", expression=f"{inner.sql} + 1"), rows)
    named = mapped(EntrySpec(key="k", let=(("n", inner.sql), ("m", "n + 1")), expression="m"), rows)
    template = mapped(EntrySpec(key="k", let=(("n", inner.sql), ("m", "n + 1")), value="{m}"), rows)
    assert named == direct
    assert template == direct


@given(made=numeric, rows=records)
def test_an_expression_uses_no_field_but_those_that_the_hash_covers(made: Made, rows: list[Record]) -> None:
    rule = Mapping([EntrySpec(key="k", expression=made.sql)])
    assert (
        set(rule.columns_of("k"))
        == set(rule.fields)
        == {name for name in FIELDS if re.search(rf"\b{name}\b", made.sql)}
    )
