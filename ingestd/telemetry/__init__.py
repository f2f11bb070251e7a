"""Named events and the log."""

from ingestd.telemetry.event import Emit, Event, event_name, log_event

__all__ = ["Emit", "Event", "event_name", "log_event"]
