"""JUnit: reports of tests in XML, as test runners and build servers write them."""

from connectors.formats.junit.options import JUnit

__all__ = ["JUnit"]
