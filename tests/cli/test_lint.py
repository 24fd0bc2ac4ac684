"""`noxu lint`: violations, advice, and fixed files."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from noxu.api import codec
from noxu.values import Object
from tests.cli.conftest import unplaced

Make = Callable[..., Any]

GOOD = {"type": "integer"}
UNTYPED = {"minimum": 1, "properties": {}}  # a number or an object: ambiguous


def test_a_structural_crd(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size=GOOD))
    assert run("lint crd.json") == (0, "crd.json: widgets.example.com (v1): structural\n", "")


def test_every_violation_is_printed_with_its_path_and_advice(run: Make, write: Make, crd: Make) -> None:
    write("crd.yaml", codec.to_yaml(crd(size={}, colour={"type": "string", "pattern": "("})).decode())
    ran = run("lint crd.yaml")
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "crd.yaml: widgets.example.com (v1): 2 violations",
        '  crd.yaml:19:17: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[colour].pattern: Invalid value: "(": must be a '
        "valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
        "    Patterns are Go regular expressions (RE2): they have no lookaround and no backreferences.",
        "  crd.yaml:21:15: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type: Required value: must not be empty for "
        "specified object fields",
        "    Give it a `type`. If it may be anything, write `x-kubernetes-preserve-unknown-fields: true`; for an integer "
        "or a string write `x-kubernetes-int-or-string: true`.",
    ]


def test_rules_are_compiled(run: Make, write: Make, crd: Make) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "self.spec.nix > 1"}]}
    write("crd.json", crd(schema))
    assert "compilation failed" in run("lint crd.json").out


def test_for_a_structural_v1beta1_crd_the_fix_is_suggested(run: Make, write: Make, old_crd: Make) -> None:
    write("old.json", old_crd({"type": "object"}))
    assert run("lint old.json") == (
        0,
        "old.json: widgets.example.com (v1beta1): structural; `noxu lint --fix` writes it as v1, the only version that "
        "servers accept\n",
        "",
    )


def test_files_directories_and_stdin(run: Make, write: Make, crd: Make) -> None:
    write("d/one.json", crd(size=GOOD))
    write("d/two.json", {"apiVersion": "v1", "kind": "List", "items": [crd(size=GOOD), {"kind": "Pod"}]})
    ran = run("lint d -", stdin=json.dumps(crd(size={})))
    assert ran.status == 1
    lines = [line for line in ran.out.splitlines() if not line.startswith(" ")]
    assert lines == [
        "d/two.json: skipped: Pod is not a CustomResourceDefinition",
        "d/one.json: widgets.example.com (v1): structural",
        "d/two.json: widgets.example.com (v1): structural",
        "stdin: widgets.example.com (v1): 1 violation",
        "3 CRDs: 2 structural, 1 with 1 violation; 1 skipped",
    ]


def test_unreadable_files_do_not_prevent_linting_the_others(run: Make, write: Make, crd: Make) -> None:
    write("good.json", crd(size=GOOD))
    write("bad.yaml", "a: [")
    ran = run("lint bad.yaml none.yaml good.json")
    assert ran.status == 2
    assert ran.out == "good.json: widgets.example.com (v1): structural\n1 CRD: 1 structural; 2 unreadable\n"
    assert ran.err == (
        "bad.yaml:2:1: not valid YAML: did not find expected node content\nnone.yaml: no such file or directory\n"
    )


def test_files_without_a_crd_are_reported(run: Make, write: Make) -> None:
    write("pod.yaml", "kind: Pod")
    ran = run("lint pod.yaml")
    assert (ran.status, ran.err) == (
        2,
        "pod.yaml: no CustomResourceDefinition found; --allow-empty allows that\n",
    )
    assert run("lint --allow-empty pod.yaml")[::2] == (0, "")


INVALID: list[tuple[str, Object, str]] = [
    ("without a version", {"kind": "CustomResourceDefinition"}, 'apiVersion: Unsupported value: ""'),
    ("of another version", {"apiVersion": "apiextensions.k8s.io/v2", "kind": "CustomResourceDefinition"}, 'apiVersion: Unsupported value: "apiextensions.k8s.io/v2"'),
    ("with a spec that is not an object", {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": 3}, "spec: must not be a number"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "why"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
@pytest.mark.parametrize("options", ["", "--fix", "--output json", "--fix --output json"])
def test_an_invalid_crd_is_reported(run: Make, write: Make, value: Object, why: str, options: str) -> None:
    write("crd.json", value)
    ran = run(f"lint crd.json {options}")
    assert ran.status == 1
    output = ran.out + ran.err
    if "json" in options:
        output = "\n".join(f"{finding['field']}: {finding['message']}" for finding in ran.json["crds"][0]["findings"])
    assert why in output


def test_json_output_contains_all_documents(run: Make, write: Make, crd: Make) -> None:
    write(
        "a.json", {"kind": "List", "items": [crd(size=GOOD), crd(size={}), {"kind": "Pod", "metadata": {"name": "p"}}]}
    )
    write("bad.json", "{")
    ran = run("lint --output json a.json bad.json")
    assert ran.status == 2
    assert ran.err == ""
    good, wrong = ran.json["crds"]
    assert good == {
        "file": "a.json", "document": 1, "line": 1, "column": 28, "name": "widgets.example.com",
        "apiVersion": "apiextensions.k8s.io/v1", "structural": True, "findings": [], "fixable": True,
    }  # fmt: skip
    assert (wrong["structural"], wrong["fixable"]) == (False, True)
    assert wrong["findings"] == [
        {
            "level": "error",
            "rule": "required",
            "line": 1,
            "column": ANY,
            "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type",
            "message": "Required value: must not be empty for specified object fields",
            "advice": "Give it a `type`. If it may be anything, write `x-kubernetes-preserve-unknown-fields: true`; for an "
            "integer or a string write `x-kubernetes-int-or-string: true`.",
        }
    ]
    assert ran.json["skipped"] == [
        {"file": "a.json", "document": 1, "line": 1, "column": ANY, "kind": "Pod", "name": "p"}
    ]
    assert ran.json["unreadable"] == [
        {"file": "bad.json", "document": 1, "line": 1, "column": 2, "message": "unexpected end of JSON input"}
    ]


def test_json_output_contains_the_fixed_crd_and_the_changes(run: Make, write: Make, crd: Make) -> None:
    write("a.json", crd(size={"minimum": 1}))
    ran = run("lint --fix --output json a.json")
    [finding] = ran.json["crds"]
    assert ran.status == 0
    assert finding["changes"] == [
        {
            "path": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size]",
            "text": "type: number added",
        }
    ]
    assert finding["fixed"] == crd(size={"type": "number", "minimum": 1})


# -- fixing


def documents(text: str) -> list[Object]:
    return [codec.decode_yaml(part.encode()).value for part in text.split("---\n")]


def test_fixed_crds_are_written_to_stdout_and_notes_to_stderr(run: Make, write: Make, crd: Make, old_crd: Make) -> None:
    write("a.json", crd(size=GOOD))
    write("b.json", old_crd({"properties": {"spec": {"type": "object"}}}, scope="Cluster"))
    ran = run("lint --fix a.json b.json")
    assert ran.status == 0
    good, fixed = documents(ran.out)
    assert good == crd(size=GOOD), "a structural CRD is not changed"
    assert fixed == crd({"type": "object", "properties": {"spec": {"type": "object"}}}, scope="Cluster")
    assert ran.err.splitlines() == [
        "b.json: widgets.example.com (v1beta1): apiVersion: apiextensions.k8s.io/v1beta1 became apiextensions.k8s.io/v1",
        "b.json: widgets.example.com (v1beta1): spec.versions[0].schema.openAPIV3Schema: type: object added",
    ]


def test_a_fixed_crd_has_no_violations(run: Make, write: Make, old_crd: Make) -> None:
    write("old.json", old_crd({"properties": {"spec": {"properties": {"a": {"pattern": "x"}}}}}))
    assert run("lint old.json").status == 1
    write("new.yaml", run("lint --fix old.json").out)
    assert run("lint new.yaml").status == 0
    assert run("lint --fix new.yaml").err == ""


def test_a_crd_without_a_structural_form_is_reported_and_not_written(run: Make, write: Make, crd: Make) -> None:
    write("a.json", {"kind": "List", "items": [crd(size=UNTYPED), crd(size=GOOD)]})
    ran = run("lint --fix a.json")
    assert ran.status == 1
    assert documents(ran.out) == [crd(size=GOOD)]
    assert ran.err.startswith("a.json: widgets.example.com (v1): cannot be fixed, not changed\n  a.json:1:")
    assert "Give it a `type`." in ran.err


def test_fields_that_servers_fill_in_are_not_written(run: Make, write: Make, crd: Make) -> None:
    original = crd(size={"minimum": 1})
    original["spec"] |= {
        "names": {"plural": "widgets", "kind": "Widget", "singular": "wid"},
        "preserveUnknownFields": False,
    }
    original["metadata"]["creationTimestamp"] = None
    original["status"] = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []}
    write("a.json", original)
    [written] = documents(run("lint --fix a.json").out)
    assert written.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert written["metadata"] == {"name": "widgets.example.com"}
    assert written["spec"].keys() == {"group", "scope", "names", "versions"}
    assert written["spec"]["names"] == {"plural": "widgets", "kind": "Widget", "singular": "wid"}


def test_a_status_that_says_something_is_dropped_with_a_note(run: Make, write: Make, crd: Make) -> None:
    write("a.json", {**crd(size={"minimum": 1}), "status": {"storedVersions": ["v1"]}})
    assert "a.json: widgets.example.com (v1): status: dropped, servers set it\n" in run("lint --fix a.json").err
    write("b.json", {**crd(size=GOOD), "status": {"storedVersions": ["v1"]}})
    ran = run("lint --fix b.json")
    assert (ran.err, documents(ran.out)[0]["status"]) == ("", {"storedVersions": ["v1"]})


IN_PLACE = """
    # Copyright: none

    # More about it.
    apiVersion: apiextensions.k8s.io/v1beta1   # old
    kind: CustomResourceDefinition
    metadata: {name: widgets.example.com}
    spec:
      group: example.com
      version: v1
      preserveUnknownFields: false
      names: {plural: widgets, kind: Widget}
    --- # the next one
    # not   reformatted
    kind:   Pod
    ---
