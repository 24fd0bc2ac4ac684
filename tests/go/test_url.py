"""URLs as net/url reads them. (Checked against Go 1.26.)"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.go.url import Url, decoded, has_bad_escape, parse, parse_request_uri
from tests.rows import rows

PARSED: list[tuple[str, Url]] = [
    ("", Url()),
    ("*", Url(path="*")),
    ("https://a.b/c?d=%zz#e", Url("https", None, "a.b", "/c", "d=%zz", "e")),
    ("HTTPS://A.B", Url("https", None, "A.B")),
    ("https://h:80", Url("https", None, "h:80")),
    ("https://h:", Url("https", None, "h:")),
    ("https:///p", Url("https", None, "", "/p")),
    ("//h/p", Url(host="h", path="/p")),
    ("///p", Url(path="///p")),
    ("a/b:c", Url(path="a/b:c")),
    ("mailto:x y%", Url("mailto")),
    ("x?y?z", Url(path="x", query="y?z")),
    ("/a%2Fb%C3%A9", Url(path="/a/bé")),
    ("/p#%41", Url(path="/p", fragment="A")),
    ("https://u@h", Url("https", "u", "h")),
    ("https://u:p%20w@h", Url("https", "u:p%20w", "h")),
    ("https://u!:@h", Url("https", "u%21:", "h")),
    ("https://[::1]:80/x", Url("https", None, "[::1]:80", "/x")),
    ("https://[fe80::1%25en0]", Url("https", None, "[fe80::1%en0]")),
    ("https://é%C3%A9", Url("https", None, "éé")),
    ("pg://a:1,b:2/x", Url("pg", None, "a:1,b:2", "/x")),
]

WRONG: list[tuple[str, str]] = [
    (":x", 'parse ":x": missing protocol scheme'),
    ("1a:b", 'parse "1a:b": first path segment in URL cannot contain colon'),
    ("a b:c", 'parse "a b:c": first path segment in URL cannot contain colon'),
    ("https://a\n", 'parse "https://a\\n": net/url: invalid control character in URL'),
    ("https://a b", 'parse "https://a b": invalid character " " in host name'),
    ("https://a%41", 'parse "https://a%41": invalid URL escape "%41"'),
    ("https://a%4", 'parse "https://a%4": invalid URL escape "%4"'),
    ("https://h:x", 'parse "https://h:x": invalid port ":x" after host'),
    ("https://h:1:2", 'parse "https://h:1:2": invalid port ":1:2" after host'),
    ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
    ("https://[::1]x", 'parse "https://[::1]x": invalid port "x" after host'),
    ("https://h[::1]", 'parse "https://h[::1]": invalid IP-literal'),
    ("https://[1.2.3.4]", 'parse "https://[1.2.3.4]": invalid IP-literal'),
    ("https://[x]", 'parse "https://[x]": invalid host: ParseAddr("x"): unable to parse IP'),
    ('https://u"@h', 'parse "https://u\\"@h": net/url: invalid userinfo'),
    ("https://u%@h", 'parse "https://u%@h": invalid URL escape "%"'),
    ("/a%zz#f", 'parse "/a%zz": invalid URL escape "%zz"'),
    ("/a#%zz", 'parse "/a#%zz": invalid URL escape "%zz"'),
]

REQUESTS: list[tuple[str, str | Url]] = [
    ("/x", Url(path="/x")),
    ("https://h/x", Url("https", None, "h", "/x")),
    ("//h/x", Url(path="//h/x")),
    ("/x#f", Url(path="/x#f")),
    ("", 'parse "": empty url'),
    ("x", 'parse "x": invalid URI for request'),
    ("x:y", Url("x")),
]


@rows(("text", "url"), PARSED)
def test_urls_are_parsed_into_their_parts(text: str, url: Url) -> None:
    assert parse(text) == url


@rows(("text", "why"), WRONG)
def test_malformed_urls_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        parse(text)


@pytest.mark.parametrize(("text", "result"), REQUESTS)
def test_request_uris(text: str, result: str | Url) -> None:
    if isinstance(result, Url):
        assert parse_request_uri(text) == result
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(result)}$"):
            parse_request_uri(text)


@pytest.mark.parametrize("text", ["%", "a%4", "%4g", "%%41", "%-1", "%٤1"])
def test_an_escape_of_nothing(text: str) -> None:
    assert has_bad_escape(text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary())
def test_what_was_escaped_is_decoded(text: str, data: bytes) -> None:
    whole = text.replace("%", "%25") + quote(data)
    assert not has_bad_escape(whole)
    assert decoded(whole) == unquote_to_bytes(whole) == text.encode() + data
