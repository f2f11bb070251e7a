"""Blocks in the database, and their tree: one root, no circle, at most so deep (contract B4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workspaced.core.problems import ConflictProblem, NotFoundProblem, UnprocessableProblem
from workspaced.resources.blocks.tree import Place, Tree
from workspaced.resources.blocks.values import BlockContent, NewBlock, Placed, StoredBlock
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.blocks", "queries.sql")
_CONTENT = tuple(field.name for field in dataclasses.fields(BlockContent))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRoot:
    """The workspace that a tree is in: its number and its root block."""

    number: int
    root_block: str


def get_home(reader: ReadTransaction, workspace_id: str) -> WorkspaceRoot:
    """The workspace with this id.

    Raises:
        NotFoundProblem: there is none.
    """
    return _home(reader.one(_SQL["find_workspace"], {"workspace_id": workspace_id}))


def get_tree(reader: ReadTransaction, home: WorkspaceRoot) -> Tree:
    """The shape of the whole tree."""
    return Tree(Place._make(row) for row in reader.all(_SQL["places"], {"workspace": home.number}))


def get_block(reader: ReadTransaction, workspace_id: str, block_id: str) -> StoredBlock:
    """The block with this id in that workspace.

    Raises:
        NotFoundProblem: there is none.
    """
    row = reader.one(_SQL["find_block"], {"workspace_id": workspace_id, "id": block_id})
    if row is None:
        raise NotFoundProblem("block_not_found", "There is no such block in this workspace.")
    return StoredBlock._make(row)


def get_placed(reader: ReadTransaction, workspace_id: str, block_id: str) -> Placed:
    """The block with what follows from the tree.

    Raises:
        NotFoundProblem: there is none.
    """
    block = get_block(reader, workspace_id, block_id)
    home = get_home(reader, workspace_id)
    children = reader.all(_SQL["children"], {"workspace": home.number, "id": block_id})
    return Placed(block=block, path=_path(reader, home, block_id), children=tuple(row[0] for row in children))


def create_block(
    tx: Transaction, new: NewBlock, *, workspace_id: str, block_id: str, actor: str, now: int, limits: Limits
) -> Placed:
    """The block as the last child of its parent, which is the root block where none is named.

    Raises:
        NotFoundProblem: there is no such workspace.
        ConflictProblem: the id is in use, or the quota is reached.
        UnprocessableProblem: the parent is no block of this workspace, is the block itself, or is as deep as may be.
    """
    grown = {"workspace_id": workspace_id, "added": 1, "actor": actor, "now": now}
    row = tx.one(_SQL["grow_workspace"], grown)
    home = _home(row)
    if tx.one(_SQL["id_in_use"], {"id": block_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    if row and limits.blocks_per_workspace and row[2] > limits.blocks_per_workspace:
        raise ConflictProblem("quota_exceeded", f"A workspace may have {limits.blocks_per_workspace} blocks.")
    parent_id = new.parent_id or home.root_block
    _require_place(tx, home, parent_id, below=block_id, height=1, limits=limits)
    tx.run(
        _SQL["insert_block"],
        {
            "id": block_id,
            "workspace": home.number,
            "parent_id": parent_id,
            "order_index": _last(tx, home, parent_id),
            "now": now,
            "actor": actor,
            **{name: getattr(new, name) for name in _CONTENT},
        },
    )
    tx.run(_SQL["show_anew"], {"id": parent_id})
    return get_placed(tx, workspace_id, block_id)


def update_block(
    tx: Transaction, block: StoredBlock, changes: Mapping[str, Any], *, actor: str, now: int, limits: Limits
) -> tuple[StoredBlock, tuple[str, ...]]:
    """The block after the changes, and the names of the fields that are others now; equal values change nothing.

    Raises:
        UnprocessableProblem: the new parent is no block of this workspace, is below the block, or is too deep for its subtree.
    """
    content = {name: changes[name] for name in changes if name in _CONTENT and getattr(block, name) != changes[name]}
    parent_id, order_index = block.parent_id, block.order_index
    if "parent_id" in changes and not (changes["parent_id"] is None and block.parent_id is None):
        home = _home(tx.one(_SQL["lock_workspace"], {"workspace_id": block.workspace_id}))
        parent_id = changes["parent_id"] or home.root_block
        if parent_id != block.parent_id:
            height = 1 + tx.all(_SQL["subtree"], {"workspace": home.number, "id": block.id})[0][1]
            _require_place(tx, home, parent_id, below=block.id, height=height, limits=limits)
            order_index = _last(tx, home, parent_id)
    if "order_index" in changes:
        order_index = float(changes["order_index"])
    moved = tuple(
        name
        for name, before, after in (
            ("parent_id", block.parent_id, parent_id),
            ("order_index", block.order_index, order_index),
        )
        if before != after
    )
    if not content and not moved:
        return block, ()
    place = {"id": block.id, "parent_id": parent_id, "order_index": order_index, "actor": actor, "now": now}
    tx.run(_SQL["update_block"], {**{name: getattr(block, name) for name in _CONTENT}, **content, **place})
    if moved:
        for shown in {block.parent_id, parent_id} - {None}:
            tx.run(_SQL["show_anew"], {"id": shown})
    if "parent_id" in moved:
        home = get_home(tx, block.workspace_id)
        tx.run(_SQL["show_subtree_anew"], {"workspace": home.number, "id": block.id})
    return get_block(tx, block.workspace_id, block.id), (*content, *moved)


def require_block(reader: ReadTransaction, workspace_id: str, block_id: str) -> None:
    """Refuse what is no block of the workspace as its root.

    Raises:
        UnprocessableProblem: it is none.
    """
    if not _path(reader, get_home(reader, workspace_id), block_id):
        raise UnprocessableProblem("root_block_not_found", "The root block must be a block of this workspace.")


def require_deletable(tx: Transaction, placed: Placed, *, force: bool) -> None:
    """Hold a delete back that would take more than was asked for (contract B6); the workspace is locked from here on.

    Raises:
        ConflictProblem: it is the root block, or it has children and ``force`` was not asked for.
    """
    home = _home(tx.one(_SQL["lock_workspace"], {"workspace_id": placed.block.workspace_id}))
    if placed.block.id == home.root_block:
        raise ConflictProblem(
            "root_block", "The root block goes with its workspace only; another block can be made the root."
        )
    if placed.children and not force:
        raise ConflictProblem("has_children", "The block has children. Delete them first, or ask for force=true.")


def get_subtree(reader: ReadTransaction, block: StoredBlock) -> tuple[str, ...]:
    """The ids of a block and all below it, children before parents."""
    home = get_home(reader, block.workspace_id)
    return tuple(row[0] for row in reader.all(_SQL["subtree"], {"workspace": home.number, "id": block.id}))


def delete_subtree(tx: Transaction, block: StoredBlock, *, count: int, actor: str, now: int) -> None:
    """The block and all below it, ``count`` in all, are gone."""
    home = get_home(tx, block.workspace_id)
    tx.run(_SQL["delete_subtree"], {"workspace": home.number, "id": block.id})
    tx.run(_SQL["show_anew"], {"id": block.parent_id})
    tx.one(
        _SQL["grow_workspace"],
        {"workspace_id": block.workspace_id, "added": -count, "actor": actor, "now": now},
    )


def purge(tx: Transaction, workspace: int, most: int) -> int:
    """Drop blocks of a workspace that is being purged, leaves first; how many they were, 0 when none is left."""
    return tx.run(_SQL["purge_blocks"], {"workspace": workspace, "most": most})


def promote(tx: Transaction, workspace_id: str, block_id: str, *, actor: str, now: int, limits: Limits) -> None:
    """Make a block the root; the old root becomes its last child (contract W5). The root itself stays what it is.

    Raises:
        UnprocessableProblem: the old root's subtree would be too deep below it.
    """
    home = _home(tx.one(_SQL["lock_workspace"], {"workspace_id": workspace_id}))
    if block_id == home.root_block:
        return
    below = {row[0] for row in tx.all(_SQL["subtree"], {"workspace": home.number, "id": block_id})}
    rest = [
        row[1]
        for row in tx.all(_SQL["subtree"], {"workspace": home.number, "id": home.root_block})
        if row[0] not in below
    ]
    _require_depth(1 + max(rest) + 1, limits)
    last = _last(tx, home, block_id)
    stamped = {"actor": actor, "now": now}
    # In this order there are never two roots, which the schema would refuse.
    tx.run(_SQL["set_parent"], {"id": home.root_block, "parent_id": block_id, "order_index": last, **stamped})
    tx.run(_SQL["set_parent"], {"id": block_id, "parent_id": None, "order_index": 0.0, **stamped})
    tx.run(_SQL["set_root"], {"workspace": home.number, "id": block_id})
    tx.run(_SQL["show_subtree_anew"], {"workspace": home.number, "id": block_id})


def _require_place(
    reader: ReadTransaction, home: WorkspaceRoot, parent_id: str, *, below: str, height: int, limits: Limits
) -> None:
    """Let a block, with ``height`` levels from itself down, go below a parent.

    Raises:
        UnprocessableProblem: it can't.
    """
    path = _path(reader, home, parent_id)
    if parent_id == below or below in path:
        raise UnprocessableProblem("cycle", "A block can't be below itself.")
    if not path:
        raise UnprocessableProblem("parent_not_found", "parentBlock must be a block of this workspace.")
    _require_depth(len(path) + height, limits)


def _require_depth(depth: int, limits: Limits) -> None:
    if depth > limits.block_depth:
        raise UnprocessableProblem("too_deep", f"A tree of blocks may be {limits.block_depth} levels deep.")


def _path(reader: ReadTransaction, home: WorkspaceRoot, block_id: str) -> tuple[str, ...]:
    return tuple(row[0] for row in reader.all(_SQL["path"], {"workspace": home.number, "id": block_id}))


def _last(reader: ReadTransaction, home: WorkspaceRoot, parent_id: str) -> float:
    """The orderIndex after the last child (contract B5)."""
    row = reader.one(_SQL["last_order_index"], {"workspace": home.number, "parent_id": parent_id})
    return 0.0 if row is None or row[0] is None else float(row[0]) + 1


def _home(row: Sequence[object] | None) -> WorkspaceRoot:
    if row is None:
        raise NotFoundProblem("workspace_not_found", "There is no such workspace.")
    return WorkspaceRoot(number=int(str(row[0])), root_block=str(row[1]))
