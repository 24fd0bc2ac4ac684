"""Objects in files: what is one, in which order, and what cannot be read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.manifests import (
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


def told(text: str) -> list[str]:
    """Each document of a text in words: where it stands and what it is, or what is wrong."""
    return [f"{one.source}: {one.error or f'{one.kind} {one.name}'}" for one in read(text.encode(), "f")]


A, B = "kind: A\nmetadata: {name: a}", "kind: B\nmetadata: {name: b}"
JSON_A = '{"kind": "A", "metadata": {"name": "a"}}'

TEXTS: list[tuple[str, str, list[str]]] = [
    ("one document", A, ["f: A a"]),
    ("two", f"{A}\n---\n{B}", ["f: A a", "f, document 2: B b"]),
    ("a separator at the top is no document", f"---\n{A}", ["f: A a"]),
    ("nor are empty ones", f"---\n\n---\n{A}\n---\n---\n{B}\n---\n", ["f: A a", "f, document 2: B b"]),
    ("comments count, and are nothing", f"# hello\n---\n{A}", ["f, document 2: A a"]),
    ("what else stands in the line of a separator is dropped", f"{A}\n--- # more\n{B}", ["f: A a", "f, document 2: B b"]),
    ("line ends of Windows", f"{A}\r\n---\r\n{B}\r\n", ["f: A a", "f, document 2: B b"]),
    ("dashes inside of a line separate nothing", "kind: A\nmetadata: {name: a --- b}", ["f: A a --- b"]),
    ("JSON", JSON_A, ["f: A a"]),
    ("JSON behind white space", f"\n  {JSON_A}\n", ["f: A a"]),
    ("JSON documents between separators are YAML", f"{JSON_A}\n---\n{JSON_A}", ["f: A a", "f, document 2: A a"]),
    ("YAML that begins like JSON", "{kind: A, metadata: {name: a}}", ["f: A a"]),
    ("a List is its items", json.dumps({"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}), ["f: A ", "f: B "]),
    ("so is a list of one kind", json.dumps({"kind": "AList", "items": [{"kind": "A"}]}), ["f: A "]),
    ("a List in a List", json.dumps({"kind": "List", "items": [{"kind": "List", "items": [{"kind": "A"}]}, {"kind": "B"}]}), ["f: A ", "f: B "]),
    ("an empty List is nothing", '{"kind": "List", "items": []}', []),
    ("what ends in List, but has no items, is an object", "kind: PlayList\nmetadata: {name: a}", ["f: PlayList a"]),
    ("an object that is yet to be named", "kind: A\nmetadata: {generateName: a-}", ["f: A a-"]),
    ("names that are no text are none", "kind: A\nmetadata: {name: 3}", ["f: A "]),
    ("metadata that is no map", "kind: A\nmetadata: 3", ["f: A "]),
    ("nothing", "", []),
    ("null", "null", []),
    ("no kind", "a: 1", ["f: not a Kubernetes object: it has no kind"]),
    ("a kind that is no text", "kind: 1", ["f: not a Kubernetes object: it has no kind"]),
    ("a list", "- a", ["f: not a Kubernetes object: it has no kind"]),
    ("an item that is no object", '{"kind": "List", "items": [3, {"kind": "A"}]}', ["f: not a Kubernetes object: it has no kind", "f: A "]),
    ("broken YAML spoils its own document only", f"{A}\n---\na: [\n---\n{B}", ["f: A a", "f, document 2: yaml: line 2: did not find expected node content", "f, document 3: B b"]),
    ("broken JSON is told as JSON", '{"kind": "A"', ["f: unexpected end of JSON input"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "documents"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_the_documents_of_a_text(text: str, documents: list[str]) -> None:
    assert told(text) == documents


@pytest.mark.parametrize("text", [row[1] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_the_parts_of_a_text_make_it_up_again(text: str) -> None:
    assert b"".join(part.text for part in split(text.encode())) == text.encode()


def test_lists_in_lists_are_as_deep_as_they_like() -> None:
    deep = '{"kind":"List","items":[' * 3000 + '{"kind":"A"}' + "]}" * 3000
    assert told(deep) == ["f: A "]


def test_repeated_keys_are_the_document_s_to_tell() -> None:
    [document] = read(b'{"kind": "A", "a": 1, "a": 2}', "f")
    assert document.duplicates == document.strict == ['duplicate field "a"']
    [document] = read(b"kind: A\na: 1\na: 2\n", "f")
    assert document.duplicates == ['line 3: key "a" already set in map']
    assert document.strict == ['yaml: unmarshal errors:\n  line 3: key "a" already set in map']


def test_a_directory_is_its_manifests_in_the_order_of_their_names(write: Callable[..., Path], here: Path) -> None:
    for name in ("d/b.yaml", "d/a.json", "d/sub/c.yml", "d/notes.txt", "d/.hidden.yaml", "d/.git/x.yaml"):
        write(name, {"kind": Path(name).stem})
    assert [one.kind for one in read_paths([here / "d"])] == ["a", "b", "c"]
    assert files(here / "d" / "notes.txt") == [here / "d" / "notes.txt"], "who names a file means it"


def test_stdin_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: A")))
    assert [one.source for one in read_paths([Path("-")])] == ["stdin"]


def test_files_that_cannot_be_read_are_told(here: Path, write: Callable[..., Path]) -> None:
    write("good.yaml", "kind: A")
    found = list(read_paths([here / "none.yaml", here / "good.yaml"]))
    assert [one.error for one in found] == ["no such file or directory", ""]
    with pytest.raises(LoadError, match=r"none\.yaml: no such file or directory"):
        list(checked(found))
    assert list(checked(found[1:])) == found[1:]


def test_what_others_need_comes_first_and_all_else_stays_in_order() -> None:
    kinds = ["Z", "Namespace", "A", "CustomResourceDefinition", "Namespace", "B"]
    documents = [Document({"kind": kind}, "f", n) for n, kind in enumerate(kinds)]
    assert [one.number for one in in_order(documents)] == [3, 1, 4, 0, 2, 5]


KINDS: list[tuple[Any, bool, bool]] = [
    ({"kind": "CustomResourceDefinition"}, True, False),
    ({"kind": "CustomResourceDefinitionList", "items": []}, False, True),
    ({"kind": "List", "items": None}, False, False),
    ({"items": []}, False, False),
    ([], False, False),
    (None, False, False),
]


@pytest.mark.parametrize(("value", "crd", "list_"), KINDS)
def test_what_is_a_crd_and_what_a_list(value: Any, crd: bool, list_: bool) -> None:
    assert (is_crd(value), is_list(value)) == (crd, list_)
