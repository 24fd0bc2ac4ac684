"""Functions on strings, patterns and URLs."""

from __future__ import annotations

from typing import Any

from noxu.cel.library.patches import escape_key
from tests.cel.evaluate import Error, evaluate
from tests.rows import rows

ROWS: list[tuple[str, Any]] = [
    ("'héllo'.charAt(1)", "é"),
    ("'abc'.charAt(3)", ""),
    ("'abc'.charAt(4)", Error("index out of range: 4")),
    ("'abc'.charAt(-1)", Error("index out of range: -1")),
    ("'abcb'.indexOf('b')", 1),
    ("'abcb'.indexOf('b', 2)", 3),
    ("'abc'.indexOf('x')", -1),
    ("'abc'.indexOf('')", 0),
    ("'abc'.indexOf('', 9)", 3),
    ("'abc'.indexOf('a', -1)", Error("index out of range: -1")),
    ("'abcb'.lastIndexOf('b')", 3),
    ("'abcb'.lastIndexOf('b', 2)", 1),
    ("'abc'.lastIndexOf('')", 3),
    ("'abc'.lastIndexOf('c', 9)", -1),
    ("'a'.lastIndexOf('ab')", -1),
    ("'aÄ'.upperAscii()", "AÄ"),
    ("'AÄ'.lowerAscii()", "aÄ"),
    ("'aaa'.replace('a', 'b')", "bbb"),
    ("'aaa'.replace('a', 'b', 2)", "bba"),
    ("'aaa'.replace('a', 'b', -1)", "bbb"),
    ("'ab'.replace('', '-')", "-a-b-"),
    ("'a,b,c'.split(',') == ['a', 'b', 'c']", True),
    ("'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
    ("'a,b'.split(',', 0) == []", True),
    ("'a,b'.split(',', -1) == ['a', 'b']", True),
    ("'abc'.split('', 2) == ['a', 'bc']", True),
    ("''.split(',') == ['']", True),
    ("'abc'.substring(1)", "bc"),
    ("'abc'.substring(1, 2)", "b"),
    ("'abc'.substring(3)", ""),
    ("'abc'.substring(4)", Error("index out of range: 4")),
    ("'abc'.substring(2, 1)", Error("invalid substring range. start: 2, end: 1")),
    ("' \\ta\\u00a0\\u3000'.trim()", "a"),
    ("'\\u200ba'.trim()", "\u200ba"),
    ("['a', 'b'].join()", "ab"),
    ("['a', 'b'].join('-')", "a-b"),
    ("[].join()", ""),
    ("strings.quote('a\"\\n\\u00e9')", '"a\\"\\né"'),
    ("'abc'.matches('^a.c$')", True),
    ("'xabcx'.matches('b')", True),
    ("'abc'.matches(s)", Error("error parsing regexp: missing closing ): `(`")),
    ("'abc 123'.find('[0-9]+')", "123"),
    ("'abc'.find('[0-9]')", ""),
    ("'a1b22'.findAll('[0-9]+') == ['1', '22']", True),
    ("'a1b22'.findAll('[0-9]+', 1) == ['1']", True),
    ("'a1b22'.findAll('[0-9]+', 0) == []", True),
    ("'abc'.find(s)", Error("Illegal regex: error parsing regexp: missing closing ): `(`")),
    ("url('https://user@example.com:80/a/b?c=d&c=e').getHostname()", "example.com"),
    ("url('https://example.com:80/a').getHost()", "example.com:80"),
    ("url('https://[::1]:80/').getHostname()", "::1"),
    ("url('https://[::1]:80/').getHost()", "[::1]:80"),
    ("url('https://example.com:80/').getPort()", "80"),
    ("url('https://example.com/').getPort()", ""),
    ("url('/a%20b').getEscapedPath()", "/a%20b"),
    ("url('/a b').getEscapedPath()", "/a%20b"),
    ("url('/').getScheme()", ""),
    ("url('/?a=1&a=2&b').getQuery() == {'a': ['1', '2'], 'b': ['']}", True),
    ("url('/?a;b&c=%zz&d=+%41').getQuery() == {'d': [' A']}", True),
    ("url('a') == url('a')", Error('URL parse error during conversion from string: parse "a": invalid URI for request')),
    ("url('/a') == url('/a')", True),
    ("isURL('a')", False),
    ("isURL('https://a')", True),
]  # fmt: skip


@rows(("text", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_function_on_strings(text: str, expected: Any) -> None:
    found = evaluate(text, s="(")
    assert (type(found), found) == (type(expected), expected)


def test_keys_are_escaped_for_json_pointers() -> None:
    assert escape_key("app.kubernetes.io/a~b") == "app.kubernetes.io~1a~0b"
