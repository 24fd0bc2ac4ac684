"""Headers in, decisions out. The expectations are upstream's answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.api.errors import ApiError
from noxu.http.negotiation import (
    BUILT_IN,
    BUILT_IN_DOCUMENT,
    BUILT_IN_LIST,
    CUSTOM_RESOURCE,
    DOCUMENT,
    GZIP_THRESHOLD,
    JSON,
    MAX_NEGOTIATED,
    MAX_TRUNCATED_WARNING_RUNES,
    MAX_WARNING_RUNES,
    PROTOBUF,
    YAML,
    Accepted,
    Representations,
    accepts_gzip,
    as_stream,
    compresses,
    is_pretty,
    negotiate,
    negotiate_aggregated_discovery,
    negotiate_error,
    parse_accept,
    parse_media_type,
    patch_format,
    request_format,
    require_representation,
    warning_header,
    warning_headers,
)
from noxu.tables.table import Conversion
from tests.rows import rows

TABLE = "as=Table;v=v1;g=meta.k8s.io"
METADATA = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
NONE_OF_US = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
ROUTER = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"


def refusal(accept: str, endpoint: Representations) -> str:
    with pytest.raises(ApiError) as raised:
        negotiate(accept, endpoint)
    assert (raised.value.code, raised.value.reason) == (406, "NotAcceptable")
    return raised.value.message


CUSTOM = [
    ("nothing is JSON", "", JSON, None),
    ("JSON", "application/json", JSON, None),
    ("YAML", "application/yaml", YAML, None),
    ("everything", "*/*", JSON, None),
    ("a lonely star", "*", JSON, None),
    ("a star and a slash", "*/", JSON, None),
    ("any application", "application/*", JSON, None),
    ("a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON, None),
    ("a charset changes nothing", "application/json; charset=utf-8", JSON, None),
    ("nor does anything unknown", "application/yaml;foo=bar;export=1;profile=x", YAML, None),
    ("spaces everywhere", "  application/yaml ; q=1 , application/json ; q=0.5", YAML, None),
    ("protobuf that does not exist, then JSON", f"{PROTOBUF},application/json", JSON, None),
    ("a table", f"application/json;{TABLE}", JSON, "Table v1"),
    ("an old table", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", JSON, "Table v1beta1"),
    ("a table in YAML", f"application/yaml;{TABLE}", YAML, "Table v1"),
    ("any table", f"*/*;{TABLE}", JSON, "Table v1"),
    ("spaces in parameters", "application/json; as = Table ; v = v1 ; g = meta.k8s.io", JSON, "Table v1"),
    ("metadata", f"application/json;{METADATA}", JSON, "PartialObjectMetadata v1"),
    ("metadata as protobuf", f"{PROTOBUF};{METADATA}", PROTOBUF, "PartialObjectMetadata v1"),
    ("a list's metadata", "*/*;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", JSON, "PartialObjectMetadataList v1"),
    (
        "kubectl get",
        f"application/json;{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        JSON,
        "Table v1",
    ),
    (
        "a table that does not exist, then JSON",
        "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
        JSON,
        None,
    ),
    ("a parameter without a value is none", "application/json;as=;v", JSON, None),
    ("a value with an equals sign is none", "application/json;as=Table=x", JSON, None),
    ("the higher quality first", "application/json;q=0.5,application/yaml;q=0.9", YAML, None),
    ("no quality is the highest", "application/json;q=0.9,application/yaml", YAML, None),
    ("the same quality in the order given", "application/yaml,application/json", YAML, None),
    ("a full type before a wildcard", "*/*,application/yaml", YAML, None),
    ("a full type before a half wildcard", "application/*,application/yaml", YAML, None),
    ("a wildcard of a higher quality goes second all the same", "*/*,application/yaml;q=0.1", YAML, None),
    ("a quality of zero excludes nothing", "application/yaml;q=0", YAML, None),
    ("a quality that is no number is zero", "application/yaml;q=high,application/json;q=0.1", JSON, None),
    ("a quality after a space is no number", "application/yaml;q= 1,application/json;q=0.1", JSON, None),
    ("qualities above one count", "application/json,application/yaml;q=1.5", YAML, None),
    ("a quality beyond float32", "application/json;q=1e30,application/yaml;q=1e300", YAML, None),
    ("float32 has no more digits", "application/yaml;q=0.99999999999,application/json", YAML, None),
    ("an empty clause", ",,application/yaml", YAML, None),
    ("too many slashes", "application/yaml/x,application/json;q=0.1", JSON, None),
    ("no slash", "yaml,application/json;q=0.1", JSON, None),
    ("a stream", "application/json;stream=watch", JSON, None),
    ("there is no stream of YAML", "application/yaml;stream=watch,application/json;q=0.1", JSON, None),
    ("another stream", "application/yaml;stream=tail,application/json;q=0.1", JSON, None),
    ("the server's version", "application/yaml;sv=v1,application/json;q=0.1", YAML, None),
    ("another server's version", "application/yaml;sv=v2,application/json;q=0.1", JSON, None),
]


@rows(("accept", "media_type", "convert"), [row[1:] for row in CUSTOM], ids=[row[0] for row in CUSTOM])
def test_what_custom_resources_are_answered_in(accept: str, media_type: str, convert: str | None) -> None:
    found = negotiate(accept, CUSTOM_RESOURCE)
    assert found.media_type == found.content_type == media_type
    assert found.convert == (Conversion(*convert.split()) if convert else None)


@rows(
    "accept",
    [
        "text/html",
        "application/cbor",
        PROTOBUF,
        f"{PROTOBUF};{TABLE}",
        f"application/cbor;{TABLE}",
        "Application/JSON",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Table;v=v1",
        "application/json;as=Table",
        "application/json;v=v1",
        "application/json;g=meta.k8s.io",
        "application/json;as=Pod;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=other.io",
        "application/json;stream=tail",
        "application/json;sv=v2",
        "*/json",
        "json",
        "application/",
        ",",
        "/",
    ],
)
def test_what_custom_resources_are_not_answered_in(accept: str) -> None:
    assert refusal(accept, CUSTOM_RESOURCE) == NONE_OF_US


def test_other_endpoints_offer_other_things() -> None:
    assert negotiate(PROTOBUF, BUILT_IN).media_type == PROTOBUF
    assert negotiate(PROTOBUF, DOCUMENT).media_type == PROTOBUF
    assert refusal(f"{PROTOBUF};{TABLE}", BUILT_IN) == NONE_OF_US
    assert refusal(f"application/json;{TABLE}", DOCUMENT) == NONE_OF_US
    assert refusal("application/json;sv=v1", DOCUMENT) == NONE_OF_US
    assert negotiate("application/*", DOCUMENT).media_type == JSON


@pytest.mark.parametrize("accept", ["", "*/*", "text/html, */*;q=0.1", "application/yaml", f"application/json;{TABLE}"])
def test_the_router_before_built_in_kinds_lets_through_what_names_a_representation(accept: str) -> None:
    for endpoint in (BUILT_IN, BUILT_IN_LIST):
        assert negotiate(accept, endpoint)


@pytest.mark.parametrize(
    "accept", ["*", "application/*", "text/html", f"application/*;{TABLE}", "*/json", "Application/JSON"]
)
def test_the_router_refuses_in_its_own_words(accept: str) -> None:
    streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    assert refusal(accept, BUILT_IN) == refusal(accept, BUILT_IN_DOCUMENT) == ROUTER
    assert refusal(accept, BUILT_IN_LIST) == ROUTER + streams


def test_what_passes_the_router_may_fail_behind_it() -> None:
    assert refusal("application/json;as=Table;v=v2;g=meta.k8s.io", BUILT_IN) == NONE_OF_US


def test_a_router_may_have_one_representation() -> None:
    require_representation("text/html, application/json;q=0.1", [JSON])
    with pytest.raises(ApiError) as raised:
        require_representation(YAML, [JSON])
    assert raised.value.status["details"] == {}
    assert raised.value.message == "406: Not Acceptable\n\nAvailable representations: application/json"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", JSON),
        ("application/json;stream=watch", JSON),
        (f"application/json;{TABLE}", JSON),
        (f"{PROTOBUF};{METADATA}", f"{PROTOBUF};stream=watch"),
        (f"{PROTOBUF};stream=watch;{METADATA}", f"{PROTOBUF};stream=watch"),
        ("application/yaml;stream=watch,application/json", JSON),
    ],
)
def test_what_watches_are_answered_in(accept: str, content_type: str) -> None:
    assert as_stream(negotiate(accept, CUSTOM_RESOURCE)).content_type == content_type


@pytest.mark.parametrize(
    ("accept", "types"),
    [
        ("application/yaml", "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
        (
            f"application/yaml;{TABLE}",
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ),
        ("application/yaml;stream=watch", "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("text/html", "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
    ],
)
def test_what_watches_are_not_answered_in(accept: str, types: str) -> None:
    with pytest.raises(ApiError) as raised:
        as_stream(negotiate(accept, CUSTOM_RESOURCE))
    assert raised.value.message == f"only the following media types are accepted: {types}"


def test_a_watch_is_never_indented() -> None:
    assert not as_stream(negotiate("application/json;pretty=1", CUSTOM_RESOURCE)).pretty


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Accepted(JSON)),
        ("application/yaml", Accepted(YAML, content_type=YAML)),
        (PROTOBUF, Accepted(PROTOBUF, content_type=PROTOBUF)),
        ("text/html", Accepted(JSON, pretty=True)),
        (f"application/json;{TABLE}", Accepted(JSON, pretty=True)),
        (f"application/json;{TABLE},application/json", Accepted(JSON)),
        (f"application/json;{TABLE},application/yaml;q=0.1", Accepted(YAML, content_type=YAML)),
    ],
)
def test_errors_are_written_as_asked_for_or_as_indented_json(accept: str, expected: Accepted) -> None:
    assert negotiate_error(accept) == expected


def test_errors_follow_the_rules_of_pretty_too() -> None:
    assert negotiate_error("application/json", user_agent="curl/8.5").pretty
    assert not negotiate_error("application/json", pretty="0", user_agent="curl/8.5").pretty


AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@rows(
    ("accept", "content_type"),
    [
        (f"application/json;{AGGREGATED}", f"application/json;{AGGREGATED}"),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", f"application/json;{AGGREGATED}"),
        (f"*/*;{AGGREGATED}", f"application/json;{AGGREGATED}"),
        (f"{PROTOBUF};{AGGREGATED}", f"{PROTOBUF};{AGGREGATED}"),
        (f"application/yaml;{AGGREGATED};profile=nopeer", f"application/yaml;{AGGREGATED}"),
        (f"application/json,application/json;{AGGREGATED};q=0.1", f"application/json;{AGGREGATED}"),
        (
            f"application/json;{AGGREGATED.replace('v2', 'v2beta1')},application/json;{AGGREGATED}",
            f"application/json;{AGGREGATED}",
        ),
        (f"application/json;{AGGREGATED.replace('v2', 'v2beta1')}", None),
        ("application/json", None),
        ("*/*", None),
        ("", None),
        (f"text/html;{AGGREGATED}", None),
    ],
)
def test_which_clients_get_aggregated_discovery(accept: str, content_type: str | None) -> None:
    found = negotiate_aggregated_discovery(accept)
    assert (found and found.content_type) == content_type
    assert found is None or found.media_type == found.content_type.partition(";")[0]


@rows(
    ("query", "user_agent", "pretty"),
    [
        ("", "", False),
        ("", "kubectl/v1.37", False),
        ("", "curl/8.5", True),
        ("", "Wget/1.21", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "Mozilla/4.0", False),
        ("", "libcurl/8", False),
        ("1", "", True),
        ("true", "", True),
        ("TRUE", "", True),
        ("t", "", True),
        ("yes", "", False),
        ("tRUE", "", False),
        ("0", "curl/8.5", False),
        ("nonsense", "curl/8.5", False),
    ],
)
def test_which_clients_get_indented_json(query: str, user_agent: str, pretty: bool) -> None:
    assert is_pretty(query, user_agent) is pretty
    assert negotiate("", CUSTOM_RESOURCE, pretty=query, user_agent=user_agent).pretty is pretty
    assert negotiate("*/*", CUSTOM_RESOURCE, pretty=query, user_agent=user_agent).pretty is pretty


def test_pretty_in_accept_beats_the_query_and_is_for_json_only() -> None:
    assert negotiate("application/json;pretty=1", CUSTOM_RESOURCE, pretty="0").pretty
    assert not negotiate("application/json;pretty=true", CUSTOM_RESOURCE).pretty
    assert not negotiate("application/yaml;pretty=1", CUSTOM_RESOURCE, pretty="1", user_agent="curl").pretty


def order(header: str) -> str:
    return " ".join(f"{clause.type}/{clause.subtype}" for clause in parse_accept(header))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("a/1;q=0.1,a/2;q=0.2,a/3;q=0.3", "a/3 a/2 a/1"),
        ("*/*;q=1,a/*;q=0.5,a/1;q=0.1", "a/1 a/* */*"),
        ("a/1;q=0.1,*/*;q=1", "*/* a/1"),  # both come before each other: who is met first decides
        ("a/1;q=0.1,*/*,a/2;q=0.5", "a/2 */* a/1"),
    ],
)
def test_the_order_of_clauses(header: str, expected: str) -> None:
    assert order(header) == expected


def test_many_clauses_are_put_in_order_quickly() -> None:
    many = ",".join(f"a/{n};q=0.{n:04}" for n in range(1000))
    assert order(many).split()[0] == "a/999"


LONG = "a/b," * (MAX_NEGOTIATED // 4)
READERS: dict[str, Callable[[str], object]] = {
    "Accept of an object": lambda header: negotiate(header, CUSTOM_RESOURCE),
    "Accept of a built-in object": lambda header: negotiate(header, BUILT_IN),
    "Accept of a document": lambda header: require_representation(header, [JSON]),
    "Accept of discovery": negotiate_aggregated_discovery,
    "Content-Type of an object": request_format,
    "Content-Type of a patch": lambda header: patch_format(header, [JSON], built_in=True),
}


@pytest.mark.parametrize("name", READERS)
def test_a_header_that_is_too_long_is_refused(name: str) -> None:
    with contextlib.suppress(ApiError):
        READERS[name](LONG)
    with pytest.raises(ApiError) as refused:
        READERS[name](LONG + "a")
    assert refused.value.code == 431


def test_an_error_is_answered_whatever_is_accepted() -> None:
    assert negotiate_error(LONG + "a").content_type == JSON


@rows(
    ("header", "accepts"),
    [("gzip", True), (" gzip ", True), ("br,gzip", True), ("br, gzip\t,x", True), ("gzip;q=1", False), ("xgzip", False),
     ("gzip x", False), ("x gzip", False), ("GZIP", False), ("", False), ("gzipgzip,", False), (",,gzip,,", True)],
)  # fmt: skip
def test_gzip_is_accepted_by_its_bare_name(header: str, accepts: bool) -> None:
    assert accepts_gzip(header) == accepts == any(token.strip() == "gzip" for token in header.split(","))


@given(st.text(alphabet="ab/*,;= .q10", max_size=40))
def test_a_client_that_accepts_everything_gets_something(header: str) -> None:
    assert negotiate(f"{header},*/*", CUSTOM_RESOURCE).content_type in (JSON, YAML)
    assert negotiate_error(header).content_type == JSON


@rows(
    ("content_type", "media_type"),
    [
        ("", JSON),
        ("application/json", JSON),
        ("application/yaml", YAML),
        (PROTOBUF, PROTOBUF),
        ("Application/JSON", JSON),
        (" application/json ; charset=utf-8", JSON),
        ("application/json;charset=utf-8;charset=utf-8", JSON),
        ('application/json;a="x y"', JSON),
        ('application/json;a="x\\"y";b=c', JSON),
        ('application/json;a=""', JSON),
        ("application/json; a = b ", JSON),
        ("application/json;", JSON),
        ("application/json; ", JSON),
    ],
)
def test_what_bodies_are_read_as(content_type: str, media_type: str) -> None:
    assert request_format(content_type) == media_type


@rows(
    "content_type",
    [
        "text/plain",
        "application/cbor",
        "application/x-yaml",
        "*/*",
        "json",
        "application",
        "application/",
        "/json",
        "application/json/x",
        "application /json",
        "application/json,application/yaml",
        "application/json;a",
        "application/json;a=",
        "application/json;=b",
        "application/json;a=b c",
        "application/json;a=(b)",
        'application/json;a="b',
        'application/json;a="b\\"',
        'application/json;a="b"c',
        "application/json;;",
        "application/json; ;",
        "application/json;a=b;a=c",
        "application/json;a=b;A=c",
        "application/json;é=1",
        ";charset=utf-8",
    ],
)
def test_what_bodies_are_not_read(content_type: str) -> None:
    with pytest.raises(ApiError) as raised:
        request_format(content_type)
    assert (raised.value.code, raised.value.reason) == (415, "UnsupportedMediaType")
    assert raised.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        ('a/b;x="\\q"', "a/b"),
        ('a/b;x="\\(";x="("', "a/b"),
        ('a/b;x="\\q";x="q"', ""),
        ('a/b;x="\\\\"', "a/b"),
        ("a/b;x*0=1;x*1=2", "a/b"),
    ],
)
def test_backslashes_escape_special_characters_only(header: str, media_type: str) -> None:
    assert parse_media_type(header) == media_type


PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")


@pytest.mark.parametrize(
    "content_type", ["application/merge-patch+json", "application/merge-patch+json;charset=utf-8;;"]
)
def test_patches_go_by_what_stands_before_the_semicolon(content_type: str) -> None:
    assert patch_format(content_type, PATCHES) == "application/merge-patch+json"
    assert patch_format(content_type, PATCHES, built_in=True) == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("content_type", "router_refuses"),
    [
        ("", True),
        ("application/json", True),
        ("application/strategic-merge-patch+json", True),
        ("Application/Merge-Patch+JSON", True),
        (";application/merge-patch+json", True),
        ("application/merge-patch+json ;charset=utf-8", False),
        ("text/plain,application/merge-patch+json", False),
    ],
)
def test_what_is_no_patch(content_type: str, router_refuses: bool) -> None:
    ours = f"the body of the request was in an unknown format - accepted media types include: {', '.join(PATCHES)}"
    with pytest.raises(ApiError) as raised:
        patch_format(content_type, PATCHES)
    assert (raised.value.code, raised.value.message) == (415, ours)
    with pytest.raises(ApiError) as raised:
        patch_format(content_type, PATCHES, built_in=True)
    assert (raised.value.code, raised.value.message) == (415, "415: Unsupported Media Type" if router_refuses else ours)


@rows(
    ("header", "accepts"),
    [
        ("gzip", True),
        ("deflate, gzip", True),
        (" gzip ,br", True),
        ("", False),
        ("*", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=1", False),
        ("GZIP", False),
        ("x-gzip", False),
    ],
)
def test_which_clients_accept_gzip(header: str, accepts: bool) -> None:
    assert accepts_gzip(header) is accepts
    assert compresses(header, GZIP_THRESHOLD + 1) is accepts
    assert not compresses(header, GZIP_THRESHOLD)


@rows(
    ("text", "header"),
    [
        ("plain", '299 - "plain"'),
        ('unknown field "spec.a"', '299 - "unknown field \\"spec.a\\""'),
        ("back\\slash", '299 - "back\\\\slash"'),
        ("grün 😀", '299 - "grün 😀"'),
        ("no\u00a0break\u200b", '299 - "no\u00a0break\u200b"'),
        ("line\nbreak", None),
        ("carriage\r", None),
        ("tab\t", None),
        ("delete\x7f", None),
        ("next line\x85", None),
        ("half a pair \ud800", None),
    ],
)
def test_a_warning_as_a_header(text: str, header: str | None) -> None:
    assert warning_header(text) == header


def test_each_warning_is_sent_once_in_order() -> None:
    assert warning_headers(["b", "a", "", "b", "c\n", "a"]) == ['299 - "b"', '299 - "a"']


def test_warnings_that_fit_are_whole() -> None:
    texts = ["x" * (MAX_WARNING_RUNES - 1), "y"]
    assert warning_headers(texts) == [f'299 - "{text}"' for text in texts]


def test_warnings_that_do_not_fit_are_cut() -> None:
    texts = ["ä" * 3000, "b" * 1096, "c"]
    assert warning_headers(texts) == [f'299 - "{text[:MAX_TRUNCATED_WARNING_RUNES]}"' for text in texts]


def test_a_single_long_warning_is_cut() -> None:
    assert warning_headers(["x" * 5000]) == [f'299 - "{"x" * MAX_TRUNCATED_WARNING_RUNES}"']


def test_once_cut_warnings_end_where_the_limit_is_reached() -> None:
    texts = ["x" * 5000] + [f"{n:03}" + "y" * 300 for n in range(100)]
    headers = warning_headers(texts)
    assert len(headers) == MAX_WARNING_RUNES // MAX_TRUNCATED_WARNING_RUNES
    assert headers[-1].startswith('299 - "014yyy')


def test_those_that_were_there_before_the_cut_all_stay() -> None:
    texts = [f"{n:03}" + "y" * 100 for n in range(60)]  # 40 do not fit; 39 times 103 runes are within
    headers = warning_headers(texts)
    assert headers == [f'299 - "{text}"' for text in texts[:40]]


def test_what_was_cut_off_no_longer_spoils_a_warning() -> None:
    assert warning_headers(["x" * 300 + "\n"]) == []
    assert warning_headers(["x" * 300 + "\n", "y" * 5000]) == [f'299 - "{char * 256}"' for char in "xy"]
