"""Which files of a directory are manifests, and what is said about the others."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from noxu.manifests import files as manifest_files
from noxu.manifests.documents import read_paths
from noxu.manifests.files import LoadError, content, files

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
ANNOTATED_CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {a: b}}\n"
)

KUBEBUILDER = {
    "kustomization.yaml": "resources:\n- bases/a.yaml\npatches:\n- path: patches/a.yaml\nconfigurations:\n- kustomizeconfig.yaml\n",
    "bases/a.yaml": f"{CRD}spec: {{group: g}}\n",
    "patches/a.yaml": f"{CRD}spec: {{conversion: {{strategy: Webhook}}}}\n",
    "patches/unused.yaml": f"{CRD}spec: {{conversion: {{strategy: Webhook}}}}\n",
    "kustomizeconfig.yaml": "nameReference: []\n",
}
A_PATCH_BY_NAME = "skipped: it is a patch by its name, and no kustomization names it as a resource"
A_KUSTOMIZATION = "skipped: it is a kustomization: noxu serve -k"

DIRECTORIES: list[tuple[str, Mapping[str, str], list[str], list[str]]] = [
    ("only manifests", {"b.yaml": OBJECT, "a.json": "{}", "c/d.yml": OBJECT}, ["a.json", "b.yaml", "c/d.yml"], []),
    ("hidden files and other ones", {".a.yaml": OBJECT, ".d/a.yaml": OBJECT, "README.md": "", "b.yaml": OBJECT}, ["b.yaml"], []),
    ("the CRDs of kubebuilder", KUBEBUILDER, ["bases/a.yaml"], [
        f"d/kustomization.yaml: {A_KUSTOMIZATION} d",
        "d/kustomizeconfig.yaml: skipped: d/kustomization.yaml does not name it as a resource",
        "d/patches/a.yaml: skipped: d/kustomization.yaml does not name it as a resource",
        f"d/patches/unused.yaml: {A_PATCH_BY_NAME}",
    ]),
    ("patches that a kustomization names in comments", {
        "default/kustomization.yaml": "resources:\n- ../a\n#- s.yaml\n#patchesStrategicMerge:\n# See the book.\n#- manager.yaml\n# - 'auth.yaml' # or this\n#- path: ca.yaml\n#  target: {kind: X}\nvars:\n#- b.yaml\n",
        **{f"default/{name}.yaml": OBJECT for name in ("manager", "auth", "ca", "s", "b")},
    }, ["default/b.yaml", "default/s.yaml"], [
        "d/default/auth.yaml: skipped: d/default/kustomization.yaml does not name it as a resource",
        "d/default/ca.yaml: skipped: d/default/kustomization.yaml does not name it as a resource",
        f"d/default/kustomization.yaml: {A_KUSTOMIZATION} d/default",
        "d/default/manager.yaml: skipped: d/default/kustomization.yaml does not name it as a resource",
    ]),
    ("patches by their names", {"kustomization.yaml": "resources: [x_patch.yaml]", **dict.fromkeys(["a_patch.yaml", "x_patch.yaml", "patch-b.yml", "dispatch.yaml", "patches/c.yaml"], OBJECT)}, ["dispatch.yaml", "x_patch.yaml"], [
        f"d/a_patch.yaml: {A_PATCH_BY_NAME}",
        f"d/kustomization.yaml: {A_KUSTOMIZATION} d",
        f"d/patch-b.yml: {A_PATCH_BY_NAME}",
        f"d/patches/c.yaml: {A_PATCH_BY_NAME}",
    ]),
    ("names of patches without a kustomization", {"a_patch.yaml": OBJECT, "patches/c.yaml": OBJECT, "k/kustomization.yaml": ""}, ["a_patch.yaml", "patches/c.yaml"], [f"d/k/kustomization.yaml: {A_KUSTOMIZATION} d/k"]),
    ("a patch that another kustomization has as a resource", {"x/kustomization.yaml": "patches: [{path: ../a.yaml}]", "kustomization.yaml": "resources: [a.yaml]", "a.yaml": OBJECT}, ["a.yaml"], [
        f"d/kustomization.yaml: {A_KUSTOMIZATION} d",
        f"d/x/kustomization.yaml: {A_KUSTOMIZATION} d/x",
    ]),
    ("a directory of transformers", {"kustomization.yaml": "transformers: [t]\ncomponents: [c]", "t/kustomization.yaml": "resources: [a.yaml]", "t/a.yaml": OBJECT, "c/kustomization.yaml": "resources: [a.yaml]", "c/a.yaml": OBJECT}, ["c/a.yaml"], [
        f"d/c/kustomization.yaml: {A_KUSTOMIZATION} d/c",
        f"d/kustomization.yaml: {A_KUSTOMIZATION} d",
        "d/t/a.yaml: skipped: d/kustomization.yaml does not name it as a resource",
        f"d/t/kustomization.yaml: {A_KUSTOMIZATION} d/t",
    ]),
    ("steps of kuttl", {"00-install.yaml": OBJECT, "00-assert.yaml": OBJECT, "01-errors.yaml": OBJECT, "chainsaw-assert-ready.yaml": OBJECT}, ["00-install.yaml"], [
        "d/00-assert.yaml: skipped: it is an assertion of kuttl or chainsaw",
        "d/01-errors.yaml: skipped: it is an assertion of kuttl or chainsaw",
        "d/chainsaw-assert-ready.yaml: skipped: it is an assertion of kuttl or chainsaw",
    ]),
    ("patches of a directory above", {"x/kustomization.yml": "patchesStrategicMerge: [../p.yaml]", "p.yaml": OBJECT}, [], [
        "d/p.yaml: skipped: d/x/kustomization.yml does not name it as a resource",
        f"d/x/kustomization.yml: {A_KUSTOMIZATION} d/x",
    ]),
    ("a patch in the kustomization itself", {"kustomization.yaml": "patches:\n- patch: |-\n    a: b\n  target: {}\n", "a.yaml": OBJECT}, ["a.yaml"], [f"d/kustomization.yaml: {A_KUSTOMIZATION} d"]),
    ("parts of ConfigMaps", {"kustomization.yaml": "configMapGenerator:\n- {name: a, files: [config.yaml, key=other.json]}\n", "config.yaml": "a: 1", "other.json": "{}", "a.yaml": OBJECT}, ["a.yaml"], [
        "d/config.yaml: skipped: d/kustomization.yaml does not name it as a resource",
        f"d/kustomization.yaml: {A_KUSTOMIZATION} d",
        "d/other.json: skipped: d/kustomization.yaml does not name it as a resource",
    ]),
    ("a kustomization that cannot be read", {"kustomization.yaml": "a: [", "a.yaml": OBJECT}, ["a.yaml"], [f"d/kustomization.yaml: {A_KUSTOMIZATION} d"]),
    ("a kustomization that is a list", {"kustomization.yaml": "- a", "a.yaml": OBJECT}, ["a.yaml"], [f"d/kustomization.yaml: {A_KUSTOMIZATION} d"]),
    ("values", {"values.yaml": "kind: a", "values-prod.yaml": "", "prod.values.yml": "", "values": "", "a.yaml": OBJECT}, ["a.yaml"], [
        "d/prod.values.yml: skipped: it has values for templates",
        "d/values-prod.yaml: skipped: it has values for templates",
        "d/values.yaml: skipped: it has values for templates",
    ]),
    ("a chart", {"c/Chart.yaml": "name: c", "c/values.yaml": "", "c/templates/a.yaml": "{{ x }}", "c/crds/a.yaml": CRD, "b.yaml": OBJECT}, ["b.yaml", "c/crds/a.yaml"], [
        "d/c: skipped: it is a Helm chart: helm template d/c --include-crds | noxu serve -",
    ]),
    ("a chart with subcharts", {"c/Chart.yaml": "name: c", "c/crds/z.yaml": CRD, "c/charts/s/Chart.yaml": "name: s", "c/charts/s/crds/a/b.yml": CRD, "c/charts/s/a.yaml": OBJECT, "c/charts/s/charts/t/Chart.yaml": "", "c/charts/s/charts/t/crds/a.json": "{}"}, ["c/charts/s/charts/t/crds/a.json", "c/charts/s/crds/a/b.yml", "c/crds/z.yaml"], [
        "d/c: skipped: it is a Helm chart: helm template d/c --include-crds | noxu serve -",
    ]),
    ("a subchart that is disabled", {"c/Chart.yaml": "dependencies: [{name: s, condition: s.used}]", "c/values.yaml": "s: {used: false}", "c/charts/s/Chart.yaml": "name: s", "c/charts/s/crds/a.yaml": CRD}, [], [
        "d/c: skipped: it is a Helm chart: helm template d/c --include-crds | noxu serve -",
        "d/c/charts/s: skipped: helm does not install this subchart: s.used is false in its values",
    ]),
    ("archives", {"a.tar.gz": "", "b.tgz": "", "c.zip": "", "d.yaml.gz": "", "e.gz": ""}, ["d.yaml.gz"], [
        "d/a.tar.gz: skipped: it is an archive: unpack it, and name the files",
        "d/b.tgz: skipped: it is an archive: unpack it, and name the files",
        "d/c.zip: skipped: it is an archive: unpack it, and name the files",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "manifests", "notes"), [row[1:] for row in DIRECTORIES], ids=[row[0] for row in DIRECTORIES]
)
def test_the_manifests_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Mapping[str, str], manifests: list[str], notes: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in found.items():
        path = Path("d") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    read, skipped = files(Path("d"), "serve")
    assert [str(path.relative_to("d")) for path in read] == manifests
    assert list(map(str, skipped)) == notes


URL = "https://example.com/a.yaml"
REFUSED: list[tuple[str, str, str, str]] = [
    ("a URL", URL, "serve", f"{URL}: it is a URL, not a file: curl -fsSL {URL} | noxu serve -"),
    ("a URL of another command", URL, "lint", f"{URL}: it is a URL, not a file: curl -fsSL {URL} | noxu lint -"),
    ("a URL in a test", URL, "", f"{URL}: it is a URL, not a file: curl -fsSL {URL}"),
    ("a missing file", "a.yaml", "serve", "a.yaml: no such file or directory"),
    ("a kustomization", "kustomization.yaml", "serve", "kustomization.yaml: it is a kustomization: noxu serve -k ."),
    ("a kustomization of another command", "kustomization.yaml", "validate", "kustomization.yaml: it is a kustomization: kubectl kustomize . | noxu validate -"),
    ("a kustomization in a test", "kustomization.yaml", "", "kustomization.yaml: it is a kustomization: kubectl kustomize ."),
    ("an archive", "a.tgz", "serve", "a.tgz: it is an archive: unpack it, and name the files"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "command", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_named_file_is_refused_if_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for existing in ("kustomization.yaml", "a.tgz"):
        Path(existing).touch()
    with pytest.raises(LoadError) as refused:
        files(Path(name), command)
    assert str(refused.value) == why


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml.gz"
    path.write_bytes(gzip.compress(OBJECT.encode()))
    assert content(path) == OBJECT.encode()
    assert [document.name for document in read_paths([tmp_path, path])] == ["a", "a"]
    path.write_bytes(gzip.compress(b"kind: ") + gzip.compress(b"A"))
    assert content(path) == b"kind: A"


BROKEN = [
    ("another format", b"kind: A", "Not a gzipped file (b'ki')"),
    (
        "an incomplete file",
        gzip.compress(b"a" * 99)[:-9],
        "Compressed file ended before the end-of-stream marker was reached",
    ),
    ("a file that is too large", gzip.compress(b"a" * 1001), "it has more than 1000 bytes when it is decompressed"),
]


@pytest.mark.parametrize(("body", "why"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_compressed_file_that_is_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, why: str
) -> None:
    monkeypatch.setattr(manifest_files, "MAX_DECOMPRESSED", 1000)
    path = tmp_path / "a.yaml.gz"
    path.write_bytes(body)
    [document] = read_paths([path])
    assert document.error == why


SKIPPED: list[tuple[str, str, str]] = [
    ("neither an apiVersion nor a kind", "nameReference: []\n---\na: 1", "it has neither an apiVersion nor a kind"),
    ("a list", "- a", "it has neither an apiVersion nor a kind"),
    ("a transformer of kustomize", "apiVersion: builtin\nkind: LabelTransformer", "it is for kustomize"),
    ("a component of kustomize", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component", "it is for kustomize"),
    ("a transformer beside what is none", "apiVersion: builtin\nkind: LabelTransformer\n---\n- {op: add, path: /a, value: 1}", "it is for kustomize"),
    ("operations", "- {op: remove, path: /a}", "it is a JSON patch"),
    ("a patch of a CRD", f"{CRD}spec: {{conversion: {{strategy: None}}}}", "it is a patch of a CRD: its spec has none of group, names, scope, versions"),
    ("a patch of the annotations of a CRD", ANNOTATED_CRD, "it is a patch of a CRD: it has no spec"),
    ("a patch with an empty spec", f"{ANNOTATED_CRD}spec:\n", "it is a patch of a CRD: it has no spec"),
    ("a patch of a CRD of v1beta1", ANNOTATED_CRD.replace("/v1", "/v1beta1"), "it is a patch of a CRD: it has no spec"),
    ("a patch that deletes", f"{OBJECT}$patch: delete", "it is a patch of kustomize: it has $patch"),
    ("a patch of a Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, imagePullPolicy: Always}]}}}", "it is a patch of a Deployment: it has neither a selector nor an image"),
    ("a patch of replicas", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 3}", "it is a patch of a StatefulSet: it has neither a selector nor an image"),
    ("a suite of kuttl", "apiVersion: kuttl.dev/v1beta1\nkind: TestSuite", "it is for kuttl"),
    ("cases of noxu test", "apiVersion: noxu.dev/v1\nkind: Test", "it is for noxu itself, such as the cases of noxu test"),
    ("a test of chainsaw", "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test", "it is for chainsaw"),
    ("a cluster of kind", "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster", "it is for kind"),
    ("the configuration of a scorecard", "apiVersion: scorecard.operatorframework.io/v1alpha3\nkind: Configuration", "it is for operator-sdk's scorecard"),
    ("an audit policy", "apiVersion: audit.k8s.io/v1\nkind: Policy", "it is for kube-apiserver"),
    ("a kubeconfig", "apiVersion: v1\nkind: Config", "it is a kubeconfig"),
    ("a file of docker compose", "version: '3'\nservices: {a: {image: b}}", "it has neither an apiVersion nor a kind"),
    ("a template", "apiVersion: v1\nkind: A\nmetadata: {name: {{ .Release.Name }}}", "it is a template, and no YAML yet: it has {{ … }}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), [row[1:] for row in SKIPPED], ids=[row[0] for row in SKIPPED])
def test_a_file_of_a_directory_is_skipped_because_of_its_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert list(read_paths([tmp_path])) == []
    assert caplog.messages == [f"{path}: skipped: {why}"]
    assert list(read_paths([path])) != [], "a file that is named is read"


NOT_SKIPPED = [
    "kind: A",
    "apiVersion: v1",
    "a: [",
    f"{OBJECT}---\na: 1",
    f"{CRD}spec: {{group: g}}",
    f"{CRD}spec: 3",
    CRD,
    f"{ANNOTATED_CRD}spce: {{group: g}}",
    "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}",
    "apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {}}",
    "apiVersion: apps/v1\nkind: Deployment\nspec: {template: 3}",
    "apiVersion: apps/v1\nkind: Deployment\nspec: {}",
    "apiVersion: extensions/v1beta1\nkind: Deployment\nspec: {replicas: 3}",
    f"{ANNOTATED_CRD}---\n{CRD}spec: {{group: g}}",
    "a: [\n---\na: {{ b }}",
]


@pytest.mark.parametrize("text", NOT_SKIPPED)
def test_what_may_be_a_manifest_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert [each.error for each in read_paths([tmp_path])] == [each.error for each in read_paths([tmp_path / "a.yaml"])]
    assert list(read_paths([tmp_path])) != []
    assert caplog.messages == []


def test_a_directory_without_a_manifest_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "README.md").touch()
    assert list(read_paths([tmp_path])) == []
    assert caplog.messages == [f"{tmp_path}: there is no manifest in this directory"]


def test_an_archive_with_manifests_is_not_read_as_a_compressed_one(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.yaml.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.yaml"), io.BytesIO())
    assert files(tmp_path)[0] == []
