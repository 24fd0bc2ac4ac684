"""docs/architecture.md lists the stages of each write in the order in which they run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from noxu.registry.write import WRITE_STAGES

ARCHITECTURE: Final = Path(__file__).parents[2] / "docs" / "architecture.md"
_SECTION: Final = re.compile(r"^## The stages of each write\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented() -> dict[str, list[str]]:
    """The stages of each action. A line that starts with spaces continues the previous one:

    `CREATE    read_body → decode` and `          → prune` are the stages read_body, decode and prune of CREATE.
    """
    section = _SECTION.search(ARCHITECTURE.read_text())
    assert section is not None
    block = _BLOCK.search(section[1])
    assert block is not None
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\n +", " ", block[1]).splitlines():
        action, _, stages = line.partition(" ")
        found[action] = [stage.strip() for stage in stages.split("→")]
    return found


def test_the_stages_of_each_action_are_documented_in_their_order() -> None:
    actual = {action.name: [stage.__name__ for stage in stages] for action, stages in WRITE_STAGES.items()}
    assert documented() == actual
