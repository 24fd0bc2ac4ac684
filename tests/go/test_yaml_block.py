"""The fast path for YAML in block style: what it reads, and what it leaves to the slow path."""

import gzip
import json

import pytest

from noxu.go import yaml as go_yaml
from noxu.go import yaml_block
from noxu.manifests import documents as manifests
from noxu.values import Json
from tests.optional import SHARED, needs_data
from tests.rows import rows
from tests.timing import cpu_seconds

READ: list[tuple[str, str, Json]] = [
    ("keys", "a: b\nc:\n  d: 1\n  e: true\nf: 'g'\n", {"a": "b", "c": {"d": 1, "e": True}, "f": "g"}),
    ("no line break at the end", "a:\n  b: c", {"a": {"b": "c"}}),
    ("a document marker", "---\na: b\n", {"a": "b"}),
    ("a list at the column of its key", "a:\n- b\n- c\nd: e\n", {"a": ["b", "c"], "d": "e"}),
    ("a list below its key", "a:\n  - b\n  -   c\nd: e\n", {"a": ["b", "c"], "d": "e"}),
    ("mappings in a list", "- a: 1\n  b:\n  - c: 2\n-   d:\n      e: 3\n", [{"a": 1, "b": [{"c": 2}]}, {"d": {"e": 3}}]),
    ("keys without values", "a:\nb:\n- c:\n  d:\n-   e:\n", {"a": None, "b": [{"c": None, "d": None}, {"e": None}]}),
    ("blank lines and comments", "# a\n\na: # b\n   # c\n  d: e # f\n  \n\n# g\nh: i#j\n#k", {"a": {"d": "e"}, "h": "i#j"}),
    ("numbers and words", "a: 0x10\nb: 1.0\nc: no\nd: ~\ne: -1\nf: 1.5\ng: -a", {"a": 16, "b": 1, "c": False, "d": None, "e": -1, "f": 1.5, "g": "-a"}),
    ("quoted keys", "'a b': 1\n\"y\": 2\n", {"a b": 1, "y": 2}),
    ("colons and signs in text", "a: http://b:80/#c\nb: x:y\nc: a-b: \n", None),
    ("colons in text", "a: http://b:80/#c\nb: x:y=@%&*\n", {"a": "http://b:80/#c", "b": "x:y=@%&*"}),
    ("plain text of several lines", "a: b\n  c   d  \n\n\n   - e\nf:\n  g\n  h\n", {"a": "b c   d\n\n- e", "f": "g h"}),
    ("quoted text of several lines", "a: 'b''\n\n  c  \n  '\nd: \"e \\\n   f\\n\n  g\"\n", {"a": "b'\nc ", "d": "e f\n g"}),
    ("escapes", 'a: "\\"\\\\\\n\\t"', {"a": '"\\\n\t'}),
    ("literal blocks", "a: |\n  b\n   c\n\nd: |-\n    e\n\nf: |+\n g\n\n", {"a": "b\n c\n", "d": "e", "f": "g\n\n"}),
    ("literal blocks with lines of spaces", "a: |\n  b\n \n   \n  c\n", {"a": "b\n\n \nc\n"}),
    ("literal blocks that say how they are indented", "a:\n  b: |1\n     c\n   d\n- |", None),
    ("a block that begins with spaces", "a:\n  b: |2-\n      c\n    d\n", {"a": {"b": "  c\nd"}}),
    ("a block in a list", "- |\n a\n- >-\n   b\n   c\n\n   d\n", ["a\n", "b c\nd"]),
    ("a block that the text ends", "a: |\n  b", {"a": "b"}),
    ("flow collections of words", "a: []\nb: {}\nc: [d, 'e f', \"*\", 1] # g\n", {"a": [], "b": {}, "c": ["d", "e f", "*", 1]}),
    ("text beyond ASCII", "a: é€😀\nü: |\n  é\n", {"a": "é€😀", "ü": "é\n"}),
]  # fmt: skip


