"""`--cluster-signing-cert-file`, `--cluster-signing-key-file`: the CA that signs requests for certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noxu.security.certificates import new_authority

Make = Callable[..., Any]

CERTIFICATE, KEY = "--cluster-signing-cert-file ca.crt", "--cluster-signing-key-file ca.key"
REFUSED: list[tuple[str, str, str]] = [
    ("no key", CERTIFICATE, "--cluster-signing-cert-file and --cluster-signing-key-file need each other"),
    ("no certificate", KEY, "--cluster-signing-cert-file and --cluster-signing-key-file need each other"),
    ("a missing file", f"--cluster-signing-cert-file none.crt {KEY}", "cannot read none.crt: No such file or directory"),
    ("another key", f"{CERTIFICATE} --cluster-signing-key-file other.key", "ca.crt, other.key: the key of the signing CA is not that of its certificate"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_it_does_not_start_with(run: Make, here: Path, arguments: str, why: str) -> None:
    (here / "ca.crt").write_bytes(new_authority().identity.certificate)
    for name in ("ca.key", "other.key"):
        (here / name).write_bytes(new_authority().identity.key)
    ran = run(f"serve --port 0 --memory {arguments}")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines()[-1] == f"noxu: {why}"
