"""Reports about coverage, and the options that name them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from noxu.coverage.reports import as_page, as_text, wanted, write
from noxu.coverage.trees import tree
from noxu.values import Object
from tests.coverage.test_trees import SPEC
from tests.definitions import version, widgets
from tests.rows import rows

COUNTS = {"v1": {"writes": 3, "fields": {"spec": {"set": 3}, "spec.size": {"set": 1}}, "rules": {}}}


@pytest.fixture
def made() -> list[Object]:
    return tree(widgets(version({"type": "object", "properties": {"spec": SPEC}})), COUNTS)


def test_the_text_is_a_table_with_what_is_missing(made: list[Object]) -> None:
    assert as_text(made).splitlines() == [
        "definition               writes   fields   enum values   defaults   rules   covered",
        "widgets.example.com/v1        3      2/3           0/2        0/1     0/2       25%",
        "  spec: rule 'self.size < 4' never true",
        "  spec: rule 'self.size < 4' never false",
        "  spec.mode: never set (with 2 further points)",
        "  spec.size: default 1 never taken",
        "all of them: 25%",
    ]


def test_the_page_has_a_tree_and_no_markup_of_others(made: list[Object]) -> None:
    made[0]["below"][0]["name"] = "<script>"
    page = as_page(made)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<details") == page.count("</details>") == 1
    assert "default 1: taken 0 times" in page


@rows(
    "text, file",
    [("text:a/b.txt", "a/b.txt"), ("json:c.json", "c.json"), ("html:cov", "cov/index.html")],
)
def test_a_report_is_written(text: str, file: str, tmp_path: Path, made: list[Object]) -> None:
    assert write(wanted(text, tmp_path), made) == tmp_path / file
    written = (tmp_path / file).read_text()
    if file.endswith(".json"):
        assert json.loads(written)["percent"] == 25
    assert "widgets.example.com/v1" in written


@rows(
    "text, why",
    [
        ("htm:a", "htm is no report: there are term, text, json, html; did you mean html?"),
        ("html", "html: write html:DIR"),
        ("json:", "json:: write json:FILE"),
        ("term:a", "term:a: write term"),
    ],
)
def test_a_report_that_is_none(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        wanted(text, Path())
