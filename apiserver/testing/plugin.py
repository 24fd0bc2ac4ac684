"""The pytest plugin: `noxu` is a server for one test.

    def test_widgets(noxu):
        noxu.apply("crds/", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        subprocess.run(["kubectl", "--kubeconfig", noxu.kubeconfig, "get", "widgets"], check=True)

`@pytest.mark.noxu("crds/", …)` loads manifests when the server starts; the ini option `noxu_manifests` does so for all
tests. `@pytest.mark.noxu(disable_admission_plugins=[…])` and the ini option `noxu_disable_admission_plugins` disable
admission plug-ins. `noxu_session` is one server for the whole session, for tests that do not affect each other.

`@pytest.mark.noxu(profile="envtest")` and the ini options `noxu_profile` and `noxu_controllers` select what a server does by
itself, as the options of `noxu serve`. `@pytest.mark.noxu(tls=True)` serves HTTPS;
`authorization_modes=["RBAC"]` selects who decides what users may do, and `noxu.user("jane")` is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from noxu.apiserver.testing.handle import Noxu, Source


_MARKER: Final = (
    "noxu(*sources, profile='local', controllers=None, disable_admission_plugins=(), tls=False): manifests that the test's Noxu server "
    "loads at its start, what it does by itself, and admission plug-ins that it does not run, HTTPS"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("noxu_manifests", "Files and directories that every Noxu server loads", type="paths", default=[])
    parser.addini("noxu_profile", "The profile of Noxu servers: local (default) or envtest", default="local")
    parser.addini("noxu_controllers", "The controllers of Noxu servers, as in --controllers", type="args", default=None)
    help_text = "Admission plug-ins that no Noxu server runs, such as NamespaceLifecycle"
    parser.addini("noxu_disable_admission_plugins", help_text, type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def noxu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """A server for this test only: in this process, in memory, on a free port."""
    marks = list(request.node.iter_markers("noxu"))
    sources = [source for mark in marks for source in mark.args]
    selected: dict[str, Any] = {}
    for mark in reversed(marks):  # the closest one counts
        selected |= mark.kwargs
    selected["disable_admission_plugins"] = [
        name for mark in marks for name in mark.kwargs.get("disable_admission_plugins", ())
    ]
    yield from _server(request.config, tmp_path_factory, sources, selected)


@pytest.fixture(scope="session")
def noxu_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    """One server for all tests of the session."""
    yield from _server(request.config, tmp_path_factory, [], {"disable_admission_plugins": []})


def _server(
    config: pytest.Config, tmp_path_factory: pytest.TempPathFactory, sources: list[Source], selected: dict[str, Any]
) -> Iterator[Noxu]:
    from noxu.apiserver.testing.handle import (
        Noxu,
    )  # every pytest run imports the plugin, whether it uses a server or not

    listed = config.getini("noxu_controllers")
    controllers = None if listed is None else [item for text in listed for item in text.split(",") if item]
    configured = {"profile": config.getini("noxu_profile"), "controllers": controllers} | selected
    configured["disable_admission_plugins"] += config.getini("noxu_disable_admission_plugins")
    manifests = [*config.getini("noxu_manifests"), *sources]
    with Noxu(tmp_path_factory.mktemp("noxu"), manifests, **configured) as server:
        yield server
