"""The runner of test programs, with programs that behave as those of Ginkgo and Go."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from conformance import suites
from conformance.suites import Spec
from noxu.testing.handle import Noxu

SUITE = """
    import json, os, sys, urllib.request
    cluster = json.load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]
    served = json.load(urllib.request.urlopen(cluster["server"] + "/version"))["major"]
    state = "passed" if (served, os.environ["USE_EXISTING_CLUSTER"]) == ("1", "true") else "failed"
    reports = [
        {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
        {"LeafNodeType": "It", "ContainerHierarchyTexts": ["Client", "Get"], "LeafNodeText": "works", "State": state},
        {"LeafNodeType": "It", "LeafNodeText": "is not ready", "State": "pending"},
    ]
    if "-ginkgo.focus=wrong" in sys.argv:
        failure = {"Message": "expected 1"}
        reports.append({"LeafNodeType": "It", "LeafNodeText": "is wrong", "State": "timedout", "Failure": failure})
        reports.append({"LeafNodeType": "AfterSuite", "LeafNodeText": "", "State": "failed", "Failure": failure})
    [file] = [a.partition("=")[2] for a in sys.argv if a.startswith("-ginkgo.json-report=")]
    json.dump([{"SpecReports": reports}], open(file, "w"))
    print("=== RUN   TestSuite\\nRunning Suite: Client Suite - /somewhere")
    print("--- PASS: TestSuite (0.00s)" if len(reports) == 3 else "--- FAIL: TestSuite (0.00s)")
    print("=== RUN   TestOther\\n--- PASS: TestOther (0.00s)")
    sys.exit(len(reports) > 3)
"""
GO = """
    import sys
    print("=== RUN   TestA\\n=== RUN   TestA/one\\n=== RUN   TestA/two")
    print("--- FAIL: TestA (0.00s)\\n    --- PASS: TestA/one (0.00s)\\n    --- FAIL: TestA/two (0.00s)")
    print("--- SKIP: TestB (0.00s)\\npanic: runtime error [recovered]\\n\\ngoroutine 1")
    sys.exit(2)
"""
CRASH = "raise SystemExit('no such flag')"
FOCUS = ("--", "-ginkgo.focus=wrong")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the programs."""
    for name, text in {"suite": SUITE, "go": GO, "crash": CRASH}.items():
        path = tmp_path / f"{name}.test"
        path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
        path.chmod(0o755)
    return tmp_path


def test_the_specs_and_go_tests_of_programs_are_counted(
    written: Path, noxu_session: Noxu, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = [f"{written / name}.test={written}" for name in ("suite", "go", "crash")]
    assert suites.main(["--url", noxu_session.url, *programs]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "suite.test: 2 passed, 0 failed, 1 pending, 0 skipped",
        "go.test: 1 passed, 2 failed, 0 pending, 1 skipped",
        "FAIL TestA/two",
        "     ",
        "FAIL go.test",
        "     panic: runtime error [recovered]",
        "crash.test: 0 passed, 1 failed, 0 pending, 0 skipped",
        "FAIL crash.test",
        "     exit status 1: no such flag",
        "",
        "all: 3 passed, 3 failed, 1 pending, 1 skipped",
    ]


def test_the_options_reach_the_program_and_other_nodes_are_listed_when_they_fail(
    written: Path, noxu_session: Noxu
) -> None:
    variables = suites.of_cluster(noxu_session.kubeconfig)
    found = suites.run(suites.Program(written / "suite.test", written), variables, FOCUS[1:], timeout=60)
    assert [spec for spec in found if spec.failed] == [
        Spec("is wrong", "timedout", "expected 1"),
        Spec("AfterSuite", "failed", "expected 1"),
    ]


def test_a_new_server_is_started_and_stopped(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suites.main(["--start", f"{written / 'suite.test'}={written}"]) == 0
    assert "all: 2 passed, 0 failed" in capsys.readouterr().out
    assert suites.main(["--start", f"{written / 'suite.test'}={written}", *FOCUS]) == 1


def test_envtest_starts_the_programs_of_a_folder(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (written / "suite.test").write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "sys.exit('USE_EXISTING_CLUSTER' in os.environ or not os.path.isdir(os.environ['KUBEBUILDER_ASSETS']))\n"
    )
    assert suites.main(["--assets", str(written), f"{written / 'suite.test'}={written}"]) == 0


@pytest.mark.slow
def test_a_program_that_hangs_is_a_failure(written: Path, noxu_session: Noxu) -> None:
    (written / "suite.test").write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    program = suites.program(f"{written / 'suite.test'}={written}")
    assert suites.run(program, suites.of_cluster(noxu_session.kubeconfig), (), timeout=0.2) == [
        Spec("suite.test", "failed", "not finished after 0.2 s")
    ]
