"""docs/manners.md: its table is that of the habits, and its report is what a recording gives."""

from __future__ import annotations

import re
from typing import Final

from noxu.api import codec
from noxu.control.least_roles import least_rules, manifests, questions
from noxu.control.manners.habits import HABITS
from noxu.control.manners.observed import Observed
from noxu.control.manners.report import report
from noxu.control.manners.text import as_text
from tests.control.manners.recordings import BEGAN, asked, wrote
from tests.docs.blocks import ROOT, blocks

PAGE: Final = (ROOT / "docs" / "manners.md").read_text()
_ROW: Final = re.compile(r"^\| `(\w+)` \| (.*) \| (\d+) \|$", re.MULTILINE)


def recording() -> Observed:
    """An operator that writes its status with each event, also its own, and polls a configuration."""
    writes = [f"{n / 4:g} patch a" for n in range(12)]
    polls = [f"{n:g} get settings" for n in range(20)]
    requests = [
        *asked(*writes),
        *asked(*polls, resource="configmaps", path="/api/v1/namespaces/default/configmaps/settings"),
    ]
    requests.sort(key=lambda request: request.at)
    return Observed(requests, wrote(*(f"{text}: status.checked" for text in writes)))


def test_the_report_of_the_page() -> None:
    [shown] = [
        block.text for block in blocks() if block.page == "docs/manners.md" and block.text.startswith("$ noxu report\n")
    ]
    assert shown == f"$ noxu report\n{as_text(report(recording(), BEGAN))}\n"


def test_the_table_has_all_habits_and_what_is_tolerated() -> None:
    rows = {name: int(number) for name, _, number in _ROW.findall(PAGE)}
    assert rows == {name: habit.tolerated for name, habit in HABITS.items()}


def test_the_roles_of_the_page() -> None:
    requests = [
        *asked("0 list", "1 watch", namespace="", path="/apis/example.com/v1/widgets"),
        *asked("2 patch a", "3 patch b", subresource="status"),
        *asked("4 get operator", "5 update operator", resource="leases.coordination.k8s.io", namespace="shop"),
    ]
    roles = manifests(least_rules(questions(requests)), "operator")
    text = "\n---\n".join(codec.to_yaml(role).decode().rstrip("\n") for role in roles)
    [shown] = [block.text for block in blocks() if block.page == "docs/manners.md" and "noxu rbac" in block.text]
    assert shown == f"$ noxu rbac --client operator/\n{text}\n"