"""


def test_rewriting_a_file_does_not_change_other_documents(run: Make, write: Make, here: Path) -> None:
    path = write("old.yaml", IN_PLACE)
    before = path.read_text()
    path.chmod(0o640)
    ran = run("lint --fix --in-place old.yaml")
    assert ran.status == 0
    assert ran.out.startswith("--- a/old.yaml\n+++ b/old.yaml\n@@ -1,14 +1,24 @@\n # Copyright: none\n")
    assert ran.err.endswith("old.yaml: rewritten; the former content is in old.yaml.bak\n")
    assert (here / "old.yaml.bak").read_text() == before
    assert (here / "old.yaml.bak").stat().st_mode & 0o777 == 0o640
    assert path.read_text() == (
        "# Copyright: none\n\n# More about it.\n"
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\n"
        "spec:\n  group: example.com\n  names:\n    kind: Widget\n    plural: widgets\n  scope: Namespaced\n"
        "  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n"
        "        x-kubernetes-preserve-unknown-fields: true\n    served: true\n    storage: true\n"
        "--- # the next one\n# not   reformatted\nkind:   Pod\n---\n"
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in here.iterdir()) == ["old.yaml", "old.yaml.bak"]
    assert run("lint --fix --in-place old.yaml") == (0, "", "")


def test_json_stays_json_and_lists_stay_lists(run: Make, write: Make, crd: Make) -> None:
    pod = {"kind": "Pod", "a": 1}
    path = write("a.json", {"kind": "List", "items": [pod, crd(size={"minimum": 1}), {"kind": "List", "items": [crd(size={"maximum": 1})]}]})  # fmt: skip
    assert run("lint --fix --in-place a.json").status == 0
    assert json.loads(path.read_text()) == {
        "kind": "List",
        "items": [
            pod,
            crd(size={"type": "number", "minimum": 1}),
            {"kind": "List", "items": [crd(size={"type": "number", "maximum": 1})]},
        ],
    }


def test_a_crd_without_a_structural_form_is_not_changed_in_the_file(run: Make, write: Make, crd: Make) -> None:
    bad, fixable = json.dumps(crd(size=UNTYPED)), json.dumps(crd(size={"minimum": 1}))
    path = write("a.yaml", f"{bad}\n---\n{fixable}\n---\na: [\n")
    ran = run("lint --fix --in-place a.yaml")
    assert ran.status == 2
    before, fixed, after = path.read_text().split("---\n")
    assert (before, after) == (f"{bad}\n", "a: [\n")
    assert codec.decode_yaml(fixed.encode()).value == crd(size={"type": "number", "minimum": 1})
    assert "a.yaml:6:1: not valid YAML: did not find expected node content" in ran.err


def test_a_difference_is_shown_without_writing(run: Make, write: Make, crd: Make, here: Path) -> None:
    path = write("a.yaml", codec.to_yaml(crd(size={"minimum": 1})).decode())
    before = path.read_text()
    ran = run("lint --fix --diff a.yaml")
    assert ran.status == 0
    assert "+                type: number\n" in ran.out
    assert [path.name for path in here.iterdir()] == ["a.yaml"]
    assert path.read_text() == before


def test_a_kept_file_is_never_replaced(run: Make, write: Make, crd: Make, here: Path) -> None:
    write("a.json.bak", "precious")
    write("a.json", crd(size={"minimum": 1}))
    assert run("lint --fix --in-place a.json").err.endswith("the former content is in a.json.bak1\n")
    assert (here / "a.json.bak").read_text() == "precious"


LOSSES: list[tuple[str, Callable[[Object], object], str]] = [
    ("a misspelt schema", lambda crd: crd["spec"]["versions"][0].update(schema={"openApiV3Schema": GOOD}), 'did you mean "openAPIV3Schema"?'),
    ("a keyword that is unknown", lambda crd: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(mutable=True), "unknown field"),
    ("a field of v1beta1", lambda crd: crd["spec"].update(validation={}), "unknown field"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "why"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES])
@pytest.mark.parametrize("options", ["--fix", "--fix --diff", "--fix --in-place"])
def test_nothing_is_lost_that_is_not_understood(
    run: Make, write: Make, crd: Make, here: Path, change: Any, why: str, options: str
) -> None:
    value = crd(size={"minimum": 1})
    change(value)
    path = write("a.json", value)
    ran = run(f"lint {options} a.json")
    assert (ran.status, ran.out) == (1, "")
    assert why in ran.err
    assert json.loads(path.read_text()) == value
    assert [path.name for path in here.iterdir()] == ["a.json"]


def test_a_misspelt_schema_of_v1beta1_is_not_lost(run: Make, write: Make, old_crd: Make) -> None:
    write("a.json", old_crd({}, validation={"jsonSchema": GOOD}))
    ran = run("lint --fix a.json")
    assert (ran.status, ran.out) == (1, "")
    assert 'spec.validation.jsonSchema: Forbidden: unknown field: did you mean "openAPIV3Schema"?' in ran.err


def test_a_repeated_key_is_one_warning(run: Make, write: Make, crd: Make) -> None:
    text = codec.to_yaml(crd(size=GOOD)).decode()
    shared = text.replace("schema:\n", "schema: &shared\n").replace(
        "type: integer", "type: integer\n                type: integer"
    )
    version = "  - {name: v2, served: true, storage: false, schema: *shared}\n"
    write("a.yaml", shared.rstrip("\n") + "\n" + version)
    for options, level, status in (("", "warning: ", 0), ("--strict", "", 1)):
        ran = run(f"lint {options} a.yaml")
        assert (ran.status, unplaced(ran.out).splitlines()[1:]) == (status, [
            f'  {level}the key "type" is repeated; its last value counts',
            "    Keep one of them: the fix of a file would lose the other.",
        ])  # fmt: skip
    ran = run("lint --fix a.yaml")
    assert (ran.status, "is repeated" in ran.err, "cannot be fixed" in ran.err) == (0, True, False)


def test_lint_and_its_fix_find_the_same_things(run: Make, write: Make, crd: Make) -> None:
    """What cannot be fixed, because of a field that is not understood, is reported in full."""
    lists = {
        "type": "array",
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    }
    write("a.json", crd(size={"minimum": 1, "tpye": "integer"}, a={"type": "strin"}, b=lists))
    found = [line for line in run("lint a.json").out.splitlines() if line.startswith("  ") and "`noxu lint" not in line]
    left = [line for line in run("lint --fix a.json").err.splitlines() if line.startswith("  ")]
    assert left == found
    assert [line.rpartition("]")[2].split(":")[0] for line in unplaced("\n".join(found)).splitlines()[::2]] == [".tpye", ".type", ".type", ""]  # fmt: skip


def test_a_fix_cannot_make_an_update_possible(run: Make, write: Make, crd: Make) -> None:
    write("old.json", crd(size=GOOD))
    write("new.json", crd(size={"minimum": 1}, scope="Cluster"))
    ran = run("lint --fix --old old.json new.json")
    assert (ran.status, "type: number" in ran.out) == (1, True)
    assert '  spec.scope: Invalid value: "Cluster": field is immutable' in unplaced(ran.err)


def test_warnings_that_repeat_are_printed_together(run: Make, write: Make, crd: Make) -> None:
    null = {"type": "integer", "nullable": True, "default": 1}
    write("a.json", crd(a=null, b=null, c={}))
    write("b.json", crd(a=null, d=null))
    ran = run("lint a.json b.json")
    lines = [line for line in unplaced(ran.out).splitlines() if not line.startswith("    ")]
    assert [line.partition(" with a default")[0] for line in lines] == [
        "a.json: widgets.example.com (v1): 1 violation",
        "  spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[c].type: Required value: must not be empty for specified object fields",
        "  `noxu lint --fix` fixes all of this",
        "b.json: widgets.example.com (v1): structural",
        "warning: nullable",
        "2 CRDs: 1 structural, 1 with 1 violation; 4 warnings",
    ]
    assert "(4 fields in 2 files)" in ran.out
    assert "    and 1 more; --verbose lists all of them" in ran.out
    assert run("lint --verbose a.json b.json").out.count(": warning: ") == 4
    assert "warning:" not in run("lint --errors-only a.json b.json").out


def test_a_repeated_key_is_not_lost(run: Make, write: Make, crd: Make) -> None:
    text = f"{codec.to_yaml(crd(size={'minimum': 1})).decode()}kind: CustomResourceDefinition\n"
    path = write("a.yaml", text)
    ran = run("lint --fix --in-place a.yaml")
    assert (ran.status, ran.out, path.read_text()) == (1, "", text)
    assert '  a.yaml:24:1: warning: the key "kind" is repeated; its last value counts\n    Keep one of them' in ran.err


def test_fields_of_nested_validations_that_are_not_declared_are_violations(run: Make, write: Make, crd: Make) -> None:
    nested = {"type": "object", "not": {"properties": {"b": {}}}}
    write("crd.json", crd(a=nested))
    ran = run("lint crd.json")
    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a]"
    assert ran.status == 1
    assert f": {path}.properties[b]: Required value: because it is defined in {path}.not.properties[b]\n" in ran.out
    assert "`noxu lint --fix` fixes all of this" in ran.out
    write("fixed.yaml", run("lint --fix crd.json").out)
    assert run("lint fixed.yaml").status == 0


def test_warnings_are_errors_with_strict(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size={"type": "integer", "nullable": True, "default": 1}))
    ran = run("lint crd.json")
    assert ran.status == 0
    assert "crd.json: widgets.example.com (v1): structural\n" in ran.out
    assert (
        ": warning: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size]: nullable with" in ran.out
    )
    assert run("lint --strict crd.json").status == 1


@pytest.mark.parametrize(("options", "status"), [("", 0), ("--strict", 1)])
def test_a_fixed_crd_may_still_have_warnings(run: Make, write: Make, crd: Make, options: str, status: int) -> None:
    """The form without violations is written in any case; with --strict the exit status says that something is left."""
    write("a.json", crd(size={"minimum": 1}, name={"type": "string", "nullable": True, "default": "a"}))
    ran = run(f"lint --fix {options} a.json")
    assert (ran.status, "type: number" in ran.out) == (status, True)
    assert ("warning: " in ran.err) is not bool(status)
    assert "nullable with a default" in ran.err
    assert ("fixes all of this" in run(f"lint {options} a.json").out) is not bool(status)


def test_a_crd_without_a_name_has_the_title_of_its_kind(run: Make, write: Make, crd: Make) -> None:
    nameless = crd(size={"type": "integer"})
    nameless["metadata"] = None
    write("a.json", nameless)
    assert run("lint a.json").out.startswith("a.json: CustomResourceDefinition (v1): 1 violation\n")


def test_a_rule_that_does_not_compile_is_explained_without_words_of_go(run: Make, write: Make, crd: Make) -> None:
    write("a.json", crd({"type": "object", "x-kubernetes-validations": [{"rule": "self.b"}]}))
    for command in ("lint", "validate"):
        assert (
            ".x-kubernetes-validations[0].rule: compilation failed: undefined field 'b'\n"
            in run(f"{command} a.json").out
        )


def test_a_value_of_another_type_is_found_where_it_is(run: Make, write: Make, crd: Make) -> None:
    write("a.json", crd(size={"type": "integer"}, colour={"type": 7}))
    line = "a.json:1:{}: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[colour].type: must be a string, not a number"  # fmt: skip
    column = json.dumps(crd(size={"type": "integer"}, colour={"type": 7})).index('"type": 7') + 1
    for command in ("lint", "validate"):
        assert f"  {line.format(column)}\n" in run(f"{command} a.json").out


def test_the_bound_that_makes_a_rule_affordable_is_named(run: Make, write: Make, crd: Make) -> None:
    rules = [{"rule": "self.all(x, self.exists_one(y, x == y))"}]
    numbers = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    write("crd.json", crd(sizes=numbers))
    ran = run("lint crd.json")
    assert ran.status == 1
    found = re.search(r"Write `maxItems: (\d+)` at properties\[spec\].properties\[sizes\]: that suffices", ran.out)
    assert found is not None
    write("bounded.json", crd(sizes={**numbers, "maxItems": int(found[1])}))
    assert run("lint bounded.json").status == 0


def test_with_former_crds_the_violations_are_those_of_an_update(run: Make, write: Make, crd: Make) -> None:
    write("old/crd.json", crd(size=GOOD))
    write("crd.json", crd(size=GOOD, scope="Cluster"))
    assert run("lint crd.json").status == 0
    ran = run("lint crd.json --old old")
    assert ran.status == 1
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in ran.out


def test_files_without_violations_are_not_written(run: Make, write: Make, crd: Make) -> None:
    path = write("d/a.json", crd(size=GOOD))
    os.utime(path, (1, 1))
    assert run("lint --fix --in-place d") == (0, "", "")
    assert path.stat().st_mtime == 1


def test_the_target_of_a_link_is_rewritten(run: Make, write: Make, crd: Make, here: Path) -> None:
    target = write("target.json", crd(size={"minimum": 1}))
    (here / "link.json").symlink_to(target)
    assert run("lint --fix --in-place link.json").status == 0
    assert (here / "link.json").is_symlink()
    assert json.loads(target.read_text()) == crd(size={"type": "number", "minimum": 1})


def test_a_file_that_is_named_twice_is_rewritten_once(run: Make, write: Make, crd: Make, here: Path) -> None:
    write("a.json", crd(size={"minimum": 1}))
    (here / "link.json").symlink_to("a.json")
    ran = run("lint --fix --in-place . a.json link.json")
    assert (ran.status, ran.err.count("a.json: rewritten"), ran.err.count("link.json")) == (0, 1, 0)
    assert sorted(path.name for path in here.iterdir()) == ["a.json", "a.json.bak", "link.json"]


def test_a_compressed_file_stays_compressed(run: Make, write: Make, crd: Make, here: Path) -> None:
    before = gzip.compress(f"# a comment\n{json.dumps(crd(size={'minimum': 1}))}\n".encode(), mtime=1)
    (here / "a.yaml.gz").write_bytes(before)
    ran = run("lint --fix --in-place .")
    assert (ran.status, "+                type: number\n" in ran.out) == (0, True)
    assert gzip.decompress((here / "a.yaml.gz").read_bytes()).startswith(
        b"# a comment\napiVersion: apiextensions.k8s.io/v1\n"
    )
    assert (here / "a.yaml.gz.bak").read_bytes() == before
    assert run("lint --fix --diff .") == (0, "", "")
    (here / "b.yaml.gz").write_bytes(before[:20])
    ran = run("lint --fix --in-place .")
    assert (ran.status, ran.err.startswith("noxu: b.yaml.gz: ")) == (2, True)


def test_missing_files(run: Make) -> None:
    assert run("lint --fix --in-place none.yaml") == (2, "", "noxu: none.yaml: no such file or directory\n")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "lint --fix --in-place --diff a",
            "--in-place and --diff exclude each other: --in-place shows the difference, too",
        ),
        ("lint", "give a PATH: a file, a directory, or - for stdin"),
        ("lint --in-place a.yaml", "--in-place and --diff need --fix"),
        ("lint --fix --in-place -", "--in-place and --diff cannot be combined with --output or stdin"),
        ("lint --fix --in-place --output json a", "--in-place and --diff cannot be combined with --output or stdin"),
    ],
)
def test_invalid_combinations_of_arguments(run: Make, line: str, why: str) -> None:
    ran = run(line)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"noxu lint: error: {why}")


# -- upgrades


NARROWER: Object = {"type": "integer", "maximum": 5}
PATH = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties"


@pytest.mark.parametrize(("options", "level", "status"), [("", "warning", 0), ("--strict", "error", 1)])
def test_with_former_crds_lint_says_what_became_narrower(
    run: Make, write: Make, crd: Make, options: str, level: str, status: int
) -> None:
    write("old.json", crd(size={"type": "integer"}, colour={"type": "string"}))
    write("new.json", crd(size=NARROWER))
    for _ in range(2):  # found, and kept
        ran = run(f"lint --old old.json {options} --output json new.json")
        [checked] = ran.json["crds"]
        assert ran.status == status
        assert [(each["level"], each["rule"], each["field"], each["message"]) for each in checked["findings"]] == [
            (level, "no-longer-kept", f"{PATH}[colour]", "the former schema keeps this field; now it is pruned"),
            (level, "narrower-maximum", f"{PATH}[size].maximum", "there is a maximum now: 5"),
        ]
    assert run("lint --old new.json old.json").out == "old.json: widgets.example.com (v1): structural\n"


def test_validate_says_it_of_crds_that_update_others(run: Make, write: Make, crd: Make) -> None:
    write("old.json", crd(size={"type": "integer"}))
    write("new.json", crd(size=NARROWER))
    for line in ("--old old.json new.json", "old.json new.json", "--strict --old old.json new.json"):
        ran = run(f"validate {line}")
        assert ran.status == 0, "a server accepts it"
        assert unplaced(ran.out).splitlines()[-3:-1] == [
            "new.json: CustomResourceDefinition widgets.example.com: valid, as an update by kubectl apply",
            f"  warning: {PATH}[size].maximum: there is a maximum now: 5",
        ]
    sarif = json.loads(run("validate --old old.json new.json --output sarif").out)["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in sarif] == [("narrower-maximum", "warning")]


def test_what_a_server_refuses_by_itself_is_said_once(run: Make, write: Make, crd: Make) -> None:
    write("old.json", crd(size=GOOD))
    write("new.json", crd(size=GOOD, scope="Cluster"))
    for command in ("lint", "validate"):
        assert run(f"{command} --old old.json new.json").out.count("spec.scope") == 1
