"""The configuration file: its model, loading, mistakes with their location, and its JSON Schema."""

from ingestd.settings.loader import find_configuration, load_settings
from ingestd.settings.model import PipelineSettings, Settings, SourceSettings
from ingestd.settings.schedule import Cron, Every, OnChange, Schedule
from ingestd.settings.schema import configuration_schema, schema_text
from ingestd.settings.service import ServiceSettings
from ingestd.settings.validation import ConnectorUnusable

__all__ = [
    "ConnectorUnusable",
    "Cron",
    "Every",
    "OnChange",
    "PipelineSettings",
    "Schedule",
    "ServiceSettings",
    "Settings",
    "SourceSettings",
    "configuration_schema",
    "find_configuration",
    "load_settings",
    "schema_text",
]
