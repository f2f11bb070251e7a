"""The pages of a workspace's blocks: the tree, and a block with its children."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from workspaced.security.permissions import BLOCKS_WRITE
from workspaced.ui.page_request import PageRequest
from workspaced.ui.pager import PagePosition
from workspaced.ui.renderer import PageView, page_view, title_of
from workspaced.ui.workspaces import SECTION

_IN_TREE: Final = 1_000
_OF_TYPE: Final = 200
_CHILDREN: Final = 200
_LISTS: Final[Mapping[str, str]] = {
    "externalLinks": "Links",
    "attachments": "Attachments",
    "figures": "Figures",
    "blockStatuses": "Statuses",
    "propertyGroups": "Property groups",
    "instances": "Instances",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A block of the tree; ``hidden`` is the number of its children that are not shown."""

    block: Mapping[str, Any]
    children: list[Node] = field(default_factory=list)
    hidden: int = 0


async def show_tree(request: PageRequest) -> PageView:
    """Show the first thousand blocks as a tree. The API lists blocks by depth, so the parent of each shown block is shown, too.

    With a type in the query, show pages of the blocks of this type, sorted by label.
    """
    workspace_id = request.names["workspace"]
    workspace = await request.workspace()
    kind = request.query.get("type", "").strip()
    list_page = PagePosition(take=_OF_TYPE if kind else _IN_TREE, skip=request.number("skip") if kind else 0)
    chosen = {"type": kind, "sortedBy": "label"} if kind else {}
    found = await request.get("workspace", workspace_id, "blocks", **chosen, **list_page.query)
    return page_view(
        "blocks.html",
        title_of("Blocks", workspace["label"]),
        SECTION,
        workspace=workspace,
        kind=kind,
        blocks=found.value,
        pager=list_page.pager(found.total, "workspaces", workspace_id, "blocks", type=kind),
        roots=[] if kind else tree_of(found.value),
        shown=len(found.value),
        total=found.total,
        may_write=request.may(BLOCKS_WRITE),
    )


async def show_block(request: PageRequest) -> PageView:
    """Show a block, its parent, and a page of its children."""
    workspace_id, block_id = request.names["workspace"], request.names["block"]
    workspace = await request.workspace()
    block = await request.get("workspace", workspace_id, "blocks", block_id)
    list_page = PagePosition(take=_CHILDREN, skip=request.number("skip"))
    children = await request.get(
        "workspace", workspace_id, "blocks", parentBlock=block.record["id"], sortedBy="orderIndex", **list_page.query
    )
    parent_id = block.record["parentBlock"]
    parent = (await request.get("workspace", workspace_id, "blocks", parent_id)).record if parent_id else None
    return page_view(
        "block.html",
        title_of(block.record["label"] or "Block without a label", workspace["label"]),
        SECTION,
        workspace=workspace,
        block=block.record,
        parent=parent,
        lists={label: block.record[name] for name, label in _LISTS.items() if block.record[name]},
        may_write=request.may(BLOCKS_WRITE),
        children=children.value,
        pager=list_page.pager(children.total, "workspaces", workspace_id, "blocks", block.record["id"]),
    )


def tree_of(blocks: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Return the roots of the blocks, each with the blocks below it.

    Siblings keep their order in ``blocks``. A block is omitted if its parent is not in ``blocks``.
    """
    nodes = {block["id"]: Node(block=block) for block in blocks}
    below: dict[str, list[Node]] = defaultdict(list)
    for block in blocks:
        below[block["parentBlock"]].append(nodes[block["id"]])
    return [_with_children(node, below) for node in below[""]]


def _with_children(node: Node, below: Mapping[str, list[Node]]) -> Node:
    """Return the node with all nodes below it. The service limits the depth of the recursion."""
    children = [_with_children(child, below) for child in below.get(node.block["id"], ())]
    return Node(block=node.block, children=children, hidden=len(node.block["children"]) - len(children))
