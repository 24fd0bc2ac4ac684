"""The tables of docs/kubernetes-versions.md are those of the releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from noxu import releases
from noxu.kinds import facts
from noxu.releases import gates, kinds, libraries
from noxu.releases.gated_fields import GATED

PAGE: Final = Path(__file__).parents[2] / "docs" / "kubernetes-versions.md"
RELEASES: Final = range(releases.OLDEST, releases.NEWEST + 1)

COSTS: Final = (libraries.ESTIMATED, libraries.EVALUATED)


def gate_lines() -> Iterator[str]:
    yield f"| | {' | '.join(map(releases.named, RELEASES))} |"
    yield "|---|" + "---|" * len(RELEASES)
    for name in gates.GATES:
        found = [gates.gate(name, release) for release in RELEASES]
        yield f"| `{name}` | {' | '.join('–' if gate is None else 'on' if gate.default else 'off' for gate in found)} |"


def library_lines() -> Iterator[str]:
    yield "| | new rules since | stored ones since | functions and macros |"
    yield "|---|---|---|---|"
    for library in libraries.LIBRARIES:
        names = [name for name in library.functions if "@" not in name]
        macros = [f"{name} of {' or '.join(map(str, numbers))} arguments" for name, numbers in library.macros]
        listed = ", ".join(f"`{name}`" for name in names)
        said = "; ".join(filter(None, [listed, ", ".join(macros)]))
        new = releases.named(library.new) if library.new <= releases.NEWEST else "–"
        yield f"| {library.name} | {new} | {releases.named(library.stored)} | {said} |"


def cost_lines(costs: Mapping[str, int]) -> Iterator[str]:
    yield "| | since |"
    yield "|---|---|"
    for since in sorted(set(costs.values())):
        names = ["==" if name == "_==_" else name for name, own in costs.items() if own == since]
        yield f"| {', '.join(f'`{name}`' for name in names)} | {releases.named(since)} |"


def kind_lines() -> Iterator[str]:
    yield "| since | resources |"
    yield "|---|---|"
    for since, versions in kinds.LATER.items():
        listed = [
            f"`{plural}` of `{group}/{version}`" for (group, version), names in versions.items() for plural in names
        ]
        yield f"| {releases.named(since)} | {', '.join(listed)} |"


def field_lines() -> Iterator[str]:
    yield "| since | fields |"
    yield "|---|---|"
    came: dict[int, list[str]] = {}
    for key, differences in facts.read("older.json").items():
        declared = {field["embed"] if isinstance(field, dict) else field[0] for field in _newest(key)}
        for name, steps in differences.get("fields", {}).items():
            absent = [until for until, older in steps if older is None]
            if absent and name in declared:
                came.setdefault(absent[-1] + 1, []).append(f"`{key.rpartition('.')[2]}.{name}`")
    for since in sorted(came):
        yield f"| {releases.named(since)} | {', '.join(sorted(came[since]))} |"


def gated_lines() -> Iterator[str]:
    yield "| dropped until | gate | fields |"
    yield "|---|---|---|"
    for gated in sorted(GATED, key=lambda gated: (gated.until, gated.gate)):
        yield f"| {releases.named(gated.until)} | `{gated.gate}` | {', '.join(f'`{name}`' for name in gated.fields)} |"


def _newest(key: str) -> list[Any]:
    part, _, name = key.rpartition(".")
    fields: list[Any] = facts.types(part).get(name, {}).get("fields", [])
    return fields


def test_the_page_has_the_tables_of_the_releases() -> None:
    page = PAGE.read_text()
    for lines in (gate_lines(), library_lines(), kind_lines(), field_lines(), gated_lines(), *map(cost_lines, COSTS)):
        table = "\n".join(lines)
        assert f"\n\n{table}\n\n" in page, table
