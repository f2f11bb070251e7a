"""The chapters of the API's reference, in their order: what each slice says about its operations."""

from __future__ import annotations

from workspaced.access import described as access
from workspaced.audit import described as audit
from workspaced.blocks import described as blocks
from workspaced.cloud_storage import described as cloud_storage
from workspaced.data_sinks import described as data_sinks
from workspaced.openapi.description import Chapter
from workspaced.settings import Settings
from workspaced.web import described as web
from workspaced.webhooks import described as webhooks
from workspaced.workspaces import described as workspaces


def chapters(settings: Settings) -> tuple[Chapter, ...]:
    """All of them. An operation that stands in none keeps the service's document from being made."""
    limits = settings.limits
    return (
        workspaces.chapter(limits),
        data_sinks.chapter(limits),
        blocks.chapter(limits),
        cloud_storage.chapter(limits),
        webhooks.chapter(limits),
        access.chapter(limits),
        audit.chapter(limits),
        web.chapter(pages=settings.docs),
    )
