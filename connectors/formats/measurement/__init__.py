"""Measurement files: channels with many samples, and the statistics that a data sink can hold."""

from connectors.formats.measurement.options import MeasurementFormat

__all__ = ["MeasurementFormat"]
