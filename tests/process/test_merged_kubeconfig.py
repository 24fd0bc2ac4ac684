"""A context in the user's own kubeconfig: which file, which entries, and every byte of the rest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from noxu.config import StartError
from noxu.files import in_use
from noxu.process import merged_kubeconfig
from noxu.process.merged_kubeconfig import (
    LISTS,
    UsersKubeconfig,
    entry_named,
    read,
    users_kubeconfig,
    with_current,
    with_entry,
    without_entry,
)
from noxu.security.kubeconfig import Access
from tests.rows import rows

KUBECTL: Final = """\
apiVersion: v1
clusters:
- cluster:
    server: https://prod:1
  name: prod
contexts:
- context:
    cluster: prod
    user: me
  name: prod
current-context: prod
kind: Config
preferences: {}
users:
- name: me
  user:
    token: x
"""
COMMENTED: Final = """\
# mine
kind: Config
users:   # people

  # the first one
  - user: {token: "é # x"}
    name: me   # me

  -
    name: you
    user:
      token: |
        text
# then

contexts: []
clusters: ~
other: &x {unknown: [1, 2.50]}
current-context: ""
# the end"""
JSON: Final = (
    '{"kind": "Config", "clusters": [{"name": "a", "cluster": {}}, {"name": "b", "cluster": {}}],\n "contexts": []}'
)

TEXTS: Final = {
    "nothing": "",
    "as kubectl writes it": KUBECTL,
    "with comments, and what kubectl does not know": COMMENTED,
    "without lists": "apiVersion: v1\nkind: Config",
    "with lists that are null": "clusters:\ncontexts:   \nusers: null\ncurrent-context:\n",
    "with a byte order and Windows' line breaks": KUBECTL.replace("\n", "\r\n"),
    "in braces": JSON,
    "an empty object": "{}",
    "indented": KUBECTL.replace("\n  ", "\n    ").replace("\n-", "\n  -"),
    "several lists in brackets": "clusters: [{name: a, cluster: {}}]\ncontexts: [ ]\nusers: [\n {name: u, user: {}},\n]\n",
}


@rows("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("field", LISTS)
def test_an_entry_comes_and_goes(text: str, field: str) -> None:
    entry = {"name": "noxu", field[:-1]: {"a": ["<é>", 1]}}
    added = with_entry(text, field, entry)
    assert read(added)[field][0] == entry
    for line in text.splitlines():
        assert line.strip("{}") in added or field in line
    removed = without_entry(added, field, "noxu")
    assert {name: value or None for name, value in read(removed).items() if value} == {
        name: value for name, value in read(text).items() if value
    }
    if read(text).get(field):
        assert removed == text
    twice = with_entry(added, field, {"name": "second"})
    assert without_entry(without_entry(twice, field, "noxu"), field, "second") == removed


@rows("text", TEXTS.values(), ids=TEXTS)
def test_the_current_context_is_set(text: str) -> None:
    found = with_current(text, "noxu: 1")
    assert read(found) == {**read(text), "current-context": "noxu: 1"}


@pytest.mark.parametrize("name", ["prod", "me"])
def test_each_entry_can_be_removed(name: str) -> None:
    text = KUBECTL
    for field in LISTS:
        text = without_entry(text, field, name)
    assert [len(read(text)[field]) for field in LISTS] == ([0, 0, 1] if name == "prod" else [1, 1, 0])


def test_what_is_in_the_middle_is_removed() -> None:
    assert without_entry(JSON, "clusters", "a") == JSON.replace('{"name": "a", "cluster": {}}, ', "")
    assert without_entry(JSON, "clusters", "b") == JSON.replace(', {"name": "b", "cluster": {}}', "")
    found = without_entry(COMMENTED, "users", "me")
    assert "  # the first one\n" in found
    assert entry_named(read(found), "users", "you") is not None


UNUSABLE: Final = ["[]", "a: [", "clusters: {a: 1}", "clusters: [1]", "clusters: text", "a: 1\n---\nb: 2\n", "\tx: 1"]


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_file_that_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        with_entry(text, "clusters", {"name": "noxu"})


@pytest.mark.parametrize(
    "text", ["clusters: &a\n- name: x\nusers: *a\n", "? clusters\n: - name: x\n", "clusters: !!seq\n- name: x\n"]
)
def test_unusual_yaml_is_changed_as_meant_or_not_at_all(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert read(with_entry(text, "contexts", {"name": "noxu"})) == {**read(text), "contexts": [{"name": "noxu"}]}
    with contextlib.suppress(ValueError):
        found = read(with_entry(text, "clusters", {"name": "noxu"}))
        assert found == {**read(text), "clusters": [{"name": "noxu"}, {"name": "x"}]}


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "existing", "expected"),
    [
        (None, [], "home/.kube/config"),
        ("", [], "home/.kube/config"),
        ("a", [], "a"),
        ("a:b:c", ["b", "c"], "b"),
        ("a::b", [], "b"),
    ],
)
def test_the_file_is_the_one_that_kubectl_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, existing: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in existing:
        Path(name).write_text("")
    environment = {} if variable is None else {"KUBECONFIG": variable.replace(":", os.pathsep)}
    assert users_kubeconfig(environment, Path("home")).file == Path(expected)


def users(file: Path, *others: Path) -> UsersKubeconfig:
    return UsersKubeconfig(file, (file, *others))


@contextlib.contextmanager
def context(where: UsersKubeconfig, own: Path, name: str = "noxu") -> Iterator[bool]:
    where.check(name, own)
    with where.merged(name, own, Access("http://127.0.0.1:1")) as is_current:
        yield is_current


