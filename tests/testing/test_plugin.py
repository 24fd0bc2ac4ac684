"""The fixtures, as a project that installed the package uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from noxu.testing.handle import Noxu

pytestmark = pytest.mark.slow(every=4)

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


OPERATOR = """#!/usr/bin/env python3
import json, os, time, urllib.error, urllib.request

def ask(method, path, value=None, kind="application/json"):
    body = None if value is None else json.dumps(value).encode()
    url = os.environ["NOXU_URL"] + path
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code

widget = "/apis/example.com/v1/namespaces/default/widgets/a"
while ask("GET", widget) == 404:
    time.sleep(0.01)
for name in ("first", "second"):  # 409: an earlier life has created it
    assert ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}}) in (201, 409)
ask("PATCH", widget + "/status", {"status": {"ready": True}}, "application/merge-patch+json")
time.sleep(600)
"""


def _example(document: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL))


def test_the_example_of_the_documentation_works(project: pytest.Pytester) -> None:
    project.makepyfile(_example("docs/testing.md"))
    operator = project.path / "operator"
    operator.write_text(OPERATOR)
    operator.chmod(0o755)
    project.runpytest_inprocess().assert_outcomes(passed=9)


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
        ('disable_admission_plugins="Lifecycle"', '*disable-admission-plugins plugin "Lifecycle" is unknown*'),
        ('disabled=["NamespaceLifecycle"]', "*unexpected keyword argument 'disabled'*"),
        ('profiel="envtest"', "*unexpected keyword argument 'profiel'; did you mean profile?"),
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


@pytest.mark.slow
def test_assertions_of_the_server_are_not_rewritten(project: pytest.Pytester) -> None:
    """Rewriting hundreds of modules takes longer than the start of the first server. Pytest marks those of an installed wheel."""
    project.makeconftest("import pytest\npytest.register_assert_rewrite('noxu.process.server', 'noxu_storage')\n")
    project.makepyfile(
        """
import sys
BEFORE = {"noxu", "noxu", "noxu.testing", "noxu.testing.plugin", "noxu.testing.plugin"}
def test_imports(noxu):
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "noxu"}
    assert len(ours) > 100
    rewritten = {name for name, module in ours.items() if "Rewriting" in type(module.__spec__.loader).__name__}
    assert rewritten <= BEFORE
"""
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


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


def test_simulated_nodes_are_an_option_and_a_keyword_of_marks(project: pytest.Pytester) -> None:
    project.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope=function\nnoxu_nodes = 2\n")
    project.makepyfile(
        """
import pytest
def names(noxu):
    return [item["metadata"]["name"] for item in noxu.list("nodes")]
def test_the_option(noxu):
    assert names(noxu) == ["node-1", "node-2"]
    assert noxu.wait("nodes", "node-2", "Ready")
@pytest.mark.noxu(nodes=1)
def test_the_mark_counts(noxu):
    assert names(noxu) == ["node-1"]
@pytest.mark.noxu(nodes=None)
def test_a_bare_server(noxu):
    assert names(noxu) == []
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=3)


# -- scopes, marks, options ---------------------------------------------------------------------------------------------


