"""`noxu snapshot` and `noxu restore` of a running server: what they ask, print and refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from noxu.commands.api_client import ApiClient
from noxu.testing.handle import Noxu
from noxu_storage.snapshot import snapshot

Run = Callable[..., Any]


def test_snapshots_are_taken_listed_restored_and_deleted(run: Run, noxu: Noxu) -> None:
    at = f"--server {noxu.url}"
    taken = run(f"snapshot create base {at} -o json").json
    assert run(f"snapshot list {at} -o json").json == {"items": [taken]}
    title, row = (line.split() for line in run(f"snapshot list {at}").out.splitlines())
    assert title == ["NAME", "REVISION", "TIME", "KEYS"]
    assert row == ["base", str(taken["revision"]), taken["time"], str(taken["keys"])]
    noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    ran = run(f"restore base {at}")
    title, row = (line.split() for line in ran.out.splitlines())
    assert (ran.status, title) == (0, ["NAME", "REVISION", "DELETED", "CREATED", "CHANGED"])
    assert (row[0], row[2:]) == ("base", ["1", "0", "0"])
    assert run(f"snapshot create {at} -o json").json["name"].startswith("snapshot-")
    assert run(f"snapshot delete base {at} -o yaml").out.startswith("keys: 64\nname: base\n")
    assert [item["name"] for item in run(f"snapshot list {at} -o json").json["items"]] != ["base"]


def test_a_kubeconfig_names_the_server(run: Run, noxu: Noxu) -> None:
    assert run(f"snapshot create base --kubeconfig {noxu.kubeconfig}").status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("restore bse", "there is no snapshot 'bse': there are base; did you mean base?"),
        ("snapshot delete bse", "there is no snapshot 'bse': there are base; did you mean base?"),
        ("snapshot create base", "there is a snapshot 'base' already"),
        ("snapshot create 7", "begins with a letter"),
        ("snapshot save new.db --of bse", "there is no snapshot 'bse'"),
        ("snapshot save there.db", "there.db exists; name another file"),
        ("snapshot save nowhere/new.db", "nowhere/new.db cannot be written: No such file or directory"),
    ],
)
def test_what_a_server_refuses(run: Run, noxu: Noxu, here: Path, words: str, message: str) -> None:
    (here / "there.db").write_text("mine")
    noxu.snapshot("base")
    ran = run(f"{words} --server {noxu.url}")
    assert (ran.status, ran.out) == (1, "")
    assert message in ran.err
    assert [path.name for path in here.iterdir() if path.is_file()] == ["there.db"]
    assert (here / "there.db").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("snapshot crate", "FILE has to end with .db; the actions are create, list, delete, save; did you mean create?"),
        ("snapshot delete", "delete needs a NAME"),
        ("snapshot save", "save needs a FILE"),
        ("snapshot list a", "list takes no value"),
        ("snapshot list --of a", "--of is for save"),
        ("snapshot list --data a", "list asks a running server: --data and --etcd-servers are for noxu snapshot FILE.db"),
        ("snapshot list --server http://a:1 --context b", "--context is one of a kubeconfig"),
        ("snapshot a.db b", "asks no server, and takes no NAME: noxu snapshot save does"),
        ("snapshot a.db --server http://a:1", "asks no server, and takes no --server"),
        ("restore", "the following arguments are required: NAME"),
        ("serve --from a.db --etcd-servers http://a:1", "--from is for --memory and for a new data directory"),
    ],
)  # fmt: skip
def test_what_is_no_command(run: Run, words: str, message: str) -> None:
    ran = run(words)
    assert ran.status == 2
    assert message in ran.err


def test_all_objects_are_saved_while_the_server_runs(run: Run, noxu: Noxu, here: Path) -> None:
    ran = run(f"snapshot save saved.db --server {noxu.url} -o json")
    with snapshot(here / "saved.db") as file:
        assert ran.json == {"file": "saved.db", "revision": file.revision, "keys": 64}
    assert (here / "saved.db").stat().st_mode & 0o777 == 0o600
    assert run("check saved.db").status == 0
    assert [path.name for path in here.iterdir() if path.is_file()] == ["saved.db"]


def test_a_file_that_does_not_arrive_completely_is_none(
    run: Run, noxu: Noxu, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download = ApiClient.download

    def half(self: ApiClient, path: str, query: Any = None) -> Iterator[bytes]:
        content = b"".join(download(self, path, query))
        yield content[: len(content) // 2]

    monkeypatch.setattr(ApiClient, "download", half)
    ran = run(f"snapshot save saved.db --server {noxu.url}")
    assert ran.status == 1
    assert "saved.db is not written, what the server has sent is damaged" in ran.err
    assert not [path for path in here.iterdir() if path.is_file()]


def test_a_full_disk_leaves_no_file(run: Run, noxu: Noxu, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("noxu.commands.snapshot.sync", full)
    ran = run(f"snapshot save saved.db --server {noxu.url}")
    assert (ran.status, ran.err) == (1, "noxu: saved.db cannot be written: No space left on device\n")
    assert not [path for path in here.iterdir() if path.is_file()]
