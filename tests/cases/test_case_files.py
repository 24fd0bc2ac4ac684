"""Files of cases are read, and what is misspelt or says nothing is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from noxu.cases.case_files import found, read
from tests.rows import rows

HEAD: Final = "apiVersion: noxu.dev/v1\nkind: Test\n"
MAP: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"


def case(text: str) -> str:
    return f"{HEAD}cases:\n- {text}\n"


REFUSED: Final = [
    ("no cases", HEAD, "cases: there are none: it is a list with one case or more"),
    ("no case", f"{HEAD}cases: []", "cases: there are none: it is a list with one case or more"),
    ("another kind", "apiVersion: v1\nkind: Pod\n", "kind: this is v1 Pod: cases are of noxu.dev/v1 Test"),
    ("a misspelt list", f"{HEAD}case: []", "case: there is no such field: there are apiVersion, kind, metadata, given, cases"),
    ("no name", case(f"{{object: {MAP}, expect: {{allowed: true}}}}"), "cases[0]: it has no name: reports name cases, and so does --run"),
    ("no write", case("{name: a, expect: {allowed: true}}"), "cases[0]: it has to have one of object, patch, apply, delete"),
    ("two writes", case(f"{{name: a, old: {MAP}, object: {MAP}, delete: true, expect: {{allowed: true}}}}"), "cases[0]: it has to have one of object, patch, apply, delete, and has object and delete"),
    ("a patch of nothing", case("{name: a, patch: {}, expect: {allowed: true}}"), "cases[0].patch: it changes `old`, and there is none"),
    ("no expectation", case(f"{{name: a, object: {MAP}}}"), "cases[0]: it expects nothing: `expect` has what should come of it"),
    ("an empty expectation", case(f"{{name: a, object: {MAP}, expect: {{}}}}"), "cases[0].expect: it expects nothing: allowed, denied, stored, …"),
    ("a misspelt expectation", case(f"{{name: a, object: {MAP}, expect: {{denid: true}}}}"), "did you mean denied?"),
    ("both", case(f"{{name: a, object: {MAP}, expect: {{denied: true, allowed: true}}}}"), "cases[0].expect.allowed: a write that is denied has none (denied)"),
    ("what is false", case(f"{{name: a, object: {MAP}, expect: {{denied: false}}}}"), "cases[0].expect.denied: it is true, or left out"),
    ("a policy without its word", case(f"{{name: a, object: {MAP}, expect: {{deniedBy: owners}}}}"), "cases[0].expect.deniedBy: it is policy/NAME, the policy that denies"),
    ("a bad expression", case(f"{{name: a, object: {MAP}, expect: {{message: {{regex: '('}}}}}}"), "cases[0].expect.message.regex: no regular expression: "),
    ("a misspelt cause", case(f"{{name: a, object: {MAP}, expect: {{message: {{causes: [{{feld: a}}]}}}}}}"), "cases[0].expect.message.causes[0].feld: there is no such field"),
    ("a conversion to nothing", case(f"{{name: a, object: {MAP}, expect: {{roundTrip: true}}}}"), "cases[0].expect.roundTrip: `convert` is missing in the case"),
    ("a missing golden file", case(f"{{name: a, object: {MAP}, expect: {{stored: gold.yaml}}}}"), "`noxu test --update` writes it"),
    ("a missing object", case("{name: a, object: a.yaml, expect: {allowed: true}}"), "a.yaml"),
    ("no object", case("{name: a, object: {kind: Pod}, expect: {allowed: true}}"), "cases[0].object: it is an object with apiVersion, kind and metadata"),
    ("another object", case(f"{{name: a, old: {MAP}, object: {MAP.replace('name: a', 'name: b')}, expect: {{allowed: true}}}}"), "cases[0].object: it has another kind, namespace or name than `old`"),
    ("a user without a name", case(f"{{name: a, object: {MAP}, user: {{groups: []}}, expect: {{allowed: true}}}}"), "cases[0].user: it is an object with name, groups, uid, extra"),
    ("a user whose extra is none", case(f"{{name: a, object: {MAP}, user: {{name: a, extra: {{b: c}}}}, expect: {{allowed: true}}}}"), "cases[0].user: extra: it has lists of texts by names"),
    ("the object of a deletion", case(f"{{name: a, old: {MAP}, delete: true, expect: {{stored: {{}}}}}}"), "cases[0].expect.stored: a deletion stores no object: it is allowed or denied"),
    ("what is too deep", case(f"{{name: a, object: {MAP}, expect: {{stored: {'{a: ' * 200}1{'}' * 200}}}}}"), "cases[0].expect.stored: it is nested more than 100 deep: name less of the object"),
    ("a level of strictness", case(f"{{name: a, object: {MAP}, fieldValidation: strict, expect: {{allowed: true}}}}"), "did you mean Strict?"),
    ("a repeated name", case(f"{{name: a, object: {MAP}, expect: {{allowed: true}}}}\n- {{name: a, object: {MAP}, expect: {{allowed: true}}}}"), "cases[1].name: case 1 has the same name"),
    ("a repeated field", case(f"{{name: a, name: b, object: {MAP}, expect: {{allowed: true}}}}"), "already set in map"),
    ("a version that is not emulated", f"{HEAD}given: {{kubernetes: ['1.2']}}\ncases: []", 'given.kubernetes: "1.2" is not a known version of Kubernetes: give one of 1.29, '),
    ("a missing path", f"{HEAD}given: {{crds: [absent]}}\ncases: []", "given.crds[0]: "),
    ("a misspelt list of manifests", f"{HEAD}given: {{crd: []}}\ncases: []", "given.crd: there is no such field: there are crds, objects, policies, kubernetes; did you mean crds?"),
    ("a list that is none", f"{HEAD}given: {{crds: a}}\ncases: []", "given.crds: it is a list of paths and objects"),
    ("two documents", f"{HEAD}cases: []\n---\n{HEAD}cases: []\n", ": a file has one Test: write another file for this one"),
    ("no YAML", "a: [", ": "),
    ("an empty file", "", ": the file is empty"),
]  # fmt: skip


@rows("what, text, message", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_says_nothing_is_refused(what: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a_test.yaml"
    path.write_text(text)
    said = [f"{problem.field}: {problem.message}" for problem in read(path).problems]
    assert any(message in each for each in said), said


def test_a_problem_has_the_line_of_its_field(tmp_path: Path) -> None:
    path = tmp_path / "a_test.yaml"
    path.write_text(case(f"name: a\n  object: {MAP}\n  expect:\n    allowed: true\n    warning: []"))
    file = read(path)
    assert [file.document.place(problem.field) for problem in file.problems] == [f"{path}:8:5"]


def test_of_a_directory_all_files_of_cases_are_found(tmp_path: Path) -> None:
    for name in ("b_test.yaml", "sub/a_test.yml", "a.yaml", ".hidden/a_test.yaml", "test.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert found([tmp_path, tmp_path / "a.yaml"]) == [
        tmp_path / name for name in ("b_test.yaml", "sub/a_test.yml", "a.yaml")
    ]


@pytest.mark.parametrize("version", ["1.37", "v1.37"])
def test_a_version_may_be_named(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a_test.yaml"
    path.write_text(
        f"{HEAD}given: {{kubernetes: {version!r}}}\ncases: [{{name: a, object: {MAP}, expect: {{allowed: true}}}}]"
    )
    assert read(path).problems == []
