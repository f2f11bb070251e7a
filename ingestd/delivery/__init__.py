"""Delivery from the mirror to the service: one lane for each sink, woken by signals, running until cancelled."""

from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.report import LaneReport, LaneStatus

__all__ = ["DeliveryLimits", "Dispatcher", "LaneReport", "LaneStatus"]
