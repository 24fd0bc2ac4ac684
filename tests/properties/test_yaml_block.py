"""Laws of the fast path for YAML: what it reads, the slow path reads alike, and accepts."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from noxu.go import yaml as go_yaml
from noxu.go import yaml_block

WORDS = st.sampled_from(
    [
        "a",
        "b",
        "y",
        "1",
        "-1",
        "1.0",
        "0o7",
        "~",
        ".5",
        ".inf",
        "a:b",
        "a:",
        "a#b",
        "#c",
        "-x",
        "---",
        "...",
        "!",
        "&a",
        "*a",
        "<<",
        "|",
        "|-",
        "|2",
        ">-",
        ">",
        ">+",
        "'q'",
        "'it''s'",
        "'open",
        '"',
        '"d\\n"',
        '"\\',
        "[]",
        "{}",
        "[a,'b']",
        "[1,",
        "{b}",
        "{",
        "}",
        "%",
        "@",
        "?",
        "é",
        "\u2028",
        "\t",
    ]
)
TEXT = st.lists(WORDS, max_size=3).map(" ".join)
KEYS = st.sampled_from(["", "", "a: ", "b: ", "c:", "d: ", "'e': ", "y: "])
DASHES = st.sampled_from(["", "", "", "- ", "-   ", "-"])
INDENTATIONS = st.sampled_from(["", "", "  ", "  ", "   ", "    ", "      "])
LINES = st.tuples(INDENTATIONS, DASHES, KEYS, TEXT).map("".join)
DOCUMENTS = st.lists(LINES, min_size=1, max_size=8).map("\n".join)


@settings(deadline=None, max_examples=500)
@given(DOCUMENTS)
@example("- |2\n    a\n   b\n")
@example("a:\n- 'b\n   c'\n- d\n  e\n")
def test_what_the_fast_path_reads_the_slow_path_reads_alike(text: str) -> None:
    read = yaml_block.read(text.encode())
    if read is not None:
        document = go_yaml.read_events(text.encode())
        assert (json.dumps(document.value), document.duplicates) == (json.dumps(read), [])
