"""The operations of blocks (contract BL1, BL2, BL3, BL4, BL5)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ingestd.wire import names
from workspaced.core.json_body import decode, encode
from workspaced.core.json_schema import FLAG, STRING, UUID
from workspaced.core.problems import Invalid
from workspaced.core.text import as_uuid
from workspaced.http.description import Parameter, RequestBody, Success, links, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, etag, json_response
from workspaced.http.streamed_response import Contents, stream_response
from workspaced.resources.blocks import changes, store
from workspaced.resources.blocks.records import BlockRecord, BlockTypesRecord, block_record
from workspaced.resources.blocks.tree import Tree, TreePlace
from workspaced.resources.blocks.values import BlockChanges, NewBlock, PlacedBlock
from workspaced.resources.operation_rows import delete, get, patch, post
from workspaced.resources.read_responses import list_headers, read_list_page, select_page, versioned_response
from workspaced.security.permissions import BLOCKS_READ, BLOCKS_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

SORTABLE: Final = {
    "orderIndex": "order_index",
    "label": "label",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "id": "id",
}
_CHUNK = 500
_ALL = "/v1/workspace/{workspace}/blocks"
_ONE = f"{_ALL}/{{block}}"


async def list_blocks(call: Call) -> Response:
    """List blocks (contract BL1).

    Every block of the workspace, the root first, then by depth and orderIndex.
    200: The blocks.
    """
    page = read_list_page(call, SORTABLE)
    parent, kind = call.query.get("parentBlock"), call.query.get("type")
    if parent is not None and (parent := as_uuid(parent)) is None:
        raise Invalid("bad_parent_block", "parentBlock must be a UUID.")

    def contents(reader: ReadTransaction) -> Contents:
        tree = store.get_tree(reader, store.get_workspace(reader, call.workspace_id))
        found = [place for place in tree if _matches(place, parent, kind)]
        selected = select_page(page, found, SORTABLE)
        return Contents(
            headers=list_headers(call, page, len(found)),
            records=len(selected),
            parts=_body_parts(reader, tree, selected, call.workspace_id),
        )

    return await stream_response(call, contents)


def create_block(tx: Transaction, call: Call, new: NewBlock) -> Response:
    """Create a block (contract BL2).

    Creates a block as the last child of its parent. `workspace` must be the workspace in the path.
    201: The block.
    400: `workspace_mismatch`: the body names another workspace than the path.
    409: `id_in_use`: the id is in use. `quota_exceeded`: the workspace has the maximum number of blocks.
    422: `parent_not_found`, `cycle` or `too_deep`: it can't be below that parent.
    """
    if new.workspace != call.workspace_id:
        raise Invalid.at("/workspace", "workspace_mismatch", "/workspace must be the id of the workspace in the path.")
    block_id = new.id or str(uuid.uuid4())
    placed = store.create_block(tx, call, new, block_id=block_id)
    changes.record_creation(tx, call, placed)
    location = ("Location", f"/v1/workspace/{call.workspace_id}/blocks/{block_id}")
    return json_response(block_record(placed), status=201, headers=(location, etag(placed.block.version)))


async def get_block(call: Call) -> Response:
    """Get a block (contract BL3).

    One block.
    200: The block.
    """
    placed = await call.store.read(lambda reader: _get_by_path(reader, call))
    return versioned_response(call, block_record(placed), placed.block.version)


def delete_block(tx: Transaction, call: Call) -> Response:
    """Delete a block (contract BL4).

    Deletes a block without children. With `force=true`, a block is deleted with all blocks below it.
    200: The block before it was deleted.
    409: `has_children`: it has children, and force is not true. `root_block`: it is the root block.
    """
    force = call.flag("force", default=False)
    placed = _get_by_path(tx, call)
    call.require_match(placed.block.version)
    changes.delete_block(tx, call, placed, force=force)
    return json_response(block_record(placed))


def update_block(tx: Transaction, call: Call, wanted: BlockChanges) -> Response:
    """Change a block (contract BL5).

    Only the given members change. The response has only the types, unless `Prefer: return=representation` was sent.
    200: The types, or the whole block.
    422: `parent_not_found`, `cycle` or `too_deep`: it can't be below that parent.
    """
    whole = call.prefers_representation()
    before = _get_by_path(tx, call)
    call.require_match(before.block.version)
    placed = changes.change_block(tx, call, before, wanted.given())
    tag = etag(placed.block.version)
    if not whole:
        return json_response(BlockTypesRecord(msgspec.Raw(placed.block.type.encode())), headers=(tag,))
    return json_response(block_record(placed), headers=((names.PREFERENCE_APPLIED, names.RETURN_REPRESENTATION), tag))


def _get_by_path(reader: ReadTransaction, call: Call) -> PlacedBlock:
    """Return the block that the path names, or raise NotFoundProblem."""
    return store.get_placed(reader, call.workspace_id, as_uuid(call.names["block"]) or "")


def _matches(place: TreePlace, parent: str | None, kind: str | None) -> bool:
    if parent is not None and place.parent_id != parent:
        return False
    types = decode(place.type.encode()) if kind is not None and place.type != "[]" else ()
    return kind is None or (isinstance(types, list) and kind in types)


def _body_parts(reader: ReadTransaction, tree: Tree, places: Sequence[TreePlace], workspace_id: str) -> Iterator[bytes]:
    yield b"["
    for start in range(0, len(places), _CHUNK):
        records = [
            block_record(
                PlacedBlock(
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
    """Return the operations on blocks."""
    size = limits.body_bytes
    following = {"workspaceId": "$request.path.workspaceId", "id": "$response.body#/id"}
    new = {"workspace": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "label": "Tank", "type": ["part"]}
    return (
        get("blocks.list", _ALL, BLOCKS_READ, list_blocks).described(
            success=listed(BlockRecord),
            query=(
                Parameter("parentBlock", "Only the children of this block.", UUID),
                Parameter("type", "Only blocks that have this type.", STRING),
                *paging(limits, SORTABLE),
            ),
        ),
        post("blocks.create", _ALL, BLOCKS_WRITE, create_block, body_bytes=size).described(
            body=RequestBody(NewBlock, new),
            success=Success(
                BlockRecord,
                ("ETag", "Location"),
                status=201,
                links=links(following, get="blocks.get", update="blocks.update", delete="blocks.delete"),
            ),
        ),
        get("blocks.get", _ONE, BLOCKS_READ, get_block).described(success=Success(BlockRecord, ("ETag",)), etag=True),
        delete("blocks.delete", _ONE, BLOCKS_WRITE, delete_block).described(
            success=Success(BlockRecord),
            query=(Parameter("force", "true: blocks below it are deleted, too.", FLAG),),
            etag=True,
        ),
        patch("blocks.update", _ONE, BLOCKS_WRITE, update_block, body_bytes=size).described(
            body=RequestBody(BlockChanges, {"type": ["part", "purchased"]}),
            success=Success(BlockRecord | BlockTypesRecord, ("ETag", "Applied")),
            etag=True,
            headers=("PreferRepresentation",),
        ),
    )
