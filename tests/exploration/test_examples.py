"""What docs/explore.md shows of an example in Go is what the example has."""

from __future__ import annotations

from pathlib import Path

from tests.docs.blocks import blocks

SITES = Path(__file__).parent / "examples" / "sites"
LEFT_OUT = "// …"


def test_parts_of_a_program_are_in_the_program_or_in_its_fix() -> None:
    program = (SITES / "main.go").read_text("utf-8").splitlines()
    fix = [line[1:] for line in (SITES / "fix.patch").read_text("utf-8").splitlines() if line.startswith("+")]
    there = {line.strip() for line in (*program, *fix)}
    shown = [block.text for block in blocks() if (block.page, block.language) == ("docs/explore.md", "go")]
    assert len(shown) == 2
    for text in shown:
        assert [line for line in map(str.strip, text.splitlines()) if line not in {*there, LEFT_OUT, ""}] == []
