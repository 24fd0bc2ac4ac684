"""Results are kept, and found by several processes: the same options with the same effects for all commands."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from noxu.commands import in_memory, results, skeleton, verdicts
from noxu.commands.results import Shard
from noxu.manifests import manifest_cache
from noxu.manifests.documents import Document, read_paths
from noxu.manifests.manifest_cache import MIN_SPLIT, Cache
from tests.cli.test_inputs import COMMANDS, each_command

Make = Callable[..., Any]


@pytest.fixture
def files(write: Make, crd: Make, widget: Make) -> str:
    """The arguments: two CRDs of different groups with errors in both, and objects of the first."""
    write("crd.json", crd(size={"type": "integer", "minimum": 1}, gone={}))
    ambiguous = {"properties": {"b": {}}, "additionalProperties": {}}
    write("other.json", other(crd(size={"type": "text"}, both=ambiguous)))
    write("a.json", widget("a", size=0, siez=1))
    write("b.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\nspec: {size: 3, size: 4}\n")
    write("large.json", crd(text={"type": "string", "description": "x" * MIN_SPLIT}))
    return "crd.json other.json a.json b.yaml large.json"


def other(crd: Any) -> Any:
    """A CRD of gadgets in another group."""
    crd["metadata"]["name"], crd["spec"]["group"] = "gadgets.other.example", "other.example"
    crd["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget"}
    return crd


def stable(ran: Any) -> Any:
    """What is printed, without the durations, identifiers and revisions of a trace."""
    varying = (
        r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|\d{4}-\d\d-\d\dT[\d:]{8}Z"
        r'|\b[\d.e-]+ ms|(?<="milliseconds": )[\d.e-]+|(?<=resourceVersion )\d+|(?<="resourceVersion": ")\d+'
    )
    return ran.status, re.sub(varying, "…", ran.out), ran.err


def kept() -> list[Path]:
    return [path for path in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if path.is_file()]


class Pool:
    """A pool whose processes are this one: they get copies of what is sent, and return copies."""

    counts: list[int]

    def __init__(self, count: int) -> None:
        Pool.counts.append(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        for sent in zip(*arguments, strict=True):
            called, given = pickle.loads(pickle.dumps((function, sent)))
            yield pickle.loads(pickle.dumps(called(*given)))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[Pool]:
    Pool.counts = []
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Pool)
    return Pool


@each_command
@pytest.mark.parametrize("output", ["text", "json"])
def test_several_processes_find_what_one_finds(
    run: Make, files: str, pool: type[Pool], command: str, output: str
) -> None:
    line = f"{command} {files} --no-cache --output {output}"
    alone = run(line)
    assert pool.counts == []
    assert stable(run(f"{line} -j 2")) == stable(alone)
    assert pool.counts == [2]
    assert alone.status == 1


def names(shard: Shard, _: Any) -> list[tuple[Document, str]]:
    return [(document, document.name) for document in shard.documents]


def test_the_progress_of_several_processes_is_shown(files: str, pool: type[Pool], here: Path) -> None:
    documents = list(read_paths([here / name for name in files.split()]))
    reported: list[int] = []
    found = results.Results[str]()
    check = results.Check("names", names, None, str, lambda _, value: value)
    parts = [Shard([document]) for document in documents]
    results.add(found, check, parts, Cache(None), 2, lambda count, _: reported.append(len(found) + count))
    assert (reported, pool.counts) == ([1, 2, 3, 4, 5], [2])
    assert found.of(documents) == [document.name for document in documents]


def test_real_processes_do_it(run: Make, files: str) -> None:
    assert run(f"lint {files} --no-cache -j 2") == run(f"lint {files} --no-cache")


@each_command
@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_kept_results_are_the_same_and_nothing_is_kept_without_a_cache(
    run: Make, files: str, command: str, output: str
) -> None:
    line = f"{command} {files} --strict --output {output}"
    fresh = run(f"{line} --no-cache")
    assert kept() == []
    first = run(line)
    assert kept() != []
    assert stable(first) == stable(run(line)) == stable(fresh)


@each_command
def test_without_a_cache_documents_have_no_digests(
    run: Make, files: str, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    fresh = run(f"{command} {files} --no-cache")
    monkeypatch.setattr(results, "_parts", None)
    assert stable(run(f"{command} {files} --no-cache")) == stable(fresh)


# A case: a command, and the function that it does not call again.
KEPT: list[tuple[str, Any, str]] = [
    ("validate", in_memory, "_write"),
    ("lint", verdicts, "verdict"),
    ("lint --fix", verdicts, "verdict"),
    ("lint --fix --diff", verdicts, "verdict"),
    ("skeleton", skeleton, "_printed"),
    ("explain-write", manifest_cache, "split"),
]


def test_every_command_is_in_the_table() -> None:
    assert {command.split()[0] for command, _, _ in KEPT} == set(COMMANDS)


@pytest.mark.parametrize(("command", "module", "function"), KEPT, ids=[row[0] for row in KEPT])
def test_what_is_kept_is_used_until_a_file_or_an_option_changes(
    run: Make, write: Make, crd: Make, monkeypatch: pytest.MonkeyPatch, command: str, module: Any, function: str
) -> None:
    write("crd.json", crd(text={"type": "string", "description": "x" * MIN_SPLIT}))
    calls: list[str] = []
    called = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *given, **more: calls.append("x") or called(*given, **more))

    def count(line: str) -> int:
        calls.clear()
        assert run(line).status == 0
        return len(calls)

    assert [count(f"{command} crd.json") for _ in range(2)] == [1, 0]
    assert [count(f"{command} crd.json --no-cache") for _ in range(2)] == [1, 1]
    if function != "split":
        assert count(f"{command} crd.json --strict") == 1
    write("crd.json", crd(text={"type": "string", "description": "y" * MIN_SPLIT}))
    assert count(f"{command} crd.json") == 1


@pytest.mark.parametrize("command", ["validate", "lint", "skeleton"])
def test_lines_are_those_of_the_file_as_it_is(run: Make, write: Make, crd: Make, command: str) -> None:
    """Another document in the file does not belong to the shard, but moves the lines of those below it."""
    schema = {"properties": {"a": {"properties": {"b": {}}, "additionalProperties": {}}}}
    definition, top = json.dumps(other(crd(schema)), indent=1), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    places = []
    for lines in (0, 3):
        write("both.yaml", top + "\n" * lines + f"\n---\n{definition}\n")
        [run_] = json.loads(run(f"{command} both.yaml --output sarif").out)["runs"]
        places.append({each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run_["results"]})
    assert places[1] == {line + 3 for line in places[0]}
    assert places[0]


@pytest.mark.parametrize("command", ["lint", "skeleton"])
def test_former_crds_belong_to_what_results_depend_on(run: Make, write: Make, crd: Make, command: str) -> None:
    write("crd.json", crd(size={"type": "integer"}))
    assert run(f"{command} crd.json").status == 0
    write("old.json", crd(size={"type": "integer"}, gone={"type": "string"}, scope="Cluster"))
    assert run(f"{command} crd.json --old old.json --strict").status == 1
    assert run(f"{command} crd.json").status == 0


@pytest.mark.parametrize("wrong", [3, [], [1], [[1]], [[["x"], True, True, [], None]], [["t", "valid", [1], 2]]])
@pytest.mark.parametrize("command", ["validate", "lint", "skeleton"])
def test_kept_results_of_another_form_are_found_again(
    run: Make, write: Make, crd: Make, monkeypatch: pytest.MonkeyPatch, command: str, wrong: Any
) -> None:
    write("crd.json", crd(size={"type": "text"}))
    found = run(f"{command} crd.json")
    assert run(f"{command} crd.json") == found
    monkeypatch.setattr(Cache, "get", lambda *_: wrong)
    assert run(f"{command} crd.json") == found
