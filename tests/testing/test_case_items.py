"""pytest collects files of cases: each case is a test, with the report of `noxu test`."""

from __future__ import annotations

import pytest

CASES = """apiVersion: noxu.dev/v1
kind: Test
cases:
- name: a map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}
  expect: {stored: {data: {b: c}}}
- name: another map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}
  expect: {stored: {data: {b: d}}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\nnoxu_tests=cases\n",
    )
    pytester.mkdir("cases").joinpath("maps_test.yaml").write_text(CASES)
    return pytester


def test_a_case_is_a_test(project: pytest.Pytester) -> None:
    project.path.joinpath("other_test.yaml").write_text("a: [")  # in no directory that is named
    ran = project.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        ["*maps_test.yaml:9:12: cases?1?.expect.stored: another object is stored", "*-   b: d", "*+   b: c"]
    )
    project.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", "not another").assert_outcomes(
        passed=1, deselected=1
    )


def test_a_file_that_cannot_be_run_is_an_error(project: pytest.Pytester) -> None:
    project.path.joinpath("cases/maps_test.yaml").write_text(CASES.replace("expect", "expct"))
    ran = project.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*maps_test.yaml:6:3: cases?0?.expct: there is no such field*did you mean expect?"])


def test_a_directory_of_kuttl_is_a_test(project: pytest.Pytester) -> None:
    project.path.joinpath("cases/maps_test.yaml").unlink()
    for name, value in (("good", "c"), ("bad", "d")):
        project.mkdir(f"cases/{name}").joinpath("00-a.yaml").write_text(MAP % "c")
        project.path.joinpath(f"cases/{name}/00-assert.yaml").write_text(MAP % value)
    ran = project.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        ['*00-assert.yaml:1:*: step 0-a: ConfigMap kuttl-bad/a: data.b: it is "c", not "d"', "*-   b: d", "*+   b: c"]
    )


MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: %s}}"
