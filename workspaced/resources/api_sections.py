"""The list of the sections of the API description, in their order."""

from __future__ import annotations

from workspaced.http.openapi.description import ApiSection
from workspaced.resources.api_keys import api_section as access
from workspaced.resources.audit import api_section as audit
from workspaced.resources.blocks import api_section as blocks
from workspaced.resources.cloud_storage import api_section as cloud_storage
from workspaced.resources.data_sinks import api_section as data_sinks
from workspaced.resources.data_sinks import history_section
from workspaced.resources.health import api_section as web
from workspaced.resources.webhooks import api_section as webhooks
from workspaced.resources.workspaces import api_section as workspaces
from workspaced.settings.model import WorkspacedSettings


def api_sections(settings: WorkspacedSettings) -> tuple[ApiSection, ...]:
    """Return all sections. Every operation of the service must be described in one of them."""
    limits = settings.limits
    return (
        workspaces.api_section(limits),
        data_sinks.api_section(limits),
        history_section.api_section(limits),
        blocks.api_section(limits),
        cloud_storage.api_section(limits),
        webhooks.api_section(limits),
        access.api_section(limits),
        audit.api_section(limits),
        web.api_section(pages=settings.docs),
    )
