"""Options of the opcua connector: names of variables, and combinations that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from connectors.opcua import OpcuaConnector, OpcuaOptions
from connectors.opcua.node_names import BrowsePattern, NodeName


@pytest.mark.parametrize(
    ("pattern", "path", "matches", "leads_to"),
    [
        ("Line1/**", "Line1", True, True),
        ("Line1/**", "Line1/Oven/Temp", True, True),
        ("Line1/**", "Line2", False, False),
        ("Line1/*/Temp", "Line1/Oven/Temp", True, False),
        ("Line1/*/Temp", "Line1/Oven", False, True),
        ("Line1/*/Temp", "Line1/Oven/Zone/Temp", False, False),
        ("**/Temp*", "Line1/Oven/Temp2", True, True),
        ("**/Temp*", "Line1/Oven", False, True),
        ("Line[12]/T", "Line2/T", True, False),
    ],
)
def test_a_pattern_matches_paths_and_leads_to_them(pattern: str, path: str, matches: bool, leads_to: bool) -> None:
    parsed, levels = BrowsePattern.parse(pattern), path.split("/")
    assert (parsed.matches(levels), parsed.leads_to(levels)) == (matches, leads_to)


def test_a_node_id_keeps_its_text() -> None:
    for text in ("nsu=urn:line;s=Oven;1=x", "i=2258", "nsu=http://x/y;g=00000000-0000-0000-0000-000000000001"):
        assert str(NodeName.parse(text)) == text
    assert str(NodeName.parse("ns=0;i=2258")) == "i=2258"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "set nodes, browse or both"),
        ({"nodes": ["ns=2;s=Oven"]}, "names a namespace by number"),
        ({"nodes": ["Oven"]}, "is no node id"),
        ({"browse": "Line1//Oven"}, "empty level"),
        ({"browse": "Line1/a**"}, "must be a whole level"),
        ({"browse": "x", "url": "opc.tcp://me:secret@host"}, "must not hold credentials"),
        ({"browse": "x", "trust": ["abc"]}, "SHA-256 fingerprint"),
        ({"browse": "x", "user": "me", "security": "none"}, "would send the password readable"),
        ({"browse": "x", "key_file": "key.pem"}, "set together"),
        ({"browse": "x", "mode": "poll", "deadband": 1}, "deadband needs mode: subscribe"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        OpcuaOptions.model_validate({"url": "opc.tcp://127.0.0.1:4840", **options})


def test_only_a_source_that_polls_has_a_schedule() -> None:
    options = {"url": "opc.tcp://127.0.0.1", "browse": "x"}
    assert "set mode: poll" in OpcuaConnector.schedule_refusal(OpcuaOptions.model_validate(options))
    assert OpcuaConnector.schedule_refusal(OpcuaOptions.model_validate({**options, "mode": "poll"})) == ""


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("opc.tcp://Line-1.example.com", "line-1.example.com:4840"),
        ("opc.tcp://line-1:4841/UA/", "line-1:4841/UA"),
        ("opc.tcp://[::1]", "[::1]:4840"),
    ],
)
def test_an_address_has_a_port_and_keeps_its_path(url: str, address: str) -> None:
    assert OpcuaOptions.model_validate({"url": url, "browse": "x"}).address == address
