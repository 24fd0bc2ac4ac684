"""YAML of JSON as go-yaml v3 writes its nodes. The texts are those of gnostic's compiler.Marshal."""

from __future__ import annotations

from noxu.go.yaml_writer import write_nodes
from noxu.values import Json
from tests.rows import rows

WORDS = "word " * 40

DOCUMENTS: list[tuple[str, Json, str]] = [
    ("null", None, "null\n"),
    ("an empty object", {}, "{}\n"),
    ("an empty list", [], "[]\n"),
    ("numbers as in JSON", [1.0, 1e20, 1e21, 1e-7, -0.5, 2**40],
     "- 1\n- 100000000000000000000\n- 1e+21\n- 1e-7\n- -0.5\n- 1099511627776\n"),
    ("keys in their order, and members indented by four",
     {"b": {"x": [1, {"c": [], "d": "t"}], "y": [[1, [2]], []]}, "a": ["z"]},
     "b:\n    x:\n        - 1\n        - c: []\n          d: t\n    y:\n        - - 1\n          - - 2\n        - []\na:\n    - z\n"),
    ("objects in lists in objects", {"a": [{"b": {"c": 1}}]}, "a:\n    - b:\n        c: 1\n"),
    ("text that YAML 1.2 reads as something else",
     ["", "~", "null", "True", "1", "0x1F", "0o7", ".5", "-.Inf", "1_0", "2001-01-01", "2001-1-1T1:1:1Z"],
     '- ""\n- "~"\n- "null"\n- "True"\n- "1"\n- "0x1F"\n- "0o7"\n- ".5"\n- "-.Inf"\n- "1_0"\n- "2001-01-01"\n- "2001-1-1T1:1:1Z"\n'),
    ("text that only YAML 1.1 reads as something else", ["y", "N", "yes", "No", "on", "OFF", "1:30", "=", "<<"],
     "- y\n- N\n- yes\n- No\n- on\n- OFF\n- 1:30\n- =\n- <<\n"),
    ("indicators", ["a: b", "a:", "a #b", "#a", "- a", "[a", "*a", "'a", "---", " a", "a "],
     "- 'a: b'\n- 'a:'\n- 'a #b'\n- '#a'\n- '- a'\n- '[a'\n- '*a'\n- '''a'\n- '---'\n- ' a'\n- 'a '\n"),
    ("what is not printed", ["a\tb", "\x1b", "😀", "\ufeffa"], '- "a\\tb"\n- "\\e"\n- "\\U0001F600"\n- "\\uFEFF\\x61"\n'),
    ("a line separator", {"a": "b\u2028c"}, "a: 'b\u2028    c'\n"),
    ("long lines are not folded", [WORDS + "end", f"#{WORDS}"], f"- {WORDS}end\n- '#{WORDS}'\n"),
    ("lines", {"a": "x\n y\n"}, "a: |\n    x\n     y\n"),
    ("lines in a list", ["x\ny"], "- |-\n  x\n  y\n"),
    ("lines in a list in an object", {"l": ["x\ny"]}, "l:\n    - |-\n      x\n      y\n"),
    ("lines that start with space", {"a": " x\n"}, "a: |4\n     x\n"),
    ("lines with tabs", "a\tb\nc", "|-\n    a\tb\n    c\n"),
    ("lines at the root", "\n", "|4+\n\n"),
    ("space before a line end", "a \nb", '"a \\nb"\n'),
    ("lines that end with space", "a\nb ", '"a\\nb "\n'),
    ("a key of several lines", {"a\nb": {"c": 1}}, "? |-\n    a\n    b\n:   c: 1\n"),
    ("a key of 129 bytes", {"k" * 129: [1, {"a": 2}]}, f"? {'k' * 129}\n:   - 1\n    - a: 2\n"),
    ("keys that mean something else", {"true": 1, "": 2, "<<": 3, "no": 4}, '"true": 1\n"": 2\n<<: 3\nno: 4\n'),
]  # fmt: skip


@rows(("value", "text"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS])
def test_a_value_is_written(value: Json, text: str) -> None:
    assert write_nodes(value).decode() == text


def test_nothing_recurses() -> None:
    value: Json = 1
    for _ in range(10_000):
        value = [value]
    assert write_nodes(value) == b"- " * 10_000 + b"1\n"
