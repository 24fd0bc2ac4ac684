"""Tables whose rows are checked by one test: `@rows(names, table)` instead of `@pytest.mark.parametrize(names, table)`.

    @rows("text, value", [("0", 0), ("1e3", 1000), …])
    def test_a_number_is_parsed(text, value):
        assert parsed(text) == value

A row is a subtest: one that fails is named, and the rows after it are checked too. The end of a run says how many rows
were checked, and `--row TEXT` selects those whose names contain it:

    SUBFAILED[1e3-1000] tests/test_numbers.py::test_a_number_is_parsed - assert 1 == 1000
    SUBFAILED[2e-1-0.2] tests/test_numbers.py::test_a_number_is_parsed - …

A parametrized test costs 0.15 ms to collect, in every process of pytest-xdist, and 0.6 ms to run beside what it tests:
`pytest --collect-only tests`. A row costs 0.25 ms. So this is for tables of about ten rows or more.

The rows share what the fixtures of the test hand out. A test that changes something of a fixture is parametrized, and so
is one that takes seconds a row: pytest-xdist distributes tests, not rows.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pytest

Test = Callable[..., Any]
Table = Iterable[Any] | Callable[[], Iterable[Any]]
Ids = Iterable[Any] | Callable[[Any], Any] | None
Row = tuple[str, dict[str, Any]]
"""Its name, and the test's arguments."""

_CHECKED: Final = "rows"
"""The property of a test's report that holds how many rows it checked. A worker of pytest-xdist sends it too."""

_PARAM: Final = type(pytest.param())


def rows(names: str | Sequence[str], table: Table, ids: Ids = None) -> Callable[[Test], Test]:
    """Let a test check each row of a table.

    Names, rows and `ids` are those of `pytest.mark.parametrize`. A table that is read from files may be a function that
    reads it, when the test runs. A row has no marks of its own.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    single = isinstance(names, str) and len(arguments) == 1  # a row is the value itself
    read: Callable[[], Iterable[Any]] = table if callable(table) else [*table].copy
    names_of_rows = ids if ids is None or callable(ids) else [*ids]

    def decorate(test: Test) -> Test:
        def each(request: pytest.FixtureRequest, subtests: pytest.Subtests) -> Iterator[tuple[Any, dict[str, Any]]]:
            wanted = request.config.getoption("--row")
            table = [row for row in _named(arguments, read(), names_of_rows, single) if wanted in row[0]]
            if not table:
                (pytest.skip if wanted else pytest.fail)(f"the table has no row with {wanted!r}")
            for name, values in table:
                yield subtests.test(name), values
            request.node.user_properties.append((_CHECKED, len(table)))

        def check(request: pytest.FixtureRequest, subtests: pytest.Subtests, **fixtures: Any) -> None:
            __tracebackhide__ = True
            for subtest, values in each(request, subtests):
                with subtest:
                    test(**values, **fixtures)

        async def check_in_loop(request: pytest.FixtureRequest, subtests: pytest.Subtests, **fixtures: Any) -> None:
            __tracebackhide__ = True
            for subtest, values in each(request, subtests):
                with subtest:
                    await test(**values, **fixtures)

        checks = functools.wraps(test)(check_in_loop if inspect.iscoroutinefunction(test) else check)
        fixtures = [it for name, it in inspect.signature(test).parameters.items() if name not in arguments]
        own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("request", "subtests")]
        checks.__signature__ = inspect.Signature(fixtures + own)  # type: ignore[attr-defined]  # pytest reads it
        return checks

    return decorate


def _named(arguments: list[str], table: Iterable[Any], ids: Ids, single: bool) -> Iterator[Row]:
    """The rows of a table. `single` says that a row is the value of the one argument."""
    for index, row in enumerate(table):
        values, name = (row.values, row.id) if isinstance(row, _PARAM) else ((row,) if single else row, None)
        if isinstance(row, _PARAM) and row.marks:
            raise ValueError(f"a row has no marks of its own: {row}")
        if name is None and isinstance(ids, list):
            name = ids[index]
        if name is None:
            name = "-".join(_part(value, ids if callable(ids) else None) for value in values)
        printable = str(name).encode(errors="backslashreplace").decode()  # a worker of pytest-xdist sends it
        yield printable, dict(zip(arguments, values, strict=True))


def _part(value: Any, part: Callable[[Any], Any] | None) -> str:
    """What a value adds to the name of its row."""
    made = None if part is None else part(value)
    if made is None:
        made = value if isinstance(value, str) else reprlib.repr(value)
    return str(made)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", metavar="TEXT", default="", help="check only the rows of tables whose names contain TEXT")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    tables = [
        int(str(number))
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, number in report.user_properties
        if name == _CHECKED
    ]
    if tables:
        terminalreporter.line(f"{sum(tables)} rows of {len(tables)} tables were checked")
