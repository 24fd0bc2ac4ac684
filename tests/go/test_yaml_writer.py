"""YAML as go-yaml writes it."""

import pytest

from noxu.go.yaml import read
from noxu.go.yaml_writer import compare_keys, write
from noxu.values import Json
from tests.rows import rows

WORDS = "word " * 17  # 85 characters, the last of them a space

DOCUMENTS: list[tuple[str, Json, str]] = [
    ("null", None, "null\n"),
    ("an empty object", {}, "{}\n"),
    ("an empty list", [], "[]\n"),
    ("scalars", [None, True, 1, -0.5, "a"], "- null\n- true\n- 1\n- -0.5\n- a\n"),
    ("lists in objects are not indented", {"a": [1, {"b": 2, "c": [3]}]}, "a:\n- 1\n- b: 2\n  c:\n  - 3\n"),
    ("lists in lists", [[1, [2]], []], "- - 1\n  - - 2\n- []\n"),
    ("objects in objects", {"a": {"b": {}, "c": {"d": None}}}, "a:\n  b: {}\n  c:\n    d: null\n"),
    ("floats", [1.0, 1e20, 1e21, 1e-7, 0.00001, 1.5e300], "- 1\n- 1e+20\n- 1e+21\n- 1e-07\n- 1e-05\n- 1.5e+300\n"),
    ("a float beyond int64 with all its digits", 2.0**63, "9223372036854776000\n"),
    ("text that means something else", ["", "y", "1", "0x1F", ".5", "~", "2001-01-01", "1:30", "1_0"],
     '- ""\n- "y"\n- "1"\n- "0x1F"\n- ".5"\n- "~"\n- "2001-01-01"\n- "1:30"\n- "1_0"\n'),
    ("text that is only text", ["a b", "a:b", "a#b", "é", "=", "<<", "-a", "?a", "x,y", "1.2.3", "it's", 'say "x"'],
     "- a b\n- a:b\n- a#b\n- é\n- =\n- <<\n- -a\n- ?a\n- x,y\n- 1.2.3\n- it's\n- say \"x\"\n"),
    ("indicators", ["a: b", "a:", "a #b", "#a", "- a", "-", "? a", ":", "[a", "{a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a", "'a", '"a', "---a", "..."],
     "- 'a: b'\n- 'a:'\n- 'a #b'\n- '#a'\n- '- a'\n- '-'\n- '? a'\n- ':'\n- '[a'\n- '{a'\n- '*a'\n- '&a'\n- '!a'\n- '|'\n- '>'\n- '%a'\n- '@a'\n- '`a'\n- '''a'\n- '\"a'\n- '---a'\n- '...'\n"),
    ("space at the edges", [" a", "a ", " "], "- ' a'\n- 'a '\n- ' '\n"),
    ("what is not printed", ["\t", "a\0b", "\x7f", "\x1b", "😀", "\ufeffa b", "\u00a0x", "\r"],
     '- "\\t"\n- "a\\0b"\n- "\\x7F"\n- "\\e"\n- "\\U0001F600"\n- "\\uFEFF\\x61\\x20\\x62"\n- \u00a0x\n- "\\r"\n'),
    ("a line separator", ["a\u2028b"], "- 'a\u2028  b'\n"),
    ("lines", {"a": "x\n  y\n\nz"}, "a: |-\n  x\n    y\n\n  z\n"),
    ("lines with one line end", {"a": "x\n"}, "a: |\n  x\n"),
    ("lines with several line ends", {"a": "x\n\n"}, "a: |+\n  x\n\n"),
    ("lines that start with space", {"a": " x\ny"}, "a: |2-\n   x\n  y\n"),
    ("nothing but a line end", {"a": "\n"}, "a: |2+\n\n"),
    ("lines that end with space", {"a": "x\ny "}, 'a: "x\\ny "\n'),
    ("space before a line end", {"a": "x \ny"}, 'a: "x \\ny"\n'),
    ("lines in a list", ["x\ny"], "- |-\n  x\n  y\n"),
    ("a key of several lines", {"a\nb": 1}, "? |-\n  a\n  b\n: 1\n"),
    ("a key of 128 bytes", {"k" * 128: 1}, f"{'k' * 128}: 1\n"),
    ("a key of 129 bytes", {"k" * 129: {"a": [1]}}, f"? {'k' * 129}\n: a:\n  - 1\n"),
    ("a key that means something else", {"1": 1, "": 2, "no": 3}, '"": 2\n"1": 1\n"no": 3\n'),
    ("a long line", {"a": WORDS + "end"}, f"a: {WORDS[:79]}\n  word end\n"),
    ("a long line in single quotes", {"a": f"#{WORDS}end"}, f"a: '#{WORDS[:79]}\n  word end'\n"),
    ("a long line in double quotes", {"a": f"\t{WORDS}end"}, f'a: "\\t{WORDS[:79]}\n  word end"\n'),
    ("a long line with two spaces", {"a": "\t" + "x" * 80 + "  y"}, 'a: "\\t' + "x" * 80 + '\n  \\ y"\n'),
    ("a long line without a space", {"a": "x" * 100}, f"a: {'x' * 100}\n"),
    ("a long line that ends in space", {"a": "x" * 100 + " "}, f"a: '{'x' * 100} '\n"),
    ("a long key is not folded", {WORDS + "end": 1}, f"{WORDS}end: 1\n"),
    ("a long root", WORDS + "end", f"{WORDS[:84]}\n  end\n"),
]  # fmt: skip


@rows(("value", "text"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS])
def test_a_value_is_written(value: Json, text: str) -> None:
    assert write(value).decode() == text


READABLE = [row for row in DOCUMENTS if row[0] not in ("a line separator", "floats")]


@rows(("value", "text"), [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_written_yaml_reads_back_as_the_same_value(value: Json, text: str) -> None:
    assert read(write(value)).value == value


ORDERS = [
    ["", ".", "1", "9", "10", "A", "B", "a", "aa"],
    ["a1", "a2", "a10", "a10b", "b"],
    ["a0", "a1", "a1b2", "a1b10", "a01"],
    ["a-b", "a.b", "a/b", "ab"],
    ["f:a", "f:b", "k:{}"],
    ["a10", "a100", "a101"],
    ["1.2", "1.10"],
    ["é1", "é2", "é10"],
]


@pytest.mark.parametrize("ordered", ORDERS)
def test_keys_are_sorted_as_people_do(ordered: list[str]) -> None:
    for n, left in enumerate(ordered):
        for right in ordered[n + 1 :]:
            assert (compare_keys(left, right) < 0, compare_keys(right, left) > 0) == (True, True), (left, right)


def test_a_key_is_as_great_as_itself() -> None:
    assert compare_keys("a10", "a10") == 0


@pytest.mark.parametrize("build", [lambda value: [value], lambda value: {"a": value}], ids=["lists", "objects"])
def test_depth_does_not_matter(build: object) -> None:
    value: Json = "x"
    for _ in range(2_000):
        value = build(value)  # type: ignore[operator]
    assert write(value).endswith(b"x\n")
