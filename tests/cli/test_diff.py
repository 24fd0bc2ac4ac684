"""`noxu diff` of CRDs in files: what is compared, what is printed, and the exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from noxu.cli import options_of
from tests.generation.test_kinds import crd
from tests.rows import rows
from tests.upgrades.test_changes import INTEGER, STRING, of

Run = Callable[..., Any]
SIZE = of(size=INTEGER)
LIMITED = of(size={**INTEGER, "maximum": 5})


def options(words: str) -> argparse.Namespace:
    return options_of("diff", words.split())


@rows(
    "words, compares_files",
    [
        ("5m", False),
        ("1042 1057", False),
        ("before after", True),
        ("before after widgets", False),
        ("before after --server http://127.0.0.1:1", False),
        ("before widgets/a", False),
        ("before missing", False),
        ("old.yaml new.yaml", True),
        ("./before missing", True),
        ("- new.yaml", True),
    ],
)
def test_the_arguments_are_files_or_moments(here: Path, words: str, compares_files: bool) -> None:
    for name in ("before", "after"):
        (here / name).mkdir(exist_ok=True)
    assert options(words).compares_files is compares_files


def test_what_breaks_is_printed_with_an_object(run: Run, write: Callable[..., Path]) -> None:
    write("old.json", crd(SIZE).value)
    write("new.json", crd(LIMITED).value)
    ran = run("diff old.json new.json")
    assert (ran.status, ran.err) == (1, "")
    title, first, shown, *_, last = ran.out.splitlines()
    assert title == "widgets.example.com: 2 breaking"
    assert first.startswith("  new.json:1:")
    assert first.endswith("breaking: v1 spec.size: there is a maximum now: 5")
    assert shown.startswith('    shown by {"spec":{"size":6}}: spec.size: Invalid value: 6:')
    assert last == "1 CRD: 2 breaking changes"
    found = run("diff old.json new.json -o json").json
    assert found["summary"] == {"breaking": 2, "unknown": 0, "compatible": 0}
    example = found["definitions"][0]["changes"][0]["example"]
    assert example["object"]["kind"] == "Widget"


@rows(
    "words, status, text",
    [
        ("new.json old.json", 0, "1 CRD: 2 compatible changes"),
        ("new.json old.json --verbose", 0, "compatible: v1 spec.size: maximum allows more"),
        ("old.json old.json", 0, "1 CRD: nothing has changed"),
        ("old.json default.json", 0, "unknown: v1 spec.size: there is a default now: 1"),
        ("old.json default.json --strict", 1, "1 CRD: 2 unknown changes"),
        ("old.json new.json --no-examples", 1, "there is a maximum now: 5\n"),
        ("old.json new.json -o markdown", 1, "| breaking | widgets.example.com | `v1 spec.size` | there is a maximum now: 5 | `{"),
        ("ticks.json letters.json -o markdown", 1, '| ``` {"spec":{"mark":"`\\|"}}: spec.mark: '),
        ("old.json new.json -o junit", 1, 'failures="1"'),
        ("old.json new.json -o sarif", 1, '"ruleId": "narrower-maximum"'),
        ("old.json new.json -o github", 1, "title=noxu diff%3A narrower-maximum::"),
        ("many.json gone.json", 1, "and 7 more fields; --verbose lists them"),
    ],
)  # fmt: skip
def test_outputs(run: Run, write: Callable[..., Path], words: str, status: int, text: str) -> None:
    write("old.json", crd(SIZE).value)
    write("new.json", crd(LIMITED).value)
    write("default.json", crd(of(size={**INTEGER, "default": 1})).value)
    write("many.json", crd(of(a=STRING, b=STRING, c=STRING, d=STRING, e=STRING)).value)
    write("gone.json", crd(of()).value)
    write("ticks.json", crd(of(mark={**STRING, "enum": ["a", "`|"]})).value)
    write("letters.json", crd(of(mark={**STRING, "enum": ["a"]})).value)
    ran = run(f"diff {words}")
    assert (ran.status, ran.err) == (status, "")
    assert text in ran.out


@rows(
    "words, message",
    [
        ("old.json", "give the new CRDs, too: noxu diff OLD NEW"),
        ("old.json absent.json", "absent.json"),
        ("old.json pod.json", "pod.json: contains no CRD"),
        ("old.json new.json -o table", "-o table is for moments of a server"),
        ("old.json new.json --limit 5", "--limit is for moments of a server: of CRDs in files all changes are listed"),
        ("kept/kustomization.yaml new.json", "it is a kustomization: kubectl kustomize kept"),
        ("old.json kept/kustomization.yaml", "it is a kustomization: kubectl kustomize kept | noxu diff old.json -"),
        ("old.json new.json -n a", "-n and --context are for moments of a server"),
        ("old.json new.json --context a", "-n and --context are for moments of a server"),
        ("5m -o junit", "are for CRDs in files"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(run: Run, write: Callable[..., Path], words: str, message: str) -> None:
    write("old.json", crd(SIZE).value)
    write("pod.json", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    write("kept/kustomization.yaml", "resources: []")
    ran = run(f"diff {words}")
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
