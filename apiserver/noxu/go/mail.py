"""Email addresses as Go's net/mail reads them: the format `email` means "mail.ParseAddress accepts it".

RFC 5322 without folding, extended by UTF-8 (RFC 6532) and encoded words (RFC 2047): `a@b`, `"a b"@c`, `A <a@b>`,
`a@[127.0.0.1] (comment)`, and a group of exactly one address, `all: a@b;`.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from noxu.expressions import expression
from noxu.go.net import is_ipv4, is_ipv6

_SPACE: Final = expression(r"[ \t]*")
_VISIBLE: Final = r"!-~\x80-\U0010ffff"
# atext without and with dots: visible characters that are not RFC 5322's specials
_ATOM: Final = expression(r"[!#-'*+\-./-9=?A-Z^-~\x80-\U0010ffff]+")
_PLAIN_ATOMS: Final = expression(rf"{_ATOM.pattern}(?:[ \t]+(?!=\?){_ATOM.pattern})*")
_QUOTED: Final = expression(rf'"((?:[ \t!#-\[\]-~\x80-\U0010ffff]|\\[ \t{_VISIBLE}])*)"')
_DOMAIN_LITERAL: Final = expression(r"\[([!-Z^-~\x80-\U0010ffff]*)\]")
_COMMENT_TOKEN: Final = expression(r"\\.|\\|[()]|[^\\()]+", re.DOTALL)
_ENCODED_WORD: Final = expression(r"=\?([^?]+)\?([BbQq])\?([^?]*)\?=\Z")
_Q_TEXT: Final = expression(r"(?:[\t\n\r -<>-~]|=(?:[0-9A-Fa-f]{2}))*\Z")
_CHARSETS: Final = frozenset({"utf-8", "iso-8859-1", "us-ascii"})


class _NoAddress(Exception):
    """The text at the position does not have the form that the method reads."""


def is_address(text: str) -> bool:
    """Exactly one address, with or without a display name."""
    reader = _Reader(text)
    try:
        count = reader.address(group_allowed=True)
        reader.skip_comments()
    except _NoAddress:
        return False
    return count == 1 and reader.at_end()


class _Reader:
    """A position in the text; every method reads from there on, or raises _NoAddress."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def at_end(self) -> bool:
        return self.position == len(self.text)

    def take(self, char: str) -> bool:
        is_next = self.text.startswith(char, self.position)
        self.position += is_next
        return is_next

    def require(self, char: str) -> None:
        if not self.take(char):
            raise _NoAddress

    def match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        if not match:
            raise _NoAddress
        self.position = match.end()
        return match[match.re.groups]

    def skip_space(self) -> None:
        self.match(_SPACE)

    def skip_comments(self) -> None:
        self.skip_space()
        while self.take("("):
            self.comment()
            self.skip_space()

    def address(self, *, group_allowed: bool) -> int:
        """An address, or a group of addresses; their number."""
        self.skip_space()
        start = self.position
        try:
            self.addr_spec()
        except _NoAddress:
            self.position = start
        else:
            self.skip_space()
            if self.take("("):
                for word in re.split("[ \t]+", self.comment()):
                    _decoded(word)
            return 1
        if not self.text.startswith("<", self.position):
            self.phrase()
        self.skip_space()
        if group_allowed and self.take(":"):
            return self.group()
        self.require("<")
        self.addr_spec()
        self.require(">")
        return 1

    def group(self) -> int:
        count = 0
        self.skip_space()
        if not self.take(";"):
            while True:
                count += self.address(group_allowed=False)
                if count > 1:
                    raise _NoAddress
                self.skip_comments()
                if self.take(";"):
                    break
                self.require(",")
        self.skip_comments()
        return count

    def addr_spec(self) -> None:
        """local part @ domain"""
        self.skip_space()
        if self.text.startswith('"', self.position):
            if not self.match(_QUOTED):
                raise _NoAddress
        else:
            self.dot_atom()
        self.require("@")
        self.skip_space()
        if self.text.startswith("[", self.position):
            literal = self.match(_DOMAIN_LITERAL)
            if not (is_ipv4(literal) or is_ipv6(literal)):
                raise _NoAddress
        else:
            self.dot_atom()

    def dot_atom(self) -> None:
        atom = self.match(_ATOM)
        if atom.startswith(".") or atom.endswith(".") or ".." in atom:
            raise _NoAddress

    def phrase(self) -> None:
        """The display name before an address. After the first word, anything that is not a word ends the phrase.

        Go joins adjacent encoded words, and skips comments only once another word has been read.
        """
        words, encoded = False, False
        while True:
            if words:
                self.skip_comments()
            self.skip_space()
            try:
                if self.text.startswith('"', self.position):
                    self.match(_QUOTED)
                    words = True
                elif self.text.startswith("=?", self.position):
                    content = _decoded(self.match(_ATOM))
                    encoded = encoded or bool(content)
                    words = words or content is None
                else:
                    self.match(_PLAIN_ATOMS)
                    words = True
            except _NoAddress:
                if words or encoded or self.at_end():
                    return
                raise

    def comment(self) -> str:
        """The text of a comment whose `(` has been read; comments nest."""
        content: list[str] = []
        depth = 1
        while depth:
            piece = self.match(_COMMENT_TOKEN)
            depth += (piece == "(") - (piece == ")")
            content.append(piece.removeprefix("\\"))
        return "".join(content[:-1])


def _decoded(word: str) -> str | None:
    """The content of an encoded word (RFC 2047), still encoded; None if `word` is plain text.

    Raises _NoAddress for a charset that Go does not know.
    """
    match = _ENCODED_WORD.match(word)
    if match is None:
        return None
    charset, encoding, content = match.groups()
    if encoding in "Qq":
        if not _Q_TEXT.match(content):
            return None
    else:
        try:
            base64.b64decode(content.replace("\r", "").replace("\n", ""), validate=True)
        except ValueError:
            return None
    if charset.lower() not in _CHARSETS:
        raise _NoAddress
    return content
