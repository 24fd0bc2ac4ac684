"""`noxu validate --old` says what a server answers to `kubectl apply` of the same files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from noxu.testing.handle import Noxu
from tests.cli.updates import ROWS, Row
from tests.timing import HANGS_AFTER

KINDS = ("Pod", "Service", "PersistentVolumeClaim", "Job")
"""Those whose files are merged with what a server has added: kubectl takes a tenth of a second for a row."""
COMPARED: list[tuple[str, Row]] = [(f"row-{n}", row) for n, row in enumerate(ROWS) if row.value["kind"] in KINDS]


def test_kubectl_gets_the_verdicts_of_the_table(server: Noxu, kubectls: list[Path], tmp_path: Path) -> None:
    """`tests/cli/test_updates.py` compares the verdicts of `noxu validate` with the table."""
    pairs = [row.documents(name) for name, row in COMPARED]
    environment = {
        "PATH": os.pathsep.join([str(kubectls[0]), *os.get_exec_path()]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(server.kubeconfig),
        "KUBECACHEDIR": str(kubectls[0] / "cache"),
    }
    for file, values in zip(("old.json", "new.json"), zip(*pairs, strict=True), strict=True):
        (tmp_path / file).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": values}))
    ran = [
        subprocess.run(
            ["kubectl", "apply", "-f", file],
            check=False,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * HANGS_AFTER,
        )
        for file in ("old.json", "new.json")
    ]
    assert (ran[0].returncode, ran[0].stderr) == (0, "")
    answers = {name: [line for line in ran[1].stderr.splitlines() if f'"{name}" is invalid: ' in line] for name, _ in COMPARED}  # fmt: skip
    wrong = [
        (row.name, answers[name])
        for name, row in COMPARED
        if bool(answers[name]) != bool(row.refused) or row.refused not in "".join(answers[name])
    ]
    assert wrong == []
