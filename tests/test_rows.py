"""A table that one test checks: a wrong row fails the run and is named, and the rows after it are checked too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]

# What a run has that finds `tests.rows` here: the plugin, and nothing of this project's other plugins.
CONFIGURATION = f"""
[pytest]
pythonpath = {Path(__file__).parent.parent}
addopts = -p tests.rows -p no:cacheprovider --import-mode=importlib
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

SYNCHRONOUS = """
@rows("text, value", [("1", 1), ("2", 3), ("3", 3), ("four", 4)])
def test_numbers(text, value):
    assert int(text) == value
"""
ASYNCHRONOUS = SYNCHRONOUS.replace("def test", "async def test")
PARAMETRIZED = """
@pytest.mark.parametrize("base", [10, 16])
@rows("text, value", [("1", 1), ("2", 3), ("3", 3), ("four", 4)])
def test_numbers(text, value, base):
    assert int(text, base) == value
"""
OF_A_FIXTURE = """
@pytest.fixture
def parse():
    return int

@rows("text, value", lambda: [("1", 1), ("2", 3), ("3", 3), ("four", 4)])
def test_numbers(parse, text, value):
    assert parse(text) == value
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    def run(test: str, *arguments: str) -> pytest.RunResult:
        pytester.makeini(CONFIGURATION)
        pytester.makepyfile(f"import pytest\nfrom tests.rows import rows\n{test}")
        if "-n" in arguments:
            return pytester.runpytest_subprocess(*arguments)
        return pytester.runpytest_inprocess("-p", "no:xdist", *arguments)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "times", "arguments"),
    [
        (SYNCHRONOUS, 1, []),
        (SYNCHRONOUS, 1, ["-q"]),
        (SYNCHRONOUS, 1, ["-n", "1"]),
        (ASYNCHRONOUS, 1, []),
        (PARAMETRIZED, 2, []),
        (OF_A_FIXTURE, 1, []),
    ],
    ids=["synchronous", "quiet", "in a worker of pytest-xdist", "asynchronous", "parametrized", "of a fixture"],
)
def test_a_wrong_row_fails_the_run_and_is_named(run: Run, test: str, times: int, arguments: list[str]) -> None:
    result = run(test, *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = result.stdout.str()
    assert output.count("SUBFAILED[2-3]") == times
    assert output.count("SUBFAILED[four-4]") == times
    assert "SUBFAILED[1-1]" not in output
    assert "SUBFAILED[3-3]" not in output
    assert f"{4 * times} rows of {times} tables were checked" in output
    assert "check(" not in output  # the traceback is that of the row


def test_rows_that_are_right_pass_and_are_counted(run: Run) -> None:
    result = run('@rows("value", [1, 2, 3])\ndef test_values(value): assert value > 0')
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["3 rows of 1 tables were checked"])


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ('@rows("value", [-1])', "-1"),
        ('@rows("value", [-1], ids=["a debt"])', "a debt"),
        ('@rows("value", {-1: 0}, ids={"a debt": 0})', "a debt"),
        ('@rows("value", [-1], ids=lambda value: f"of {-value}")', "of 1"),
        ('@rows("value", [-1], ids=lambda value: None)', "-1"),
        ('@rows("value", [pytest.param(-1, id="a debt")], ids=str)', "a debt"),
        ('@rows("value, other", [(-1, {"a": [None]})])', "-1-{'a': *}"),
    ],
    ids=["value", "list", "dict", "function", "function without a name", "param", "several values"],
)
def test_the_name_of_a_row(run: Run, decorator: str, name: str) -> None:
    arguments = "value, other" if "other" in decorator else "value"
    result = run(f"{decorator}\ndef test_values({arguments}): assert value > 0")
    result.stdout.fnmatch_lines([f"SUBFAILED[[]{name}] *::test_values - *"])


@pytest.mark.parametrize(
    ("text", "outcome", "line"),
    [
        ("one", pytest.ExitCode.OK, "1 rows of 1 tables were checked"),
        ("t", pytest.ExitCode.TESTS_FAILED, "2 rows of 1 tables were checked"),
        ("none", pytest.ExitCode.OK, "*1 skipped*"),
    ],
)
def test_rows_are_selected_by_their_names(run: Run, text: str, outcome: pytest.ExitCode, line: str) -> None:
    result = run(
        '@rows("value", [1, -2, -3], ids=["one", "two", "three"])\ndef test(value): assert value > 0', "--row", text
    )
    assert result.ret == outcome
    result.stdout.fnmatch_lines([line])


def test_the_first_failure_ends_a_run_that_is_to_end_there(run: Run) -> None:
    result = run(SYNCHRONOUS, "-x")
    assert result.ret != pytest.ExitCode.OK
    assert "SUBFAILED[2-3]" in result.stdout.str()
    assert "four-4" not in result.stdout.str()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[]", "the table has no row"),
        ("lambda: []", "the table has no row"),
        ("[pytest.param(1, marks=pytest.mark.skip)]", "a row has no marks of its own"),
        ("[(1, 2, 3)]", "is longer than"),
    ],
)
def test_a_table_that_would_check_nothing_fails(run: Run, table: str, message: str) -> None:
    result = run(f'@rows("value, other", {table})\ndef test(value, other): pass')
    assert result.ret != pytest.ExitCode.OK
    assert message in result.stdout.str()


def test_a_table_is_read_when_its_test_runs(run: Run) -> None:
    run('@rows("value", lambda: pytest.fail("was read"))\ndef test(value): pass', "--collect-only").assert_outcomes()
