"""The blocks' operations (contract BL1, BL2, BL3, BL4, BL5)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ingestd.wire import names
from workspaced.core.json_body import decode, encode
from workspaced.core.members import read_body, read_changes
from workspaced.core.problems import Invalid
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import Page, read_page
from workspaced.http.responses import Response, etag, json_response
from workspaced.http.streamed_response import Contents, sent
from workspaced.resources.blocks import changes, events, store
from workspaced.resources.blocks.records import BlockTypesRecord, record
from workspaced.resources.blocks.tree import Place, Tree
from workspaced.resources.blocks.values import BlockChanges, NewBlock, Placed
from workspaced.resources.operation_rows import read_operation, write_operation
from workspaced.security.permissions import BLOCKS_READ, BLOCKS_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

SORTABLE: Final = frozenset({"orderIndex", "label", "createdAt", "updatedAt", "id"})
_FIELDS: Final = {"orderIndex": "order_index", "createdAt": "created_at", "updatedAt": "updated_at"}
_CHUNK = 500
_COLLECTION = "/v1/workspace/{workspace}/blocks"
_ONE = f"{_COLLECTION}/{{block}}"


async def list_blocks(call: Call) -> Response:
    """List blocks (contract BL1): all blocks, by depth and orderIndex unless another order is asked for."""
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=SORTABLE)
    parent, kind = call.query.get("parentBlock"), call.query.get("type")
    if parent is not None and (parent := as_uuid(parent)) is None:
        raise Invalid("bad_parent_block", "parentBlock must be a UUID.")

    def contents(reader: ReadTransaction) -> Contents:
        tree = store.get_tree(reader, store.get_home(reader, call.workspace_id))
        found = [place for place in tree if _passes(place, parent, kind)]
        shown = _paged(found, page)
        return Contents(
            headers=page.headers(total=len(found), path=call.path, query=call.query),
            records=len(shown),
            parts=_parts(reader, tree, shown, call.workspace_id),
        )

    return await sent(call, contents)


def create_block(call: Call) -> Work:
    """Create a block (contract BL2)."""
    limits = call.settings.limits
    new, ignored = read_body(NewBlock, call.json(), limits)
    if new.workspace != call.workspace_id:
        raise Invalid.at("/workspace", "workspace_mismatch", "/workspace must be the id of the workspace in the path.")
    block_id = new.id or str(uuid.uuid4())

    def act(tx: Transaction) -> Response:
        placed = store.create_block(
            tx, new, workspace_id=call.workspace_id, block_id=block_id, actor=call.actor, now=call.now, limits=limits
        )
        events.emit_created(tx, call, placed)
        location = ("Location", f"/v1/workspace/{call.workspace_id}/blocks/{block_id}")
        return json_response(record(placed), status=201, headers=(location, etag(placed.block.version)))

    return Work(act=act, ignored=ignored)


async def get_block(call: Call) -> Response:
    """Get a block (contract BL3)."""
    placed = await call.store.read(lambda reader: _found(reader, call))
    tag = etag(placed.block.version)
    if call.has_seen(placed.block.version):
        return Response(status=304, headers=(tag,))
    return json_response(record(placed), headers=(tag,))


def delete_block(call: Call) -> Work:
    """Delete a block (contract BL4)."""
    force = call.flag("force", default=False)

    def act(tx: Transaction) -> Response:
        placed = _found(tx, call)
        call.require_match(placed.block.version)
        changes.delete_block(tx, call, placed, force=force)
        return json_response(record(placed))

    return Work(act=act)


def update_block(call: Call) -> Work:
    """Update a block (contract BL5): answers the types only, as the document has it, unless the whole record is preferred."""
    wanted, ignored = read_changes(BlockChanges, call.json(), call.settings.limits)
    whole = call.prefers_representation()

    def act(tx: Transaction) -> Response:
        before = _found(tx, call)
        call.require_match(before.block.version)
        placed = changes.change_block(tx, call, before, wanted)
        tag = etag(placed.block.version)
        if not whole:
            return json_response(BlockTypesRecord(msgspec.Raw(placed.block.type.encode())), headers=(tag,))
        return json_response(record(placed), headers=((names.PREFERENCE_APPLIED, names.RETURN_REPRESENTATION), tag))

    return Work(act=act, ignored=ignored)


def _found(reader: ReadTransaction, call: Call) -> Placed:
    """The block that the path names; what is no UUID names none."""
    return store.get_placed(reader, call.workspace_id, as_uuid(call.names["block"]) or "")


def _passes(place: Place, parent: str | None, kind: str | None) -> bool:
    if parent is not None and place.parent_id != parent:
        return False
    types = decode(place.type.encode()) if kind is not None and place.type != "[]" else ()
    return kind is None or (isinstance(types, list) and kind in types)


def _paged(places: list[Place], page: Page) -> Sequence[Place]:
    if page.sorted_by:
        field = _FIELDS.get(page.sorted_by, page.sorted_by)
        places = sorted(places, key=lambda place: (getattr(place, field), place.id))
    if page.descending:
        places = places[::-1]
    return page.of(places)


def _parts(reader: ReadTransaction, tree: Tree, places: Sequence[Place], workspace_id: str) -> Iterator[bytes]:
    yield b"["
    for start in range(0, len(places), _CHUNK):
        records = [
            record(
                Placed(
                    block=store.get_block(reader, workspace_id, place.id),
                    path=tree.path(place.id),
                    children=tree.children(place.id),
                )
            )
            for place in places[start : start + _CHUNK]
        ]
        yield (b"," if start else b"") + encode(records)[1:-1]
    yield b"]"


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's rows."""
    small = limits.body_bytes
    return (
        read_operation("blocks.list", _COLLECTION, BLOCKS_READ, list_blocks),
        write_operation("blocks.create", "POST", _COLLECTION, BLOCKS_WRITE, create_block, body_bytes=small),
        read_operation("blocks.get", _ONE, BLOCKS_READ, get_block),
        write_operation("blocks.delete", "DELETE", _ONE, BLOCKS_WRITE, delete_block),
        write_operation("blocks.update", "PATCH", _ONE, BLOCKS_WRITE, update_block, body_bytes=small),
    )
