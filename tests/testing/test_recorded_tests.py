"""The option --noxu-record: the recordings of failed tests stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.recordings import lines
from noxu.testing.recorded_tests import free_file

TESTS = """
import pytest

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}

def test_that_passes(noxu):
    noxu.create(OBJECT)

def test_that_fails(noxu, make_noxu):
    noxu.create(OBJECT)
    make_noxu().get("configmaps", "a")

def test_of_a_module_that_passes(noxu_module):
    noxu_module.create(OBJECT)

@pytest.mark.parametrize("name", ["a/b"])
def test_of_a_module_that_fails(noxu_module, name):
    assert False
"""


def test_recordings_of_failed_tests_stay(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of this test, whose name would be in those of the files
    pytester.makefile(
        ".ini",
        pytest="[pytest]\nasyncio_default_fixture_loop_scope=function\nnoxu_profile=envtest\nnoxu_record=failed\nnoxu_html=pages\n",
    )
    pytester.makepyfile(test_a=TESTS)
    pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:xdist").assert_outcomes(passed=2, failed=2)
    found = {path.name: lines.read(path) for path in (pytester.path / "failed").iterdir()}
    assert sorted(found) == ["test_a.py-test_that_fails-2.noxu", "test_a.py-test_that_fails.noxu", "test_a.py.noxu"]
    [step] = [line for line in found["test_a.py-test_that_fails.noxu"].lines if "step" in line]
    assert (step["method"], step["body"]["metadata"]["name"]) == ("POST", "a")
    assert [step["method"] for step in found["test_a.py.noxu"].conversation] == ["POST"]
    pages = {path.name: path.read_text() for path in (pytester.path / "pages").iterdir()}
    assert sorted(pages) == [name.replace(".noxu", ".html") for name in sorted(found)]
    assert "/api/v1/namespaces/default/configmaps" in pages["test_a.py-test_that_fails.html"]


@pytest.mark.parametrize(
    ("worker", "node", "expected"),
    [
        ("", "tests/test_a.py::test_b[x/y z]", "tests-test_a.py-test_b[x-y-z].noxu"),
        ("gw1", "session", "session-gw1.noxu"),
        ("", "../../etc/passwd", "..-..-etc-passwd.noxu"),
        ("", "a" * 500, f"{'a' * 120}.noxu"),
    ],
)
def test_the_name_of_a_file_says_which_test(tmp_path: Path, worker: str, node: str, expected: str) -> None:
    assert free_file(tmp_path, worker, node).name == expected
    assert free_file(tmp_path, worker, node).name == expected.replace(".noxu", "-2.noxu")
