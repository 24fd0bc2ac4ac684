"""The pytest plugin: `noxu` is a server for one test.

    def test_widgets(noxu):
        noxu.apply("crds/", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        subprocess.run(["kubectl", "--kubeconfig", noxu.kubeconfig, "get", "widgets"], check=True)

`@pytest.mark.noxu("crds/", …)` loads manifests when the server starts; the ini option `noxu_manifests` does so for all
tests. `noxu_session` is one server for the whole session, for tests that do not affect each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from noxu.apiserver.testing.handle import Noxu, Source


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("noxu_manifests", "Files and directories that every Noxu server loads", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "noxu(*sources): manifests that the test's Noxu server loads at its start")


@pytest.fixture
def noxu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """A server for this test only: in this process, in memory, on a free port."""
    marked = [source for mark in request.node.iter_markers("noxu") for source in mark.args]
    yield from _server(request.config, tmp_path_factory, marked)


@pytest.fixture(scope="session")
def noxu_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """One server for all tests of the session."""
    yield from _server(request.config, tmp_path_factory, [])


def _server(config: pytest.Config, tmp_path_factory: pytest.TempPathFactory, sources: list[Source]) -> Iterator[Noxu]:
    from noxu.apiserver.testing.handle import (
        Noxu,
    )  # every pytest run imports the plugin, whether it uses a server or not

    with Noxu(tmp_path_factory.mktemp("noxu"), [*config.getini("noxu_manifests"), *sources]) as server:
        yield server
