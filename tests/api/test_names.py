"""Which names are valid, and the errors for the others."""

import pytest

from noxu.api import names
from tests.rows import rows

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
PARTS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
KEY = (
    f"{PARTS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LONG_63, LONG_253 = "must be no more than 63 characters", "must be no more than 253 characters"


@pytest.mark.parametrize("name", ["a", "1a", "a-b", "a--b", "x" * 63])
def test_a_dns_1123_label_may_be(name: str) -> None:
    assert names.dns1123_label(name) == []


@rows(
    ("name", "messages"),
    [
        ("", [LABEL]),
        ("A", [LABEL]),
        ("-a", [LABEL]),
        ("a-", [LABEL]),
        ("a\n", [LABEL]),
        ("é", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("x" * 64, [LONG_63]),
        ("é" * 32, [LONG_63, LABEL]),  # 64 bytes
        ("é" * 31, [LABEL]),
    ],
)
def test_invalid_dns_1123_labels(name: str, messages: list[str]) -> None:
    assert names.dns1123_label(name) == messages


@pytest.mark.parametrize("name", ["a", "a.b", "1.2", "a-b.c", ".".join(["x" * 62] * 4)])
def test_a_dns_1123_subdomain_may_be(name: str) -> None:
    assert names.dns1123_subdomain(name) == []


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("", [SUBDOMAIN]),
        ("a..b", [SUBDOMAIN]),
        (".a", [SUBDOMAIN]),
        ("a-.b", [SUBDOMAIN]),
        ("A.b", [SUBDOMAIN]),
        ("a_b", [SUBDOMAIN]),
        ("x" * 254, [LONG_253]),
        ("X" * 254, [LONG_253, SUBDOMAIN]),
    ],
)
def test_invalid_dns_1123_subdomains(name: str, messages: list[str]) -> None:
    assert names.dns1123_subdomain(name) == messages


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("a1", []),
        ("v1alpha1", []),
        ("1a", [LABEL_1035]),
        ("a.b", [LABEL_1035]),
        ("a-", [LABEL_1035]),
        ("x" * 64, [LONG_63]),
    ],
)
def test_a_dns_1035_label_starts_with_a_letter(name: str, messages: list[str]) -> None:
    assert names.dns1035_label(name) == messages


@pytest.mark.parametrize("key", ["a", "A", "a.b_c-d", "x" * 63, "example.com/A", "a/b", f"{'x' * 253}/{'y' * 63}"])
def test_a_qualified_name_may_be(key: str) -> None:
    assert names.qualified_name(key) == []


@rows(
    ("key", "messages"),
    [
        ("", ["name part must be non-empty", f"name part {KEY}"]),
        ("a b", [f"name part {KEY}"]),
        ("-a", [f"name part {KEY}"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", f"name part {KEY}"]),
        ("A/b", [f"prefix part {SUBDOMAIN}"]),
        ("x" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
        ("A/b c", [f"prefix part {SUBDOMAIN}", f"name part {KEY}"]),
        (
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_invalid_qualified_names(key: str, messages: list[str]) -> None:
    assert names.qualified_name(key) == messages


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("", []),
        ("A_b.c-1", []),
        ("-", [VALUE]),
        ("a/b", [VALUE]),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("é" * 40, ["must be no more than 63 bytes", VALUE]),
    ],
)
def test_a_label_value_is_empty_or_a_name(value: str, messages: list[str]) -> None:
    assert names.label_value(value) == messages


@pytest.mark.parametrize(
    ("name", "as_name", "as_prefix"),
    [
        ("", [], []),
        ("...", [], []),
        (".", ["may not be '.'"], []),
        ("..", ["may not be '..'"], []),
        ("a/b", ["may not contain '/'"], ["may not contain '/'"]),
        ("%/", ["may not contain '/'", "may not contain '%'"], ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_a_path_segment_has_neither_slash_nor_percent(name: str, as_name: list[str], as_prefix: list[str]) -> None:
    assert (names.path_segment_name(name), names.path_segment_name(name, prefix=True)) == (as_name, as_prefix)


@rows(
    ("rule", "prefix", "messages"),
    [
        (names.subdomain_name, "web-", []),
        (names.subdomain_name, "a.b-", []),
        (names.subdomain_name, "-", [SUBDOMAIN]),
        (names.subdomain_name, "Web-", [SUBDOMAIN]),
        (names.subdomain_name, "é-", [SUBDOMAIN]),
        (names.subdomain_name, "x" * 253 + "-", []),  # two bytes become one before its length is checked
        (names.label_name, "web-", []),
        (names.label_name, "a.b-", ["must not contain dots"]),
        (names.label_1035_name, "web-", []),
        (names.label_1035_name, "1-", []),  # `1-` becomes `a`
        (names.label_1035_name, "12-", [LABEL_1035]),
    ],
)
def test_the_prefix_of_a_generated_name_may_end_with_a_dash(
    rule: names.NameRule, prefix: str, messages: list[str]
) -> None:
    assert rule(prefix, True) == messages


def test_a_name_that_is_no_prefix_may_not_end_with_a_dash() -> None:
    assert [rule("web-", False) for rule in (names.subdomain_name, names.label_name, names.label_1035_name)] == [
        [SUBDOMAIN],
        [LABEL],
        [LABEL_1035],
    ]


def test_a_long_invalid_name_is_checked_in_linear_time() -> None:
    name = "a" * 200_000 + "!"
    assert names.dns1123_subdomain(name) == [LONG_253, SUBDOMAIN]
    assert names.qualified_name("a." * 100_000 + "!") == [
        "name part must be no more than 63 bytes",
        f"name part {KEY}",
    ]


@rows(
    "pattern, expected",
    [
        ("web-0", True),
        ("web-*", True),
        ("*", True),
        ("*-0", True),
        ("w*b*0", True),
        ("web", False),
        ("web.0", False),
        ("shop/web-*", True),
        ("*/web-0", True),
        ("bank/web-0", False),
        ("", False),
    ],
)
def test_a_pattern_is_of_a_name_or_of_a_namespace_and_a_name(pattern: str, expected: bool) -> None:
    assert names.is_named_like(pattern, "shop", "web-0") is expected
