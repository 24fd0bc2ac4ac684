"""The cache of results: what it keeps, and that it is never trusted when it is damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from noxu.commands import in_memory
from noxu.crd import validation
from noxu.manifests import applying, loading, manifest_cache
from noxu.manifests.documents import Document, Part, contents_of, split
from noxu.manifests.manifest_cache import MIN_SPLIT, Cache
from noxu.schema import patterns
from noxu.values import Json

Make = Callable[..., Any]


def entries(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_a_result_is_kept_for_what_it_depends_on(tmp_path: Path) -> None:
    kept = Cache(tmp_path / "new" / "folder")
    assert kept.get("a", b"x", b"y") is None
    kept.put({"n": [1]}, "a", b"x", b"y")
    assert kept.get("a", b"x", b"y") == {"n": [1]}
    assert [kept.get(kind, *parts) for kind, *parts in (("b", b"x", b"y"), ("a", b"xy"), ("a", b"x"), ("a", b"y", b"x"))] == [None] * 4  # fmt: skip


def test_another_version_of_the_code_has_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path).put(1, "a")
    monkeypatch.setattr(manifest_cache, "version", lambda: b"another")
    assert Cache(tmp_path).get("a") is None


def test_the_version_depends_on_every_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_cache, "PACKAGE", tmp_path)
    module = tmp_path / "deep" / "module.py"
    module.parent.mkdir()
    versions = set()
    for text, time in (("a", 1), ("a", 2), ("ab", 2)):
        module.write_text(text)
        os.utime(module, (time, time))
        manifest_cache.version.cache_clear()
        versions.add(manifest_cache.version())
    manifest_cache.version.cache_clear()
    assert len(versions) == 3


def test_the_version_depends_on_the_engine_of_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine may refuse a pattern, or all of a definition together, that another one accepts."""
    versions = set()
    try:
        for found in (None, ModuleSpec("re2", None, origin="a"), ModuleSpec("re2", None, origin="b")):
            monkeypatch.setattr(patterns, "find_spec", lambda _, found=found: found)
            manifest_cache.version.cache_clear()
            versions.add(manifest_cache.version())
        assert len(versions) == 3
    finally:
        monkeypatch.undo()
        manifest_cache.version.cache_clear()


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 40, None], ids=["empty", "short", "other bytes", "one bit"])
def test_a_damaged_result_counts_as_absent(tmp_path: Path, damage: bytes | None) -> None:
    kept = Cache(tmp_path)
    kept.put({"a": 1}, "a")
    [path] = entries(tmp_path)
    body = path.read_bytes()
    path.write_bytes(body[:-1] + bytes([body[-1] ^ 1]) if damage is None else damage)
    assert kept.get("a") is None


def test_without_a_directory_nothing_is_kept() -> None:
    kept = Cache(None)
    kept.put(1, "a")
    assert kept.get("a") is None
    kept.tidy()


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Cache(tmp_path / "file" / "cache")
    kept.put(1, "a")
    assert kept.get("a") is None


def test_what_json_cannot_have_is_not_kept(tmp_path: Path) -> None:
    Cache(tmp_path).put(2**70, "a")
    assert entries(tmp_path) == []


