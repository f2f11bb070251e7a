from __future__ import annotations

import pytest

from workspaced.core.bodies import read_body
from workspaced.core.problems import ForbiddenProblem, Invalid, RangeNotSatisfiable
from workspaced.resources.cloud_storage.conversion_store import FailureStep, after_failure, after_lost_lease
from workspaced.resources.cloud_storage.converters.registry import converter_of
from workspaced.resources.cloud_storage.download_routes import ByteRange, attachment, select_range
from workspaced.resources.cloud_storage.links import UploadLinks
from workspaced.resources.cloud_storage.rules import NewUpload, read_direct_upload, read_metadata, type_of, typed
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import Limits, public_url
from workspaced.settings.workers import ConversionSettings

LIMITS = Limits()
WORKSPACE = "11111111-1111-4111-8111-111111111111"
TAG = '"abc"'


@pytest.mark.parametrize(
    ("header", "start", "length"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-4", 2, 3),
        ("bytes=5-", 5, 5),
        ("bytes=-3", 7, 3),
        ("bytes=-99", 0, 10),
        ("bytes=8-999", 8, 2),
        ("bytes = 0-1", 0, 2),
    ],
)
def test_a_range_is_limited_to_the_content(header: str, start: int, length: int) -> None:
    assert select_range(header, None, etag=TAG, size=10) == ByteRange(start=start, length=length, whole=False)


@pytest.mark.parametrize(
    "header", [None, "", "bytes=4-2", "bytes=a-b", "bytes=0-1,4-5", "lines=0-1", "bytes=-", "bytes 0-1"]
)
def test_an_unsupported_range_gets_the_whole_content(header: str | None) -> None:
    assert select_range(header, None, etag=TAG, size=10) == ByteRange(start=0, length=10, whole=True)


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=0-", 0)]
)
def test_a_range_after_the_end_is_rejected_with_the_size(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        select_range(header, None, etag=TAG, size=size)
    assert refused.value.headers == (("Content-Range", f"bytes */{size}"),)


@pytest.mark.parametrize("if_range", ['"other"', 'W/"abc"', "Sat, 21 Nov 2026 22:00:00 GMT"])
def test_a_range_of_another_version_gets_the_whole_content(if_range: str) -> None:
    assert select_range("bytes=0-1", if_range, etag=TAG, size=10).whole
    assert not select_range("bytes=0-1", TAG, etag=TAG, size=10).whole


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget.csv", 'attachment; filename="budget.csv"'),
        ('a"b\\c.txt', "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"),
        ("Größe.csv", "attachment; filename=\"Gro_e.csv\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.csv"),
        ("部品.csv", "attachment; filename=\"__.csv\"; filename*=UTF-8''%E9%83%A8%E5%93%81.csv"),
        ("100%.csv", "attachment; filename=\"100_.csv\"; filename*=UTF-8''100%25.csv"),
    ],
)
def test_a_download_has_its_name_in_both_forms(name: str, value: str) -> None:
    assert attachment(name) == value


def test_a_file_name_cannot_end_the_header() -> None:
    value = attachment('x"; evil=1\r\nSet-Cookie: a=b')
    assert "\r" not in value
    assert "\n" not in value
    assert value.count('"') == 2


def _links(secret: str = "ab" * 32) -> UploadLinks:
    links = UploadLinks()
    links.use_secret(lambda: bytes.fromhex(secret))
    return links


def _query(link: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in link.partition("?")[2].split("&"))


def test_a_link_is_valid_until_it_expires() -> None:
    query = _query(_links().link("https://data.example.org", upload_id="u", expires_at=1_000))
    _links().require_signed(query, upload_id="u", now=999)
    with pytest.raises(ForbiddenProblem, match="upload link has expired"):
        _links().require_signed(query, upload_id="u", now=1_000)


def test_a_link_with_any_changed_part_is_rejected() -> None:
    query = _query(_links().link("", upload_id="u", expires_at=1_000))
    forged = [
        ({**query, "expires": "2000"}, "u"),
        (query, "v"),
        ({**query, "signature": ""}, "u"),
        ({**query, "signature": "é" * 43}, "u"),
        ({"expires": "x"}, "u"),
        ({}, "u"),
    ]
    for changed, upload_id in forged:
        with pytest.raises(ForbiddenProblem, match="not made by this service"):
            _links().require_signed(changed, upload_id=upload_id, now=1)
    with pytest.raises(ForbiddenProblem):
        _links("cd" * 32).require_signed(query, upload_id="u", now=1)


def test_internal_failures_are_retried_three_times_and_others_only_on_request() -> None:
    limits = ConversionSettings()
    for failures, seconds in enumerate((10, 60, 300)):
        for error_class in ("internal", "timeout"):
            step = after_failure(limits, error_class, failures=failures, now=1_000)
            assert step == FailureStep(due_at=1_000 + seconds * 1_000, failures=failures + 1)
    assert after_failure(limits, "internal", failures=3, now=1_000) == FailureStep(due_at=None, failures=4)
    assert after_failure(limits, "user", failures=0, now=1_000) == FailureStep(due_at=None, failures=1)
    assert after_failure(limits, "unsupported", failures=0, now=1_000) == FailureStep(due_at=None, failures=1)


def test_a_conversion_with_a_lost_lease_is_restarted_a_limited_number_of_times() -> None:
    limits = ConversionSettings()
    assert after_lost_lease(limits, failures=0, now=5) == FailureStep(due_at=5, failures=1)
    assert after_lost_lease(limits, failures=3, now=5) == FailureStep(due_at=None, failures=4)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("LEASE_SECONDS", "0"), ("AT_ONCE", "many"), ("MEMORY_BYTES", "1000"), ("SECONDS", "-1"), ("OUTPUT_BYTES", "1.5")],
)
def test_an_invalid_setting_is_named(variable: str, value: str) -> None:
    name = f"WORKSPACED_CONVERSION_{variable}"
    with pytest.raises(ValueError, match=name):
        ConversionSettings.from_environment({name: value})


