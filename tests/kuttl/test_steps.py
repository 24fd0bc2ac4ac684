"""Directories of kuttl's tests are read in kuttl's order, and what cannot be run is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from noxu.kuttl.steps import found, parsed, read
from tests.rows import rows

MAP: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
KUTTL: Final = "apiVersion: kuttl.dev/v1beta1\nkind: %s\n"

NAMES: Final = [
    ("00-create.yaml", (0, "apply", "create", False)),
    ("01-scale-up.yaml", (1, "apply", "scale-up", False)),
    ("01-assert.yaml", (1, "assert", "", False)),
    ("01-assert-two.yaml", (1, "assert", "", False)),
    ("01-Errors.yaml", (1, "errors", "", False)),
    ("01-asserted.yaml", (1, "apply", "asserted", False)),
    ("01-create.gotmpl.yaml", (1, "apply", "create", True)),
    ("assert.yaml", (None, "assert", "", False)),
    ("01-directory", (1, "apply", "directory", False)),
    ("01-create.yml", None),
    ("README.md", None),
    ("01.yaml", (None, "apply", "01", False)),
]  # fmt: skip


@rows("name, expected", NAMES)
def test_what_the_name_of_a_file_says(name: str, expected: tuple | None) -> None:
    assert parsed(name) == expected


def written(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def test_steps_are_in_the_order_of_their_numbers_and_files_in_that_of_their_names(tmp_path: Path) -> None:
    test = read(
        written(
            tmp_path / "Shop_1",
            {
                "10-last.yaml": MAP % "f",
                "2-b.yaml": MAP % "c",
                "2-a.yaml": MAP % "b",
                "2-assert.yaml": MAP % "d",
                "1-create/z.yaml": MAP % "a",
                "1-create/errors.yaml": MAP % "e",
                "README.md": "",
            },
        )
    )
    assert [
        (step.name, *([each.name for each in listed] for listed in (step.applied, step.asserted, step.errors)))
        for step in test.steps
    ] == [("1-z", ["a"], [], ["e"]), ("2-a", ["b", "c"], ["d"], []), ("10-last", ["f"], [], [])]
    assert (test.namespace, test.problems) == ("kuttl-shop-1", [])


def test_a_step_names_further_files(tmp_path: Path) -> None:
    settings = (
        KUTTL % "TestStep"
        + "metadata: {name: all}\napply: [../more, ../b.yaml]\nassert: [../c.yaml]\nerror: [../d.yaml]\n"
    )
    written(tmp_path, {"more/a.yaml": MAP % "a", "b.yaml": MAP % "b", "c.yaml": MAP % "c", "d.yaml": MAP % "d"})
    test = read(
        written(tmp_path / "t", {"00-x.yaml": settings, "00-assert.yaml": KUTTL % "TestAssert" + "timeout: 5\n"})
    )
    [step] = test.steps
    assert (step.name, step.timeout, test.problems) == ("0-all", 5.0, [])
    assert [[each.name for each in listed] for listed in (step.applied, step.asserted, step.errors)] == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]


def test_a_suite_above_says_what_its_tests_begin_with(tmp_path: Path) -> None:
    suite = KUTTL % "TestSuite" + "crdDir: crds\nmanifestDirs: [more]\ntimeout: 7\nnamespace: shop\nparallel: 4\n"
    written(
        tmp_path, {"kuttl-test.yaml": suite, "crds/a.yaml": MAP % "a", "more/b.yaml": MAP % "b", "c.yaml": MAP % "c"}
    )
    test = read(written(tmp_path / "e2e/t", {"00-assert.yaml": MAP % "d"}), [tmp_path / "c.yaml"])
    assert ([each.name for each in test.given], test.namespace) == (["c", "a", "b"], "shop")
    assert ([step.timeout for step in test.steps], test.problems) == ([7.0], [])


def test_what_is_a_test(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "asserted/00-assert.yaml": MAP % "a",
            "settings/00-a.yaml": KUTTL % "TestStep",
            "directories/00-a/assert.yaml": MAP % "a",
            "numbered/00-a.yaml": MAP % "a",
            "plain/assert.yaml": MAP % "a",
            ".hidden/00-assert.yaml": MAP % "a",
        },
    )
    expected = [tmp_path / name for name in ("asserted", "directories", "settings")]
    assert found([tmp_path, tmp_path / "asserted"]) == expected


def test_a_file_for_other_runs_is_skipped(tmp_path: Path) -> None:
    chosen = KUTTL % "TestFile" + "testRunSelector: {%s}\n---\n" + MAP
    test = read(
        written(
            tmp_path,
            {
                "00-assert-a.yaml": chosen % ("matchLabels: {a: b}", "a"),
                "00-assert-b.yaml": chosen % ("matchExpressions: [{key: a, operator: DoesNotExist}]", "b"),
                "00-assert-c.yaml": chosen % ("", "c"),
            },
        )
    )
    assert ([each.name for each in test.steps[0].asserted], test.problems) == (["b", "c"], [])


REFUSED: Final = [
    ("commands", "00-a.yaml", KUTTL % "TestStep" + "commands: [{command: ls}]", "00-a.yaml:3:1: commands: commands and scripts are not run"),
    ("commands of an assert", "00-assert.yaml", KUTTL % "TestAssert" + "commands: [{script: ls}]", "00-assert.yaml:3:1: commands: commands and scripts are not run"),
    ("another cluster", "00-a.yaml", KUTTL % "TestStep" + "kubeconfig: a", "kubeconfig: a test has the server that runs it, and no other cluster"),
    ("a misspelt field", "00-a.yaml", KUTTL % "TestStep" + "aply: [a]", "aply: there is no such field: there are apiVersion, kind, metadata, index, apply, assert, error, delete, unitTest, commands, kubeconfig, kubeconfigLoading, context; did you mean apply?"),
    ("a misspelt kind", "00-a.yaml", KUTTL % "TestStp", "kind: TestStp is none of TestStep, TestAssert, TestFile; did you mean TestStep?"),
    ("an assert among what is applied", "00-a.yaml", KUTTL % "TestAssert", "kind: a TestAssert belongs into a file NN-assert.yaml"),
    ("a step among the asserts", "00-assert.yaml", KUTTL % "TestStep", "kind: a TestStep belongs into a file NN-NAME.yaml"),
    ("two settings", "00-a.yaml", f"{KUTTL % 'TestStep'}---\n{KUTTL % 'TestStep'}", "00-a.yaml:5:1: kind: a step has one TestStep"),
    ("a list that is none", "00-a.yaml", KUTTL % "TestStep" + "apply: b.yaml", "apply: it is a list"),
    ("a file that is missing", "00-a.yaml", KUTTL % "TestStep" + "apply: [b.yaml]", "apply[0]: there is no file "),
    ("a file in the network", "00-a.yaml", KUTTL % "TestStep" + "apply: ['https://a/b.yaml']", "apply[0]: https://a/b.yaml is not fetched: save it as a file"),
    ("a deletion of nothing", "00-a.yaml", KUTTL % "TestStep" + "delete: [{kind: Pod}]", "delete[0]: it is an object with apiVersion, kind, and name or labels"),
    ("a timeout that is none", "00-assert.yaml", KUTTL % "TestAssert" + "timeout: 5m", "timeout: it is a number of seconds"),
    ("a condition that does not compile", "00-assert.yaml", KUTTL % "TestAssert" + "assertAll: [{celExpr: 'a.b =='}]", "assertAll[0].celExpr: compilation failed: "),
    ("a condition of an object that is not named", "00-assert.yaml", KUTTL % "TestAssert" + "assertAny: [{celExpr: 'a.b == 1'}]", "undeclared reference to 'a'"),
    ("an object without a variable", "00-assert.yaml", KUTTL % "TestAssert" + "resourceRefs: [{apiVersion: v1, kind: Pod, name: a}]", "resourceRefs[0]: it has apiVersion, kind, name and ref"),
    ("a template", "00-a.gotmpl.yaml", "a: {{ .b }}", "00-a.gotmpl.yaml: : templates are not expanded: write it out"),
    ("a selector that is none", "00-assert.yaml", KUTTL % "TestFile" + "testRunSelector: {matchExpressions: [{key: a, operator: B}]}", 'testRunSelector: no selector of labels: "B" is not a valid label selector operator'),
    ("no object", "00-assert.yaml", "a: 1", "00-assert.yaml:1:1: : not a Kubernetes object: it has no kind"),
    ("no version", "00-assert.yaml", "kind: Pod", ": it has no apiVersion"),
    ("labels that are none", "00-assert.yaml", "{apiVersion: v1, kind: Pod, metadata: {labels: a}}", "metadata: it is an object with name, namespace and labels"),
    ("what is too deep", "00-assert.yaml", f"{{apiVersion: v1, kind: Pod, spec: {'{a: ' * 200}1{'}' * 200}}}", ": it is nested more than 100 deep: name less of the object"),
]  # fmt: skip


@rows("what, name, text, message", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_run(what: str, name: str, text: str, message: str, tmp_path: Path) -> None:
    problems = read(written(tmp_path / what, {name: text})).problems
    assert len(problems) == 1
    document, field, said = problems[0]
    assert message in f"{document.place(field)}: {field}: {said}"


def test_what_a_suite_cannot_have(tmp_path: Path) -> None:
    written(tmp_path, {"kuttl-test.yaml": KUTTL % "TestSuite" + "commands: [{command: make}]\nmanifestDirs: a\n"})
    problems = read(written(tmp_path / "t", {"00-assert.yaml": MAP % "a"})).problems
    assert [each.field for each in problems] == ["commands", "manifestDirs"]
