"""The commands of docs/quickstart.md print what the page shows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.quickstart import PAGE, run, steps
from noxu.testing.handle import Noxu


def test_the_commands_of_the_quickstart_print_the_documented_output(
    noxu: Noxu, kubectls: list[Path], tmp_path: Path
) -> None:
    install, server, export, *others = steps(PAGE.read_text())
    assert install.commands == "python3 -m venv .venv && .venv/bin/pip install -q .\n"
    assert server.commands == ".venv/bin/noxu serve --memory\n"
    assert export.commands.startswith("export KUBECONFIG=")
    assert [step.printed is not None for step in others] == [False, False, True, True]
    for step in others:
        run(step, tmp_path, f"export PATH={kubectls[0]}:$PATH KUBECONFIG={noxu.kubeconfig}\n")
