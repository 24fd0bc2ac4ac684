"""Medians, ratios, the file of results, tables, and the parts of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import report, results
from benchmarks.processes import Machine
from benchmarks.results import Measured, Point, Results, percentile, ratio, ratios, summary

ROOT = Path(__file__).parents[2]


def measured(operation: str, server: str, round_: int, cpu: float, share: float = 0.5) -> Measured:
    return Measured(operation, server, round_, 10, cpu, 1_234.5, 1.25, 9.5, 20.0, share, 100.0)


RUN = Results(
    "2026-01-02", "python -m benchmarks.compare --server a=http://127.0.0.1:1", Machine("a processor", 2, 8.0, "6.1", "3.11.7"),
    0.25, 120, ("a", "b"), {"a": "1.37", "b": "1.37"},
    (
        *(measured("get", "a", n, cpu) for n, cpu in enumerate((300.0, 100.0, 200.0))),
        *(measured("get", "b", n, cpu, 0.95) for n, cpu in enumerate((30.0, 25.0, 50.0))),
        measured("start", "a", 0, 1_234_567.0),
    ),
    (Point("objects", 1, measured("get", "a", 1, 0.5)), Point("objects", 10, measured("get", "a", 10, 0.75)),
     Point("objects", 1, measured("get", "b", 1, 5.0))),
)  # fmt: skip


def test_figures_are_medians_and_ratios_are_those_of_the_same_round() -> None:
    found = summary(RUN.measured, "get", "a")
    assert found is not None
    assert (found.cpu, found.round) == (200.0, 3)
    assert ratios(RUN.measured, "get", "a", "b") == [10.0, 4.0, 4.0]
    assert ratio(RUN.measured, "get", "a", "b") == 4.0
    assert summary(RUN.measured, "start", "b") is None
    assert ratio(RUN.measured, "start", "a", "b") is None


def test_percentiles() -> None:
    assert [percentile([1.0, 2.0, 3.0, 4.0], part) for part in (0.0, 0.5, 0.99)] == [1.0, 3.0, 4.0]
    assert percentile([], 0.5) == 0.0


def test_the_file_is_read_as_it_was_written() -> None:
    assert results.load(results.dump(RUN)) == RUN._replace(measured=tuple(
        each._replace(per_second=1234.0, cpu=float(f"{each.cpu:.4g}")) for each in RUN.measured
    ), growth=tuple(point._replace(measured=point.measured._replace(per_second=1234.0)) for point in RUN.growth))  # fmt: skip


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"machine": 1}'])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        results.load(text)


def test_the_table_of_costs() -> None:
    assert report.costs(RUN, "b") == (
        "| operation | a, µs | b, µs | a / b |\n|---|--:|--:|--:|\n"
        "| get | 200 | 30 | 4.0× |\n| start | 1,230,000 | – | – |\n"
    )
    assert "| b / a |" in report.costs(RUN, "a")
    assert "| 0.25× |" in report.costs(RUN, "a")


def test_rates_that_the_client_limits_are_marked() -> None:
    assert report.rates(RUN).splitlines()[2] == "| get | 1,230 | 1.25 | 9.5 | 50% | 1,230* | 1.25 | 9.5 | 95% |"


def test_a_growth_curve_that_ended_early_has_dashes() -> None:
    assert report.grown(RUN, "objects").splitlines() == [
        "| µs, with objects | 1 | 10 |", "|---|--:|--:|", "| get, a | 0.5 | 0.75 |", "| get, b | 5 | – |",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"), [(0.1234, "0.123"), (12.34, "12.3"), (123.4, "123"), (1234.5, "1,230"), (99_999.0, "100,000")]
)
def test_figures_have_three_digits(value: float, shown: str) -> None:
    assert report.figure(value) == shown


def test_a_page_keeps_its_text_and_marks_without_a_part() -> None:
    page = "text\n<!-- begin a -->\nold\n<!-- end a -->\nmore\n<!-- begin b -->\nkept\n<!-- end b -->\n"
    updated = report.update(page, {"a": "new\n", "c": "unused\n"})
    assert updated == page.replace("old", "new")
    assert report.update(updated, {"a": "new\n"}) == updated
    with pytest.raises(ValueError, match="without its end"):
        report.update("<!-- begin a -->", {"a": ""})


def test_the_page_of_the_documentation_is_made_of_its_results() -> None:
    page, folder = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance"
    found = results.load((folder / "results.json").read_text())
    plots = sorted(path.name for path in folder.glob("*.svg"))
    assert (
        report.update(page.read_text(), report.blocks(found, found.servers[-1], folder.name, plots)) == page.read_text()
    )
    for plot in plots:
        drawn = (folder / plot).read_text()
        assert [server for server in found.servers if f">{server}<" not in drawn] == []


def test_the_page_says_which_etcd_was_used_and_marks_one_that_is_too_old() -> None:
    assert "a answers as Kubernetes 1.37 over etcd 3.6.5, b answers" in report.run(RUN._replace(etcd={"a": "3.6.5"}))
    assert "**Unfair" not in report.run(RUN._replace(etcd={"a": "3.6.5"}))
    assert "**Unfair: a stores in etcd 3.5.1" in report.run(RUN._replace(etcd={"a": "3.5.1"}))
