"""Which definitions of a chart are installed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from noxu.manifests import files as manifest_files
from noxu.manifests import tool_files
from noxu.manifests.documents import read_paths
from noxu.manifests.tool_files import NotInstalled

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {group: g}\n"
SUB = {"charts/s/Chart.yaml": "name: s", "charts/s/crds/a.yaml": CRD}
READ = ["charts/s/crds/a.yaml"]


def depending(entry: str) -> str:
    return f"dependencies: [{{name: s, {entry}}}]"


CHARTS: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("its own", {"crds/b.yaml": CRD, "crds/a/a.json": "{}", "crds/README.md": "", "templates/a.yaml": CRD}, ["crds/a/a.json", "crds/b.yaml"]),
    ("those of a subchart", {"crds/b.yaml": CRD, **SUB}, ["crds/b.yaml", *READ]),
    ("those of a subchart in a subchart", {**SUB, "charts/s/charts/t/Chart.yaml": "", "charts/s/charts/t/crds/a.yml": CRD}, [*READ, "charts/s/charts/t/crds/a.yml"]),
    ("a directory that is no chart", {"charts/s/crds/a.yaml": CRD}, []),
    ("an ignored subchart", {"charts/_s/Chart.yaml": "", "charts/_s/crds/a.yaml": CRD}, []),
    ("a condition without a value", {"Chart.yaml": depending("condition: s.enabled"), **SUB}, READ),
    ("a condition that is true", {"Chart.yaml": depending("condition: s.enabled"), "values.yaml": "s: {enabled: true}", **SUB}, READ),
    ("a condition that is false", {"Chart.yaml": depending("condition: s.enabled"), "values.yaml": "s: {enabled: false}", **SUB}, ["charts/s: s.enabled is false in its values"]),
    ("a condition that is no boolean", {"Chart.yaml": depending("condition: s.enabled"), "values.yaml": "s: {enabled: 0}", **SUB}, READ),
    ("the first of several conditions that has a value", {"Chart.yaml": depending("condition: 'a.b, s.enabled,s.used'"), "values.yaml": "s: {enabled: false, used: true}", **SUB}, ["charts/s: s.enabled is false in its values"]),
    ("a requirement of v1", {"requirements.yaml": depending("condition: s"), "values.yaml": "s: false", **SUB}, ["charts/s: s is false in its values"]),
    ("a tag that is false", {"Chart.yaml": depending("tags: [a, b]"), "values.yaml": "tags: {a: false}", **SUB}, ["charts/s: its tags are false in the values"]),
    ("a tag that is true", {"Chart.yaml": depending("tags: [a, b]"), "values.yaml": "tags: {a: false, b: true}", **SUB}, READ),
    ("a condition before a tag", {"Chart.yaml": depending("tags: [a], condition: s"), "values.yaml": "tags: {a: false}\ns: true", **SUB}, READ),
    ("one of two aliases", {"Chart.yaml": "dependencies: [{name: s, alias: x, condition: x.used}, {name: s, alias: y, condition: y.used}]", "values.yaml": "x: {used: false}", **SUB}, READ),
    ("values for a subchart", {"values.yaml": "s: {t: {used: false}}", "charts/s/Chart.yaml": "name: s\ndependencies: [{name: t, condition: t.used}]", "charts/s/values.yaml": "t: {used: true, a: 1}", "charts/s/charts/t/Chart.yaml": "name: t", "charts/s/charts/t/crds/a.yaml": CRD}, ["charts/s/charts/t: t.used is false in its values"]),
    ("values of a subchart", {"charts/s/Chart.yaml": "name: s\ndependencies: [{name: t, condition: t.used}]", "charts/s/values.yaml": "t: {used: false}", "charts/s/charts/t/Chart.yaml": "name: t", "charts/s/charts/t/crds/a.yaml": CRD}, ["charts/s/charts/t: t.used is false in its values"]),
    ("values that cannot be read", {"Chart.yaml": depending("condition: s"), "values.yaml": "a: [", **SUB}, READ),
]  # fmt: skip


def written(root: Path, found: Mapping[str, str]) -> Path:
    for name, text in {"Chart.yaml": "name: c", **found}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def installed(root: Path) -> list[str]:
    [files] = tool_files.outermost(sorted(file for file in root.rglob("*") if file.is_file())).values()
    return [
        f"{each.path.relative_to(root)}: {each.reason.removeprefix('helm does not install this subchart: ')}"
        if isinstance(each, NotInstalled)
        else each.relative_to(root).as_posix()
        for each in tool_files.definitions(files)
    ]


@pytest.mark.parametrize(("found", "definitions"), [row[1:] for row in CHARTS], ids=[row[0] for row in CHARTS])
def test_a_chart_has_the_definitions(tmp_path: Path, found: Mapping[str, str], definitions: list[str]) -> None:
    assert installed(written(tmp_path, found)) == definitions


def packed(files: Mapping[str, bytes | str]) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return body.getvalue()


def test_packed_subcharts_are_read_without_being_unpacked(tmp_path: Path) -> None:
    inner = packed({"t/Chart.yaml": "name: t", "t/crds/a.yaml": CRD, "t/templates/a.yaml": "{{ x }}"})
    root = written(tmp_path / "c", {"charts/README.md": ""})
    outer: dict[str, bytes | str] = {
        "./s/Chart.yaml": "name: s",
        "./s/crds/a.yaml": CRD,
        "./s/charts/t.tgz": inner,
        "./s/../../evil.yaml": CRD,
    }
    (root / "charts/s-1.0.tgz").write_bytes(packed(outer))
    found = [f"{root}/charts/s-1.0.tgz/s/charts/t.tgz/t/crds/a.yaml", f"{root}/charts/s-1.0.tgz/s/crds/a.yaml"]
    assert list(map(str, manifest_files.files(tmp_path)[0])) == found
    assert [(document.file, document.name) for document in read_paths([tmp_path])] == [(file, "a") for file in found]
    assert tool_files.is_packed(Path(found[0]))
    assert not tool_files.is_packed(root / "Chart.yaml")


def test_a_packed_subchart_may_be_disabled(tmp_path: Path) -> None:
    root = written(tmp_path, {"Chart.yaml": depending("condition: s.used"), "values.yaml": "s: {used: false}"})
    (root / "charts").mkdir()
    (root / "charts/s-1.0.tgz").write_bytes(packed({"s/Chart.yaml": "name: s", "s/crds/a.yaml": CRD}))
    assert installed(root) == ["charts/s-1.0.tgz/s: s.used is false in its values"]


NO_CHART = "it is no packed chart, or an incomplete one"
BROKEN = [
    ("no archive", b"a", NO_CHART),
    ("an incomplete archive", packed({"s/Chart.yaml": "a" * 9999})[:40], NO_CHART),
    ("an archive that is too large", packed({"s/Chart.yaml": "a" * 30_000}), "it has more than 20000 bytes when it is decompressed"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_packed_subchart_that_cannot_be_read_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, why: str
) -> None:
    monkeypatch.setattr(tool_files, "MAX_UNPACKED", 20_000)
    root = written(tmp_path, {"charts/README.md": ""})
    (root / "charts/s.tgz").write_bytes(body)
    assert installed(root) == [f"charts/s.tgz: {why}"]


def test_a_large_file_in_a_packed_subchart_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_files, "MAX_FILE", 200)
    root = written(tmp_path, {"charts/README.md": ""})
    (root / "charts/s.tgz").write_bytes(packed({"s/Chart.yaml": "", "s/crds/a.yaml": CRD, "s/crds/b.yaml": CRD * 3}))
    assert installed(root) == ["charts/s.tgz/s/crds/a.yaml"]


def test_charts_in_charts_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_files, "MAX_NESTED", 1)
    inner = {"charts/s/charts/t/Chart.yaml": "", "charts/s/charts/t/crds/a.yaml": CRD}
    assert installed(written(tmp_path, {**SUB, **inner})) == [
        *READ,
        "charts/s/charts/t: it is a chart in more than 1 charts",
    ]


def test_the_templates_of_a_chart_are_no_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(tmp_path / "c", {"templates/x/a.yaml": "{{ x }}", "crds/templates/a.yaml": CRD})
    read, skipped = manifest_files.files(root / "templates/x", "lint")
    assert read == []
    assert [each.reason for each in skipped] == [
        f"it has templates of a Helm chart: helm template {root} --include-crds | noxu lint -"
    ]
    monkeypatch.chdir(root / "templates")
    assert str(manifest_files.files(Path())[1][0]) == ".: skipped: it has templates of a Helm chart: helm template .. --include-crds"  # fmt: skip
    assert manifest_files.files(root / "crds/templates")[0] == [root / "crds/templates/a.yaml"]
