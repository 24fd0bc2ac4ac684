"""Fixtures that run commands in this process, and write files for them."""

from __future__ import annotations

import io
import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from noxu import cli
from noxu.values import Json, Object


class Ran(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        return json.loads(self.out)


def unplaced(text: str) -> str:
    """The output without the places of findings: `  a.yaml:4:8: spec.size: …` → `  spec.size: …`."""
    return re.sub(r"^(  )?\S+:\d+:\d+: ", r"\1", text, flags=re.MULTILINE)


Run = Callable[..., Ran]
Write = Callable[[str, Any], Path]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """`run("lint crd.yaml", stdin="…")` runs a command. Invalid arguments have status 2. Each test has its own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

    def ran(line: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        try:
            status = cli.main(line.split())
        except SystemExit as exited:
            status = int(exited.code or 0)
        return Ran(status, *capsys.readouterr())

    return ran


@pytest.fixture
def write(here: Path) -> Write:
    """Write a file in the working directory: a dedented text, or anything else as JSON."""

    def written(name: str, content: Any) -> Path:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content).lstrip("\n") if isinstance(content, str) else json.dumps(content))
        return path

    return written


def of(**properties: Json) -> Object:
    """A schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def spec_of(**properties: Json) -> Object:
    """The schema of a resource whose spec has these fields."""
    return of(spec=of(**properties))


@pytest.fixture
def crd() -> Callable[..., Object]:
    """`crd(size={"type": "integer"})`: a CRD of widgets whose spec has these fields; `schema` replaces the whole schema."""

    def create(schema: Object | None = None, *, scope: str = "Namespaced", **properties: Json) -> Object:
        version = {"name": "v1", "served": True, "storage": True}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": scope,
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{**version, "schema": {"openAPIV3Schema": schema or spec_of(**properties)}}],
            },
        }

    return create


@pytest.fixture
def old_crd() -> Callable[..., Object]:
    """A v1beta1 CRD with this schema."""

    def create(schema: Object, **spec: Json) -> Object:
        return {
            "apiVersion": "apiextensions.k8s.io/v1beta1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "version": "v1",
                "names": {"plural": "widgets", "kind": "Widget"},
                "preserveUnknownFields": False,
                "validation": {"openAPIV3Schema": schema},
                **spec,
            },
        }

    return create


@pytest.fixture
def widget() -> Callable[..., Object]:
    """`widget("a", size=1)`: a widget, with a namespace only if one is given."""

    def create(name: str, namespace: str = "", **spec: Json) -> Object:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}

    return create
