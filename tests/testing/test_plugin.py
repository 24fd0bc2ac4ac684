"""The fixtures, as a project that installed the package uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import noxu.apiserver.testing.handle  # noqa: F401 - pytester would import each module again for each run, but not packages

ROOT = Path(__file__).parents[2]
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1, maximum: 5}}}
"""
FETCH = """
import json, urllib.request
def fetch(noxu, path):
    with urllib.request.urlopen(noxu.url + path) as answer:
        return json.load(answer)
WIDGETS = "/apis/example.com/v1/widgets"
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project that uses the plugin."""
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n")
    pytester.makefile(".yaml", widgets=WIDGETS)
    return pytester


def _example(document: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL))


def test_the_example_of_the_documentation_works(project: pytest.Pytester) -> None:
    project.makepyfile(_example("docs/testing.md"))
    project.runpytest_inprocess().assert_outcomes(passed=4)


def test_the_example_of_the_readme_works(project: pytest.Pytester) -> None:
    project.mkdir("crds")
    (project.path / "widgets.yaml").rename(project.path / "crds/widget.yaml")
    project.makepyfile(_example("README.md"))
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_every_test_has_a_server_of_its_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        FETCH
        + """
def test_one(noxu):
    noxu.apply("widgets.yaml", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
    assert len(fetch(noxu, WIDGETS)["items"]) == 1
def test_two(noxu):
    noxu.apply("widgets.yaml")
    assert fetch(noxu, WIDGETS)["items"] == []
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=2)


def test_the_session_has_one_server(project: pytest.Pytester) -> None:
    project.makepyfile(
        FETCH
        + """
def test_one(noxu_session):
    noxu_session.apply("widgets.yaml")
def test_two(noxu_session):
    assert fetch(noxu_session, WIDGETS)["items"] == []
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=2)


def test_markers_and_the_ini_option_load_manifests(project: pytest.Pytester) -> None:
    project.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\nnoxu_manifests=widgets.yaml\n",
    )
    project.makepyfile(
        FETCH
        + """
import pytest
@pytest.mark.noxu({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
def test_marked(noxu):
    assert fetch(noxu, WIDGETS)["items"][0]["metadata"]["namespace"] == "default"
def test_plain(noxu):
    assert fetch(noxu, WIDGETS)["items"] == []
"""
    )
    project.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


def test_the_marker_and_the_ini_option_disable_admission_plugins(project: pytest.Pytester) -> None:
    project.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n"
        "noxu_disable_admission_plugins=MutatingAdmissionWebhook\n",
    )
    project.makepyfile(
        """
import pytest
import noxu as package
LOST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "missing"}}
@pytest.mark.noxu(disable_admission_plugins=["NamespaceLifecycle", "ServiceAccount"])
def test_marked(noxu):
    noxu.apply(LOST)
    with pytest.raises(ValueError):
        noxu.mutating("configmaps")
def test_plain(noxu):
    with pytest.raises(package.ApiError):
        noxu.apply(LOST)
    with pytest.raises(ValueError):
        noxu.mutating("configmaps")
"""
    )
    project.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('disable_admission_plugins=["Lifecycle"]', '*disable-admission-plugins plugin "Lifecycle" is unknown*'),
        ('disabled=["NamespaceLifecycle"]', "*unexpected keyword argument 'disabled'*"),
    ],
)
def test_a_wrong_marker_is_an_error_of_the_test_that_says_why(
    project: pytest.Pytester, arguments: str, why: str
) -> None:
    project.makepyfile(f"import pytest\n@pytest.mark.noxu({arguments})\ndef test_marked(noxu): ...\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([why])


def test_a_manifest_that_is_refused_is_an_error_of_the_test_that_says_why(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
import pytest
@pytest.mark.noxu("widgets.yaml", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
                                   "spec": {"size": 9}})
def test_marked(noxu): ...
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5*"])


def test_importing_the_plugin_does_not_import_the_server(project: pytest.Pytester) -> None:
    """Every pytest run imports the plugin, whether it uses a server or not."""
    project.makepyfile("import sys\ndef test_imports():\n    assert 'aiohttp' not in sys.modules\n")
    project.runpytest_subprocess("-p", "no:aiohttp", "-p", "no:pytest_aiohttp").assert_outcomes(passed=1)


ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"


def test_a_mark_selects_the_profile_and_the_controllers(project: pytest.Pytester) -> None:
    project.makepyfile(
        FETCH
        + f"""
import pytest
pytestmark = pytest.mark.noxu(profile="envtest")
def names(noxu):
    return [item["metadata"]["name"] for item in fetch(noxu, "{ACCOUNT}")["items"]]
def test_the_mark_of_the_module(noxu):
    assert names(noxu) == []
@pytest.mark.noxu("widgets.yaml", profile="local")
def test_the_closest_mark_counts(noxu):
    assert names(noxu) == ["default"]
    assert fetch(noxu, WIDGETS)["items"] == []
@pytest.mark.noxu(controllers=["serviceaccount"])
def test_single_controllers(noxu):
    assert names(noxu) == ["default"]
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("noxu_profile = envtest", []),
        ("noxu_controllers = * -serviceaccount-controller", []),
        ("noxu_controllers = *,-serviceaccount", []),
        ("", ["default"]),
    ],
)
def test_options_select_them_for_all_tests(project: pytest.Pytester, option: str, expected: list[str]) -> None:
    project.makefile(".ini", pytest=f"[pytest]\nasyncio_default_fixture_loop_scope=function\n{option}\n")
    project.makepyfile(
        FETCH
        + f"""
def test_the_profile(noxu, noxu_session):
    for server in (noxu, noxu_session):
        assert [item["metadata"]["name"] for item in fetch(server, "{ACCOUNT}")["items"]] == {expected}
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=1)