def test_the_servers_of_a_class_and_of_a_module(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
import pytest
pytestmark = pytest.mark.noxu("widgets.yaml")
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
class TestOne:
    def test_first(self, noxu_class, noxu_module):
        noxu_class.create(WIDGET)
        noxu_module.create(WIDGET)
    def test_second(self, noxu_class):
        noxu_class.get("widgets", "a")
@pytest.mark.noxu({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marked"}})
class TestTwo:
    def test_other_class_same_module(self, noxu_class, noxu_module):
        assert noxu_class.list("widgets") == []
        noxu_class.get("configmaps", "marked")
        noxu_module.get("widgets", "a")
def test_the_session_has_no_marks(noxu_session):
    with pytest.raises(LookupError):
        noxu_session.list("widgets")
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=4)


def test_the_factory(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
import pytest
from noxu import ApiError
def test_sync(make_noxu, tmp_path):
    one = make_noxu(manifests=["widgets.yaml"], profile="envtest", data=tmp_path / "data")
    two = make_noxu(users={"jane": ["system:masters"], "eve": []}, authorization_modes=["RBAC"])
    one.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
    assert one.list("serviceaccounts", namespace="default") == []
    with pytest.raises(LookupError):
        two.list("widgets")
    assert two.users["jane"].list("secrets") == []
    with pytest.raises(ApiError):
        two.users["eve"].list("secrets")
    one.stop()
    assert make_noxu(data=str(tmp_path / "data")).get("widgets", "a")
async def test_async(make_noxu):
    noxu = await make_noxu(manifests=["widgets.yaml"], gates={"CustomResourceFieldSelectors": False})
    assert await noxu.list("widgets") == []
def test_wrong_gates(make_noxu):
    with pytest.raises(ValueError, match="unrecognized feature gate: Flying"):
        make_noxu(gates={"Flying": True})
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=3)


SELECTED_BY_OPTIONS = """
import pytest
from noxu import ApiError
def test_options(noxu, noxu_session, make_noxu):
    for server in (noxu, noxu_session, make_noxu()):
        assert server.url.startswith("https://")
        with pytest.raises(ApiError, match="strict decoding error"):
            server.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": 1}})
        with pytest.raises(ApiError, match="cannot list"):
            server.user("eve").list("widgets")
        assert server.list("serviceaccounts") == []
        assert not server._config.features.field_selectors
"""
INI = """
noxu_manifests = widgets.yaml
noxu_profile = envtest
noxu_feature_gates = CustomResourceFieldSelectors=false
noxu_authorization_modes = RBAC
noxu_tls = true
noxu_strict = true
"""
ARGUMENTS = (
    "--noxu-manifests=widgets.yaml",
    "--noxu-profile=envtest",
    "--noxu-feature-gates=CustomResourceFieldSelectors=false",
    "--noxu-authorization-modes=RBAC",
    "--noxu-tls",
    "--noxu-strict",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ini", "arguments"), [(INI, ()), ("", ARGUMENTS)], ids=["in the configuration", "on the command line"]
)
def test_options_are_for_all_servers(project: pytest.Pytester, ini: str, arguments: tuple[str, ...]) -> None:
    project.makefile(".ini", pytest=f"[pytest]\nasyncio_default_fixture_loop_scope=function\n{ini}")
    project.makepyfile(SELECTED_BY_OPTIONS)
    project.runpytest_subprocess(*arguments).assert_outcomes(passed=1)  # cryptography cannot be imported twice


MISSING = [
    ("in a mark", "", (), "ERROR: test_missing_*.py::test_it: @pytest.mark.noxu: nowhere.yaml: no such file or directory"),
    ("in the configuration", "noxu_manifests=nowhere", (), "ERROR: noxu_manifests: */nowhere: no such file or directory"),
    ("on the command line", "", ("--noxu-manifests=crds",), "ERROR: noxu_manifests: */crds: no such file or directory"),
]  # fmt: skip


@pytest.mark.parametrize(("ini", "arguments", "message"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
def test_a_missing_source_is_a_usage_error(
    project: pytest.Pytester, ini: str, arguments: tuple[str, ...], message: str
) -> None:
    project.makefile(".ini", pytest=f"[pytest]\nasyncio_default_fixture_loop_scope=function\n{ini}")
    project.makepyfile(
        test_missing_source="import pytest\n@pytest.mark.noxu('nowhere.yaml')\ndef test_it(noxu): ...\ndef test_other(): ...\n"
    )
    result = project.runpytest_subprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*passed*")


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("-o", "noxu_profil=envtest"), "ERROR: noxu_profil is no option: there are noxu_manifests, *; did you mean noxu_profile?"),
    (("--noxu-controllers=namespaec",), 'ERROR: noxu_controllers: "namespaec" is not in the list of known controllers; did you mean namespace?: this server has *'),
    (("--noxu-profile=x",), 'ERROR: noxu_profile: "x" is not a profile: there are local, cluster, envtest'),
    (("--noxu-controllers=x",), 'ERROR: noxu_controllers: "x" is not in the list of known controllers: this server has *'),
    (("--noxu-disable-admission-plugins=x",), 'ERROR: noxu_disable_admission_plugins: *plugin "x" is unknown*'),
    (("--noxu-authorization-modes=x",), 'ERROR: noxu_authorization_modes: authorization-mode "x" is not a valid mode (this server has AlwaysAllow, *'),
    (("--noxu-feature-gates=x=true",), "ERROR: noxu_feature_gates: unrecognized feature gate: x *"),
    (("--noxu-feature-gates=CBORServingAndStorage",), "ERROR: noxu_feature_gates: CBORServingAndStorage: write GATE=true or GATE=false"),
    (("--noxu-nodes=some",), "ERROR: noxu_nodes: some is no number of nodes"),
    (("--noxu-nodes=9999",), "ERROR: noxu_nodes: nodes: 9999 is not a number from 0 to 5000"),
    (("--noxu-exec=succeed",), "ERROR: noxu_exec: exec is about simulated nodes: add nodes"),
    (("--noxu-stages=nowhere.yaml",), "ERROR: noxu_stages: *nowhere.yaml: no such file or directory"),
    (("--noxu-requests=all",), "ERROR: noxu_requests: all is no number of requests"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[row[0][-1] for row in WRONG])
def test_a_wrong_option_is_a_usage_error(project: pytest.Pytester, arguments: tuple[str, ...], message: str) -> None:
    project.makepyfile("def test_it(): ...")
    result = project.runpytest_inprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_misspelt_option_in_the_configuration_is_a_usage_error(project: pytest.Pytester) -> None:
    project.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope=function\nnoxu_strickt = true\n")
    project.makepyfile("def test_it(): ...")
    result = project.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: noxu_strickt is no option: *; did you mean noxu_strict?"])


def test_a_mark_without_effect_is_a_warning(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.noxu(profile='envtest')\ndef test_it(noxu_session): ...\n")
    result = project.runpytest_inprocess("-W", "default")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*::test_it: @pytest.mark.noxu has no effect: it is about noxu, noxu_class, noxu_module, *none of them"]
    )


@pytest.mark.parametrize("mark", ["['crds/']", "manifests=['crds/', ['x']]", "7"])
def test_what_is_no_source_is_a_usage_error(project: pytest.Pytester, mark: str) -> None:
    project.mkdir("crds")
    project.makepyfile(f"import pytest\n@pytest.mark.noxu({mark})\ndef test_it(noxu): ...\n")
    result = project.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *::test_it: @pytest.mark.noxu: a source is a dict, a path, or a text with manifests, *"]
    )


def test_one_source_and_one_name_need_no_list(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
import pytest
from noxu import ApiError

@pytest.mark.noxu(manifests="widgets.yaml", users="jane", authorization_modes="RBAC", controllers="*")
def test_marked(noxu, make_noxu):
    assert noxu.list("widgets") == []
    assert list(noxu.users) == ["jane"]
    with pytest.raises(ApiError, match='User "jane" cannot list'):
        noxu.users["jane"].list("widgets")
    assert make_noxu(manifests="widgets.yaml", disable_admission_plugins="NamespaceLifecycle").list("widgets") == []
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_missing_source_fails_its_test_in_a_worker_of_xdist(project: pytest.Pytester) -> None:
    project.makepyfile(
        "import pytest\n@pytest.mark.noxu('nowhere.yaml')\ndef test_it(noxu): ...\ndef test_other(): ...\n"
    )
    result = project.runpytest_subprocess("-n", "1")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*::test_it: @pytest.mark.noxu: nowhere.yaml: no such file or directory"])


# -- reports of failed tests --------------------------------------------------------------------------------------------

FAILING = """
import pytest; from noxu import Noxu
pytestmark = pytest.mark.noxu("widgets.yaml")
def widget(name, **spec):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
"""


def _report(project: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    project.makepyfile(FAILING + test)
    result = project.runpytest_inprocess(*arguments)
    result.assert_outcomes(failed=1, warnings=None)
    return result


FAILURES = [
    ("a refusal", "noxu.create(widget('a', size=9))", 'noxu.ApiError: Widget.example.com "a" is invalid: spec.size: *'),
    ("a missing object", "noxu.get('widgets', 'a')", 'noxu.ApiError: widgets.example.com "a" not found'),
    ("a kind that is not served", "noxu.list('widgtes')", "noxu.UnknownKind: no kind 'widgtes' is served; did you mean*"),
    ("a manifest of such a kind", "noxu.create({'kind': 'A'})", 'noxu.ApiError: no matches for kind "A"*'),
    ("a missing argument", "noxu.patch('widgets', {})", "TypeError: after a kind come name and patch"),
    ("an object without a name", "noxu.get({**widget(''), 'metadata': {}})", "ValueError: this Widget has no metadata.name"),
    ("a file that does not exist", "noxu.apply('nowhere.yaml')", "noxu.LoadError: nowhere.yaml: *"),
    ("a wait", "noxu.wait('widgets', 'a', 'Ready', timeout=0)", "noxu.WaitTimeout: Widget default/a: *; it does not exist"),
    ("an invalid condition", "noxu.wait('widgets', 'a', 'self.a ==')", "ValueError: 'self.a ==' is no condition: *"),
    ("what is no source", "noxu.apply([widget('a')])", "TypeError: a source is a dict, *, and not a list: give its items"),
    ("a server that was stopped", "noxu.stop(); noxu.list('widgets')", "noxu.Stopped: the server does not run: *"),
    ("a wrong argument of another server", "Noxu(profile='x')", 'ValueError: "x" is not a profile: *'),
    ("a missing source of another server", "Noxu(manifests='x')", "noxu.LoadError: x: no such file or directory"),
    ("a watch", "next(noxu.watch('widgets', timeout=0))", "noxu.WaitTimeout: no event of widgets.example.com within 0 s"),
    ("a warning", "noxu.create(widget('a', siez=3))", "noxu.UnknownFieldWarning: *did you mean spec.size*"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_the_report_has_the_message_and_no_frame_of_ours(call: str, message: str, project: pytest.Pytester) -> None:
    result = _report(project, f"def test_it(noxu):\n    {call}\n", "-W", "error")
    escaped = call.replace("[", "[[]")
    result.stdout.fnmatch_lines([f">*{escaped}", f"E*{message}", "test_the_report_*.py:6: *"])
    result.stdout.no_fnmatch_line("*apiserver/noxu*")


SETUPS = [
    ("a manifest that is refused", "{'apiVersion': 'v1', 'kind': 'A'}", 'noxu does not start: object: no matches for kind "A"*'),
    ("a wrong argument", "disabled=1", "@pytest.mark.noxu got an unexpected keyword argument 'disabled'"),
    ("a profile that does not exist", "profile='big'", "noxu does not start: *big*"),
    ("text that is no manifest", "'a:\\n  - b'", "noxu does not start: text: *it has no kind*"),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "message"), [row[1:] for row in SETUPS], ids=[row[0] for row in SETUPS])
def test_the_report_of_a_server_that_does_not_start(argument: str, message: str, project: pytest.Pytester) -> None:
    project.makepyfile(f"import pytest\n@pytest.mark.noxu({argument})\ndef test_it(noxu): ...\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ERROR at setup of test_it*", message, "*short test summary*"], consecutive=True)


@pytest.mark.parametrize("argument", ["manifests=['nowhere']", "manifest='a'", "profile='x'", "gates={'x': True}"])
def test_the_factory_shows_no_frame_of_ours(argument: str, project: pytest.Pytester) -> None:
    project.makepyfile(f"def test_it(make_noxu):\n    make_noxu({argument})\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">*make_noxu({argument.replace('[', '[[]')})", "E *"])
    result.stdout.no_fnmatch_line("*apiserver/noxu*")


def test_a_bug_of_ours_has_its_frames(project: pytest.Pytester) -> None:
    test = "def test_it(noxu):\n    noxu._session = None\n    noxu.list('widgets')\n"
    _report(project, test).stdout.fnmatch_lines(["E*AttributeError: *", "*noxu/testing/verbs.py:*"])


async def test_the_report_of_an_async_test(project: pytest.Pytester) -> None:
    project.makepyfile(FAILING + "async def test_it(noxu):\n    await noxu.get('widgets', 'a')\n")
    result = project.runpytest_subprocess("-p", "no:aiohttp", "-o", "asyncio_mode=auto")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [">*await noxu.get('widgets', 'a')", 'E*noxu.ApiError: widgets.example.com "a" not found']
    )
    result.stdout.no_fnmatch_line("*apiserver/noxu*")


def test_the_report_shows_a_hook_that_failed(project: pytest.Pytester) -> None:
    test = """
def test_it(noxu):
    @noxu.mutating("widgets.example.com")
    def hook(request):
        request["object"]["spec"]["missing"] += 1
    noxu.create(widget('a'))
"""
    result = _report(project, test)
    result.stdout.fnmatch_lines([">*missing*+= 1", "E*KeyError: 'missing'", "*direct cause*", "E*noxu.ApiError: *"])
    result.stdout.no_fnmatch_line("*apiserver/noxu*")


def test_the_report_has_the_last_requests_of_the_test(project: pytest.Pytester) -> None:
    test = """
import urllib.request
@pytest.fixture(autouse=True)
def earlier(noxu_module):
    noxu_module.create(widget("earlier"))
def test_it(noxu_module):
    for _ in range(3):
        noxu_module.list("widgets")
    urllib.request.urlopen(noxu_module.url + "/version").close()
    noxu_module.get("widgets", "b")
"""
    result = _report(project, test, "--noxu-requests=3")
    result.stdout.fnmatch_lines(
        [
            "*- noxu requests (http://127.0.0.1:*) -*",
            "… 3 before these",
            "200  GET /apis/example.com/v1/widgets  (the test)",
            "200  GET /version  (Python-urllib/*)",
            '404  GET */widgets/b  (the test)  NotFound: widgets.example.com "b" not found',
        ],
        consecutive=True,
    )


def test_the_first_report_has_no_requests_of_earlier_tests(project: pytest.Pytester) -> None:
    with Noxu() as earlier:
        earlier.list("namespaces")
        result = _report(project, "def test_it(noxu):\n    noxu.get('widgets', 'a')\n")
        result.stdout.fnmatch_lines(["*- noxu requests (*) -*"])
        result.stdout.no_fnmatch_line(f"*({earlier.url})*")


def test_requests_can_be_left_out(project: pytest.Pytester) -> None:
    result = _report(project, "def test_it(noxu):\n    noxu.get('widgets', 'a')\n", "--noxu-requests=0")
    result.stdout.no_fnmatch_line("*noxu requests*")


def test_the_report_explains_refused_writes_of_any_client(project: pytest.Pytester) -> None:
    (project.path / "widgets.yaml").write_text(
        WIDGETS.replace("type: object, properties: {size:", "type: object, x-kubernetes-validations: "
                        "[{rule: self.low <= self.size}], properties: {low: {type: integer}, size:")
    )  # fmt: skip
    test = """
import urllib.error
from noxu import ApiError
@pytest.mark.filterwarnings("ignore::noxu.UnknownFieldWarning")
def test_it(noxu):
    import json, urllib.request
    body = json.dumps(widget("a", low=4, siez=5)).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "operator"}
    request = urllib.request.Request(noxu.url + "/apis/example.com/v1/namespaces/default/widgets", body, headers)
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        error.close()
    assert noxu.list("widgets")
"""
    _report(project, test).stdout.fnmatch_lines(
        [
            "*- noxu refused writes -*",
            "422  POST /apis/example.com/v1/namespaces/default/widgets",
            "  spec.siez: unknown field: pruned (did you mean spec.size?)",
            "  spec: Invalid value: failed rule: self.low <= self.size",
            "    self.low = 4",
            "    self.size = 1",
        ],
        consecutive=True,
    )


def test_tests_that_pass_have_no_sections(project: pytest.Pytester) -> None:
    project.makepyfile(FAILING + "def test_it(noxu):\n    noxu.create(widget('a'))\n")
    result = project.runpytest_inprocess("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*noxu requests*")


def test_a_call_that_is_not_awaited_fails_its_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        FAILING
        + """
async def test_forgotten(noxu):
    noxu.create(widget("a"))
async def test_task_that_has_not_begun(noxu):
    import asyncio
    task = asyncio.ensure_future(noxu.create(widget("a")))
    await task
def test_later(noxu): ...
"""
    )
    result = project.runpytest_inprocess("-W", "error")
    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_a_call*.py:*: noxu.create(…) is not awaited, so it has done nothing",
            "In a coroutine, write `await *`.",
        ]
    )


def test_a_call_that_a_fixture_does_not_await_fails_where_it_is(project: pytest.Pytester) -> None:
    project.makepyfile(
        FAILING
        + """
import pytest_asyncio
@pytest_asyncio.fixture
async def before(noxu):
    noxu.create(widget("a"))
@pytest_asyncio.fixture
async def after(noxu):
    yield
    noxu.create(widget("b"))
async def test_setup(before): ...
async def test_teardown(after): ...
def test_later(noxu): ...
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1, errors=1, passed=2)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_teardown*", "*noxu.create(…) is not awaited*"])


def test_a_failing_test_tells_of_calls_that_it_has_not_awaited(project: pytest.Pytester) -> None:
    test = "async def test_it(noxu):\n    noxu.create(widget('a'))\n    await noxu.get('widgets', 'a')\n"
    _report(project, test).stdout.fnmatch_lines(
        ["E*not found", "*- Captured noxu call -*", "*:6: noxu.create(…) is not awaited, so it has done nothing"]
    )


ISOLATED = """
import pytest
MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
def named(name):
    return {**MAP, "metadata": {"name": name}}
def names(noxu):
    return {each["metadata"]["name"] for each in noxu.list("configmaps", namespace="default")} - {"kube-root-ca.crt"}
"""


def test_what_a_test_changes_in_a_shared_server_is_undone_if_that_is_asked_for(project: pytest.Pytester) -> None:
    """The fixtures of the session, the module and the class remain; those of the test, and the test itself, do not."""
    project.makepyfile(
        ISOLATED
        + """
@pytest.fixture(scope="session", autouse=True)
def of_the_session(noxu_session):
    noxu_session.create(named("session"))
@pytest.fixture(scope="module")
def of_the_module(noxu_session):
    noxu_session.create(named("module"))
    noxu_session.apply("widgets.yaml")
@pytest.fixture
def of_the_test(noxu_session):
    noxu_session.create(named("test"))
    yield
    noxu_session.create(named("teardown"))
def test_one(of_the_test, of_the_module, noxu_session):
    @noxu_session.validating("configmaps", operations=["DELETE"])
    def refuse(request):
        assert request["name"] != "a"
    assert names(noxu_session) == {"session", "module", "test"}
    noxu_session.create(named("a"))
    noxu_session.delete("configmaps", "session")
    noxu_session.delete("customresourcedefinitions", "widgets.example.com")
class TestMany:
    @pytest.mark.parametrize("number", range(3))
    def test_many(self, noxu_session, of_the_test, number):
        assert names(noxu_session) == {"session", "module", "test"}
        assert noxu_session.list("widgets") == []
        noxu_session.create(named("a"))
        noxu_session.delete("configmaps", "a")
    async def test_async(self, noxu_session):
        assert len(await noxu_session.list("configmaps", namespace="default")) == 3
        await noxu_session.create(named("a"))
    def test_that_fails(self, noxu_session):
        noxu_session.create(named("a"))
        assert False
def test_it_asks_later(request):
    noxu = request.getfixturevalue("noxu_session")
    assert names(noxu) == {"session", "module"}
    noxu.create(named("a"))
def test_all_of_it(noxu_session):
    assert names(noxu_session) == {"session", "module"}
    assert len(noxu_session.snapshots()) == 1
"""
    )
    project.runpytest_inprocess("--noxu-isolation=rollback").assert_outcomes(passed=7, failed=1)


def test_servers_of_classes_and_modules_are_rolled_back_too(project: pytest.Pytester) -> None:
    project.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\nnoxu_isolation=rollback\n",
    )
    tests = (
        ISOLATED
        + """
@pytest.fixture(scope="class")
def made(noxu_class, noxu_module):
    noxu_class.create(named("made"))
    noxu_module.create(named("made-in-the-module"))
@pytest.mark.usefixtures("made")
class TestA:
    @pytest.mark.parametrize("number", range(2))
    def test_a(self, noxu_class, noxu_module, number):
        assert (names(noxu_class), names(noxu_module)) == ({"made"}, {"made-in-the-module"})
        noxu_class.create(named("a"))
        noxu_module.create(named("a"))
class TestB:
    def test_b(self, noxu_class, noxu_module, noxu):
        assert (names(noxu_class), names(noxu_module), names(noxu)) == (set(), {"made-in-the-module"}, set())
        noxu_module.stop()
"""
    )
    project.makepyfile(test_first=tests, test_second=tests)
    project.runpytest_inprocess().assert_outcomes(passed=6)


def test_otherwise_it_remains(project: pytest.Pytester) -> None:
    project.makepyfile(
        ISOLATED
        + """
def test_one(noxu_session):
    noxu_session.create(named("a"))
def test_two(noxu_session):
    assert names(noxu_session) == {"a"}
"""
    )
    project.runpytest_inprocess("--noxu-isolation=server").assert_outcomes(passed=2)


def test_another_isolation_is_refused(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--noxu-isolation=rolback")
    result.stderr.fnmatch_lines(
        "ERROR: noxu_isolation: rolback is neither of server and rollback; did you mean rollback?"
    )


# -- faults -----------------------------------------------------------------------------------------------------------


def test_all_servers_begin_with_the_faults_of_the_configuration(project: pytest.Pytester) -> None:
    """And the report of a failed test says which rule has hit a request."""
    project.makefile(
        ".yaml", plan="rules: [{name: first, match: {verbs: [get], resource: configmaps}, nth: 1, error: 503}]"
    )
    test = """
def test_it(noxu, make_noxu):
    for server in (make_noxu(), noxu):
        assert server.list("configmaps", namespace="default") is not None
        server.get("configmaps", "a")
"""
    result = _report(project, test, "--noxu-faults=plan.yaml", "--noxu-latency=1ms")
    result.stdout.fnmatch_lines(
        ["503  GET */configmaps/a  (the test)  ServiceUnavailable: *  [[]hit by latency, first[]]"]
    )


def test_a_latency_that_is_none(project: pytest.Pytester) -> None:
    result = project.runpytest("--noxu-latency=soon")
    result.stderr.fnmatch_lines(["ERROR: noxu_latency: *soon*"])


def test_a_test_runs_once_for_each_version_of_kubernetes(project: pytest.Pytester) -> None:
    project.makepyfile(
        FETCH
        + """
import pytest

@pytest.mark.noxu("widgets.yaml", kubernetes=["1.29", "1.37"])
def test_several(noxu, request):
    version = request.node.callspec.params["noxu"]
    assert fetch(noxu, "/version")["minor"] == version.removeprefix("1.")
    assert fetch(noxu, WIDGETS)["items"] == []

@pytest.mark.noxu(kubernetes="1.31")
def test_one(noxu, make_noxu):
    assert fetch(noxu, "/version")["gitVersion"].startswith("v1.31.0+")
    assert fetch(make_noxu(kubernetes="v1.30"), "/version")["minor"] == "30"

def test_shared(noxu_module):
    assert "emulationMinor" not in fetch(noxu_module, "/version") or fetch(noxu_module, "/version")["minor"] >= "33"

@pytest.mark.noxu(kubernetes="1.28")
def test_unknown(noxu):
    pass

def test_without_a_server():
    pass
"""
    )
    result = project.runpytest("--noxu-kubernetes=1.32,1.33", "-v", "-p", "no:randomly")
    result.assert_outcomes(passed=6, errors=1)
    for name in ("several[1.29]", "several[1.37]", "one", "shared[1.32]", "shared[1.33]", "without_a_server"):
        result.stdout.fnmatch_lines([f"*test_{name.replace('[', '[[]')} PASSED*"])
    result.stdout.fnmatch_lines(['*"1.28" is not a known version of Kubernetes: give one of 1.29, *'])


def test_the_option_has_known_versions(project: pytest.Pytester) -> None:
    result = project.runpytest("--noxu-kubernetes=1.31,1.38")
    result.stderr.fnmatch_lines(['*noxu_kubernetes: "1.38" is not a known version of Kubernetes: give one of 1.29, *'])
