"""The opcua connector: the present values of the variables of an OPC UA server."""

from connectors.opcua.connector import OpcuaConnector
from connectors.opcua.options import OpcuaOptions

__all__ = ["OpcuaConnector", "OpcuaOptions"]
