"""The opcua connector: reads the present values of variables of an OPC UA server."""

from connectors.opcua.connector import OpcuaConnector
from connectors.opcua.options import OpcuaOptions

__all__ = ["OpcuaConnector", "OpcuaOptions"]
