"""Manifests: which objects are in files, in which order, and what cannot be read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.manifests.documents import (
    Document,
    LoadError,
    checked,
    files,
    in_order,
    is_crd,
    is_list,
    read,
    read_paths,
    split,
)
from tests.rows import rows


def described(text: str) -> list[str]:
    """Each document of a text: its location, and its kind and name or its error."""
    return [
        f"{document.source}: {document.error or f'{document.kind} {document.name}'}"
        for document in read(text.encode(), "f")
    ]


A, B = "kind: A\nmetadata: {name: a}", "kind: B\nmetadata: {name: b}"
JSON_A = '{"kind": "A", "metadata": {"name": "a"}}'

TEXTS: list[tuple[str, str, list[str]]] = [
    ("one document", A, ["f: A a"]),
    ("two", f"{A}\n---\n{B}", ["f: A a", "f, document 2: B b"]),
    ("a separator at the top", f"---\n{A}", ["f: A a"]),
    ("empty documents are skipped", f"---\n\n---\n{A}\n---\n---\n{B}\n---\n", ["f: A a", "f, document 2: B b"]),
    ("a document that is only a comment counts", f"# hello\n---\n{A}", ["f, document 2: A a"]),
    ("the rest of the line of a separator is ignored", f"{A}\n--- # more\n{B}", ["f: A a", "f, document 2: B b"]),
    ("line ends of Windows", f"{A}\r\n---\r\n{B}\r\n", ["f: A a", "f, document 2: B b"]),
    ("dashes inside a line", "kind: A\nmetadata: {name: a --- b}", ["f: A a --- b"]),
    ("JSON", JSON_A, ["f: A a"]),
    ("JSON after white space", f"\n  {JSON_A}\n", ["f: A a"]),
    ("JSON documents between separators are YAML", f"{JSON_A}\n---\n{JSON_A}", ["f: A a", "f, document 2: A a"]),
    ("YAML that begins like JSON", "{kind: A, metadata: {name: a}}", ["f: A a"]),
    ("a List is replaced by its items", json.dumps({"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}), ["f: A ", "f: B "]),
    ("a list of one kind", json.dumps({"kind": "AList", "items": [{"kind": "A"}]}), ["f: A "]),
    ("a List in a List", json.dumps({"kind": "List", "items": [{"kind": "List", "items": [{"kind": "A"}]}, {"kind": "B"}]}), ["f: A ", "f: B "]),
    ("an empty List", '{"kind": "List", "items": []}', []),
    ("a kind that ends in List, without items", "kind: PlayList\nmetadata: {name: a}", ["f: PlayList a"]),
    ("an object with generateName", "kind: A\nmetadata: {generateName: a-}", ["f: A a-"]),
    ("a name that is not a string", "kind: A\nmetadata: {name: 3}", ["f: A "]),
    ("metadata that is not an object", "kind: A\nmetadata: 3", ["f: A "]),
    ("an empty text", "", []),
    ("null", "null", []),
    ("no kind", "a: 1", ["f: not a Kubernetes object: it has no kind"]),
    ("a kind that is not a string", "kind: 1", ["f: not a Kubernetes object: it has no kind"]),
    ("a list", "- a", ["f: not a Kubernetes object: it has no kind"]),
    ("an item that is not an object", '{"kind": "List", "items": [3, {"kind": "A"}]}', ["f: not a Kubernetes object: it has no kind", "f: A "]),
    ("an error in YAML affects only its document", f"{A}\n---\na: [\n---\n{B}", ["f: A a", "f, document 2: yaml: line 2: did not find expected node content", "f, document 3: B b"]),
    ("an error in JSON", '{"kind": "A"', ["f: unexpected end of JSON input"]),
]  # fmt: skip


@rows(("text", "documents"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_the_documents_of_a_text(text: str, documents: list[str]) -> None:
    assert described(text) == documents


@rows("text", [row[1] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_the_joined_parts_of_a_text_are_the_text(text: str) -> None:
    assert b"".join(part.text for part in split(text.encode())) == text.encode()


def test_the_nesting_of_lists_is_not_limited() -> None:
    deep = '{"kind":"List","items":[' * 3000 + '{"kind":"A"}' + "]}" * 3000
    assert described(deep) == ["f: A "]


def test_duplicate_keys_are_recorded_in_the_document() -> None:
    [document] = read(b'{"kind": "A", "a": 1, "a": 2}', "f")
    assert document.duplicates == document.strict == ['duplicate field "a"']
    [document] = read(b"kind: A\na: 1\na: 2\n", "f")
    assert document.duplicates == ['line 3: key "a" already set in map']
    assert document.strict == ['yaml: unmarshal errors:\n  line 3: key "a" already set in map']


def test_the_manifests_of_a_directory_are_read_in_the_order_of_their_names(
    write: Callable[..., Path], here: Path
) -> None:
    for name in ("d/b.yaml", "d/a.json", "d/sub/c.yml", "d/notes.txt", "d/.hidden.yaml", "d/.git/x.yaml"):
        write(name, {"kind": Path(name).stem})
    assert [document.kind for document in read_paths([here / "d"])] == ["a", "b", "c"]
    assert files(here / "d" / "notes.txt") == [here / "d" / "notes.txt"], (
        "a file that is named is read, whatever its suffix"
    )


def test_manifests_are_read_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: A")))
    assert [document.source for document in read_paths([Path("-")])] == ["stdin"]


def test_unreadable_files_are_documents_with_an_error(here: Path, write: Callable[..., Path]) -> None:
    write("good.yaml", "kind: A")
    found = list(read_paths([here / "none.yaml", here / "good.yaml"]))
    assert [document.error for document in found] == ["no such file or directory", ""]
    with pytest.raises(LoadError, match=r"none\.yaml: no such file or directory"):
        list(checked(found))
    assert list(checked(found[1:])) == found[1:]


def test_crds_come_first_then_namespaces_then_the_rest_in_order() -> None:
    kinds = ["Z", "Namespace", "A", "CustomResourceDefinition", "Namespace", "B"]
    documents = [Document({"kind": kind}, "f", n) for n, kind in enumerate(kinds)]
    assert [document.number for document in in_order(documents)] == [3, 1, 4, 0, 2, 5]


KINDS: list[tuple[Any, bool, bool]] = [
    ({"kind": "CustomResourceDefinition"}, True, False),
    ({"kind": "CustomResourceDefinitionList", "items": []}, False, True),
    ({"kind": "List", "items": None}, False, False),
    ({"items": []}, False, False),
    ([], False, False),
    (None, False, False),
]


@pytest.mark.parametrize(("value", "crd", "list_"), KINDS)
def test_crds_and_lists_are_recognized(value: Any, crd: bool, list_: bool) -> None:
    assert (is_crd(value), is_list(value)) == (crd, list_)


PLACES: list[tuple[str, str, str, list[str]]] = [
    ("an object", A, "metadata.name", ["f:2:12"]),
    ("the second document", f"{A}\n--- # more\n\n{B}", "metadata", ["f:2:1", "f:6:1"]),
    ("items of a List", "kind: List\nitems:\n- kind: A\n- kind: List\n  items:\n  - {kind: B}\n", "kind", ["f:3:3", "f:6:6"]),
    ("JSON", JSON_A, "metadata.name", ["f:1:28"]),
    ("a syntax error", f"{A}\n---\na: [\n---\n{B}", "kind", ["f:1:1", "f:5:1", "f:6:1"]),
    ("no kind", f"{A}\n---\na: 1\nb: 2", "", ["f:1:1", "f:4:1"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "field", "places"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
def test_the_place_of_a_field_is_its_line_and_column_in_the_file(text: str, field: str, places: list[str]) -> None:
    assert [document.place(field) for document in read(text.encode(), "f")] == places


def test_an_object_that_is_from_no_text_has_no_position(here: Path) -> None:
    [missing] = read_paths([here / "none.yaml"])
    assert (missing.position(), missing.place()) == (None, str(here / "none.yaml"))
