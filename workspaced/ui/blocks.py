"""A workspace's blocks: the tree, and one block with its children."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from workspaced.ui.pager import Turn
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import Visit
from workspaced.ui.workspaces import SECTION

_IN_TREE: Final = 1_000
_CHILDREN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A block of the tree; ``hidden`` is how many of its children are not in it."""

    block: Mapping[str, Any]
    children: list[Node] = field(default_factory=list)
    hidden: int = 0


async def show_tree(visit: Visit) -> PageView:
    """The upper thousand blocks as a tree: the API lists them by depth, so what is shown hangs together."""
    workspace_id = visit.names["workspace"]
    workspace = await visit.get("workspace", workspace_id)
    found = await visit.get("workspace", workspace_id, "blocks", take=str(_IN_TREE))
    return PageView(
        template="blocks.html",
        title=workspace.record["label"],
        section=SECTION,
        values={
            "workspace": workspace.record,
            "roots": tree_of(found.value),
            "shown": len(found.value),
            "total": found.total,
        },
    )


async def show_block(visit: Visit) -> PageView:
    """A block, the way to it, and its children, some at a time."""
    workspace_id, block_id = visit.names["workspace"], visit.names["block"]
    workspace = await visit.get("workspace", workspace_id)
    block = await visit.get("workspace", workspace_id, "blocks", block_id)
    turn = Turn(take=_CHILDREN, skip=visit.number("skip"))
    children = await visit.get(
        "workspace", workspace_id, "blocks", parentBlock=block.record["id"], sortedBy="orderIndex", **turn.query
    )
    parent_id = block.record["parentBlock"]
    parent = (await visit.get("workspace", workspace_id, "blocks", parent_id)).record if parent_id else None
    return PageView(
        template="block.html",
        title=block.record["label"] or "Block without a label",
        section=SECTION,
        values={
            "workspace": workspace.record,
            "block": block.record,
            "parent": parent,
            "children": children.value,
            "pager": turn.pager(children.total, "workspaces", workspace_id, "blocks", block.record["id"]),
        },
    )


def tree_of(blocks: Sequence[Mapping[str, Any]]) -> list[Node]:
    """The roots of these blocks, which come with every parent before its children and siblings in their order."""
    nodes = {block["id"]: Node(block=block) for block in blocks}
    below: dict[str, list[Node]] = defaultdict(list)
    for block in blocks:
        below[block["parentBlock"]].append(nodes[block["id"]])
    return [_grown(node, below) for node in below[""]]


def _grown(node: Node, below: Mapping[str, list[Node]]) -> Node:
    """The node with what is below it. A tree is at most as deep as the service lets it be."""
    children = [_grown(child, below) for child in below.get(node.block["id"], ())]
    return Node(block=node.block, children=children, hidden=len(node.block["children"]) - len(children))