@pytest.mark.parametrize("text", [*TEXTS.values(), None], ids=[*TEXTS, "no file"])
def test_the_file_is_what_it_was(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "k" / "config"
    if text is not None:
        file.parent.mkdir()
        file.write_bytes(text.encode())
        file.chmod(0o640)
    with context(users(file), tmp_path / "own") as is_current:
        value = read(file.read_bytes().decode())
        assert all(entry_named(value, field, "noxu") for field in LISTS)
        assert (
            is_current
            == (value["current-context"] == "noxu")
            == (text is None or not read(text).get("current-context"))
        )
        assert (file.stat().st_mode & 0o777) == (0o600 if text is None else 0o640)
        assert [each.name for each in file.parent.iterdir()] == ["config"]
    assert (file.read_bytes().decode() if file.exists() else None) == text


@pytest.mark.parametrize(
    ("mode", "access", "warns"),
    [(0o644, Access("x", token="t"), True), (0o600, Access("x", token="t"), False), (0o644, Access("x"), False)],
)
def test_a_credential_that_others_can_read_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, access: Access, warns: bool
) -> None:
    file = tmp_path / "config"
    file.touch(mode)
    file.chmod(mode)
    with users(file).merged("noxu", tmp_path / "own", access):
        assert ("can be read by others: chmod 600" in caplog.text) == warns


def test_a_file_that_is_read_only_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECTL)
    file.chmod(0o400)
    with (
        pytest.raises(StartError, match=r"cannot add context noxu to .*config: it is read-only"),
        context(users(file), tmp_path),
    ):
        pass
    assert file.read_text() == KUBECTL


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(KUBECTL)
    (tmp_path / "config").symlink_to("real")
    with context(users(tmp_path / "config"), tmp_path / "own"):
        assert "noxu" in (tmp_path / "real").read_text()
    assert (tmp_path / "config").is_symlink()
    assert (tmp_path / "real").read_text() == KUBECTL


def test_what_has_changed_in_the_meantime_stays(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with context(users(file), tmp_path / "own"):
        text = with_entry(file.read_text(), "contexts", {"name": "mine", "context": {}})
        file.write_text(text)
    value = read(file.read_text())
    assert value["contexts"] == [{"name": "mine", "context": {}}]
    assert (value["clusters"], value["users"], value["current-context"]) == ([], [], "")


def test_a_current_context_that_has_been_chosen_stays(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with context(users(file), tmp_path / "own"):
        file.write_text(with_current(file.read_text(), "mine"))
    assert read(file.read_text())["current-context"] == "mine"


def test_a_current_context_in_another_file_counts(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("current-context: prod\n")
    with context(users(tmp_path / "a", tmp_path / "b"), tmp_path / "own") as is_current:
        assert not is_current


def test_entries_of_a_server_that_was_killed_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECTL)
    killed = context(users(file), tmp_path / "killed")
    killed.__enter__()
    with context(users(file), tmp_path / "own"):
        value = read(file.read_text())
        assert [len(value[field]) for field in LISTS] == [2, 2, 2]
        assert str(tmp_path / "own") in file.read_text()
        assert str(tmp_path / "killed") not in file.read_text()
    assert file.read_text() == KUBECTL
    killed.__exit__(None, None, None)  # what a killed server does not do
    assert file.read_text() == KUBECTL


def test_two_servers_have_two_names(tmp_path: Path) -> None:
    file, one, two = tmp_path / "config", tmp_path / "one", tmp_path / "two"
    file.write_text(KUBECTL)
    one.write_text("")
    with in_use(one), context(users(file), one):
        with pytest.raises(StartError, match="is of a server that is running: choose another name with --context"):
            users(file).check("noxu", two)
        with context(users(file), two, "other"):
            assert len(read(file.read_text())["contexts"]) == 3
        assert len(read(file.read_text())["contexts"]) == 2
    assert file.read_text() == KUBECTL


@pytest.mark.parametrize("field", LISTS)
@pytest.mark.parametrize("other", [False, True], ids=["in the file", "in another one"])
def test_an_entry_of_somebody_else_is_not_overwritten(tmp_path: Path, field: str, other: bool) -> None:
    text = with_entry(KUBECTL, field, {"name": "noxu", field[:-1]: {}})
    file = tmp_path / "config"
    file.write_text(text)
    where = users(tmp_path / "empty", file) if other else users(file)
    with pytest.raises(StartError, match=f"{file} has {field[:-1]} noxu already, which is not Noxu's"):
        where.check("noxu", tmp_path / "own")
    assert file.read_text() == text


def test_a_file_that_is_locked_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    (tmp_path / "config.lock").write_text("")
    monkeypatch.setattr(merged_kubeconfig, "LOCKED_FOR", 0.0)
    with (
        pytest.raises(StartError, match=r"config\.lock exists: if no kubectl is running, remove it"),
        context(users(file), tmp_path),
    ):
        pass
    assert (tmp_path / "config.lock").exists()
    assert not file.exists()


@pytest.mark.parametrize("text", ["a: [", "clusters: 1"])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(StartError, match=f"the kubeconfig {file} cannot be read: "):
        users(file).check("noxu", tmp_path / "own")


def test_a_damaged_file_at_the_end_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "config"
    with context(users(file), tmp_path / "own"):
        file.write_text("a: [")
    assert file.read_text() == "a: ["
    assert f"context noxu is not removed from {file}: " in caplog.text


def test_entries_are_lines_of_json(tmp_path: Path) -> None:
    added = with_entry(KUBECTL, "users", {"name": "noxu", "user": {}})
    assert '\nusers:\n- {"name":"noxu","user":{}}\n- name: me\n' in added
    assert merged_kubeconfig.without_entry(added, "users", "nobody") == added
