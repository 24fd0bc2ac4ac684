"""The pytest plugin: `noxu` is a server for one test.

    def test_widgets(noxu):
        noxu.apply("crds/", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        subprocess.run(["kubectl", "--kubeconfig", noxu.kubeconfig, "get", "widgets"], check=True)

`@pytest.mark.noxu("crds/", …)` loads manifests when the server starts; the ini option `noxu_manifests` does so for all
tests. `noxu_session` is one server for the whole session, for tests that do not affect each other.

`@pytest.mark.noxu(profile="envtest")` and the ini options `noxu_profile` and `noxu_controllers` select what a server does by
itself, as the options of `noxu serve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from noxu.apiserver.testing.handle import Noxu, Source


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("noxu_manifests", "Files and directories that every Noxu server loads", type="paths", default=[])
    parser.addini("noxu_profile", "The profile of Noxu servers: local (default) or envtest", default="local")
    parser.addini("noxu_controllers", "The controllers of Noxu servers, as in --controllers", type="args", default=None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "noxu(*sources, profile=..., controllers=...): manifests that the test's Noxu server loads at its start, and what it "
        "does by itself",
    )


@pytest.fixture
def noxu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """A server for this test only: in this process, in memory, on a free port."""
    marks = list(request.node.iter_markers("noxu"))
    sources = [source for mark in marks for source in mark.args]
    selected = {
        name: value for mark in reversed(marks) for name, value in mark.kwargs.items()
    }  # the closest mark counts
    yield from _server(request.config, tmp_path_factory, sources, selected)


@pytest.fixture(scope="session")
def noxu_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """One server for all tests of the session."""
    yield from _server(request.config, tmp_path_factory, [], {})


def _server(
    config: pytest.Config, tmp_path_factory: pytest.TempPathFactory, sources: list[Source], selected: dict[str, Any]
) -> Iterator[Noxu]:
    from noxu.apiserver.testing.handle import (
        Noxu,
    )  # every pytest run imports the plugin, whether it uses a server or not

    listed = config.getini("noxu_controllers")
    controllers = None if listed is None else [item for text in listed for item in text.split(",") if item]
    configured = {"profile": config.getini("noxu_profile"), "controllers": controllers}
    manifests = [*config.getini("noxu_manifests"), *sources]
    with Noxu(tmp_path_factory.mktemp("noxu"), manifests, **configured | selected) as server:
        yield server
