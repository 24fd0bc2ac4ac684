"""The health report: one line for each check, no reasons, and all of them in the log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from noxu.observability.health import Checks, HealthReport, alive, report, version
from tests.rows import rows


def check(reason: str) -> Callable[[], Awaitable[str]]:
    async def found() -> str:
        return reason

    return found


GOOD, BAD = check(""), check("secret: disk full")
UNKNOWN = "warn: some health checks cannot be excluded: no matches for "
# name, which checks fail, verbose, excluded, healthy, text
REPORTS: list[tuple[str, str, bool, list[str], bool, str]] = [
    ("all pass", "", False, [], True, "ok"),
    ("all pass, verbose", "", True, [], True, "[+]a ok\n[+]b ok\nreadyz check passed\n"),
    ("one fails", "b", False, [], False, "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n"),
    ("one fails, verbose", "b", True, [], False, "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n"),
    ("all fail", "ab", False, [], False,
     "[-]a failed: reason withheld\n[-]b failed: reason withheld\nreadyz check failed\n"),
    ("the one that fails is excluded", "b", False, ["b"], True, "ok"),
    ("it is excluded, verbose", "b", True, ["b"], True, "[+]a ok\n[+]b excluded: ok\nreadyz check passed\n"),
    ("all are excluded", "ab", False, ["a", "b"], True, "ok"),
    ("what does not exist is excluded", "", True, ["d", "c"], True,
     f'[+]a ok\n[+]b ok\n{UNKNOWN}"c","d"\nreadyz check passed\n'),
    ("and the server fails", "a", False, ["c"], False,
     f'[-]a failed: reason withheld\n[+]b ok\n{UNKNOWN}"c"\nreadyz check failed\n'),
]  # fmt: skip


@rows(
    ("failing", "verbose", "excluded", "healthy", "text"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS]
)
async def test_the_report_when(failing: str, verbose: bool, excluded: list[str], healthy: bool, text: str) -> None:
    checks = {name: BAD if name in failing else GOOD for name in "ab"}
    assert await report("readyz", checks, verbose=verbose, excluded=excluded) == HealthReport(healthy, text)


async def test_the_log_has_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    await report("readyz", {"a": GOOD, "b": BAD}, verbose=True, excluded=[])
    assert [record.getMessage() for record in caplog.records] == ["readyz check failed: b: secret: disk full"]


async def test_an_excluded_check_is_not_made() -> None:
    async def never() -> str:
        raise AssertionError("it was made")

    assert (await report("readyz", {"a": never}, verbose=False, excluded=["a"])).healthy


@pytest.mark.parametrize(("endpoint", "names"), [("healthz", ["l"]), ("livez", ["l"]), ("readyz", ["l", "r"])])
def test_the_checks_of_an_endpoint(endpoint: str, names: list[str]) -> None:
    assert list(Checks({"l": GOOD}, {"r": BAD}).of(endpoint)) == names


async def test_a_server_that_answers_is_alive() -> None:
    assert await alive() == ""


def test_the_version_is_semantic_and_names_this_server() -> None:
    found = version("9.8.7")
    assert found["gitVersion"] == f"v{found['major']}.{found['minor']}.0+noxu.9.8.7"
    assert int(found["minCompatibilityMinor"]) == int(found["minor"]) - 1


async def test_a_check_with_several_names_is_made_once() -> None:
    calls: list[str] = []

    async def counted() -> str:
        calls.append("")
        return "no"

    found = await report("readyz", {"a": counted, "b": counted}, verbose=True, excluded=[])
    assert found.text.count("failed: reason withheld") == 2
    assert len(calls) == 1
