"""Blocks in the database, and their tree: one root, no cycle, a limited depth (contract B4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workspaced.core.problems import ConflictProblem, NotFoundProblem, UnprocessableProblem
from workspaced.http.operations import Call
from workspaced.resources.blocks.tree import Tree, TreePlace
from workspaced.resources.blocks.values import BlockContent, NewBlock, PlacedBlock, StoredBlock
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.blocks", "queries.sql")
_CONTENT_COLUMNS = tuple(BlockContent.model_fields)


class BlockWorkspace(NamedTuple):
    """The workspace of a tree: its number and the id of its root block."""

    number: int
    root_block: str


def get_workspace(reader: ReadTransaction, workspace_id: str) -> BlockWorkspace:
    """Return the workspace with this id. Raises NotFoundProblem: there is no such workspace."""
    return _workspace_of(reader.one(_SQL["find_workspace"], {"workspace_id": workspace_id}))


def get_tree(reader: ReadTransaction, workspace: BlockWorkspace) -> Tree:
    """Return the tree of a workspace."""
    return Tree(TreePlace._make(row) for row in reader.all(_SQL["places"], {"workspace": workspace.number}))


def get_block(reader: ReadTransaction, workspace_id: str, block_id: str) -> StoredBlock:
    """Return the block with this id in this workspace. Raises NotFoundProblem: there is no such block."""
    row = reader.one(_SQL["find_block"], {"workspace_id": workspace_id, "id": block_id})
    if row is None:
        raise NotFoundProblem("block_not_found", "There is no such block in this workspace.")
    return StoredBlock._make(row)


def get_placed(reader: ReadTransaction, workspace_id: str, block_id: str) -> PlacedBlock:
    """Return a block with its path and its children. Raises NotFoundProblem: there is no such block."""
    block = get_block(reader, workspace_id, block_id)
    workspace = get_workspace(reader, workspace_id)
    children = reader.all(_SQL["children"], {"workspace": workspace.number, "id": block_id})
    return PlacedBlock(block=block, path=_path(reader, workspace, block_id), children=tuple(row[0] for row in children))


def create_block(tx: Transaction, call: Call, new: NewBlock, *, block_id: str) -> PlacedBlock:
    """Insert a block as the last child of its parent; the default parent is the root block.

    Raises:
        NotFoundProblem: there is no such workspace.
        ConflictProblem: the id is in use, or the quota is reached.
        UnprocessableProblem: the parent is not a block of this workspace, is the block itself, or is at the largest depth.
    """
    counted = {"workspace_id": call.workspace_id, "added": 1, **call.authorship}
    row = tx.one(_SQL["count_blocks"], counted)
    workspace = _workspace_of(row)
    if tx.one(_SQL["id_in_use"], {"id": block_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    most = call.settings.limits.blocks_per_workspace
    if row and most and row[2] > most:
        raise ConflictProblem("quota_exceeded", f"A workspace may have {most} blocks.")
    parent_id = new.parent_id or workspace.root_block
    _require_place(tx, workspace, parent_id, below=block_id, height=1, limits=call.settings.limits)
    tx.run(
        _SQL["insert_block"],
        {
            "id": block_id,
            "workspace": workspace.number,
            "parent_id": parent_id,
            "order_index": _next_order_index(tx, workspace, parent_id),
            **call.authorship,
            **{name: getattr(new, name) for name in _CONTENT_COLUMNS},
        },
    )
    tx.run(_SQL["raise_version"], {"id": parent_id})
    return get_placed(tx, call.workspace_id, block_id)


def update_block(tx: Transaction, call: Call, block: StoredBlock, changes: Mapping[str, Any]) -> bool:
    """Update a block. Return whether a value changed.

    Raises:
        UnprocessableProblem: the new parent is not in this workspace, is in the block's subtree, or makes the tree too deep.
    """
    content = {
        name: changes[name] for name in changes if name in _CONTENT_COLUMNS and getattr(block, name) != changes[name]
    }
    parent_id, order_index = block.parent_id, block.order_index
    if "parent_id" in changes and not (changes["parent_id"] is None and block.parent_id is None):
        workspace = _workspace_of(tx.one(_SQL["lock_workspace"], {"workspace_id": block.workspace_id}))
        parent_id = changes["parent_id"] or workspace.root_block
        if parent_id != block.parent_id:
            height = 1 + tx.all(_SQL["subtree"], {"workspace": workspace.number, "id": block.id})[0][1]
            _require_place(tx, workspace, parent_id, below=block.id, height=height, limits=call.settings.limits)
            order_index = _next_order_index(tx, workspace, parent_id)
    if "order_index" in changes:
        order_index = float(changes["order_index"])
    is_moved = (block.parent_id, block.order_index) != (parent_id, order_index)
    if not content and not is_moved:
        return False
    place = {"id": block.id, "parent_id": parent_id, "order_index": order_index, **call.authorship}
    tx.run(_SQL["update_block"], {**{name: getattr(block, name) for name in _CONTENT_COLUMNS}, **content, **place})
    if is_moved:
        for parent in {block.parent_id, parent_id} - {None}:
            tx.run(_SQL["raise_version"], {"id": parent})
    if block.parent_id != parent_id:
        workspace = get_workspace(tx, block.workspace_id)
        tx.run(_SQL["raise_subtree_versions"], {"workspace": workspace.number, "id": block.id})
    return True


def require_block(reader: ReadTransaction, workspace_id: str, block_id: str) -> None:
    """Check that a block can become the root of the workspace.

    Raises:
        UnprocessableProblem: the workspace has no such block.
    """
    if not _path(reader, get_workspace(reader, workspace_id), block_id):
        raise UnprocessableProblem("root_block_not_found", "The root block must be a block of this workspace.")


def require_deletable(tx: Transaction, placed: PlacedBlock, *, force: bool) -> None:
    """Check that a block may be deleted (contract B6), and lock the workspace.

    Raises:
        ConflictProblem: it is the root block, or it has children and ``force`` is false.
    """
    workspace = _workspace_of(tx.one(_SQL["lock_workspace"], {"workspace_id": placed.block.workspace_id}))
    if placed.block.id == workspace.root_block:
        raise ConflictProblem(
            "root_block", "The root block is deleted only with its workspace. Make another block the root first."
        )
    if placed.children and not force:
        raise ConflictProblem("has_children", "The block has children. Delete them first, or send force=true.")


def get_subtree(reader: ReadTransaction, block: StoredBlock) -> tuple[str, ...]:
    """Return the ids of a block and of all blocks below it, children before parents."""
    workspace = get_workspace(reader, block.workspace_id)
    return tuple(row[0] for row in reader.all(_SQL["subtree"], {"workspace": workspace.number, "id": block.id}))


def delete_subtree(tx: Transaction, call: Call, block: StoredBlock, *, count: int) -> None:
    """Delete a block and all blocks below it. ``count``: the number of these blocks."""
    workspace = get_workspace(tx, block.workspace_id)
    tx.run(_SQL["delete_subtree"], {"workspace": workspace.number, "id": block.id})
    tx.run(_SQL["raise_version"], {"id": block.parent_id})
    tx.one(
        _SQL["count_blocks"],
        {"workspace_id": block.workspace_id, "added": -count, **call.authorship},
    )


def purge(tx: Transaction, workspace: int, most: int) -> int:
    """Remove blocks of a workspace that is being purged, children before parents. Return how many; 0 if no block is left."""
    return tx.run(_SQL["purge_blocks"], {"workspace": workspace, "most": most})


def promote(tx: Transaction, call: Call, block_id: str) -> None:
    """Make a block the root. The old root becomes the last child of the new root (contract W5).

    Raises:
        UnprocessableProblem: the subtree of the old root would be too deep.
    """
    workspace = _workspace_of(tx.one(_SQL["lock_workspace"], {"workspace_id": call.workspace_id}))
    if block_id == workspace.root_block:
        return
    below = {row[0] for row in tx.all(_SQL["subtree"], {"workspace": workspace.number, "id": block_id})}
    rest = [
        row[1]
        for row in tx.all(_SQL["subtree"], {"workspace": workspace.number, "id": workspace.root_block})
        if row[0] not in below
    ]
    _require_depth(1 + max(rest) + 1, call.settings.limits)
    last = _next_order_index(tx, workspace, block_id)
    # This order of the statements avoids two roots at the same time, which the schema forbids.
    tx.run(
        _SQL["set_parent"], {"id": workspace.root_block, "parent_id": block_id, "order_index": last, **call.authorship}
    )
    tx.run(_SQL["set_parent"], {"id": block_id, "parent_id": None, "order_index": 0.0, **call.authorship})
    tx.run(_SQL["set_root"], {"workspace": workspace.number, "id": block_id})
    tx.run(_SQL["raise_subtree_versions"], {"workspace": workspace.number, "id": block_id})


def _require_place(
    reader: ReadTransaction, workspace: BlockWorkspace, parent_id: str, *, below: str, height: int, limits: Limits
) -> None:
    """Raise UnprocessableProblem unless a block with a subtree of ``height`` levels can be a child of a parent."""
    path = _path(reader, workspace, parent_id)
    if parent_id == below or below in path:
        raise UnprocessableProblem("cycle", "A block can't be below itself.")
    if not path:
        raise UnprocessableProblem("parent_not_found", "parentBlock must be a block of this workspace.")
    _require_depth(len(path) + height, limits)


def _require_depth(depth: int, limits: Limits) -> None:
    if depth > limits.block_depth:
        raise UnprocessableProblem("too_deep", f"A tree of blocks may be {limits.block_depth} levels deep.")


def _path(reader: ReadTransaction, workspace: BlockWorkspace, block_id: str) -> tuple[str, ...]:
    return tuple(row[0] for row in reader.all(_SQL["path"], {"workspace": workspace.number, "id": block_id}))


def _next_order_index(reader: ReadTransaction, workspace: BlockWorkspace, parent_id: str) -> float:
    """Return the orderIndex for a new last child (contract B5)."""
    row = reader.one(_SQL["last_order_index"], {"workspace": workspace.number, "parent_id": parent_id})
    return 0.0 if row is None or row[0] is None else float(row[0]) + 1


def _workspace_of(row: Row | None) -> BlockWorkspace:
    if row is None:
        raise NotFoundProblem("workspace_not_found", "There is no such workspace.")
    return BlockWorkspace(*row[:2])