@rows(("text", "value"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_block_style_is_read(text: str, value: Json) -> None:
    """None: it is left to the slow path."""
    read = yaml_block.read(text.encode())
    assert json.dumps(read) == json.dumps(value)
    if value is not None:
        assert json.dumps(go_yaml.read_events(text.encode()).value) == json.dumps(value)


LEFT = [
    ("nothing", ""),
    ("a scalar", "a"),
    ("an anchor", "a: &b c"),
    ("an alias", "a: *b"),
    ("a tag", "a: !!str 1"),
    ("a merge", "<<: {}"),
    ("a key that is no text", "1: a"),
    ("a key that is a boolean", "on: a"),
    ("a key twice", "a: 1\nb: 2\na: 3"),
    ("a tab", "a: |\n  b\tc"),
    ("another line break", "a: b\r\n"),
    ("a line break of Unicode", "a: b\u2028c"),
    ("a byte order mark", "\ufeffa: b"),
    ("a second document", "a: b\n---\nc: d"),
    ("the end of a document", "a: b\n...\n"),
    ("the end of a document in quotes", "a: 'b\n...\n'"),
    ("a directive", "%YAML 1.1\n---\na: b"),
    ("a list in a list", "- - a"),
    ("a mapping on one line", "a: {b: c}"),
    ("infinity", "a: .inf"),
    ("an unknown escape", 'a: "\\q"'),
    ("a character by number", 'a: "\\u00e9"'),
    ("a quote that is not closed", "a: 'b"),
    ("a colon in text", "a: b: c"),
    ("a colon in the next line of text", "a: b\n  c: d"),
    ("a colon after text", "a: b:"),
    ("an item below text", "a: b\n- c"),
    ("a column of no collection", "a:\n    b: c\n  d: e"),
    ("a key below an item", "- a\n  b: c"),
    ("a key among items", "a:\n- b\n c: d"),
    ("an item among keys", "a: b\n- c"),
    ("an item without a value", "-\n  a: b"),
    ("an item that begins with a comment", "- # a\n  b: c"),
    ("text after a quote", "a: 'b' c"),
    ("a block at the column of its key", "a:\n  b: |\n  c"),
    ("a block that begins with a line of spaces", "a: |\n   \n  b\n"),
    ("lines in a folded block that are indented more", "a: >\n  b\n    c\n"),
    ("a comment among the lines of text", "a: b\n  # c\n  d"),
    ("a comment in text", "a: b\n  c # d\n"),
]


@rows("text", [row[1] for row in LEFT], ids=[row[0] for row in LEFT])
def test_anything_else_is_left_to_the_slow_path(text: str) -> None:
    assert yaml_block.read(text.encode()) is None


def test_bytes_that_are_no_text_are_left_to_the_slow_path() -> None:
    assert yaml_block.read(b"a: \xff\n") is None


def test_values_of_lines_that_are_kept_are_not_shared() -> None:
    text = b"a:\n  c: []\nb:\n  c: []\n"
    value = yaml_block.read(text)
    value["a"]["c"].append(1)
    assert (value["b"], yaml_block.read(text)) == ({"c": []}, {"a": {"c": []}, "b": {"c": []}})


@pytest.mark.parametrize(
    "text",
    [
        "a: 'b{}c\n d'\n",
        'a: "b{}c\\n\n d"\n',
        'a: "b\\{}c\n d"\n',
        "a: b{}c\n  d\n",
        "a: |\n {}b\n c\n",
        "a:{}b\n",
        "{}a: b\n",
    ],
    ids=["single quotes", "double quotes", "an escaped space", "plain text", "a block", "a value", "an indentation"],
)
def test_many_spaces_are_read_in_linear_time(text: str) -> None:
    def seconds(spaces: int) -> float:
        body = text.format(" " * spaces).encode()
        read = yaml_block.read(body)
        assert read is None or read == go_yaml.read_events(body).value
        return min(cpu_seconds(lambda: yaml_block.read(body)) for _ in range(3))

    assert seconds(40_000) < 0.1, "1 ms; seconds if a search begins at each space"


@needs_data("crds")
def test_most_manifests_of_other_projects_are_read() -> None:
    left, size = 0, 0
    for file in sorted((SHARED / "crds" / "cr").glob("*.gz")):
        for part in manifests.split(gzip.decompress(file.read_bytes())):
            if part.is_document:
                read = yaml_block.read(part.text)
                size += 1
                left += read is None
                assert read is None or json.dumps(read) == json.dumps(go_yaml.read_events(part.text).value)
    assert (size > 300, left < size / 20) == (True, True)
