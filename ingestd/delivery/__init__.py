"""From the mirror to the service: a lane for every sink, woken by signals, stopped by nothing but its cancellation."""

from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.pace import Pace
from ingestd.delivery.report import LaneReport, Standing

__all__ = ["Dispatcher", "LaneReport", "Pace", "Standing"]
