"""The syntax of patterns as Go's regexp package reads it, down to its error texts.

Patterns of a CustomResourceDefinition and of CEL rules are Go regular expressions. Go and C++'s RE2 were written by the
same hand and agree on nearly everything, but Go decides which patterns are valid, and words the errors of the others.
So `to_re2` parses a pattern as Go's regexp/syntax does (as of Go 1.26), raises its error, and otherwise returns the
pattern for RE2. Only Unicode classes are rewritten: Go matches their names loosely (`\\p{letter}`), has aliases and
some additional classes, and includes unassigned code points in `C`:

    a\\p{letter}+     a[\\p{L}]+
    [x\\P{Any}]       [x\\x{D800}]    nothing is outside of Any; half a surrogate pair matches nothing either
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from noxu.cpu_budget import spend
from noxu.expressions import expression
from noxu.go.regexp_alphabet import ESCAPES, MAX_RUNE, SCAN_UNITS, members

MAX_REPEAT: Final = 1000  # copies of the innermost expression, over all repetitions around it
MAX_HEIGHT: Final = 1000  # of the syntax tree
MAX_SIZE: Final = (128 << 20) // 40  # instructions of the program


class PatternError(ValueError):
    """Not a Go regular expression; the message is Go's."""

    def __init__(self, code: str, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{fragment}`")


class _Term(NamedTuple):
    """The properties of a syntax tree's node that are limited: `(ab|c){2}` has height 4, copies 2, size 12."""

    height: int = 1
    copies: int = 1
    size: int = 1
    literal: bool = False


class _Group:
    """The expression between a `(` and its `)`, or the whole pattern: complete alternatives, and the terms of the current one."""

    __slots__ = ("alternatives", "captures", "terms")

    def __init__(self, *, captures: bool) -> None:
        self.captures = captures
        self.alternatives: list[_Term] = []
        self.terms: list[_Term] = []

    def end_alternative(self) -> None:
        if all(term.literal for term in self.terms):  # adjacent characters are one node
            self.alternatives.append(_Term(size=max(1, len(self.terms))))
        else:
            self.alternatives.append(_combined(self.terms, joints=0))
        self.terms = []

    def closed(self) -> _Term:
        self.end_alternative()
        inner = _combined(self.alternatives, joints=len(self.alternatives) - 1)
        return _Term(inner.height + 1, inner.copies, inner.size + 2) if self.captures else inner


def _combined(terms: list[_Term], *, joints: int) -> _Term:
    if len(terms) == 1:
        return terms[0]
    return _Term(
        1 + max(term.height for term in terms),
        max(term.copies for term in terms),
        sum(term.size for term in terms) + joints,
    )


def to_re2(pattern: str) -> str:
    """The pattern in RE2's own syntax. Raises PatternError."""
    reader = _Reader(pattern)
    reader.read()
    return "".join(reader.out)


_NO_END: Final = -1
_REPETITIONS: Final = {"*": (0, _NO_END), "+": (1, _NO_END), "?": (0, 1)}
_REPEAT: Final = expression(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_FLAGS: Final = expression(r"\(\?([imsU]*)(-[imsU]*)?(.?)", re.DOTALL)
_NAMED: Final = expression(r"\(\?(?:P<(?=.)|<(?=.))", re.DOTALL)
_NAME: Final = expression(r"[A-Za-z0-9_]+\Z")
_POSIX: Final = expression(r"\[:(.*?):\]", re.DOTALL)
_OCTAL: Final = expression(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX: Final = expression(r"\\x([0-9a-fA-F]{2}|\{[0-9a-fA-F]+\})")
_HEX_DIGITS: Final = "0123456789abcdef"


class _Reader:
    """A cursor over the pattern. `position` is the next character; Go's parser keeps the rest of the pattern instead.

    `out` collects what RE2 gets. The pattern is copied in long pieces, only around the replaced classes:

        pattern   a\\p{letter}+b
        copied     ^             at the class: `a` goes to `out`, then the replacement `[\\p{L}]`
                             ^   `copied` moves past the class; `+b` follows at the end
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.out: list[str] = []
        self.copied = 0  # the pattern up to here is in `out`
        self.groups = [_Group(captures=False)]

    def read(self) -> None:
        pattern, special = self.pattern, _SPECIAL
        last_repeat = -1  # start of a repetition operator directly before, -1 if there is none
        while self.position < len(pattern):
            start = self.position
            char = pattern[start]
            repeat = _REPEAT.match(pattern, start) if char == "{" else None
            if char in _REPETITIONS or repeat:
                last_repeat = self.repeat(start, repeat, last_repeat)
                continue
            last_repeat = -1
            handler = special.get(char)
            if handler:
                handler(self)
            else:
                self.position += 1
                self.groups[-1].terms.append(_LITERAL)
        if len(self.groups) > 1:
            raise PatternError("missing closing )", pattern)
        self.check_limits(self.groups[0].closed())
        self.out.append(pattern[self.copied :])

    def rest(self) -> str:
        return self.pattern[self.position :]

    def since(self, start: int) -> str:
        return self.pattern[start : self.position]

    def push(self, term: _Term) -> None:
        self.check_limits(term)
        self.groups[-1].terms.append(term)

    def check_limits(self, term: _Term) -> None:
        if term.size > MAX_SIZE:
            raise PatternError("expression too large", self.pattern)
        if term.height > MAX_HEIGHT:
            raise PatternError("expression nests too deeply", self.pattern)

    def repeat(self, start: int, counted: re.Match[str] | None, last_repeat: int) -> int:
        """`*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, each possibly followed by `?`."""
        self.position = counted.end() if counted else start + 1
        if counted:
            least = _count(counted[1])
            most = least if not counted[2] else _count(counted[3]) if counted[3] else _NO_END
            if least > MAX_REPEAT or most > MAX_REPEAT or _NO_END != most < least:
                raise PatternError("invalid repeat count", self.since(start))
        else:
            least, most = _REPETITIONS[self.pattern[start]]
        if self.pattern.startswith("?", self.position):
            self.position += 1
        if last_repeat >= 0:
            raise PatternError("invalid nested repetition operator", self.since(last_repeat))
        terms = self.groups[-1].terms
        if not terms:
            raise PatternError("missing argument to repetition operator", self.since(start))
        once = terms.pop()
        if most == _NO_END:
            size = least * once.size + 1 if least else once.size + 2
        else:
            size = most * once.size + most - least
        copies = once.copies * max(least, most, 1) if most else 1
        self.push(_Term(once.height + 1, copies, max(1, size)))
        if copies > MAX_REPEAT and max(least, most) >= 2:
            raise PatternError("invalid repeat count", self.since(start))
        return start

    def open(self) -> None:
        """`(`, `(?:`, `(?flags:`, `(?flags)`, `(?P<name>` and `(?<name>`."""
        start = self.position
        if not self.pattern.startswith("(?", start):
            self.position += 1
            self.groups.append(_Group(captures=True))
            return
        if named := _NAMED.match(self.pattern, start):
            end = self.pattern.find(">", start)
            if end < 0:
                raise PatternError("invalid named capture", self.rest())
            self.position = end + 1
            if not _NAME.match(self.pattern[named.end() : end]):
                raise PatternError("invalid named capture", self.since(start))
            self.groups.append(_Group(captures=True))
            return
        flags = _FLAGS.match(self.pattern, start)
        assert flags
        self.position = flags.end()
        if flags[2] == "-" or not flags[3] or flags[3] not in ":)":
            raise PatternError("invalid or unsupported Perl syntax", self.since(start))
        if flags[3] == ":":
            self.groups.append(_Group(captures=False))

    def bar(self) -> None:
        self.position += 1
        self.groups[-1].end_alternative()

    def close(self) -> None:
        if len(self.groups) == 1:
            raise PatternError("unexpected )", self.pattern)
        self.position += 1
        self.push(self.groups.pop().closed())

    def escape(self) -> None:
        pattern, start = self.pattern, self.position
        kind = pattern[start + 1 : start + 2]
        if kind == "Q":
            end = pattern.find("\\E", start + 2)
            quoted = (end if end >= 0 else len(pattern)) - start - 2
            self.position = end + 2 if end >= 0 else len(pattern)
            self.groups[-1].terms += [_LITERAL] * quoted
        elif kind and kind in "AbBzdDsSwW":
            self.position += 2
            self.groups[-1].terms.append(_Term())
        elif kind and kind in "pP":
            self.unicode_class(inside=False)
            self.groups[-1].terms.append(_Term())
        else:
            self.character()
            self.groups[-1].terms.append(_LITERAL)

    def bracket(self) -> None:
        """A class: single characters, ranges, `[:posix:]`, `\\d` and `\\p{…}`."""
        pattern, start = self.pattern, self.position
        self.position += 2 if pattern.startswith("^", start + 1) else 1
        first = True  # here ] and - are ordinary characters
        while first or not pattern.startswith("]", self.position):
            first = False
            if pattern.startswith("[:", self.position) and (posix := _POSIX.match(pattern, self.position)):
                if posix[1].removeprefix("^") not in _POSIX_NAMES:
                    raise PatternError("invalid character class range", posix[0])
                self.position = posix.end()
            elif pattern.startswith(("\\p", "\\P"), self.position):
                self.unicode_class(inside=True)
            elif pattern.startswith(_PERL_CLASSES, self.position):
                self.position += 2
            else:
                self.range(start)
        self.position += 1
        self.groups[-1].terms.append(_Term())

    def range(self, bracket: int) -> None:
        pattern, start = self.pattern, self.position
        low = self.class_character(bracket)
        dash = self.position
        if pattern.startswith("-", dash) and dash + 1 < len(pattern) and pattern[dash + 1] != "]":
            self.position += 1
            if self.class_character(bracket) < low:
                raise PatternError("invalid character class range", self.since(start))

    def class_character(self, bracket: int) -> int:
        if self.position == len(self.pattern):
            raise PatternError("missing closing ]", self.pattern[bracket:])
        if self.pattern[self.position] == "\\":
            return self.character()
        self.position += 1
        return ord(self.pattern[self.position - 1])

    def character(self) -> int:
        """The code point of an escape."""
        pattern, start = self.pattern, self.position
        kind = pattern[start + 1 : start + 2]
        if not kind:
            raise PatternError("trailing backslash at end of expression", "")
        if number := _OCTAL.match(pattern, start):
            self.position = number.end()
            return int(number[1], 8)
        if number := _HEX.match(pattern, start):
            code = int(number[1].strip("{}"), 16)
            if code <= MAX_RUNE:
                self.position = number.end()
                return code
        self.position += 2
        if kind.isascii() and not kind.isalnum():
            return ord(kind)
        if kind in ESCAPES:
            return ord(ESCAPES[kind])
        if kind == "x":
            self.position = self.end_of_bad_hex()
        raise PatternError("invalid escape sequence", self.since(start))

    def end_of_bad_hex(self) -> int:
        """Go's error has the escape up to the first character that does not fit."""
        if not self.pattern.startswith("{", self.position):
            return min(self.position + 2, len(self.pattern))
        code = 0
        for end in range(self.position + 1, len(self.pattern)):
            digit = _HEX_DIGITS.find(self.pattern[end].lower())
            code = code * 16 + digit
            if digit < 0 or code > MAX_RUNE:
                return end + 1
        return len(self.pattern)

    def unicode_class(self, *, inside: bool) -> None:
        """`\\pL`, `\\p{Greek}`, `\\P{^Lu}`."""
        pattern, start = self.pattern, self.position
        if pattern.startswith("{", start + 2):
            end = pattern.find("}", start)
            if end < 0:
                raise PatternError("invalid character class range", self.rest())
            self.position = end + 1
            name = pattern[start + 3 : end]
        else:
            self.position = min(start + 3, len(pattern))
            name = pattern[start + 2 : self.position]
        negated = (pattern[start + 1] == "P") != name.startswith("^")
        written = _unicode_class(_canonical(name.removeprefix("^")))
        if not written:
            raise PatternError("invalid character class range", self.since(start))
        if negated:
            written = _inverse(written)
        replacement = written if inside else f"[{written}]"
        if inside and written.startswith("^"):
            replacement = _NEGATED.get(written) or _ranges(written)
        self.out += (pattern[self.copied : start], replacement)
        self.copied = self.position


_LITERAL: Final = _Term(literal=True)
_PERL_CLASSES: Final = ("\\d", "\\D", "\\s", "\\S", "\\w", "\\W")


def _anchor_or_dot(reader: _Reader) -> None:
    reader.position += 1
    reader.groups[-1].terms.append(_Term())


_SPECIAL: Final = {
    "(": _Reader.open,
    ")": _Reader.close,
    "|": _Reader.bar,
    "[": _Reader.bracket,
    "\\": _Reader.escape,
    "^": _anchor_or_dot,
    "$": _anchor_or_dot,
    ".": _anchor_or_dot,
}


def _count(digits: str) -> int:
    return int(digits) if len(digits) <= 4 else MAX_REPEAT + 1


def _canonical(name: str) -> str:
    """A class name without case, spaces, hyphens and underscores, which Go ignores: `lower-case letter` is `Lowercaseletter`."""
    return name.translate(_IGNORED).capitalize() if name.isascii() else ""


_IGNORED: Final = str.maketrans("", "", " _-")
_ALIASES: Final = {
    "Casedletter": "Lc", "Closepunctuation": "Pe", "Combiningmark": "M", "Connectorpunctuation": "Pc",
    "Control": "Cc", "Currencysymbol": "Sc", "Dashpunctuation": "Pd", "Decimalnumber": "Nd", "Enclosingmark": "Me",
    "Finalpunctuation": "Pf", "Format": "Cf", "Initialpunctuation": "Pi", "Letter": "L", "Letternumber": "Nl",
    "Lineseparator": "Zl", "Lowercaseletter": "Ll", "Mark": "M", "Mathsymbol": "Sm", "Modifierletter": "Lm",
    "Modifiersymbol": "Sk", "Nonspacingmark": "Mn", "Number": "N", "Openpunctuation": "Ps", "Other": "C",
    "Otherletter": "Lo", "Othernumber": "No", "Otherpunctuation": "Po", "Othersymbol": "So",
    "Paragraphseparator": "Zp", "Privateuse": "Co", "Punctuation": "P", "Separator": "Z", "Spaceseparator": "Zs",
    "Spacingmark": "Mc", "Surrogate": "Cs", "Symbol": "S", "Titlecaseletter": "Lt", "Unassigned": "Cn",
    "Uppercaseletter": "Lu", "Cntrl": "Cc", "Digit": "Nd", "Punct": "P",
}  # fmt: skip
_ASSIGNED: Final = r"\pL\pM\pN\pP\pS\pZ\pC"  # RE2's C does not include unassigned code points
# Classes that RE2 has no name for: their members in RE2's syntax.
_COMPOSED: Final = {
    "Any": r"\x00-\x{10FFFF}",
    "Ascii": r"\x00-\x7F",
    "Assigned": _ASSIGNED,
    "C": rf"^{_ASSIGNED[:-3]}",
    "Cn": rf"^{_ASSIGNED}",
    "Lc": r"\p{Lu}\p{Ll}\p{Lt}",
}


# The classes that have negations of their own in brackets.
_NEGATED: Final = {
    rf"^{_COMPOSED['Any']}": r"\x{D800}",  # half a surrogate pair, which no text contains
    rf"^{_COMPOSED['Ascii']}": r"\x{80}-\x{10FFFF}",
}
_POSIX_NAMES: Final = frozenset({
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "word", "xdigit",
})  # fmt: skip
# General categories, and the scripts of Unicode 15 whose names are one word: Go's tables have other keys for the rest.
_CLASS_NAMES: Final = frozenset({
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Yi", "Z", "Zl", "Zp", "Zs", "Adlam",
    "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali", "Bhaiksuki", "Bopomofo",
    "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham", "Cherokee", "Chorasmian", "Common",
    "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Dogra", "Duployan", "Elbasan", "Elymaic",
    "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul",
    "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Inherited", "Javanese", "Kaithi", "Kannada", "Katakana", "Kawi",
    "Kharoshthi", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Lisu", "Lycian", "Lydian",
    "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen", "Medefaidrin", "Miao", "Modi",
    "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean", "Nandinagari", "Newa", "Nko", "Nushu", "Ogham", "Oriya",
    "Osage", "Osmanya", "Palmyrene", "Phoenician", "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian",
    "Siddham", "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog", "Tagbanwa", "Takri", "Tamil",
    "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Toto", "Ugaritic", "Vai",
    "Vithkuqi", "Wancho", "Yezidi",
})  # fmt: skip


@cache
def _unicode_class(name: str) -> str:
    """The members of a class as written in brackets, "" if Go does not know the class."""
    name = _ALIASES.get(name, name)
    if name in _COMPOSED:
        return _COMPOSED[name]
    return f"\\p{{{name}}}" if name in _CLASS_NAMES else ""


def _inverse(written: str) -> str:
    return written.removeprefix("^") if written.startswith("^") else f"^{written}"


@cache
def _ranges(written: str) -> str:
    """The characters of `[written]` in brackets with other members: `[x^…]` would not negate."""
    if named := _SINGLE.match(written):
        return rf"\P{named[1]}"
    spend(SCAN_UNITS)
    return "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in members(f"[{written}]"))


_SINGLE: Final = expression(r"\^\\p(\{\w+\})\Z")
