"""A plan as one self-contained HTML page, without a script. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from ingestd.core.phrases import counted
from ingestd.core.record import Position
from ingestd.daemon.sync_plan.values import PartitionPlan, SyncPlan

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --old: #b3261e; --new: #146c2e; }
@media (prefers-color-scheme: dark) { :root { --old: #ff8a80; --new: #81c995; } }
body { font: 1rem/1.45 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; white-space: pre-wrap; }
.held, .failed { background: var(--soft); border-left: .25rem solid var(--old); padding: .5rem; }
.old { color: var(--old); } .new { color: var(--new); }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%); }
  tr { display: block; border-bottom: 2px solid var(--line); padding: .4rem 0; }
  td { display: grid; grid-template-columns: 5rem 1fr; border: 0; padding: .1rem 0; }
  td::before { content: attr(data-name); opacity: .7; }
}
"""
_COLUMNS = ("change", "key", "old", "new", "source row")


def plan_page(plan: SyncPlan) -> str:
    """Return the page. All text of the plan is escaped."""
    root = Element("html", lang="en")
    head = SubElement(root, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _text(head, "title", "Plan of a sync")
    _text(head, "style", _STYLE)
    body = SubElement(SubElement(root, "body"), "main")
    _text(body, "h1", "Plan of a sync")
    _text(body, "p", f"{plan.configuration}, {plan.made}. Nothing was written.")
    for pipeline in plan.pipelines:
        for failure in pipeline.failures:
            _text(body, "p", f"{pipeline.name}: {failure}", {"class": "failed"})
    for partition in plan.partitions:
        _section(body, partition)
    _text(body, "h2", "Pipelines and sinks")
    _table(
        body,
        ("pipeline", "sink", "with new content", "without"),
        (
            (one.name, one.sink, str(sum(part.pipeline == one.name for part in plan.partitions)), str(one.skipped))
            for one in plan.pipelines
        ),
    )
    _table(
        body,
        ("sink", "pending before", "named by no source", "content"),
        (
            (one.name, str(one.pending), str(one.unexplained), "known" if one.known else "not known yet")
            for one in plan.sinks
        ),
    )
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _section(body: Element, one: PartitionPlan) -> None:
    section = SubElement(body, "section")
    _text(section, "h2", f"{one.partition} (pipeline {one.pipeline}) → {one.sink}")
    _text(section, "p", f"{counted(one.records, 'record')} read, {one.rejected} rejected. Entries: {one.counts}.")
    for reason in one.held:
        _text(section, "p", f"The guard holds it: {reason}", {"class": "held"})
    if one.failure:
        _text(section, "p", one.failure, {"class": "failed"})
    rows = [
        (change.kind, change.key, _value(change.old, change.old_type), _value(change.new, change.new_type), _at(change.position))
        for change in one.changes
    ]  # fmt: skip
    if rows:
        _table(section, _COLUMNS, rows)
        rest = one.created + one.changed + one.removed - len(rows)
        if rest:
            _text(section, "p", f"{counted(rest, 'more change')} not shown.")
    if one.rejects:
        _table(section, ("source row", "rejected because"), ((_at(two.position), two.reason) for two in one.rejects))


def _table(parent: Element, names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    table = SubElement(SubElement(parent, "div", {"class": "wide"}), "table")
    header = SubElement(SubElement(table, "thead"), "tr")
    for name in names:
        _text(header, "th", name, {"scope": "col"})
    body = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(body, "tr")
        for name, value in zip(names, row, strict=True):
            kind = {"class": name} if name in {"old", "new"} else {}
            _text(line, "td", value, {"data-name": name, **kind})


def _text(parent: Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> None:
    SubElement(parent, tag, attributes or {}).text = text


def _value(value: str | None, data_type: str | None) -> str:
    if data_type is None:
        return ""
    return f"{'null' if value is None else value} ({data_type})"


def _at(position: Position | None) -> str:
    return "" if position is None else str(position)
