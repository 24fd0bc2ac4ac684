"""`noxu validate`: the answers of a server, without a server."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.api.codec import MAX_BODY
from noxu.api.errors import ApiError
from noxu.testing.handle import Noxu
from noxu.values import Json, Object
from tests.cli.conftest import unplaced

Make = Callable[..., Any]

SIZE = {"type": "integer", "minimum": 1}
TOO_SMALL = "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"
TOO_SMALL_7 = "spec.size: Invalid value: 3: spec.size in body should be greater than or equal to 7"


def results(ran: Any) -> list[str]:
    return [found["result"] for found in ran.json["objects"]]


def test_the_outcomes_are_in_the_order_of_the_files(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("objects.json", {"kind": "List", "items": [widget("a", size=1), widget("b", "attic", size=0)]})
    write("crd.json", crd(size=SIZE, title={"type": "string"}))
    write("more.yaml", f"# nothing\n---\n{json.dumps(widget('c', size='x', title=3))}")
    ran = run("validate -f objects.json -f crd.json -f more.yaml")
    assert (ran.status, ran.err) == (1, "")
    assert unplaced(ran.out).splitlines() == [
        "objects.json: Widget default/a: valid",
        "objects.json: Widget attic/b: refused",
        f"  {TOO_SMALL}",
        "crd.json: CustomResourceDefinition widgets.example.com: valid",
        "more.yaml, document 2: Widget default/c: refused",
        '  spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        '  spec.title: Invalid value: "integer": spec.title in body must be of type string: "integer"',
        "4 objects: 2 valid, 2 refused, 0 skipped",
    ]


def test_the_exit_status_without_refusals_is_0(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("d/a.json", widget("a", size=1))
    write("d/crd.json", crd(size=SIZE))
    assert run("validate -f d").status == 0


def test_json_output_contains_the_status_with_which_a_server_answers(
    run: Make, write: Make, crd: Make, widget: Make, noxu: Noxu
) -> None:
    noxu.apply(crd(size=SIZE))
    with pytest.raises(ApiError) as refusal:
        noxu.apply(widget("a", size=0))
    write("crd.json", crd(size=SIZE))
    write("a.json", widget("a", size=0))
    ran = run("validate --output json -f crd.json -f a.json")
    assert ran.status == 1
    assert ran.json["summary"] == {"objects": 2, "valid": 1, "refused": 1, "skipped": 0, "unreadable": 0}
    assert ran.json["objects"][1] == {
        "file": "a.json", "document": 1, "line": 1, "column": 1, "apiVersion": "example.com/v1", "kind": "Widget",
        "namespace": "default", "name": "a", "result": "refused", "update": None, "warnings": [], "status": refusal.value.status,
        "findings": [
            {"level": "error", "rule": "invalid", "field": "spec.size", "message": TOO_SMALL.removeprefix("spec.size: "), "advice": "", "line": 1, "column": 88}
        ],
    }  # fmt: skip
    assert ran.json["objects"][0]["status"] is None


# A change of the object `a`, the result, and the lines that explain it.
OBJECTS: list[tuple[str, Json, str, list[str]]] = [
    ("without a name", {"metadata": {}}, "refused", ["name or generateName is required"]),
    ("with an invalid name", {"metadata": {"name": "A"}}, "refused", ["a lowercase RFC 1123 subdomain must consist of"]),
    ("with generateName", {"metadata": {"generateName": "a-"}}, "valid", []),
    ("with an invalid namespace", {"metadata": {"name": "a", "namespace": "A"}}, "refused", ['namespaces "A" not found']),
    ("with metadata that is not an object", {"metadata": 3}, "refused", ["metadata: must be an object, not a number"]),
    ("with an unknown field", {"spec": {"size": 1, "color": 1}}, "valid", ["warning: spec.color: unknown field"]),
    ("with an invalid label", {"metadata": {"name": "a", "labels": {"a": "b c"}}}, "refused", ["metadata.labels: Invalid value"]),
    ("without changes", {}, "valid", []),
    ("exported from a cluster", {"metadata": {"name": "a", "resourceVersion": "7", "uid": "u", "generation": 4}}, "valid", ["warning: metadata.resourceVersion is removed"]),
    ("of another version", {"apiVersion": "example.com/v2"}, "refused", ['no matches for kind "Widget" in version "example.com/v2": it is served in example.com/v1: change the apiVersion, and the fields that differ']),
    ("without a version", {"apiVersion": None}, "refused", ['no matches for kind "Widget" in version "None"']),
    ("with an invalid finalizer", {"metadata": {"name": "a", "finalizers": ["x y"]}}, "refused", ["metadata.finalizers: Invalid value"]),
    ("with a finalizer without a domain", {"metadata": {"name": "a", "finalizers": ["x"]}}, "valid", ["prefer a domain-qualified finalizer name"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "result", "lines"), [row[1:] for row in OBJECTS], ids=[row[0] for row in OBJECTS])
def test_an_object(
    run: Make, write: Make, crd: Make, widget: Make, changes: Object, result: str, lines: list[str]
) -> None:
    write("crd.json", crd(size=SIZE))
    write("a.json", {**widget("a", size=1), **changes})
    ran = run("validate -f crd.json -f a.json")
    printed = unplaced(ran.out).splitlines()[1:-1]
    assert printed[0].endswith(f": {result}")
    assert len(printed) == 1 + len(lines)
    assert all(text in line for text, line in zip(lines, printed[1:], strict=True))
    assert ran.status == (1 if result == "refused" else 0)


def test_strict_turns_warnings_into_errors(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size=SIZE))
    write(
        "a.yaml",
        """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a}
        spec:
          size: 1
          size: 2
          color: red
    """,
    )
    ran = run("validate -f crd.json -f a.yaml --output json")
    assert ran.status == 0
    assert ran.json["objects"][1]["warnings"] == ['line 6: key "size" already set in map', 'unknown field "spec.color"']
    ran = run("validate --strict -f crd.json -f a.yaml --output json")
    assert ran.status == 1
    assert ran.json["objects"][1]["status"]["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: yaml: unmarshal errors:\n'
        '  line 6: key "size" already set in map, unknown field "spec.color"'
    )
    text = run("validate --strict -f crd.json -f a.yaml").out
    assert text.splitlines()[1:-1] == [
        "a.yaml: Widget default/a: refused",
        '  a.yaml:6:3: the key "size" is repeated; its last value counts',
        "  a.yaml:7:3: spec.color: unknown field",
    ]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "lables": {}}, "spec": {"replica": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "imge": "b"}]}}}},
            ["metadata.lables: unknown field | Did you mean metadata.labels?", "spec.replica: unknown field | Did you mean spec.replicas?", "spec.template.spec.containers[0].imge: unknown field | Did you mean spec.template.spec.containers[0].image?", "spec.template.spec.containers[0].image: Required value"],
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 0, "siez": 1}},
            ["spec.siez: unknown field | Did you mean spec.size?", TOO_SMALL],
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"size": 1, "xyz": 1}},
            ["spec.xyz: unknown field"],
        ),
    ],
    ids=["a built-in kind", "a custom resource", "nothing else"],
)  # fmt: skip
def test_strict_shows_all_errors_of_a_document(
    run: Make, write: Make, crd: Make, value: Json, found: list[str]
) -> None:
    write("crd.json", crd(size=SIZE))
    write("a.json", value)
    for _ in range(2):  # found, and kept
        [_, checked] = run("validate --strict crd.json a.json --output json").json["objects"]
        assert [f"{each['field']}: {each['message']}{each['advice'] and ' | '}{each['advice']}" for each in checked["findings"]] == found  # fmt: skip
        assert checked["status"]["reason"] == "BadRequest", "the answer of a server"


# -- what is listed


@pytest.mark.parametrize(
    ("options", "terminal", "lines"),
    [
        ("", False, ["crd.json: CustomResourceDefinition widgets.example.com: valid", "a.json: Widget default/a: valid", "  warning: spec.color: unknown field", "b.json: Widget default/b: refused", f"  {TOO_SMALL}", "3 objects: 2 valid, 1 refused, 0 skipped"]),
        ("", True, ["a.json: Widget default/a: valid", "  warning: spec.color: unknown field", "b.json: Widget default/b: refused", f"  {TOO_SMALL}", "3 objects: 2 valid, 1 refused, 0 skipped"]),
        ("--errors-only", False, ["b.json: Widget default/b: refused", f"  {TOO_SMALL}", "3 objects: 2 valid, 1 refused, 0 skipped; 1 warning"]),
        ("--verbose", True, ["crd.json: CustomResourceDefinition widgets.example.com: valid", "a.json: Widget default/a: valid", "  warning: spec.color: unknown field", "b.json: Widget default/b: refused", f"  {TOO_SMALL}", "3 objects: 2 valid, 1 refused, 0 skipped"]),
    ],
    ids=["all documents", "on a terminal those with findings", "errors only", "all documents on a terminal"],
)  # fmt: skip
def test_what_is_listed(
    run: Make, write: Make, crd: Make, widget: Make, monkeypatch: pytest.MonkeyPatch, options: str, terminal: bool, lines: list[str]
) -> None:  # fmt: skip
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    write("crd.json", crd(size=SIZE))
    write("a.json", widget("a", size=1, color="red"))
    write("b.json", widget("b", size=0))
    assert unplaced(run(f"validate {options} crd.json a.json b.json").out).splitlines() == lines


@pytest.mark.parametrize("option", ["--errors-only", "--verbose"])
def test_what_is_listed_concerns_text_only(run: Make, write: Make, crd: Make, option: str) -> None:
    write("crd.json", crd(size=SIZE))
    ran = run(f"validate {option} --output json crd.json")
    assert (ran.status, "--errors-only and --verbose are for --output text" in ran.err) == (2, True)


def test_colours(run: Make, write: Make, crd: Make, widget: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    write("crd.json", crd(size=SIZE))
    write("a.json", widget("a", size=0, siez=1))
    assert run("validate crd.json a.json").out.splitlines() == [
        "crd.json: CustomResourceDefinition widgets.example.com: \x1b[32mvalid\x1b[0m",
        "a.json: Widget default/a: \x1b[31mrefused\x1b[0m",
        f"  \x1b[31ma.json:1:88\x1b[0m: {TOO_SMALL}",
        "  \x1b[33ma.json:1:99\x1b[0m: \x1b[33mwarning:\x1b[0m spec.siez: unknown field",
        "\x1b[2m    Did you mean spec.size?\x1b[0m",
        "2 objects: \x1b[32m1 valid\x1b[0m, \x1b[31m1 refused\x1b[0m, 0 skipped",
    ]
    assert run("lint crd.json").out == "crd.json: widgets.example.com (v1): \x1b[32mstructural\x1b[0m\n"
    explained = run("explain-write crd.json a.json").out.splitlines()
    assert explained[0] == "a.json: Widget a: \x1b[31mrefused\x1b[0m"
    assert explained[1].startswith("  \x1b[1m")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("validate crd.json a.json").out


def test_kinds_without_a_crd(run: Make, write: Make) -> None:
    write("a.yaml", "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a, namespace: b}")
    ran = run("validate -f a.yaml")
    assert ran.status == 1
    assert ran.out == (
        "a.yaml: Gadget b/a: refused\n"
        '  a.yaml:1:1: no matches for kind "Gadget" in version "example.com/v1": load its CRD, too\n'
        "1 object: 0 valid, 1 refused, 0 skipped\n"
    )
    ran = run("validate -f a.yaml --ignore-unknown-kinds")
    assert (ran.status, ran.out) == (
        0,
        "a.yaml: Gadget b/a: skipped\n1 object: 0 valid, 0 refused, 1 skipped\n",
    )


def test_built_in_kinds_need_no_crd(run: Make, write: Make) -> None:
    write("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 3}")
    ran = run("validate -f a.yaml --output json")
    assert "  a.yaml:4:8: data[a]: must be a string, not a number\n" in run("validate -f a.yaml").out
    message = ran.json["objects"][0]["status"]["message"]
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in message


def test_namespaces_need_not_be_in_the_files(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("d/a.json", widget("a", "attic", size=1))
    write("d/b.json", widget("b", "cellar", size=1))
    write("d/crd.json", crd(size=SIZE))
    write("d/ns.json", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attic"}})
    assert results(run("validate -f d --output json")) == ["valid"] * 4


def test_cluster_scoped_objects_have_no_namespace(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(scope="Cluster", size=SIZE))
    write("a.json", widget("a", "attic", size=1))
    assert "a.json: Widget a: valid\n" in unplaced(run("validate -f crd.json -f a.json").out)


def test_unreadable_documents_are_refused_and_the_others_validated(
    run: Make, write: Make, crd: Make, widget: Make
) -> None:
    write("crd.json", crd(size=SIZE))
    write("a.yaml", f"a: [\n---\nb: 1\n---\n{json.dumps(widget('a', size=1))}\n")
    ran = run("validate -f none -f a.yaml -f crd.json")
    assert ran.status == 2
    assert ran.out.splitlines() == [
        "none: unreadable",
        "  none: no such file or directory",
        "a.yaml: unreadable",
        "  a.yaml:2:1: not valid YAML: did not find expected node content",
        "a.yaml, document 2: unreadable",
        "  a.yaml:3:1: not a Kubernetes object: it has no kind",
        "a.yaml, document 3: Widget default/a: valid",
        "crd.json: CustomResourceDefinition widgets.example.com: valid",
        "2 objects: 2 valid, 0 refused, 0 skipped, 3 unreadable",
    ]


def test_an_object_that_is_too_large_for_a_request(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(text={"type": "string"}))
    write("a.json", widget("a", text="x" * MAX_BODY))
    ran = run("validate -f crd.json -f a.json")
    assert f": Request entity too large: limit is {MAX_BODY}\n" in ran.out


def test_garbage_is_collected_as_before_afterwards(run: Make, write: Make, crd: Make) -> None:
    before = gc.get_threshold()
    write("crd.json", crd(size=SIZE))
    assert (run("validate crd.json").status, gc.get_threshold()) == (0, before)


# -- places and formats


PLACES = """
    # A comment.
    apiVersion: example.com/v1
    kind: Widget
    metadata:
      name: a
    spec:
      size: 0
    --- # another
    apiVersion: v1
    kind: List
    items:
    - apiVersion: example.com/v1
      kind: Widget
      metadata: {name: b, labels: {"a b": c}}
      spec:
        size: 1
        sizes:
        - 1
        - x
        color: red
