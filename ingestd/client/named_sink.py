"""A sink, addressed by the names that people use: its entries as a frame, and writes of all rows of a frame."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ingestd.client.addresses import sinks_named, sinks_request, workspaces_named, workspaces_request
from ingestd.client.errors import NameAmbiguous, NameUnknown, value_of
from ingestd.client.records import SinkSummary, WorkspaceSummary
from ingestd.core.phrases import first_names, nearest

if TYPE_CHECKING:
    import polars as pl

    from ingestd.client.programs import Client
    from ingestd.client.push import PushResult

Named = TypeVar("Named", WorkspaceSummary, SinkSummary)


class NamedSink:
    """A sink of a client; `Client.sink` returns it. Each method reads the sink again. ``workspace``: its workspace's id."""

    def __init__(self, client: Client, workspace: str, found: SinkSummary) -> None:
        self._client = client
        self.workspace = workspace
        self.id, self.label, self.visible_id = found.id, found.label, found.visible_id

    def __repr__(self) -> str:
        return f"<NamedSink {self.visible_id} {self.label!r}>"

    def to_dict(self) -> dict[str, str | None]:
        """Return the exact value of each key.

        Raises:
            ServiceError: the sink can't be read.
        """
        return {entry.key: entry.value for entry in self._client.get_sink(self.workspace, self.id).entries}

    def to_polars(self, *, numeric: Collection[str] = ("scalar",)) -> pl.DataFrame:
        """Return the entries, one in each row, in the order of their creation.

        Columns: ``key`` and ``value`` (exact text), ``number`` (Float64), ``data_type``, ``created_at`` and ``updated_at``
        (UTC), ``created_by`` and ``updated_by``. ``number`` is the nearest number to the value, if the data type is in
        ``numeric``. Otherwise, and if the value is not a number or is out of the range of 64 bits, ``number`` is null.

        Raises:
            ServiceError: the sink can't be read.
        """
        from ingestd.client.sink_frame import entries_frame  # noqa: PLC0415 - other programs need no frames

        return entries_frame(self._client.get_sink(self.workspace, self.id).entries, numeric=numeric)

    def to_pandas(self, *, numeric: Collection[str] = ("scalar",)) -> Any:
        """Return the frame of `to_polars` as a frame of pandas. Texts have the type ``string``; missing numbers are NaN.

        Raises:
            ImportError: pandas is not installed.
            ServiceError: the sink can't be read.
        """
        from ingestd.client.sink_frame import pandas_frame  # noqa: PLC0415 - as above

        return pandas_frame(self.to_polars(numeric=numeric))

    def push(
        self,
        rows: pl.DataFrame | Iterable[Mapping[str, Any]] | Any,
        *,
        key: str,
        value: str,
        data_type: str | None = None,
        number: Literal["repr"] | None = None,
        **rules: Any,
    ) -> PushResult:
        """Write an entry for each row. Return the counts of created, updated and unchanged entries, and the rejected rows.

        ``rows``: a frame of polars or pandas, or an iterable of mappings. ``key`` and ``value``: a column, or a template of
        columns such as ``{part}.mass``. ``data_type``: a data type or a template; None keeps the type of a stored entry.
        ``rules``: the settings ``values`` of a mapping, such as ``decimals=3`` or ``unit={"from": "g", "to": "kg"}``.

        Text, integers and decimal numbers are written exactly. Floating-point numbers need a rule that says how to write them:
        ``decimals``, ``digits``, or ``number="repr"`` for the shortest text that reads back as the same number. All other rules
        apply to the resulting text.

        Only entries that differ from the sink are sent, in requests of a size that the service accepts. Nothing is removed. If
        an error ends a push, call `push` again: entries that are already stored count as unchanged.

        Raises:
            InvalidPush: an argument can't be used; nothing was sent.
            ServiceError: the service can't be used now, or not with this key. A note says how many entries were sent.
        """
        from ingestd.client.push import push_rows  # noqa: PLC0415 - as above
        from ingestd.client.pushed_rows import read_rows  # noqa: PLC0415

        read = read_rows(rows, key=key, value=value, data_type=data_type, number=number, rules=rules)
        return push_rows(self._client, (self.workspace, self.id), read)


def find_sink(client: Client, workspace: str, sink: str) -> NamedSink:
    """Return the sink with this label, visible id or id, in the workspace with this label or id.

    Raises:
        NameUnknown: no workspace or sink has the name; the sentence has the most similar name.
        NameAmbiguous: several workspaces or sinks have the name; the sentence has their ids.
        ServiceError: the service can't be used.
    """
    listed = value_of(client.send(workspaces_request()))
    found = _only("workspace", workspace, workspaces_named(workspace, listed), listed)
    sinks = value_of(client.send(sinks_request(found.id)))
    # Ids are compared first, because another sink may have this id as its label.
    named = sinks_named(sink, sinks, "id") or sinks_named(sink, sinks, "label", "visible_id")
    return NamedSink(client, found.id, _only("sink", sink, named, sinks))


def _only(kind: str, name: str, found: Sequence[Named], listed: Sequence[Named]) -> Named:
    if len(found) == 1:
        return found[0]
    if found:
        candidates = "; ".join(_described(one) for one in found)
        raise NameAmbiguous(
            f"{len(found)} {kind}s have the name {name!r}: {candidates}. Use the id of the right one.",
            ids=tuple(one.id for one in found),
        )
    names = [name for one in listed for name in (one.label, getattr(one, "visible_id", None)) if name]
    hint = nearest(name, names) or (
        f" The API key may read: {first_names(map(repr, names))}." if names else " There is none."
    )
    raise NameUnknown(f"There is no {kind} {name!r} that the API key may read.{hint}")


def _described(one: WorkspaceSummary | SinkSummary) -> str:
    visible = f"{one.visible_id}, " if isinstance(one, SinkSummary) and one.visible_id else ""
    return f"{one.label!r} ({visible}id {one.id})"
