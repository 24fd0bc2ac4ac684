"""The stages of the documentation are understood, and its table of what pods do is whole."""

from __future__ import annotations

import re

from noxu.workloads.kubelet.behaviours import KNOWN, parse
from noxu.workloads.stages.fields import DocumentFaults
from noxu.workloads.stages.reading import read
from tests.docs.blocks import ROOT, blocks


def test_the_files_of_the_page_are_understood() -> None:
    files = [
        each
        for each in blocks()
        if each.page == "docs/stages.md" and re.search("kind: Stages?$", each.text, re.MULTILINE)
    ]
    assert len(files) == 2
    for block in files:
        faults = DocumentFaults()
        assert read(block.text.encode(), faults).stages
        assert faults == []


def test_the_table_of_the_page_has_all_that_pods_do() -> None:
    page = (ROOT / "docs/stages.md").read_text()
    table = page.partition("| value |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([a-z][^`]*)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert set(KNOWN.split(", ")) == set(listed)
    for value in listed:
        parse(value)
