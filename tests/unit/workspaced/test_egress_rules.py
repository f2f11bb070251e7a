from __future__ import annotations

from ipaddress import ip_address

import pytest

from workspaced.security.egress.rules import EgressRules, UnsafeTarget, is_public, literal_address

HOSTILE = (
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2001::1",
    "2001:db8::1",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "ff02::1",
    "100::1",
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")

STRICT = EgressRules()
DEV = EgressRules.from_environment({}, dev=True)


@pytest.mark.parametrize("address", HOSTILE)
def test_a_hostile_address_is_not_public(address: str) -> None:
    # contract H15
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "/path",
        "http://example.com/",
        "ftp://example.com/",
        "https://",
        "https:///path",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "https://example.com:22/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:80/",
        "https://example.com/ x",
        "https://example.com\\@127.0.0.1/",
        "https://exam\tple.com/",
        "https://a..b/",
        "https://-a.example/",
        "https://ex%41mple.com/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://x.localhost/",
        "https://printer.local/",
        "https://hooks.corp.internal/",
        "https://intranet/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://169.254.169.254/latest/meta-data",
        "https://" + "a." * 130 + "example/",
    ],
)
def test_a_url_that_is_not_clearly_public_is_rejected(url: str) -> None:
    # contract H15
    with pytest.raises(UnsafeTarget):
        STRICT.target(url)


def test_a_public_url_is_parsed_once() -> None:
    target = STRICT.target("https://Hooks.Example.com:8443/a%2Fb?q=ü")
    assert (target.scheme, target.host, target.port, target.path) == (
        "https",
        "hooks.example.com",
        8443,
        b"/a%2Fb?q=%C3%BC",
    )
    assert target.authority == "hooks.example.com:8443"
    assert STRICT.target("https://bücher.example").authority == "xn--bcher-kva.example"
    assert STRICT.target("https://[2606:4700:4700::1111]/").authority == "[2606:4700:4700::1111]"


def test_dev_mode_permits_only_http_and_this_machine() -> None:
    assert DEV.target("http://127.0.0.1:8080/").port == 8080
    assert DEV.target("http://localhost:8080/").host == "localhost"
    assert DEV.target("http://[::1]:8080/").host == "::1"
    assert DEV.target("http://example.com/").port == 80
    for url in ("http://10.0.0.1/", "http://169.254.169.254/", "http://x.internal/"):
        with pytest.raises(UnsafeTarget):
            DEV.target(url)


def test_networks_and_names_can_be_permitted() -> None:
    # contract H15
    rules = EgressRules.from_environment(
        {"WORKSPACED_ALLOWED_CIDRS": "10.1.0.0/16, fd00::/8", "WORKSPACED_ALLOWED_HOSTS": "Hooks.Corp.internal."},
        dev=False,
    )
    assert rules.target("https://10.1.2.3/").host == "10.1.2.3"
    rules.require_addresses("x.example", (ip_address("10.1.2.3"), ip_address("::ffff:10.1.2.3"), ip_address("fd00::1")))
    rules.require_addresses("hooks.corp.internal", (ip_address("192.168.0.1"),))
    assert rules.target("https://hooks.corp.internal/").host == "hooks.corp.internal"
    with pytest.raises(UnsafeTarget):
        rules.target("https://10.2.0.1/")
    with pytest.raises(UnsafeTarget):
        rules.target("http://10.1.2.3/")


@pytest.mark.parametrize("addresses", [(), ("127.0.0.1",), ("1.1.1.1", "10.0.0.1"), ("1.1.1.1", "::1")])
def test_a_name_is_permitted_only_if_all_its_addresses_are(addresses: tuple[str, ...]) -> None:
    with pytest.raises(UnsafeTarget, match=r"x\.example"):
        STRICT.require_addresses("x.example", [ip_address(text) for text in addresses])
    STRICT.require_addresses("x.example", [ip_address("1.1.1.1"), ip_address("2606:4700:4700::1111")])


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"WORKSPACED_ALLOW_HTTP": "yes"}, "WORKSPACED_ALLOW_HTTP is 'yes'"),
        ({"WORKSPACED_ALLOWED_CIDRS": "10.0.0.1/8"}, "WORKSPACED_ALLOWED_CIDRS contains '10.0.0.1/8'"),
    ],
)
def test_an_invalid_setting_is_named(variables: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        EgressRules.from_environment(variables, dev=False)


def test_obsolete_notations_of_addresses_are_recognised() -> None:
    assert str(literal_address("127.1")) == "127.0.0.1"
    assert str(literal_address("0x7f.1")) == "127.0.0.1"
    assert literal_address("example.com") is None
    assert literal_address("1.example") is None
