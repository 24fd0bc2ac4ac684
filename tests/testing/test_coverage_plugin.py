"""The options of pytest about the coverage of schemas: all servers, cases, processes of xdist, reports, a least percentage."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.definitions import version, widgets

SPEC = {
    "type": "object",
    "properties": {"size": {"type": "integer", "default": 1}, "mode": {"type": "string", "enum": ["fast", "slow"]}},
    "x-kubernetes-validations": [{"rule": "self.size < 4"}],
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
TESTS = """
import json, pathlib, pytest, urllib.request
from noxu import ApiError

WIDGET = json.loads(pathlib.Path("widget.json").read_text())

def test_a_default(noxu):
    noxu.apply({**WIDGET, "spec": {"mode": "fast"}})

def test_a_rule(noxu_module):
    with pytest.raises(ApiError):
        noxu_module.create({**WIDGET, "spec": {"size": 4}})

def test_any_client(noxu_module):
    path = noxu_module.url + "/apis/example.com/v1/namespaces/default/widgets"
    body = json.dumps({**WIDGET, "spec": {"size": 2}}).encode()
    urllib.request.urlopen(urllib.request.Request(path, body, {"Content-Type": "application/json"})).close()
    noxu_module.patch("widgets", "a", {"spec": {"mode": "slow"}}, namespace="default")
"""
CASES = {
    "apiVersion": "noxu.dev/v1",
    "kind": "Test",
    "given": {"crds": ["crds"]},
    "cases": [{"name": "slow", "object": {**WIDGET, "spec": {"mode": "slow"}}, "expect": {"allowed": True}}],
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\nnoxu_manifests=crds\nnoxu_tests=.\n",
    )
    crds: Path = pytester.mkdir("crds")
    schema = {"type": "object", "properties": {"spec": SPEC}}
    crds.joinpath("widgets.json").write_text(json.dumps(widgets(version(schema))))
    pytester.path.joinpath("widget.json").write_text(json.dumps(WIDGET))
    pytester.makepyfile(TESTS)
    return pytester


def percent(project: pytest.Pytester, *options: str) -> float:
    project.runpytest_inprocess(
        "-q", "-p", "no:cacheprovider", "--noxu-coverage", "--noxu-coverage-report=json:c.json", *options
    )
    return float(json.loads(project.path.joinpath("c.json").read_text())["percent"])


def test_all_servers_count(project: pytest.Pytester) -> None:
    ran = project.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--noxu-coverage")
    ran.assert_outcomes(passed=3)
    ran.stdout.fnmatch_lines(
        [
            "*= noxu coverage =*",
            "widgets.example.com/v1 * 4 * 3/3 * 2/2 * 1/1 * 2/2 * 100%",
            "all of them: 100%",
        ]
    )
    assert percent(project, "-k", "default") == 62.5


@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
@pytest.mark.slow
def test_processes_of_xdist_count(project: pytest.Pytester) -> None:
    ran = project.runpytest_subprocess("-n1", "-k", "default", "--noxu-coverage")
    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(["widgets.example.com/v1 * 1 * 2/3 * 62%"])


def test_cases_count_and_too_little_fails_the_run(project: pytest.Pytester) -> None:
    project.path.joinpath("widgets_test.yaml").write_text(json.dumps(CASES))
    options = ("-q", "-p", "no:cacheprovider", "-k", "slow", "--noxu-coverage")
    ran = project.runpytest_inprocess(*options, "--noxu-coverage-report=html:covered", "--noxu-coverage-fail-under=90")
    ran.stdout.fnmatch_lines(["noxu coverage: *covered/index.html", "noxu: coverage is 62.5%, less than 90%"])
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    assert project.runpytest_inprocess(*options, "--noxu-coverage-fail-under=60").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noxu-coverage-fail-under=1"], "--noxu-coverage-fail-under needs --noxu-coverage"),
        (["--noxu-coverage", "--noxu-coverage-fail-under=a"], "noxu_coverage_fail_under: a is no number of percent"),
        (
            ["--noxu-coverage", "--noxu-coverage-report=htm:a"],
            "noxu_coverage_report: htm is no report*did you mean html?",
        ),
    ],
)
def test_an_option_that_is_none(options: list[str], message: str, project: pytest.Pytester) -> None:
    project.runpytest_inprocess(*options).stderr.fnmatch_lines([f"ERROR: {message}"])
