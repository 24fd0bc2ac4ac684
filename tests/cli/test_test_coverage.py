"""`noxu test --coverage`: the table, the files, the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from noxu.cli import main
from tests.definitions import version, widgets
from tests.rows import rows

SPEC = {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    given = {"crds": [widgets(version({"type": "object", "properties": {"spec": SPEC}}))]}
    for n, spec in enumerate([{"size": 1}, {}]):
        case = {"name": "a", "object": {**WIDGET, "spec": spec}, "expect": {"allowed": True}}
        test = {"apiVersion": "noxu.dev/v1", "kind": "Test", "given": given, "cases": [case]}
        tmp_path.joinpath(f"{n}_test.yaml").write_text(json.dumps(test))
    return tmp_path


@rows(
    "what, options, status",
    [
        ("enough is covered", ["--coverage-fail-under", "100"], 0),
        ("in several processes", ["-j", "2"], 0),
        ("the table is no result", ["--output", "json"], 0),
        ("too little is covered", ["--coverage-fail-under", "100.5"], 1),
    ],
)
def test_what_is_covered(
    what: str, options: list[str], status: int, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", "--coverage", *options, str(cases)]) == status, what
    out, err = capsys.readouterr()
    assert "widgets.example.com/v1        2      2/2             -        1/1       -      100%" in (
        err if "json" in options else out
    )


def test_a_report_that_cannot_be_written_is_an_error(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--coverage", "--coverage-report", f"json:{cases}", str(cases)]) == 2
    assert "the report cannot be written" in capsys.readouterr().err


@rows(
    "options, why",
    [
        (["--coverage-fail-under", "1"], "need --coverage"),
        (["--coverage", "--watch"], "exclude each other"),
        (["--coverage", "--coverage-report", "htm:a"], "did you mean html?"),
    ],
)
def test_options_that_are_none(options: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["test", *options, "."])
    assert why in capsys.readouterr().err
