"""The table of the forms and actions: their paths and handlers."""

from __future__ import annotations

from collections.abc import Iterator

from workspaced.settings.model import Limits
from workspaced.ui.edit import blocks, entries, files, history_restore, selection, sinks, webhooks, workspaces
from workspaced.ui.edit.bulk_change import UNDO_BYTES
from workspaced.ui.edit.table_import import TABLE_BYTES, ReadTableFile, TableImport
from workspaced.ui.routes import BLOCK, ENTRY, FILE, FORM_BYTES, SINK, WEBHOOK, WORKSPACE, Page, Route


def edit_routes(limits: Limits, read_table_file: ReadTableFile) -> tuple[Route, ...]:
    """Return the routes. GET shows a form, and POST sends the form to the same URL."""
    most = limits.body_bytes
    imports = TableImport(read_table_file, most=limits.bulk_items)
    return (
        *_form("create_workspace", "/ui/workspaces/new", workspaces.create_workspace, most),
        *_form("edit_workspace", f"{WORKSPACE}/edit", workspaces.edit_workspace, most),
        *_form("delete_workspace", f"{WORKSPACE}/delete", workspaces.delete_workspace, most),
        *_form("create_sink", f"{WORKSPACE}/new-sink", sinks.create_sink, most),
        *_form("edit_sink", f"{SINK}/edit", sinks.edit_sink, most),
        *_form("delete_sink", f"{SINK}/delete", sinks.delete_sink, most),
        *_form("create_entry", f"{SINK}/new-entry", entries.create_entry, most),
        *_form("edit_entry", f"{ENTRY}/edit", entries.edit_entry, most),
        *_form("delete_entry", f"{ENTRY}/delete", entries.delete_entry, most),
        Route(name="restore_entry", method="POST", path=f"{ENTRY}/restore", page=entries.restore_entry),
        Route(
            name="restore_entries",
            method="POST",
            path=f"{SINK}/history/restore",
            page=history_restore.restore_entries,
            form_bytes=most,
        ),
        Route(name="change_entry", method="POST", path=f"{SINK}/changes", page=entries.change_entry, form_bytes=most),
        Route(
            name="change_selection",
            method="POST",
            path=f"{SINK}/selection",
            page=selection.act_on_selection,
            form_bytes=UNDO_BYTES + FORM_BYTES,
        ),
        *_form("import_table", f"{SINK}/import", imports.page, 3 * TABLE_BYTES),
        Route(name="read_table", method="POST", path=f"{SINK}/import/file", page=imports.read, form_bytes=None),
        *_form("create_block", f"{WORKSPACE}/blocks/new", blocks.create_block, most),
        *_form("edit_block", f"{BLOCK}/edit", blocks.edit_block, most),
        *_form("delete_block", f"{BLOCK}/delete", blocks.delete_block, most),
        Route(name="upload_file", method="POST", path=f"{WORKSPACE}/files/upload", page=files.upload, form_bytes=None),
        Route(
            name="upload_version",
            method="POST",
            path=f"{FILE}/upload",
            page=files.upload_version,
            form_bytes=None,
        ),
        *_form("edit_metadata", f"{FILE}/metadata", files.edit_metadata, most),
        *_form("edit_file", f"{FILE}/edit", files.edit_file, most),
        *_form("delete_file", f"{FILE}/delete", files.delete_file, most),
        *_form("create_webhook", "/ui/webhooks/new", webhooks.create_webhook, most),
        *_form("edit_webhook", f"{WEBHOOK}/edit", webhooks.edit_webhook, most),
        *_form("delete_webhook", f"{WEBHOOK}/delete", webhooks.delete_webhook, most),
        Route(name="rotate_secret", method="POST", path=f"{WEBHOOK}/rotate-secret", page=webhooks.rotate_secret),
    )


def _form(name: str, path: str, page: Page, most: int) -> Iterator[Route]:
    for method in ("GET", "POST"):
        yield Route(name=name, method=method, path=path, page=page, form_bytes=most, keeps_input=True)
