"""The mqtt connector: subscribes to topics of a broker, and acknowledges each message after its records are stored."""

from connectors.mqtt.connector import MqttConnector
from connectors.mqtt.options import MqttOptions

__all__ = ["MqttConnector", "MqttOptions"]
