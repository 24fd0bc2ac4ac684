"""The options of pytest about manners: reports of a whole run, and tests that fail because of what clients do in them."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from noxu.testing.manners_plugin import thresholds

TESTS = """
import urllib.error, urllib.request
import pytest
from noxu import Noxu

def ask(noxu, path="/api/v1/configmaps/a", agent="operator/v1"):
    request = urllib.request.Request(noxu.url + path, headers={"User-Agent": agent})
    try:
        urllib.request.urlopen(request).close()
    except urllib.error.HTTPError as error:
        error.close()

def be_rude(noxu, agent="operator/v1"):
    with noxu.fault(verbs=["list"], error={"code": 429, "retryAfter": 3600}):
        for _ in range(2):
            ask(noxu, "/api/v1/configmaps", agent)

def test_polite(noxu):
    ask(noxu)

def test_rude(noxu):
    be_rude(noxu)

def test_rude_to_a_server_that_has_stopped():
    with Noxu() as noxu:
        be_rude(noxu)

def test_rude_to_the_session(noxu_session):
    be_rude(noxu_session, "other/v1")

def test_polite_to_the_session(noxu_session):
    ask(noxu_session)

async def test_rude_in_a_coroutine(noxu):
    async with noxu.fault(verbs=["list"], error={"code": 429, "retryAfter": 3600}):
        for _ in range(2):
            ask(noxu, "/api/v1/configmaps")

def test_that_fails_by_itself(noxu):
    be_rude(noxu)
    assert False, "by itself"
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n")
    pytester.makepyfile(TESTS)
    return pytester


def test_without_the_options_nothing_is_judged(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("-p", "no:randomly")
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.no_fnmatch_line("*noxu report*")


def test_tests_fail_whose_clients_have_bad_manners(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--noxu-manners=polite")
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.fnmatch_lines(
        [
            "clients have bad manners:",
            "- operator/v1: 1 × retry before Retry-After: repeated after * ms, Retry-After was 3600 s. Wait as many seconds*",
            "    *  429  GET /api/v1/configmaps  (*)",
        ]
    )
    result.stdout.fnmatch_lines(["*AssertionError: by itself*"])


def test_other_numbers_in_the_configuration(project: pytest.Pytester) -> None:
    project.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n"
        "noxu_manners = polite early_retries=any conflicts=0\n",
    )
    project.runpytest_inprocess().assert_outcomes(passed=6, failed=1)


def test_a_report_at_the_end(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--noxu-report")
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        ["*= noxu report =*", "12 requests of 2 clients, 5 bad manners", "operator/v1: 10 requests, *"]
    )


@pytest.mark.parametrize(
    ("name", "begins"),
    [("report.html", "<!doctype html>"), ("made/report.json", "{"), ("report.txt", "12 requests of 2")],
)
def test_a_report_in_a_file(project: pytest.Pytester, name: str, begins: str) -> None:
    result = project.runpytest_inprocess(f"--noxu-report={name}")
    result.stdout.fnmatch_lines([f"noxu report: *{name}"])
    assert (project.path / name).read_text().startswith(begins)


def test_a_file_that_cannot_be_written(project: pytest.Pytester) -> None:
    (project.path / "report.html").mkdir()
    result = project.runpytest_inprocess("--noxu-report=report.html")
    result.stdout.fnmatch_lines(["noxu report: * cannot be written: Is a directory"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
def test_a_report_of_several_processes(project: pytest.Pytester) -> None:
    project.runpytest_subprocess("-n2", "--noxu-report=report.json").assert_outcomes(passed=6, failed=1)
    report = json.loads((project.path / "report.json").read_text())
    assert [(client["userAgent"], client["requests"]) for client in report["clients"]] == [
        ("operator/v1", 10),
        ("other/v1", 2),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rude", "noxu_manners: rude is no habit: there are hot_loops, fights*"),
        ("fight=1", "*; did you mean fights?"),
        ("fights", "noxu_manners: fights: write fights=NUMBER or fights=any"),
        ("fights=-1", "noxu_manners: fights=-1: write fights=NUMBER or fights=any"),
    ],
)
def test_numbers_that_are_refused(project: pytest.Pytester, words: str, message: str) -> None:
    project.runpytest_inprocess(f"--noxu-manners={words}").stderr.fnmatch_lines([f"ERROR: {message}"])


@pytest.mark.parametrize("file", ["test_a.py", "tests", "report.htm"])
def test_a_file_that_is_no_report_is_left_alone(project: pytest.Pytester, file: str) -> None:
    (project.path / file).write_text("")
    result = project.runpytest_inprocess("--noxu-report", file)
    result.stderr.fnmatch_lines(
        [f"ERROR: noxu_report: {file} is none of .html, .json, .txt; before other*--noxu-report=-"]
    )
    assert (project.path / file).read_text() == ""


def test_the_numbers() -> None:
    assert thresholds(["polite"]) == {}
    assert thresholds(["conflicts=20", "polling=any", "fights=0"]) == {"conflicts": 20, "polling": None, "fights": 0}