"""


def test_every_finding_has_a_line_and_a_column(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size=SIZE, sizes={"type": "array", "items": {"type": "integer"}}))
    write("a.yaml", PLACES)
    ran = run("validate crd.json a.yaml")
    assert [":".join(line.split(":")[:4]) for line in ran.out.splitlines() if line.startswith("  ")] == [
        "  a.yaml:7:3: spec.size",
        "  a.yaml:14:23: metadata.labels",
        "  a.yaml:19:7: spec.sizes[1]",
        "  a.yaml:20:5: warning",
    ]


def test_paths_are_arguments_or_options(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size=SIZE))
    write("a.json", widget("a", size=1))
    for line in ("crd.json a.json", "-f crd.json a.json", "crd.json -f a.json", "-f a.json -f crd.json"):
        ran = run(f"validate {line}")
        assert (ran.status, ran.out.splitlines()[-1]) == (0, "2 objects: 2 valid, 0 refused, 0 skipped")


# -- former objects


def test_former_objects_are_updated_and_keep_errors_in_what_does_not_change(
    run: Make, write: Make, crd: Make, widget: Make
) -> None:
    write("crd.json", crd(size=SIZE, color={"type": "string"}))
    write("old/objects.json", {"kind": "List", "items": [widget("a", size=0), widget("b", size=2)]})
    write("new/objects.json", {"kind": "List", "items": [widget("a", size=0, color="red"), widget("b", size=0), widget("c", size=0)]})  # fmt: skip
    assert results(run("validate crd.json new --output json")) == ["valid", "refused", "refused", "refused"]
    ran = run("validate crd.json new --old old --output json")
    assert results(ran) == ["valid", "valid", "refused", "refused"], "only what was invalid before is ignored"


def test_former_crds_are_updated(run: Make, write: Make, crd: Make, widget: Make) -> None:
    rules = [{"rule": "self.size >= oldSelf.size", "message": "it never shrinks"}]
    spec = {"type": "object", "properties": {"size": SIZE}, "x-kubernetes-validations": rules}
    write("old/1.json", crd(size={"type": "integer"}))
    write("old/2.json", widget("a", size=0))
    write("old/3.yaml", "a: [")
    write("old/4.json", {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}})
    write("new/1.json", crd({"type": "object", "properties": {"spec": spec}}))
    write("new/2.json", widget("a", size=-1))
    ran = run("validate new --old old")
    assert unplaced(ran.out).splitlines()[3:-1] == [
        "new/2.json: Widget default/a: refused, as an update by kubectl apply",
        "  spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 1",
        "  spec: Invalid value: it never shrinks",
    ]
    write("cluster.json", crd(size=SIZE, scope="Cluster"))
    assert "spec.scope: Invalid value" in run("validate cluster.json --old old").out


def test_former_built_in_objects_are_updated(run: Make, write: Make) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque"}
    write("old.json", secret)
    write("new.json", {**secret, "type": "other"})
    ran = run("validate new.json --old old.json")
    assert 'type: Invalid value: "other": field is immutable' in ran.out


BUILT_IN: list[Any] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
    {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}}},
    {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"metadata": {"labels": {"c": "d"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x"},
]  # fmt: skip


@pytest.mark.parametrize("value", BUILT_IN, ids=[value["kind"] for value in BUILT_IN])
def test_an_object_is_a_valid_update_of_itself(run: Make, write: Make, value: Any) -> None:
    for name, metadata in (("a.json", {}), ("exported.json", {"uid": "1-2", "generation": 3, "resourceVersion": "7"})):
        write(name, {**value, "metadata": {"name": "a", **metadata}})
    for line in ("a.json --old a.json", "a.json --old exported.json", "exported.json --old a.json", "a.json exported.json a.json"):  # fmt: skip
        assert run(f"validate {line}").status == 0, line


# -- independent files


def test_independent_files_do_not_update_each_other(run: Make, write: Make, crd: Make, widget: Make) -> None:
    rules = [{"rule": "self.size >= oldSelf.size"}]
    spec = {"type": "object", "properties": {"size": SIZE}, "x-kubernetes-validations": rules}
    write("crd.json", crd({"type": "object", "properties": {"spec": spec}}))
    write("staging/a.json", widget("a", size=3))
    write("production/a.json", {"kind": "List", "items": [widget("a", size=2), widget("a", size=1)]})
    paths = "crd.json staging production --output json"
    assert results(run(f"validate {paths}")) == ["valid", "valid", "refused", "refused"]
    assert results(run(f"validate --independent {paths}")) == ["valid", "valid", "valid", "refused"]


def test_independent_files_may_have_their_own_crds(run: Make, write: Make, crd: Make, widget: Make) -> None:
    for name, minimum in (("a", 1), ("b", 7)):
        text = "\n---\n".join(map(json.dumps, (crd(size={"type": "integer", "minimum": minimum}), widget("x", size=3))))
        write(f"{name}.yaml", text)
    assert results(run("validate --independent a.yaml b.yaml --output json")) == ["valid", "valid", "valid", "refused"]


# -- kinds


def test_kinds_are_skipped_and_rejected(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size=SIZE))
    write("a.json", widget("a", size=0))
    write("pod.json", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    ran = run("validate crd.json a.json pod.json --skip Gadget,example.com/v1/Widget --reject v1/Pod")
    assert ran.status == 1
    assert ran.out.splitlines()[1:] == [
        "a.json: Widget a: skipped",
        "pod.json: Pod p: refused",
        "  pod.json:1:22: kind: the kind Pod is rejected, as --reject says",
        "3 objects: 1 valid, 1 refused, 1 skipped",
    ]


# -- objects that occur twice


def test_an_object_that_occurs_twice_is_an_update(run: Make, write: Make, crd: Make, widget: Make) -> None:
    rules = [{"rule": "self.size >= oldSelf.size", "message": "it never shrinks"}]
    spec = {"type": "object", "properties": {"size": SIZE}, "x-kubernetes-validations": rules}
    write("crd.json", crd({"type": "object", "properties": {"spec": spec}}))
    sizes = [widget("a", size=2), widget("a", size=3), widget("b", size=1), widget("a", size=1)]
    write("a.json", {"kind": "List", "items": sizes})
    ran = run("validate -f crd.json -f a.json")
    assert ran.status == 1
    assert unplaced(ran.out).splitlines()[1:] == [
        "a.json: Widget default/a: valid",
        "a.json: Widget default/a: valid, as an update by kubectl apply",
        "a.json: Widget default/b: valid",
        "a.json: Widget default/a: refused, as an update by kubectl apply",
        "  spec: Invalid value: it never shrinks",
        "5 objects: 4 valid, 1 refused, 0 skipped",
    ]


def test_cel_rules_are_evaluated(run: Make, write: Make, crd: Make, widget: Make) -> None:
    rules = [{"rule": "self.size % 2 == 0", "messageExpression": "self.size < 4 ? 'odd, and small' : 'odd'"}]
    spec = {"type": "object", "properties": {"size": SIZE}, "x-kubernetes-validations": rules}
    write("crd.json", crd({"type": "object", "properties": {"spec": spec}}))
    write("a.json", {"kind": "List", "items": [widget("a", size=2), widget("b", size=3)]})
    ran = run("validate -f crd.json -f a.json")
    assert ran.status == 1
    assert unplaced(ran.out).splitlines()[1:-1] == [
        "a.json: Widget default/a: valid",
        "a.json: Widget default/b: refused",
        "  spec: Invalid value: odd, and small",
    ]


def test_immutable_fields_cannot_be_changed(run: Make, write: Make) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque"}
    write("a.json", {"kind": "List", "items": [secret, {**secret, "type": "other"}]})
    ran = run("validate -f a.json")
    assert '  type: Invalid value: "other": field is immutable' in unplaced(ran.out)


def test_crds_that_occur_twice_are_updates_of_crds(run: Make, write: Make, crd: Make, widget: Make) -> None:
    cluster = crd(size=SIZE, scope="Cluster")
    write("d/1.json", crd(size=SIZE))
    write("d/2.json", widget("a", size=0))
    write("d/3.json", crd(size={"type": "integer"}))
    write("d/4.json", cluster)
    ran = run("validate -f d")
    assert [line for line in unplaced(ran.out).splitlines() if "refused" in line] == [
        "d/4.json: CustomResourceDefinition widgets.example.com: refused, as an update by kubectl apply",
        "4 objects: 3 valid, 1 refused, 0 skipped",
    ]
    assert '  spec.scope: Invalid value: "Cluster": field is immutable' in unplaced(ran.out)


# -- CRDs


def test_the_objects_of_a_refused_crd_are_refused(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size={}))
    write("a.json", widget("a", size=1))
    ran = run("validate -f crd.json -f a.json")
    assert ran.status == 1
    assert (
        "CustomResourceDefinition widgets.example.com: refused\n  spec.versions[0].schema.openAPIV3Schema"
        in unplaced(ran.out)
    )
    assert '  no matches for kind "Widget" in version "example.com/v1": load its CRD, too\n' in unplaced(ran.out)


def test_a_crd_with_conflicting_names_is_accepted_and_not_served(run: Make, write: Make, crd: Make) -> None:
    other = crd(size=SIZE)
    other["metadata"]["name"], other["spec"]["names"]["plural"] = "wodgets.example.com", "wodgets"
    write("crds.json", {"kind": "List", "items": [crd(size=SIZE), other]})
    ran = run("validate --output json -f crds.json")
    first, second = ran.json["objects"]
    assert (first["warnings"], second["result"]) == ([], "valid")
    assert second["warnings"] == [
        'not served: NamesAccepted is False: "WidgetList" is already in use',
        "not served: Established is False: not all names are accepted",
    ]


def test_deprecated_versions_cause_warnings(run: Make, write: Make, crd: Make, widget: Make) -> None:
    deprecated = crd(size=SIZE)
    deprecated["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "use gears"}
    write("crd.json", deprecated)
    write("a.json", widget("a", size=0))
    assert f"  {TOO_SMALL}\n  warning: use gears\n" in unplaced(run("validate -f crd.json -f a.json").out)


def test_a_crd_of_v1beta1_is_read_as_v1(run: Make, write: Make, old_crd: Make, widget: Make) -> None:
    write("crd.json", old_crd({"properties": {"spec": {"type": "object", "properties": {"size": SIZE}}}}))
    write("a.json", widget("a", size=0))
    ran = run("validate -f crd.json -f a.json")
    assert unplaced(ran.out).splitlines()[:4] == [
        "crd.json: CustomResourceDefinition widgets.example.com: valid",
        "  warning: apiVersion: apiextensions.k8s.io/v1beta1 became apiextensions.k8s.io/v1",
        "  warning: spec.versions[0].schema.openAPIV3Schema: type: object added",
        "a.json: Widget default/a: refused",
    ]


def test_a_crd_of_v1beta1_without_a_structural_form_is_refused(run: Make, write: Make, old_crd: Make) -> None:
    write(
        "crd.json",
        old_crd({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "object"}]}}}),
    )
    ran = run("validate -f crd.json")
    assert ran.status == 1
    lines = unplaced(ran.out).splitlines()
    assert lines[:2] == [
        "crd.json: CustomResourceDefinition widgets.example.com: refused",
        "  this v1beta1 CRD has no structural v1 form, which servers require:",
    ]
    assert lines[2].startswith("    spec.validation.openAPIV3Schema.properties[a]")
    assert lines[-2] == "  `noxu lint crd.json` lists the necessary changes"


# -- arguments


ARGUMENTS: list[tuple[str, str]] = [
    ("validate", "give a PATH: a file, a directory, or - for stdin"),
    (
        "validate -f a --data b",
        "--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored",
    ),
    (
        "validate -f a --server b",
        "--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored",
    ),
    (
        "validate -f a --context b",
        "--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored",
    ),
    ("validate --stored --data a --server b", "argument --server: not allowed with argument --data"),
    (
        "validate a --skip a/b/c/D",
        "argument --skip: must be KIND, VERSION/KIND or GROUP/VERSION/KIND, such as apps/v1/Deployment",
    ),
    ("validate --stored --output junit", "--stored has no output format junit"),
    *(
        (
            f"validate --stored {option}",
            f"{option.split()[0]}: stored objects are validated as they are; the option is for objects in files",
        )
        for option in (
            "--old a",
            "--independent",
            "--skip Pod",
            "--reject Pod",
            "--allow-empty",
            "--strict",
            "--ignore-unknown-kinds",
            "--feature-gates CRDValidationRatcheting=false",
            "-j 1",
            "--no-cache",
        )
    ),
    ("validate --stored --context a", "--context needs --kubeconfig"),
    ("validate --stored --insecure-skip-tls-verify", "--insecure-skip-tls-verify needs --server or --kubeconfig"),
    ("migrate --context a --server http://b", "--context needs --kubeconfig"),
]


@pytest.mark.parametrize(("line", "why"), ARGUMENTS)
def test_invalid_combinations_of_arguments(run: Make, line: str, why: str) -> None:
    ran = run(line)
    assert ran.status == 2
    assert ran.err.splitlines()[-1].endswith(f"error: {why}")


MEANT: list[tuple[str, Any, str]] = [
    ("a field that is misspelt", {"siez": 1}, "Did you mean spec.size?"),
    ("a field of another object", {"nested": {"size": 1}}, "Did you mean spec.size?"),
    ("a field like no other", {"xyz": 1}, ""),
]


@pytest.mark.parametrize(("spec", "advice"), [row[1:] for row in MEANT], ids=[row[0] for row in MEANT])
@pytest.mark.parametrize("options", ["", "--strict"])
def test_the_field_that_was_probably_meant_is_named(
    run: Make, write: Make, crd: Make, widget: Make, spec: Any, advice: str, options: str
) -> None:
    write("crd.json", crd(size=SIZE, nested={"type": "object", "properties": {"other": {"type": "string"}}}))
    write("a.json", widget("a", **spec))
    for _ in range(2):  # found, and kept
        [_, checked] = run(f"validate crd.json a.json --output json {options}").json["objects"]
        assert [(each["rule"], each["advice"]) for each in checked["findings"]] == [("unknown-field", advice)]


def test_no_files_are_written(run: Make, write: Make, crd: Make, here: Path) -> None:
    write("crd.json", crd(size=SIZE))
    run("validate -f crd.json")
    assert [path.name for path in here.iterdir()] == ["crd.json"]


def test_conversion_webhooks_are_not_called(run: Make, write: Make, crd: Make, widget: Make) -> None:
    definition = crd(size={"type": "integer"})
    definition["spec"]["versions"].append({**definition["spec"]["versions"][0], "name": "v2", "storage": False})
    config = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    write("crd.json", definition)
    write("good.json", {**widget("good", size=1), "apiVersion": "example.com/v2"})
    write("bad.json", {**widget("bad", size="large"), "apiVersion": "example.com/v2"})
    ran = run("validate -f crd.json -f good.json -f bad.json")
    assert unplaced(ran.out).splitlines()[-1] == "3 objects: 2 valid, 1 refused, 0 skipped"
    assert "conversion webhook" not in unplaced(ran.out)


def test_schemas_by_name_stand_for_crds(run: Make, write: Make, widget: Make) -> None:
    spec = {"type": "object", "properties": {"size": SIZE}, "additionalProperties": False}
    write("objects.json", {"kind": "List", "items": [widget("a", size=1), widget("b", size=0)]})
    write("bundle/example.com/widget_v1.json", {"type": "object", "properties": {"spec": spec}})
    for _ in range(2):  # then from the kept results
        ran = run("validate --schemas bundle objects.json")
        assert (ran.status, unplaced(ran.out).splitlines()[2]) == (1, f"  {TOO_SMALL}")
        assert "2 objects: 1 valid, 1 refused" in ran.out
        assert results(run("validate --output json --schemas bundle objects.json")) == ["valid", "refused"]
    write(
        "bundle/example.com/widget_v1.json",
        {"type": "object", "properties": {"spec": {"type": "object", "default": 1}}},
    )
    refused = run("validate --schemas bundle objects.json")
    assert "bundle/example.com/widget_v1.json: CustomResourceDefinition widgets.example.com: refused" in refused.out
    assert run("validate --schemas absent objects.json").status == 2
