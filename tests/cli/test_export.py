"""`noxu export`: which objects, which of their fields, and where they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from noxu.apply.merging import ANNOTATION
from noxu.commands import exported
from noxu.commands.exported import Exported, cleaned, is_made_by_servers, path_of
from noxu.manifests.files import files
from noxu.testing.handle import Noxu
from noxu.values import Json
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Key

Run = Callable[..., Any]

OBJECTS: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: v1
kind: Namespace
metadata: {name: attic, labels: {team: x}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: small, labels: {app: web}}
spec: {text: "<é>\\n", number: 1.5, yes: "on"}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: large, namespace: attic, finalizers: [example.com/hold]}
spec: {list: [1, {a: null}]}
---
apiVersion: v1
kind: Service
metadata: {name: chosen}
spec: {type: NodePort, clusterIP: 10.0.0.7, ports: [{port: 80, nodePort: 30012}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 10
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {priorityClassName: high, containers: [{name: a, image: b}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: Secret
metadata: {name: token, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "Read:all"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [nodes]}]}
  validations: [{expression: "true"}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "objects.yaml").write_text(OBJECTS)
    with Noxu(folder, [folder / "objects.yaml"], data=folder / "data") as noxu:
        owner = noxu.get("Widget", "small")["metadata"]
        noxu.patch("Widget", "small", {"status": {"done": True}}, subresource="status")
        noxu.patch("Namespace", "default", {"metadata": {"labels": {"mine": "1"}}})
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "small", "uid": owner["uid"]}
        metadata = {"name": "owned", "namespace": "default", "ownerReferences": [reference]}
        noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        yield noxu


def names(text: str) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in yaml.safe_load_all(text)]


EVERYTHING: Final = [
    "CustomResourceDefinition widgets.example.com", "Namespace attic", "Namespace default", "PriorityClass high",
    "ServiceAccount robot", "PersistentVolumeClaim claim", "ClusterRole Read:all", "Service chosen", "Service headless",
    "Service web", "Pod p", "Job j", "Widget large", "Widget small", "ValidatingAdmissionPolicy policy",
]  # fmt: skip


def test_what_people_have_made_is_exported_in_an_order_in_which_it_can_be_created(server: Noxu, run: Run) -> None:
    ran = run(f"export --kubeconfig {server.kubeconfig}")
    assert ran.status == 0
    assert names(ran.out) == EVERYTHING
    assert ran.err.startswith("noxu: 15 objects exported; left out: ")
    assert "that servers make, 1 that others own (--owned)\n" in ran.err
    for each in yaml.safe_load_all(ran.out):
        assert set(each["metadata"]) <= {"name", "namespace", "labels", "annotations", "finalizers"}
        assert "status" not in each
        assert ANNOTATION not in each["metadata"].get("annotations", {})


def test_an_export_that_is_loaded_is_exported_again(server: Noxu, run: Run, here: Path) -> None:
    """From a running server, from a data directory, and from a server that has loaded it from a folder."""
    assert run(f"export --kubeconfig {server.kubeconfig} --to first").status == 0
    first = {str(path.relative_to("first")): path.read_text() for path in Path("first").rglob("*.yaml")}
    assert len(first) == len(EVERYTHING)
    with Noxu(here / "k", [here / "first"], data=here / "data") as other:
        assert run(f"export --server {other.url} --to second").status == 0
        one = run(f"export --server {other.url}").out
    assert run("export --data data --to third").status == 0
    for folder in ("second", "third"):
        assert {str(path.relative_to(folder)): path.read_text() for path in Path(folder).rglob("*.yaml")} == first
    (here / "one.yaml").write_text(one)
    with Noxu(here / "k", [here / "one.yaml"]) as third:
        assert run(f"export --server {third.url}").out == one


SELECTED: list[tuple[str, list[str]]] = [
    ("widgets", ["Widget large", "Widget small"]),
    ("wd,priorityclasses.scheduling.k8s.io", ["PriorityClass high", "Widget large", "Widget small"]),
    ("Widget -n attic", ["Widget large"]),
    ("-n attic", ["Widget large"]),
    ("ns,widget -n attic", ["Namespace attic", "Namespace default", "Widget large"]),
    ("-l app=web", ["Service web", "Widget small"]),
    ("-A -l app=web svc", ["Service web"]),
    ("configmaps --owned", ["ConfigMap owned"]),
    ("configmaps", []),
    ("-n nowhere", []),
    ("all", ["Service chosen", "Service headless", "Service web", "Pod p", "Job j"]),
]


@pytest.mark.parametrize(("arguments", "expected"), SELECTED, ids=[row[0] for row in SELECTED])
def test_objects_are_selected_as_kubectl_does(server: Noxu, run: Run, arguments: str, expected: list[str]) -> None:
    ran = run(f"export --kubeconfig {server.kubeconfig} {arguments}")
    assert (ran.status, names(ran.out)) == (0, expected)


def test_what_was_chosen_stays_and_what_was_allocated_goes(server: Noxu, run: Run) -> None:
    out = run(f"export --kubeconfig {server.kubeconfig} services,jobs,pods").out
    found = {each["metadata"]["name"]: each for each in yaml.safe_load_all(out)}
    assert found["chosen"]["spec"]["clusterIP"] == "10.0.0.7"
    assert found["chosen"]["spec"]["ports"][0]["nodePort"] == 30012
    assert "clusterIP" not in found["web"]["spec"]
    assert "nodePort" not in found["web"]["spec"]["ports"][0]
    assert found["headless"]["spec"]["clusterIP"] == "None"
    assert "selector" not in found["j"]["spec"]
    assert found["j"]["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
    assert "volumes" not in found["p"]["spec"]


REFUSED: list[tuple[str, str, int]] = [
    ("widgt", 'noxu: there is no resource type "widgt" (did you mean widget?)', 1),
    ("-l a=b=c", "noxu export: error: argument --selector: ", 2),
    ("-n a -A", "noxu export: error: --namespace and --all-namespaces exclude each other", 2),
    ("--to foreign.yaml", "noxu: foreign.yaml exists and was not written by noxu export, so it is not overwritten", 1),
    ("--to folder", "noxu: folder/2-namespaces/attic.yaml exists and was not written by noxu export, so it is not overwritten", 1),
    ("--to none/a.yaml", "noxu: cannot write ", 1),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "why", "status"), REFUSED, ids=[row[0] for row in REFUSED])
def test_it_is_refused(server: Noxu, run: Run, write: Run, here: Path, arguments: str, why: str, status: int) -> None:
    write("foreign.yaml", "a: 1\n")
    write("folder/2-namespaces/attic.yaml", "a: 1\n")
    ran = run(f"export --kubeconfig {server.kubeconfig} {arguments}")
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.splitlines()[-1].startswith(why)
    assert sorted(str(path) for path in here.rglob("*.yaml")) == [
        str(here / "folder/2-namespaces/attic.yaml"),
        str(here / "foreign.yaml"),
    ]
    assert (here / "foreign.yaml").read_text() == "a: 1\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--data none", "none/noxu.db is not a file; name a data directory with --data, a running server with"),
        ("--server http://127.0.0.1:1", "noxu: http://127.0.0.1:1 does not answer: "),
        ("--kubeconfig none", "noxu: none: No such file or directory"),
    ],
)
def test_there_is_nothing_to_export_from(run: Run, arguments: str, why: str) -> None:
    ran = run(f"export {arguments}")
    assert (ran.status, ran.out) == (1, "")
    assert why in ran.err


def test_a_data_directory_in_use_says_how_to_export_from_it(server: Noxu, run: Run) -> None:
    data = server.kubeconfig.parent / "data"
    ran = run(f"export --data {data}")
    assert (ran.status, ran.out) == (1, "")
    assert f"; export from it with --kubeconfig {data / 'kubeconfig'}, or stop it" in ran.err


def test_objects_that_no_definition_describes_are_counted(run: Run, here: Path) -> None:
    async def filled() -> None:
        store = await SqliteStore.open(here / "data" / "noxu.db")
        await store.put(Key("example.com/gears", "default/", "a"), b"{}", expected=0)
        await store.close()

    asyncio.run(filled())
    ran = run("export --data data")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines()[0] == (
        "noxu: 1 object is of a kind that no definition describes: export from a server that serves it"
    )


def test_an_export_overwrites_its_own_files_and_names_those_that_are_left(server: Noxu, run: Run, here: Path) -> None:
    assert run(f"export --kubeconfig {server.kubeconfig} --to d widgets").status == 0
    ran = run(f"export --kubeconfig {server.kubeconfig} --to d widgets -n attic")
    assert ran.err.splitlines()[-1] == (
        "noxu: of an earlier export, and not of this one: d/4-objects/default/widgets.example.com_small.yaml"
    )
    assert len(list((here / "d").rglob("*.yaml"))) == 2
    assert run(f"export --kubeconfig {server.kubeconfig} --quiet --to a.yaml").err == ""
    assert run(f"export --kubeconfig {server.kubeconfig} --to a.yaml widgets").status == 0
    assert names((here / "a.yaml").read_text()) == ["Widget large", "Widget small"]


NAMES: Final = [
    "a",
    "a.b-c",
    "values",
    "my-values",
    "..",
    ".a",
    "A",
    "a:b",
    "a%b",
    "é",
    "Chart",
    "kustomization",
    "a" * 253,
]


def test_every_name_has_a_file_of_its_own_that_is_read_in_a_folder(tmp_path: Path) -> None:
    objects = [
        Exported("", "configmaps", "ConfigMap", "default", name, {"apiVersion": "v1", "kind": "ConfigMap"})
        for name in [*NAMES, "b" * 252 + "c", "b" * 252 + "d"]
    ]
    objects += [each._replace(namespace="values", plural="widgets", group="example.com") for each in objects]
    assert exported.write_folder(tmp_path, objects) == []
    found, skipped = files(tmp_path)
    assert len(found) == len({str(path).lower() for path in found}) == len(objects)
    assert skipped == []
    assert {path_of(each).parent.name for each in objects} == {"default", exported.safe("values")}


CLEANED: list[tuple[str, Json, Json]] = [
    ("a claim's volume", {"kind": "PersistentVolumeClaim", "spec": {"volumeName": "v"}}, {"kind": "PersistentVolumeClaim", "spec": {}}),
    ("a chosen volume", {"kind": "PersistentVolumeClaim", "metadata": {"managedFields": [{"fieldsV1": {"f:spec": {"f:volumeName": {}}}}]}, "spec": {"volumeName": "v"}}, {"kind": "PersistentVolumeClaim", "spec": {"volumeName": "v"}}),
    ("a volume's claim", {"kind": "PersistentVolume", "spec": {"claimRef": {"name": "a", "uid": "u", "resourceVersion": "1"}}}, {"kind": "PersistentVolume", "spec": {"claimRef": {"name": "a"}}}),
    ("a pod's node, and its token", {"kind": "Pod", "spec": {"nodeName": "n", "volumes": [{"name": "kube-api-access-x"}], "containers": [{"name": "a", "volumeMounts": [{"name": "kube-api-access-x"}, {"name": "b"}]}]}}, {"kind": "Pod", "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "b"}]}]}}),
    ("annotations of controllers", {"kind": "X", "metadata": {"annotations": {"deployment.kubernetes.io/revision": "1", "a": "b"}}}, {"kind": "X", "metadata": {"annotations": {"a": "b"}}}),
    ("finalizers of controllers", {"kind": "X", "metadata": {"finalizers": ["foregroundDeletion", "kubernetes.io/pvc-protection"]}}, {"kind": "X"}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), [row[1:] for row in CLEANED], ids=[row[0] for row in CLEANED])
def test_objects_of_clusters_are_cleaned(value: Any, expected: Any) -> None:
    assert cleaned(value, "", has_status=True) == {"metadata": {}, **expected}


MADE: Final[list[Any]] = [
    {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": "any"}},
    {"kind": "Endpoints", "metadata": {"name": "kubernetes", "namespace": "default"}},
    {"kind": "ClusterRole", "metadata": {"name": "admin", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}},
    {"kind": "EndpointSlice", "metadata": {"name": "a", "labels": {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}}},
    {"kind": "Secret", "metadata": {"name": "a"}, "type": "kubernetes.io/service-account-token"},
]  # fmt: skip


@pytest.mark.parametrize("value", MADE, ids=[each["kind"] for each in MADE])
def test_what_clusters_make_by_themselves_is_left_out(value: Any) -> None:
    assert is_made_by_servers(value, "")
    assert not is_made_by_servers({"kind": value["kind"], "metadata": {"name": "mine", "namespace": "default"}}, "")