TEXTS = [
    "# a\nkind: A\na: [1, 1.5, yes, ~]\n--- # b\nkind: B\nkind: B\n---\na: [\n---\n",
    json.dumps({"kind": "A", "a": 1e300}),
    "a: 123456789012345678901234567890\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_parts_of_a_file_are_those_that_it_has_without_a_cache(tmp_path: Path, text: str) -> None:
    body = f"{text}{' ' * MIN_SPLIT}\n".encode()
    for _ in range(2):
        assert Cache(tmp_path).split(body) == split(body)


def test_parts_of_another_form_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"kind: A\n" + b"#" * MIN_SPLIT
    for wrong in ([[1, "", None]], [[1]], 3, [["x", "", 3]]):
        monkeypatch.setattr(Cache, "get", lambda *_, wrong=wrong: wrong)
        assert [part.text for part in Cache(tmp_path).split(body)] == [body]


def test_small_files_are_not_kept(tmp_path: Path) -> None:
    assert Cache(tmp_path).split(b"kind: A") == [Part(b"kind: A", split(b"kind: A")[0].decoded)]
    assert entries(tmp_path) == []


FILES = [
    *TEXTS,
    "kind: A\na: 123456789012345678901234567890\n",
    "kind: A\nmetadata: {name: a}\na: 123456789012345678901234567890\n",
    "kind: List\nitems:\n- {kind: A, metadata: {name: a, labels: {b: c}}, n: 1.5}\n- {kind: B}\n- 3\n",
    "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n",
    "kind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {group: g, names: {kind: K}, versions: []}\n",
    "a: 1\n---\nb: 2\n",
    "kind: A\nmetadata: {}\n" * 2,
]


@pytest.mark.parametrize("text", FILES)
def test_the_packed_objects_of_a_file_are_those_that_it_has_without_a_cache(tmp_path: Path, text: str) -> None:
    body = f"{text}{' ' * MIN_SPLIT}\n".encode()
    expected = contents_of(body, "f.yaml")
    for name in ("f.yaml", "f.yaml", "other.yaml"):
        found = Cache(tmp_path).reader(body, name)
        assert found.skipped == expected.skipped
        for document, plain in zip(found.documents, expected.documents, strict=True):
            packed = loading.packed(plain._replace(file=name))
            assert described(document) == described(packed)
    assert len(entries(tmp_path)) == 1


def described(document: Document) -> Json:
    """A document as a list that is equal if it says the same, in the same place."""
    text = document.text
    assert text is not None
    return [
        *([list(item) if isinstance(item, tuple) else item for item in document._replace(text=None)]),
        text.body,
        text.first_line,
        document.place(),
    ]


def test_packed_files_of_another_form_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"kind: A\nmetadata: {name: a}\n" + b"#" * MIN_SPLIT
    good = Cache(tmp_path).reader(body, "f.yaml")
    [path] = entries(tmp_path)
    kept = path.read_bytes()[32:]
    for wrong in (b"", b"\0", kept[:-1], kept + b"x", b"\0\0\0\2[]", b"\0\0\0\6[[],1]", b"\xff\xff\xff\xff"):
        monkeypatch.setattr(Cache, "get_bytes", lambda *_, wrong=wrong: memoryview(wrong))
        [document] = Cache(tmp_path).reader(body, "f.yaml").documents
        assert described(document) == described(good.documents[0])


def test_the_oldest_results_are_removed_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Cache(tmp_path)
    for n in range(4):
        kept.put("x" * 100, "a", bytes([n]))
        os.utime(kept._path("a", (bytes([n]),)), (n, n))
    monkeypatch.setattr(manifest_cache, "MAX_BYTES", 300)
    kept.tidy()
    assert [kept.get("a", bytes([n])) is not None for n in range(4)] == [False, False, True, True]


# -- validate


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the documents that are written, not taken from the cache."""
    found: list[str] = []
    write = in_memory._write

    async def recorded(plane: Any, document: Any, configurations: Any, rules: Any) -> Any:
        found.append(document.file)
        return await write(plane, document, configurations, rules)

    monkeypatch.setattr(in_memory, "_write", recorded)
    return found


def other(crd: Any) -> Any:
    """A CRD of gadgets in another group."""
    crd["metadata"]["name"], crd["spec"]["group"] = "gadgets.other.example", "other.example"
    crd["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget"}
    return crd


@pytest.fixture
def files(write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size={"type": "integer", "minimum": 1}))
    write("a.json", widget("a", size=0, color="red"))
    write("other.json", other(crd(size={"type": "integer"})))


LINE = "validate crd.json a.json other.json --output json"


@pytest.mark.usefixtures("files")
def test_results_are_used_again_while_nothing_changes(run: Make, written: list[str]) -> None:
    first = run(LINE)
    assert written == ["crd.json", "other.json", "a.json"]
    assert run(LINE) == first
    assert len(written) == 3


@pytest.mark.usefixtures("files")
def test_only_the_shards_of_changed_files_are_validated_again(
    run: Make, write: Make, widget: Make, written: list[str]
) -> None:
    run(LINE)
    written.clear()
    write("a.json", widget("a", size=1))
    assert run(LINE).status == 0
    assert written == ["crd.json", "a.json"]


CHANGED = ["--strict", "--ignore-unknown-kinds", "--feature-gates CRDValidationRatcheting=false", "--no-cache"]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("option", CHANGED)
def test_results_with_other_options_are_others(run: Make, written: list[str], option: str) -> None:
    run(LINE)
    assert run(f"{LINE} {option}").status == 1
    assert len(written) == 6


@pytest.mark.usefixtures("files")
def test_former_objects_belong_to_what_results_depend_on(
    run: Make, write: Make, widget: Make, written: list[str]
) -> None:
    run(LINE)
    write("old.json", widget("a", size=0))
    written.clear()
    assert run(f"{LINE} --old old.json").status == 0
    assert written == ["crd.json", "a.json"]


@pytest.mark.usefixtures("files")
def test_errors_that_may_not_occur_again_are_not_kept(
    run: Make, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noxu.commands.validate._KEPT", range(400, 422))
    run(LINE)
    run(LINE)
    assert written == ["crd.json", "other.json", "a.json", "crd.json", "a.json"]


@pytest.mark.usefixtures("files")
def test_results_of_several_processes_are_those_of_one(run: Make) -> None:
    assert run(f"{LINE} --no-cache -j 3") == run(f"{LINE} --no-cache")


def test_the_number_of_processes(run: Make) -> None:
    assert "argument -j: must be a number that is not negative" in run("validate a -j x").err


# -- manifests of a server ------------------------------------------------------------------------------------------------


def test_serve_keeps_what_it_has_parsed(run: Make, write: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    write("large.yaml", f"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {{name: a}}\ntext: {'a' * MIN_SPLIT}\n")
    first = run("serve --memory --port 0 large.yaml")
    assert first.status == 1
    assert 'large.yaml:1:1: no matches for kind "Unknown"' in first.err
    monkeypatch.setattr(manifest_cache, "split", lambda body: pytest.fail("it is parsed again"))
    assert run("serve --memory --port 0 large.yaml") == first
    write("large.yaml", f"apiVersion: example.com/v1\nkind: Other\nmetadata: {{name: a}}\ntext: {'a' * MIN_SPLIT}\n")
    monkeypatch.setattr(manifest_cache, "split", split)
    assert 'no matches for kind "Other"' in run("serve --memory --port 0 large.yaml").err


def test_serve_keeps_which_definitions_are_valid(
    run: Make, write: Make, crd: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stops because of the second object, when the definition is loaded."""
    walked: list[str] = []
    walk = validation._spec_errors
    monkeypatch.setattr(validation, "_spec_errors", lambda *spec: walked.append("x") or walk(*spec))
    write("crd.json", crd(size={"type": "integer"}))
    write("wrong.json", {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "a"}})
    line = "serve --memory --port 0 crd.json wrong.json"
    first = run(line)
    assert (first.status, len(walked)) == (1, 1)
    assert run(line) == first
    assert len(walked) == 1
    run(f"{line} --no-cache")
    assert len(walked) == 2
    [path] = entries(Path(os.environ["XDG_CACHE_HOME"]))
    path.write_bytes(path.read_bytes()[:-1])
    assert run(line) == first
    assert len(walked) == 3


def test_serve_keeps_which_definitions_change_nothing(
    run: Make, write: Make, crd: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged: list[str] = []
    merge = applying.applied_to
    monkeypatch.setattr(applying, "applied_to", lambda *given: merged.append("x") or merge(*given))
    write("crd.json", crd(size={"type": "integer"}))
    write("wrong.json", {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "a"}})
    line = "serve --data data --port 0 crd.json wrong.json"
    first, counts = run(line), []
    for options in ("", "", "", " --no-cache", " --feature-gates CRDValidationRatcheting=false", ""):
        assert run(f"{line}{options}") == first
        counts.append(len(merged))
    assert counts == [1, 1, 1, 2, 3, 3]
    write("crd.json", crd(size={"type": "string"}))
    assert run(line).status == 1
    assert len(merged) == 4


def test_serve_keeps_nothing_without_a_cache(run: Make, write: Make) -> None:
    write("large.yaml", f"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {{name: a}}\ntext: {'a' * MIN_SPLIT}\n")
    assert run("serve --memory --port 0 --no-cache large.yaml").status == 1
    assert not entries(Path(os.environ["XDG_CACHE_HOME"]))


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", none)
    assert manifest_cache.user_directory() is None
