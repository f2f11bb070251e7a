from __future__ import annotations

import pytest

from ingestd.wire.hosts import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.8.0.1", "::1", "::ffff:127.0.0.1"])
def test_names_of_this_machine_are_recognised(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "::ffff:10.0.0.1", "::", "h.test", ""])
def test_other_hosts_are_not_this_machine(host: str) -> None:
    assert not is_loopback(host)
