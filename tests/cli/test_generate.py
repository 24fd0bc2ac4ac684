"""`noxu generate`: objects on the standard output, and sentences about what cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.generation.test_kinds import crd
from tests.rows import rows

Make = Callable[..., Any]


def test_objects_have_different_names_and_the_same_seed_prints_the_same(run: Make, write: Make) -> None:
    write("crd.json", crd().value)
    printed = run("generate widgets.example.com -f crd.json -n 12")
    assert (printed.status, printed.err) == (0, "")
    objects = list(yaml.safe_load_all(printed.out))
    assert len({each["metadata"]["name"] for each in objects}) == len(objects) == 12
    assert run("generate widgets.example.com -f crd.json -n 12").out == printed.out
    assert run("generate widgets.example.com -f crd.json -n 12 --seed other").out != printed.out


def test_what_is_printed_is_what_validate_accepts_or_refuses(run: Make, write: Make) -> None:
    write("crd.json", crd().value)
    write("valid.yaml", run("generate widgets.example.com -f crd.json -n 5").out)
    assert run("validate --strict crd.json valid.yaml").status == 0
    text = run("generate widgets.example.com -f crd.json -n 5 --invalid").out
    write("invalid.yaml", text)
    refused = run("validate crd.json invalid.yaml")
    assert refused.status == 1
    assert "5 refused" in refused.out
    assert text.startswith("# spec")


@rows(
    "line, status, message",
    [
        ("generate gears.example.com -f crd.json", 2, "no CRD is named gears.example.com; there are: widgets.example.com"),
        ("generate widgets.example.com -f absent.json", 2, "absent.json"),
        ("generate widgets.example.com -f kept/kustomization.yaml", 2, "kubectl kustomize kept | noxu generate widgets.example.com -f -"),
        ("generate widgets.example.com", 2, "give the CRDs with -f PATH"),
        ("generate widgets.example.com -f crd.json -n 0", 2, "-n: give a number of at least 1"),
        ("generate widgets.example.com -f kept.json", 1, "spec.preserveUnknownFields is true, and a server refuses such a CRD of v1"),
        ("generate bolts.example.com -f bolts.json", 1, "spec.a: the enums have no value in common"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_a_sentence(run: Make, write: Make, line: str, status: int, message: str) -> None:
    write("crd.json", crd().value)
    a = {"type": "string", "enum": ["a"], "allOf": [{"enum": ["b"]}]}
    bolts = crd({"type": "object", "required": ["a"], "properties": {"a": a}}).value
    kept = crd().value
    write("kept.json", {**kept, "spec": {**kept["spec"], "preserveUnknownFields": True}})
    write("bolts.json", {**bolts, "metadata": {"name": "bolts.example.com"}})
    write("kept/kustomization.yaml", "resources: []")
    ran = run(line)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err


def test_stubs_are_written_to_a_file_or_printed(run: Make, write: Make, here: Path) -> None:
    write("crd.json", crd().value)
    printed = run("stubs crd.json")
    assert (printed.status, printed.err) == (0, "")
    assert "class WidgetV2(TypedDict, total=False):" in printed.out
    assert run("stubs crd.json -o types.pyi").status == 0
    assert (here / "types.pyi").read_text() == printed.out


@rows(
    "line, message",
    [
        ("stubs absent.json", "absent.json"),
        ("stubs pod.json", "pod.json: no CRD has a served version"),
        ("stubs crd.json -o absent/types.pyi", "absent/types.pyi cannot be written: No such file or directory"),
    ],
)
def test_stubs_that_cannot_be_written_are_a_sentence(run: Make, write: Make, line: str, message: str) -> None:
    write("crd.json", crd().value)
    write("pod.json", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    ran = run(line)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_pages_are_written_to_a_directory_or_printed(run: Make, write: Make, here: Path) -> None:
    write("crd.json", crd().value)
    printed = run("docs crd.json")
    assert (printed.status, printed.err) == (0, "")
    assert run("docs crd.json -o pages/api").status == 0
    assert (here / "pages/api/widgets.example.com.md").read_text() == printed.out
    assert sorted(path.name for path in (here / "pages/api").iterdir()) == [
        "README.md",
        "index.html",
        "widgets.example.com.md",
    ]


@rows(
    "line, message",
    [
        ("docs absent.json", "absent.json"),
        ("docs pod.json", "pod.json: there is no CRD"),
        ("docs crd.json -o crd.json", "crd.json cannot be written: File exists"),
    ],
)
def test_pages_that_cannot_be_written_are_a_sentence(run: Make, write: Make, line: str, message: str) -> None:
    write("crd.json", crd().value)
    write("pod.json", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    ran = run(line)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
