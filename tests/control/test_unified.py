"""The difference of two states as text: what `diff -u` shows of their YAML, without what always differs."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.control import unified
from noxu.control.unified import difference, visible
from noxu.values import Object


def widget(**spec: Any) -> Object:
    metadata = {"name": "a", "resourceVersion": str(spec), "managedFields": [{"manager": str(spec)}]}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


DIFFERENCES: Final = [
    ("nothing that people see", widget(a=1), {**widget(a=1), "metadata": {"name": "a", "resourceVersion": "7"}}, ""),
    ("a changed field", widget(a=1, b=1, c=1, d=1, e=1), widget(a=1, b=1, c=1, d=1, e=2), """\
--- old
+++ new
@@ -7,4 +7,4 @@
   b: 1
   c: 1
   d: 1
-  e: 1
+  e: 2
"""),
    ("a new object", None, widget(a=1), """\
--- old
+++ new
@@ -0,0 +1,6 @@
+apiVersion: example.com/v1
+kind: Widget
+metadata:
+  name: a
+spec:
+  a: 1
"""),
    ("a deleted object", {"kind": "A"}, None, "--- old\n+++ new\n@@ -1 +0,0 @@\n-kind: A\n"),
    ("a text with other separators of lines", {"a": "x\x0cy\u2028z"}, {"a": "x\x0cy\u2028w"},
     '--- old\n+++ new\n@@ -1 +1 @@\n-a: "x\\fy\\Lz"\n+a: "x\\fy\\Lw"\n'),
    ("no object at all", None, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "text"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES])
def test_a_difference(old: Object | None, new: Object | None, text: str) -> None:
    assert difference(old, new, "old", "new") == text


def test_what_is_hidden_stays_in_the_object() -> None:
    value = widget(a=1)
    assert visible(value)["metadata"] == {"name": "a"}
    assert "managedFields" in value["metadata"]


def test_what_is_too_long_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unified, "MAX_LINES", 6)
    assert "@@" in difference(widget(a=1), widget(a=2), "old", "new")
    assert difference(widget(a=1), widget(a=1, b=1), "old", "new") == (
        "--- old\n+++ new\nthey differ, and have too many lines to be compared\n"
    )
