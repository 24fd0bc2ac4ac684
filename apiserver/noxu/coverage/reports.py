"""Reports about what is covered of schemas: text, JSON, and one HTML page; and how an option names them (`html:DIR`).

    definition                 writes   fields   enum values   defaults   rules   covered
    widgets.example.com/v1         12    10/12           2/3        1/2     3/4       76%
      spec.colour: "red" never seen
      spec: rule 'self.size < 4' never false
    all of them: 76%

Schemas and their values are text of others: the page escapes all of it, and forbids itself everything but its own style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.coverage.trees import KINDS, missing, percentage, points
from noxu.features import listed_names, meant
from noxu.values import Object

MAX_MISSING: Final = 200  # lines of a definition in the text; JSON and HTML have all
_TITLES: Final = ("definition", "writes", *KINDS, "covered")


class WantedReport(NamedTuple):
    """`kind` is one of KINDS_OF_REPORTS. `path` None: the terminal."""

    kind: str
    path: Path | None


def wanted(text: str, directory: Path) -> WantedReport:
    """What an option says: `term`, `text:FILE`, `json:FILE`, `html:DIR`. Raises ValueError."""
    kind, colon, place = text.partition(":")
    if kind not in KINDS_OF_REPORTS:
        raise ValueError(
            f"{kind} is no report: there are {listed_names(KINDS_OF_REPORTS)}{meant(kind, KINDS_OF_REPORTS)}"
        )
    if bool(place) != (kind != TERMINAL) or (colon and not place):
        raise ValueError(f"{text}: write {_SPELLINGS[kind]}")
    return WantedReport(kind, directory / place if place else None)


def write(report: WantedReport, made: Sequence[Object]) -> Path:
    """Write a report, which is no `term`: the file. Raises OSError."""
    assert report.path is not None
    path = report.path / "index.html" if report.kind == "html" else report.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_WRITERS[report.kind](made), "utf-8")
    return path


def lack(made: Sequence[Object], least: float | None) -> str:
    """Why this is too little, "" if it is enough. `least` is in percent; None: anything is enough."""
    if least is None or percentage(made) >= least:
        return ""
    return f"coverage is {percentage(made):.1f}%, less than {least:g}%"


def as_json(made: Sequence[Object]) -> Object:
    """The trees, and what is covered of all of them, in percent."""
    return {"percent": round(percentage(made), 2), "definitions": list(made)}


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(made: Sequence[Object]) -> str:
    """A table, with what is missing below each definition."""
    rows = [_TITLES, *map(_row, made)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_TITLES))]
    lines = []
    for n, row in enumerate(rows):
        first, *others = (
            cell.ljust(width) if not k else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("   ".join([first, *others]))
        if n:
            lines += _missing_lines(made[n - 1])
    lines.append(f"all of them: {_percent(made)}" if made else "no definition: nothing can be covered")
    return "\n".join(lines)


def _row(tree: Object) -> Sequence[str]:
    found = list(points(tree))
    cells = []
    for kind in KINDS:
        of_kind = [point for point in found if point.kind == kind]
        cells.append(f"{sum(point.is_covered for point in of_kind)}/{len(of_kind)}" if of_kind else "-")
    return (tree["name"], str(tree["writes"]), *cells, _percent([tree]))


def _percent(made: Iterable[Object]) -> str:
    """Rounded down: 100% means that nothing is missing."""
    return f"{int(percentage(made))}%"


def _missing_lines(tree: Object) -> list[str]:
    lines = [f"  {path or '(the object)'}: {what}" for path, what in missing(tree)]
    more = len(lines) - MAX_MISSING
    return lines if more <= 0 else [*lines[:MAX_MISSING], f"  and {more} more"]


# -- one page ----------------------------------------------------------------------------------------------------------


_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
details details, .leaf, .note { margin-left: 1.4rem; }
summary { cursor: pointer; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.type, .part { opacity: 0.7; margin-left: 0.6rem; }
.good { color: light-dark(#1a7f37, #4ac26b); }
.bad { color: light-dark(#b3261e, #ff8a80); }
"""
_HEAD: Final = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n"""
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f"<title>Coverage of schemas</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
)


def as_page(made: Sequence[Object]) -> str:
    """A tree of the fields of each version; what is not covered is open and red."""
    lines = [f"<h1>Coverage of schemas: {_percent(made)}</h1>"]
    for tree in made:
        lines.append(f"<h2>{_text(tree['name'])}: {_percent([tree])}</h2>")
        lines.append(f"<p>{tree['writes']} writes, {tree['covered']} of {tree['points']} points</p>")
        lines += _notes(tree)
        lines += [line for below in tree["below"] for line in _lines(below)]
    return "\n".join([_HEAD, *lines, "</body>\n</html>\n"])


def _lines(node: Object) -> Iterator[str]:
    times = f"set {node['set']} times" if node["set"] else "never set"
    title = (
        f'<code class="{_class(node["set"])}">{_text(node["name"])}</code><span class="type">{_text(node["type"])}</span>'
        f'<span class="part">{times}</span>'
    )
    if not node["below"]:
        yield f'<div class="leaf" title="{_text(node["path"])}">{title}</div>'
        yield from _notes(node)
        return
    is_open = " open" if node["covered"] < node["points"] else ""
    part = f'<span class="part">{node["covered"]} of {node["points"]}</span>'
    yield f'<details{is_open}><summary title="{_text(node["path"])}">{title}{part}</summary>'
    yield from _notes(node)
    for below in node["below"]:
        yield from _lines(below)
    yield "</details>"


def _notes(node: Object) -> Iterator[str]:
    """Its default, enum values and rules."""
    if default := node.get("default"):
        value = codec.encode(default["value"], sort_keys=True).decode()
        yield _note(default["used"], f"default {value}: taken {default['used']} times")
    for value in node.get("enum", ()):
        shown = codec.encode(value["value"], sort_keys=True).decode()
        yield _note(value["seen"], f"{shown}: seen {value['seen']} times")
    for rule in node.get("rules", ()):
        said = f"rule {rule['rule']}: true {rule['true']} times, false {rule['false']} times"
        yield _note(rule["true"] and rule["false"], said)


def _note(count: int, text: str) -> str:
    return f'<div class="note {_class(count)}">{_text(text)}</div>'


def _class(count: int) -> str:
    return "good" if count else "bad"


def _text(text: str) -> str:
    """What HTML cannot have, such as U+0000, is shown as in Python."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    return escape(shown)


def _json_text(made: Sequence[Object]) -> str:
    return codec.pretty(as_json(made), sort_keys=False).decode()


def _plain_text(made: Sequence[Object]) -> str:
    return f"{as_text(made)}\n"


_WRITERS: Final[dict[str, Callable[[Sequence[Object]], str]]] = {
    "text": _plain_text,
    "json": _json_text,
    "html": as_page,
}
TERMINAL: Final = "term"
_SPELLINGS: Final = {TERMINAL: TERMINAL, "text": "text:FILE", "json": "json:FILE", "html": "html:DIR"}
KINDS_OF_REPORTS: Final = tuple(_SPELLINGS)