def test_the_heartbeat_follows_the_lease() -> None:
    assert ConversionSettings.from_environment({}).heartbeat_seconds == 60
    assert ConversionSettings.from_environment({"WORKSPACED_CONVERSION_LEASE_SECONDS": "5"}).heartbeat_seconds == 1


@pytest.mark.parametrize(
    ("name", "content_type", "module"),
    [
        ("a.XLSX", "application/octet-stream", "spreadsheets"),
        ("a.csv", "application/vnd.ms-excel", "delimited"),
        ("a", "text/csv; charset=utf-8", "delimited"),
        ("a.pdf", "text/plain", "documents"),
        ("photo", "IMAGE/JPEG", "images"),
        ("a.zip", "application/zip", None),
        ("csv", "application/octet-stream", None),
        ("a.svg", "image/svg+xml", None),
    ],
)
def test_a_converter_is_chosen_by_extension_then_by_type(name: str, content_type: str, module: str | None) -> None:
    kind = converter_of(name, content_type)
    assert (kind.module if kind else None) == module


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\\b", "..", ".", " . ", "", "   ", "a\nb", "x" * 256])
def test_an_empty_name_or_a_path_is_rejected(name: str) -> None:
    # contract C3
    with pytest.raises(Invalid) as refused:
        read_body(NewUpload, {"workspaceId": WORKSPACE, "fileName": name}, LIMITS)
    assert refused.value.mistakes[0].pointer == "/fileName"


def test_names_are_normalised_and_may_be_of_any_language() -> None:
    new, ignored = read_body(
        NewUpload, {"workspaceId": WORKSPACE, "fileName": " Gro\u0308ße 部品.csv ", "x": 1}, LIMITS
    )
    assert new.file_name == "Größe 部品.csv"
    assert typed(new).content_type == "text/csv"
    assert ignored == ("x",)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("contentType", "text"),
        ("contentType", "text/html\r\nX: y"),
        ("sha256", "ab"),
        ("size", -1),
        ("size", 1.5),
        ("size", 2_147_483_649),
        ("id", "x"),
        ("workspaceId", "x"),
    ],
)
def test_each_invalid_member_of_an_upload_is_named(member: str, value: object) -> None:
    with pytest.raises(Invalid) as refused:
        read_body(NewUpload, {"workspaceId": WORKSPACE, "fileName": "a.bin", member: value}, LIMITS)
    assert [mistake.pointer for mistake in refused.value.mistakes] == [f"/{member}"]


def test_the_default_content_type_of_curl_is_ignored() -> None:
    query = {"workspaceId": WORKSPACE, "fileName": "a.png"}
    assert read_direct_upload(query, "application/x-www-form-urlencoded", LIMITS).content_type == "image/png"
    assert read_direct_upload(query, "image/webp", LIMITS).content_type == "image/webp"
    assert read_direct_upload({**query, "contentType": "text/csv"}, "image/webp", LIMITS).content_type == "text/csv"
    assert type_of("unknown") == "application/octet-stream"
    assert type_of(".csv") == "text/csv"


def test_metadata_is_stored_in_one_order_with_the_digits_of_its_numbers() -> None:
    from workspaced.core.json_body import decode  # numbers as the service parses them

    assert (
        read_metadata(decode(b'{"b": 1.10, "a": {"d": 1e2, "c": null}}'), LIMITS)
        == '{"a":{"c":null,"d":1E+2},"b":1.10}'
    )


def test_metadata_is_an_object_of_bounded_size_and_depth() -> None:
    # contract C4
    deep: dict[str, object] = {}
    for _ in range(16):
        deep = {"a": deep}
    deepest: object = []
    for _ in range(5_000):
        deepest = [deepest]
    for body, code in (
        ([], "wrong_type"),
        ({"a": "x" * 65_536}, "too_long"),
        (deep, "too_deep"),
        ({"a": deepest}, "too_deep"),
    ):
        with pytest.raises(Invalid) as refused:
            read_metadata(body, LIMITS)
        assert refused.value.code == code


def test_a_public_url_is_http_or_https() -> None:
    assert public_url({"WORKSPACED_PUBLIC_URL": "https://data.example.org/edw/"}) == "https://data.example.org/edw"
    assert public_url({}) == ""
    with pytest.raises(ValueError, match="WORKSPACED_PUBLIC_URL"):
        public_url({"WORKSPACED_PUBLIC_URL": "data.example.org"})


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "forwarded_proto", "expected"),
    [
        ("10.0.0.1", None, "https", "https"),
        ("192.0.2.1", None, "https", "http"),
        ("10.0.0.1", None, "gopher", "http"),
        ("10.0.0.1", None, None, "http"),
        ("10.0.0.1", "203.0.113.9", "http, https", "https"),  # the client claims http
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "https, http", "https"),  # the inner proxy is called by http
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "gopher, https, http", "https"),
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "https", "https"),  # one proxy replaces what it got
    ],
)
def test_only_known_proxies_determine_the_scheme_of_the_caller(
    peer: str, forwarded_for: str | None, forwarded_proto: str | None, expected: str
) -> None:
    # contract P6
    proxies = Proxies.from_environment({"WORKSPACED_TRUSTED_PROXIES": "10.0.0.0/8"})
    assert proxies.scheme(peer, forwarded_for, forwarded_proto, own="http") == expected
