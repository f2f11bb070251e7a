"""What blocks may be (contract B2, B5, B7). Pure: bodies in, checked values or every mistake out."""

from __future__ import annotations

import dataclasses

from msgspec import UNSET, UnsetType

from workspaced.core.fields import Fields
from workspaced.core.json_body import encode
from workspaced.core.problems import Invalid
from workspaced.core.text import as_uuid
from workspaced.resources.blocks.values import MEMBERS, BlockChanges, Content, Given, NewBlock
from workspaced.settings.model import Limits

_ONE_LINE = frozenset({"label", "partNumber"})
_LISTS = frozenset({"propertyGroups", "instances", "figures", "attachments", "externalLinks", "blockStatuses", "type"})
_DISTINCT = frozenset({"type"})
_DEFAULTS = Content()


def read_new_block(body: object, limits: Limits, *, workspace_id: str) -> tuple[NewBlock, tuple[str, ...]]:
    """The checked body (contract BL2) and the ignored names.

    Raises:
        Invalid: something is wrong; ``workspace_mismatch`` where the body names another workspace than the path.
    """
    fields = Fields(body)
    named = fields.identifier("workspace", required=True)
    new = NewBlock(
        id=fields.identifier("id"),
        parent_id=_parent(fields) or None,
        content=dataclasses.replace(_DEFAULTS, **_given(fields, limits)),  # type: ignore[arg-type]  # by field
    )
    ignored = fields.finish()
    if named != workspace_id:
        raise Invalid.at("/workspace", "workspace_mismatch", "/workspace must be the id of the workspace in the path.")
    return new, ignored


def read_block_changes(body: object, limits: Limits) -> tuple[BlockChanges, tuple[str, ...]]:
    """The checked body (contract BL5) and the ignored names. Null gives a member its default back; so does an empty parentBlock.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    changes = block_changes(fields, limits)
    return changes, fields.finish()


def block_changes(fields: Fields, limits: Limits) -> BlockChanges:
    """The changes in an object whose owner calls ``finish`` (a workspace's ``rootBlock`` is one, too)."""
    order_index = fields.number("orderIndex")
    if order_index is None:
        fields.mistake("orderIndex", "wrong_type", "can't be null")
    return BlockChanges(
        given=_given(fields, limits),
        parent_id=_parent(fields),
        order_index=UNSET if isinstance(order_index, UnsetType) or order_index is None else float(order_index),
    )


def _given(fields: Fields, limits: Limits) -> Given:
    """The members of the content that are there, as the store keeps them."""
    given: dict[str, str | bool] = {}
    for member, field in MEMBERS.items():
        value = fields.raw(member)
        if value is UNSET:
            continue
        given[field] = getattr(_DEFAULTS, field) if value is None else _read(fields, member, limits)
    return given


def _read(fields: Fields, member: str, limits: Limits) -> str | bool:
    """One member that is neither absent nor null."""
    if member in _LISTS:
        items = fields.texts(
            member,
            most=limits.block_list_items,
            longest=limits.block_list_item_length,
            distinct=member in _DISTINCT,
        )
        return encode(items).decode()
    if member == "pdmEnabled":
        return fields.flag(member, default=False)
    if member == "multiplicity":
        number = fields.number(member, lowest=0)
        return "1" if isinstance(number, UnsetType) else encode(number).decode()
    longest = {"label": limits.label_length, "description": limits.description_length}
    text = fields.text(member, longest=longest.get(member, limits.block_text_length), one_line=member in _ONE_LINE)
    return text.strip() if member == "label" and isinstance(text, str) else text if isinstance(text, str) else ""


def _parent(fields: Fields) -> str | UnsetType | None:
    """parentBlock; None where it is null or empty, as a root block shows it."""
    value = fields.raw("parentBlock")
    if value is UNSET:
        return UNSET
    if value is None or value == "":
        return None
    found = as_uuid(value) if isinstance(value, str) else None
    if found is None:
        fields.mistake("parentBlock", "not_a_uuid", "must be a UUID")
    return found
