"""Plots of a run as SVG, by matplotlib (the extra `benchmarks`).

Their background is transparent, and text and lines have colours that are readable on white and on black. The text stays
text. The same results make the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.report import CURVES
from benchmarks.results import Results, operations, summary

INK: Final = "#808080"
COLOURS: Final = ("#d9722e", "#2e86d9", "#3fa34d", "#a05fc4")
MARKERS: Final = ("o", "s", "^", "D")
STYLE: Final = {
    "svg.fonttype": "none", "svg.hashsalt": "noxu", "font.family": "sans-serif", "font.size": 10,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "grid.color": INK, "grid.alpha": 0.25, "grid.linewidth": 0.6,
    "legend.frameon": False,
}  # fmt: skip


def draw(found: Results, base: str) -> dict[str, str]:
    """The plots by file name. `base` is drawn last."""
    servers = [*(server for server in found.servers if server != base), base]
    with mpl.rc_context(STYLE):
        drawn = {"costs.svg": _svg(_costs(found, servers))}
        for curve in CURVES:
            if any(point.curve == curve for point in found.growth):
                drawn[f"{curve}.svg"] = _svg(_curve(found, curve, servers, "processor time per operation, µs", _cpu))
        if any(point.curve == "objects" for point in found.growth):
            drawn["memory.svg"] = _svg(_memory(found, servers))
        return drawn


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    FigureCanvasSVG(figure)
    figure.savefig(out, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _style(server: str, servers: Sequence[str]) -> dict[str, Any]:
    n = servers.index(server) % len(COLOURS)
    return {"color": COLOURS[n], "marker": MARKERS[n], "markersize": 5}


def _costs(found: Results, servers: Sequence[str]) -> Figure:
    """A row for each operation, a dot for each server, on a logarithmic axis."""
    names = operations(found.measured)
    figure = Figure(figsize=(8, 0.27 * len(names) + 1))
    axes = figure.subplots()
    rows = range(len(names) - 1, -1, -1)
    values: dict[str, dict[int, float]] = {server: {} for server in servers}
    for row, name in zip(rows, names, strict=True):
        for server in servers:
            if (each := summary(found.measured, name, server)) and each.cpu > 0:
                values[server][row] = each.cpu
        here = [by_row[row] for by_row in values.values() if row in by_row]
        if len(here) > 1:
            axes.plot([min(here), max(here)], [row, row], color=INK, linewidth=0.8, alpha=0.5, zorder=1)
    for server in servers:
        by_row = values[server]
        axes.plot(list(by_row.values()), list(by_row), linestyle="none", label=server, **_style(server, servers))
    axes.set_xscale("log")
    axes.set_yticks(list(rows), names)
    axes.set_xlabel("processor time of the server per operation, µs (logarithmic)")
    axes.grid(axis="x")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(servers))
    return figure


def _cpu(measured: Any) -> float:
    return float(measured.cpu)


def _curve(found: Results, curve: str, servers: Sequence[str], label: str, value: Callable[[Any], float]) -> Figure:
    """One panel for each operation, side by side, with the same axes."""
    points = [point for point in found.growth if point.curve == curve]
    names = operations(point.measured for point in points)
    figure = Figure(figsize=(max(2.6 * len(names), 4.5), 3.2))
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        for server in servers:
            line = [
                (point.size, value(point.measured))
                for point in points
                if (point.measured.operation, point.measured.server) == (name, server)
            ]
            panel.plot(*zip(*line, strict=True) if line else ([], []), label=server, **_style(server, servers))
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(name, fontsize=10)
        panel.grid(visible=True)
    figure.supxlabel(f"{CURVES[curve]} (logarithmic)", fontsize=10, color=INK, y=-0.06)
    panels[0].set_ylabel(label)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(servers))
    return figure


def _memory(found: Results, servers: Sequence[str]) -> Figure:
    figure = Figure(figsize=(5.5, 3.2))
    axes = figure.subplots()
    for server in servers:
        largest: dict[int, float] = {}
        for point in found.growth:
            if point.curve == "objects" and point.measured.server == server:
                largest[point.size] = max(largest.get(point.size, 0.0), point.measured.memory)
        axes.plot(list(largest), list(largest.values()), label=server, **_style(server, servers))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("objects (logarithmic), beside those of the operations")
    axes.set_ylabel("resident memory, MB (logarithmic)")
    axes.grid(visible=True)
    axes.legend()
    return figure
