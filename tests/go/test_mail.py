"""Mail addresses as Go's net/mail reads them. The reference server gave every expected result."""

from __future__ import annotations

from noxu.go.mail import is_address
from tests.rows import rows

# fmt: off
TABLE: dict[str, tuple[list[str], list[str]]] = {
    "email": (
        [
            "a@b", '"a b"@c.d', "A <a@b.c>", "a@[127.0.0.1]", "a@[::1]", " a@b ", "a@b (c)",
            "a@b (c(d)e)", "a@b (\\))", "a.b@c", '"a\\"b"@c', '"a\tb"@c', "<a@b>", "A B <a@b>",
            "A. B. <a@b>", '"A B" C <a@b>', "=?utf-8?q?A?= <a@b>", "=?foo?b?Q?= <a@b>",
            "=?foo?q?=zz?= <a@b>", "X =?foo?q?A?= <a@b>", "g: a@b;", "g: a@b; (x)", "é@b", "a@é",
            "A<a@b>", "A (c) <a@b>", "A <a@b> (c)", "A < a@b>", "a@ b", "a@\tb", "=?utf-8?x?A?= <a@b>",
            "=?UTF-8?Q?A_=41?= <a@b>", "=?ISO-8859-1?q?A?= <a@b>",
        ],
        [
            "a@", "a b@c", "", "a@[IPv6:::1]", "a@[1.2.3]", "a@b (c", "a..b@c", ".a@b", "a.@b", "a@b.",
            "a@.b", '""@b', '"a\nb"@c', "<a@b", "a@b>", "=?foo?q?A?= <a@b>", "=?foo?b?QQ==?= <a@b>",
            "a@b (=?foo?q?A?=)", "g: a@b, c@d;", "g:;", "g: a@b", "g: h: a@b;;", "a@b,c@d", "a,b@c",
            "a@b@c", "a\\@b", "a@b c", "(c) a@b", "(c) A <a@b>", "A <a@b >", "a @b", '"a@b',
        ],
    ),
}
# fmt: on
ACCEPTED, REFUSED = TABLE["email"]


@rows("text", ACCEPTED)
def test_accepts(text: str) -> None:
    assert is_address(text)


@rows("text", REFUSED)
def test_refuses(text: str) -> None:
    assert not is_address(text)


@rows(
    ("why", "text", "accepted"),
    [
        ("an empty encoded word is no word", "=?utf-8?q??= <a@b>", False),
        ("several encoded words are one", "=?utf-8?q?A?= =?utf-8?b?QQ==?= <a@b>", True),
        ("no comment between encoded words and the address", "=?utf-8?q?A?= (c) <a@b>", False),
        ("a comment after a word", '"A" (c) B <a@b>', True),
        ("base64 that is none is just text", "=?foo?b?Q?= <a@b>", True),
        ("an unknown charset counts only in the first word", "A =?foo?q?A?= <a@b>", True),
        ("an unknown charset in a comment behind", "a@b (x =?foo?q?A?=)", False),
        ("nested comments", "a@b (c (d) \\) e)", True),
        ("a comment that does not end", "a@b (c (d)", False),
        ("a group of one with a name", "team: A <a@b>;", True),
        ("no groups in groups", "a: b: c@d;;", False),
        ("an escaped quote", '"a\\"b"@c', True),
        ("a control character in quotes", '"a\x01"@c', False),
    ],
)
def test_corners(why: str, text: str, accepted: bool) -> None:
    assert is_address(text) is accepted, why
