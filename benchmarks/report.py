"""Tables in Markdown of what a run has measured, and how a page is updated with them.

The text of a page is its author's; what a run decides stands between marks, and is replaced:

    <!-- begin costs -->
    | operation | …
    <!-- end costs -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from benchmarks import etcd_versions
from benchmarks.results import Results, operations, ratio, summary

BUSY_CLIENT: Final = 0.9  # of a core: from here on the client limits rates and latencies
CURVES: Final = {"objects": "objects", "watchers": "watchers", "definitions": "definitions"}


def figure(value: float) -> str:
    """Three significant digits, thousands separated: 0.123, 12.3, 1,230."""
    if value >= 100:
        digits = len(str(int(value)))
        return f"{round(value, 3 - digits):,.0f}"
    return f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def costs(found: Results, base: str) -> str:
    """Processor time of the server per operation, and the ratios to `base`."""
    others = [server for server in found.servers if server != base]
    head = ["operation", *(f"{server}, µs" for server in found.servers), *(f"{other} / {base}" for other in others)]
    rows = []
    for operation in operations(found.measured):
        medians = [summary(found.measured, operation, server) for server in found.servers]
        shown = [ratio(found.measured, operation, other, base) for other in others]
        rows.append(
            [
                operation,
                *(figure(each.cpu) if each else "–" for each in medians),
                *(f"{_ratio(each)}" if each else "–" for each in shown),
            ]
        )
    return table(head, rows)


def _ratio(value: float) -> str:
    return f"{value:.1f}×" if value >= 1 else f"{value:.2f}×"


def rates(found: Results) -> str:
    """Operations per second, latencies, and the client's share; rates that the client limits are marked with *."""
    head = ["operation"]
    for server in found.servers:
        head += [f"{server}, per second", "p50, ms", "p99, ms", "client"]
    rows = []
    for operation in operations(found.measured):
        row = [operation]
        for server in found.servers:
            each = summary(found.measured, operation, server)
            if each is None:
                row += ["–"] * 4
                continue
            mark = "*" if each.client_share >= BUSY_CLIENT else ""
            row += [figure(each.per_second) + mark, figure(each.p50), figure(each.p99), f"{each.client_share:.0%}"]
        rows.append(row)
    return table(head, rows)


def memory(found: Results) -> str:
    """Resident memory: of an empty server, and in phases that need much."""
    head = ["MB", *found.servers]
    wanted = [("empty, when it answers", "start")]
    wanted += [
        (f"after: {name}", name)
        for name in operations(found.measured)
        if name == "apply" or name.startswith(("list of", "watch"))
    ]
    rows = []
    for title, operation in wanted:
        medians = [summary(found.measured, operation, server) for server in found.servers]
        if any(medians):
            rows.append([title, *(figure(each.memory) if each else "–" for each in medians)])
    return table(head, rows)


def grown(found: Results, curve: str) -> str:
    """µs of the server per operation at each size of a growth curve; – where a server's time to grow was over."""
    points = [point for point in found.growth if point.curve == curve]
    sizes = list(dict.fromkeys(point.size for point in points))
    cost = {(point.measured.operation, point.measured.server, point.size): point.measured.cpu for point in points}
    rows = [
        [
            f"{operation}, {server}",
            *(figure(cost[key]) if (key := (operation, server, size)) in cost else "–" for size in sizes),
        ]
        for operation in operations(point.measured for point in points)
        for server in found.servers
    ]
    return table([f"µs, with {CURVES[curve]}", *(f"{size:,}" for size in sizes)], rows)


def run(found: Results) -> str:
    """The run: its command, the machine, the servers."""
    machine = found.machine
    rounds = max((each.round for each in found.measured), default=0) + 1
    versions = ", ".join(_versions(found, name) for name in found.versions)
    unfair = "".join(f"**Unfair: {complaint}.**\n" for complaint in etcd_versions.complaints(found.etcd))
    return (
        f"```sh\n{found.command}\n```\n\n"
        f"{found.date}, {found.seconds / 60:.0f} minutes, {rounds} rounds. {machine.processor}, {machine.cores} cores, "
        f"{machine.memory_gb:g} GB; Linux {machine.kernel}; Python {machine.python}. Other processes used "
        f"{found.other_load:g} cores on average during the run. Versions: {versions}.\n"
        + (f"\n{unfair}" if unfair else "")
    )


def _versions(found: Results, name: str) -> str:
    store = f" over etcd {found.etcd[name]}" if name in found.etcd else ""
    return f"{name} answers as Kubernetes {found.versions[name]}{store}"


def blocks(found: Results, base: str, folder: str, plots: Iterable[str]) -> dict[str, str]:
    """What the marked parts of a page contain, by name. `plots` are file names in the folder next to the page."""
    parts = {"run": run(found), "costs": costs(found, base), "rates": rates(found), "memory": memory(found)}
    for curve in CURVES:
        if any(point.curve == curve for point in found.growth):
            parts[f"growth-{curve}"] = grown(found, curve)
    for plot in plots:
        name = plot.removesuffix(".svg")
        parts[f"plot-{name}"] = f"![{name.replace('-', ' ')}]({folder}/{plot})\n"
    return parts


def update(page: str, parts: Mapping[str, str]) -> str:
    """The page with its marked parts replaced. A mark without a part is left as it is. Raises ValueError."""
    for name in re.findall(r"<!-- begin ([\w-]+) -->", page):
        if f"<!-- end {name} -->" not in page:
            raise ValueError(f"the page has a mark `begin {name}` without its end")
        if name in parts:
            before, _, rest = page.partition(f"<!-- begin {name} -->")
            after = rest.partition(f"<!-- end {name} -->")[2]
            page = f"{before}<!-- begin {name} -->\n{parts[name]}<!-- end {name} -->{after}"
    return page
