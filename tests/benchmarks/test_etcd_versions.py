"""A comparison with a reference whose etcd is too old is refused, or marked."""

from __future__ import annotations

from pathlib import Path

from benchmarks import etcd_versions
from tests.rows import rows


def process(proc: Path, pid: int, name: str, output: str) -> None:
    program = proc / "programs" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
    program.chmod(0o755)
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "exe").symlink_to(program)


def test_the_version_is_that_of_the_process_named_etcd(tmp_path: Path) -> None:
    process(tmp_path, 10, "apiserver", "etcd Version: 9.9.9")
    process(tmp_path, 11, "etcd", "etcd Version: 3.6.5\nGit SHA: a061450\nGo Version: go1.24.7")
    assert etcd_versions.of_processes([10, 11], tmp_path) == "3.6.5"


def test_a_server_without_etcd_has_no_version(tmp_path: Path) -> None:
    process(tmp_path, 10, "apiserver", "etcd Version: 9.9.9")
    process(tmp_path, 11, "etcd", "usage: etcd")
    assert etcd_versions.of_processes([10, 11, 12], tmp_path) == ""


@rows(
    ("version", "fair"),
    [
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.0", False),
        ("3.5.1", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.6.0-alpha.0", True),
        ("3.7.0", True),
        ("4.0.0", True),
        ("3.3.27", False),
        ("unknown", False),
    ],
)
def test_the_reference_trusts_an_etcd_that_reports_the_progress_of_a_watch(version: str, fair: bool) -> None:
    assert etcd_versions.reports_progress(version) is fair
    assert bool(etcd_versions.complaints({"real": version, "noxu": ""})) is not fair


def test_a_complaint_names_the_server_its_etcd_and_what_to_do() -> None:
    [complaint] = etcd_versions.complaints({"real": "3.5.1", "noxu": ""})
    assert complaint.startswith("real stores in etcd 3.5.1, ")
    assert "use 3.5.13 or later" in complaint
    assert "--old-etcd" in complaint
