"""From the mirror to the service: a lane for every sink, woken by signals, stopped by nothing but its cancellation."""

from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.report import LaneReport, Standing

__all__ = ["DeliveryLimits", "Dispatcher", "LaneReport", "Standing"]
