"""Intake from the sources to the mirror: reads new records, and notifies connectors of acknowledged partitions."""

from ingestd.intake.lookup_files import LookupFiles
from ingestd.intake.pass_report import PassReport
from ingestd.intake.reader import Reader
from ingestd.intake.supervisor import SourcesRetried, SourceSupervisor

__all__ = ["LookupFiles", "PassReport", "Reader", "SourceSupervisor", "SourcesRetried"]
