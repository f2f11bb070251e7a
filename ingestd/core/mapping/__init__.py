"""The mapping from records to entries, compiled to column expressions. Performs no I/O."""

from ingestd.core.mapping.absent_fields import AbsentField, AbsentFields
from ingestd.core.mapping.children import PARENT
from ingestd.core.mapping.compiled import Mapping
from ingestd.core.mapping.mapped import Mapped, PreparedBatch
from ingestd.core.mapping.specification import EntrySpec, LookupSpec, Table, TableSource
from ingestd.core.mapping.steps import MappingStep, RecordSteps
from ingestd.core.template import COLUMN, TemplateError, parse_template

__all__ = [
    "COLUMN",
    "PARENT",
    "AbsentField",
    "AbsentFields",
    "EntrySpec",
    "LookupSpec",
    "Mapped",
    "Mapping",
    "MappingStep",
    "PreparedBatch",
    "RecordSteps",
    "Table",
    "TableSource",
    "TemplateError",
    "parse_template",
]
