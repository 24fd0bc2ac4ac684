"""Servers of tests share a template, named by the content of their manifests: it is made once, and again when they change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from noxu import LoadError, Noxu, StartError
from noxu.control import kept_templates
from noxu.control import templates as control_templates
from noxu.control.templates import Template
from noxu.crd import validation
from noxu.manifests import manifest_cache
from noxu.testing import digests, sources, templates
from noxu.testing.digests import digest_of
from noxu.testing.sources import Source
from tests.clocks import ManualClock
from tests.testing.widgets import DEFINITION, size, widget

ROOT = Path(__file__).parents[2]
OBJECT: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """For each template that is made, the number of its documents. There are none before."""
    numbers: list[int] = []
    make = control_templates.make

    async def counted(config: Any, documents: Any, *others: Any) -> Template:
        numbers.append(len(documents))
        return await make(config, documents, *others)

    monkeypatch.setattr(control_templates, "make", counted)
    monkeypatch.setattr(templates, "_kept", type(templates._kept)())
    monkeypatch.setattr(templates, "_impossible", {})
    monkeypatch.setattr(digests, "_known", {})
    yield numbers
    assert not templates._being_made


def names(noxu: Noxu) -> list[str]:
    found = [item["metadata"]["name"] for item in noxu.list("configmaps", namespace="default")]
    return [name for name in found if name != "kube-root-ca.crt"]


# -- one template


def test_a_template_is_made_once_for_the_same_manifests(made: list[int]) -> None:
    for _ in range(3):
        with Noxu(manifests=[DEFINITION, widget("a")]) as noxu:
            assert noxu.get("widgets", "a")["metadata"]["name"] == "a"
            noxu.delete("widgets", "a")
    with Noxu() as noxu:
        assert names(noxu) == []
    assert made == [0, 2]  # the first one is without manifests, and the other one begins with it


def test_other_servers_have_other_templates(made: list[int]) -> None:
    controllers = ["*", "-namespace-controller"]
    for arguments in ({"profile": "envtest"}, {"gates": {"CBORServingAndStorage": True}}, {"controllers": controllers}):
        with Noxu(**arguments):  # type: ignore[arg-type]
            pass
    assert made == [0, 0, 0]
    with Noxu(profile="envtest", strict=True, users=["jane"], tls=True) as noxu:
        assert noxu.users["jane"].list("configmaps", namespace="default") == []
    assert made == [0, 0, 0]


def test_a_server_with_another_clock_or_a_directory_loads_its_manifests_itself(made: list[int], tmp_path: Path) -> None:
    clock = ManualClock()
    with Noxu(manifests=[OBJECT], clock=clock) as noxu:
        created = noxu.get("configmaps", "a")["metadata"]["creationTimestamp"]
        assert created == noxu.get("namespaces", "kube-system")["metadata"]["creationTimestamp"]
        assert created.startswith(str(clock.now().year))
    with Noxu(manifests=[OBJECT], data=tmp_path / "data") as noxu:
        assert names(noxu) == ["a"]
    assert made == []


def test_threads_that_need_the_same_template_wait_for_one_of_them(made: list[int]) -> None:
    found: list[list[str]] = []

    def serve(n: int) -> None:
        with Noxu(manifests=[OBJECT]) as noxu:
            noxu.create({**OBJECT, "metadata": {"name": f"of-{n}"}})
            found.append(names(noxu))

    threads = [threading.Thread(target=serve, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [0, 1]
    assert sorted(found) == [["a", f"of-{n}"] for n in range(4)]


def test_objects_that_are_refused_are_reported_to_every_server(made: list[int]) -> None:
    for _ in range(2):
        with pytest.raises(StartError, match=r"spec\.size"), Noxu(manifests=[DEFINITION, widget("a", size=9)]):
            pass
    assert made == [0, 2, 2]
    with Noxu(manifests=[DEFINITION]) as noxu:
        assert noxu.list("widgets") == []


def test_the_templates_that_were_used_last_are_kept(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(*numbers: int) -> list[int]:
        del made[:]
        for n in numbers:
            with Noxu(manifests=[{**OBJECT, "data": {"n": "x" * n}}]):
                pass
        return made

    monkeypatch.setattr(templates, "MAX_TEMPLATES", 3)
    assert serve(1, 2, 1, 3) == [0, 1, 1, 1]
    assert serve(1, 3) == []
    assert serve(2) == [1]  # the one without manifests is used whenever another one is made
    assert serve(3) == []
    assert serve(1) == [1]
    monkeypatch.setattr(templates, "MAX_BYTES", 1)
    assert serve(4, 4) == [1]
    assert len(templates._kept) == 1


def test_servers_whose_controllers_never_rest_load_their_manifests_themselves(
    made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = control_templates.make

    async def restless(config: Any, documents: Any, *others: Any) -> Template:
        template = await make(config, documents, *others)
        if documents:
            raise control_templates.NeverIdle("one is not done yet")
        return template

    monkeypatch.setattr(control_templates, "make", restless)
    for _ in range(2):
        with Noxu(manifests=[OBJECT]) as noxu:
            assert names(noxu) == ["a"]
    assert made == [0, 1]


def test_each_server_signs_the_tokens_of_secrets(made: list[int]) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    metadata = {"name": "t", "annotations": {"kubernetes.io/service-account.name": "a"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata}
    tokens = set()
    for _ in range(2):
        with Noxu(manifests=[account, secret]) as noxu:
            tokens.add(noxu.wait("secrets", "t", lambda value: "data" in value)["data"]["token"])
    assert len(tokens) == 2
    assert made == [0, 2]


# -- files


def write(path: Path, text: str, seconds_ago: float = 60.0) -> None:
    path.write_text(text)
    then = time.time() - seconds_ago
    os.utime(path, (then, then))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file has another content": lambda at: write(at / "a.yaml", TEXT.replace("a}", "b}")),
    "a file has the same size and time": lambda at: write(at / "a.yaml", TEXT.replace("name: a", "name: b")),
    "there is another file": lambda at: write(at / "below" / "c.yaml", TEXT.replace("a}", "c}")),
    "a file is gone": lambda at: (at / "below" / "b.yaml").unlink(),
    "a kustomization names a file": lambda at: write(at / "kustomization.yaml", "patches: [{path: a.yaml}]\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_files_makes_another_template(change: str, made: list[int], tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write(tmp_path / "a.yaml", TEXT)
    write(tmp_path / "below" / "b.yaml", TEXT.replace("a}", "b}"))
    before = digest_of([tmp_path])
    with Noxu(manifests=[tmp_path]) as noxu:
        assert names(noxu) == ["a", "b"]
    CHANGES[change](tmp_path)
    assert digest_of([tmp_path]) != before
    with Noxu(manifests=[tmp_path]) as noxu:
        assert names(noxu) != ["a", "b"]
    assert len(made) == 3


def test_a_file_that_is_known_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setattr(digests, "_SETTLED_AFTER", -1000.0)  # so that the time of the test does not matter
    write(tmp_path / "a.yaml", TEXT)
    digest = digest_of([tmp_path / "a.yaml"])
    assert len(digest) == 32
    monkeypatch.setattr(digests, "_read_digest", lambda _: b"read")
    assert digest_of([tmp_path / "a.yaml"]) == digest
    write(tmp_path / "a.yaml", TEXT)  # the same, but at another time
    assert digest_of([tmp_path / "a.yaml"]) != digest


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next change may have the same time."""
    monkeypatch.setattr(digests, "_known", {})
    write(tmp_path / "a.yaml", TEXT)
    digest_of([tmp_path])
    assert digests._known == {}


def test_texts_and_objects_have_digests_of_their_content() -> None:
    given: list[list[Source]] = [[OBJECT], [TEXT], [OBJECT, TEXT], [TEXT, OBJECT], [{**OBJECT, "a": 1}]]
    digests = [digest_of(each) for each in given]
    assert len({*digests}) == len(digests)
    assert digest_of([dict(OBJECT)]) == digests[0]
    assert digest_of(["\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a}\n"]) == digest_of(
        ["\n" + TEXT]
    )


def test_the_place_of_files_makes_no_difference(tmp_path: Path) -> None:
    for directory in ("one", "other"):
        (tmp_path / directory).mkdir()
        write(tmp_path / directory / f"of-{directory}.yaml", TEXT)
    assert digest_of([tmp_path / "one"]) == digest_of([tmp_path / "other" / "of-other.yaml"]) != digest_of([TEXT])


def test_stdin_is_not_read_for_a_digest() -> None:
    assert digest_of(["-"]) == b""


def test_what_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    assert digest_of([tmp_path / "missing"]) == b""
    assert digest_of([OBJECT, tmp_path / "missing"]) == b""
    assert digest_of([{"a": 2**70}]) == b""
    with pytest.raises(LoadError, match="no such file"):
        Noxu(manifests=[tmp_path / "missing"])


def test_linked_directories_are_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_SETTLED_AFTER", -1000.0)
    monkeypatch.setattr(digests, "_known", {})
    (tmp_path / "all").mkdir()
    (tmp_path / "other").mkdir()
    write(tmp_path / "all" / "a.yaml", TEXT)
    (tmp_path / "all" / "linked").symlink_to(tmp_path / "other")
    assert len(digest_of([tmp_path / "all"])) == 32
    assert digests._known == {}


# -- later processes


def test_a_later_process_does_not_read_the_manifests_again(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_templates, "MIN_BYTES", 0)
    manifests: list[Source] = [DEFINITION, widget("a")]
    with Noxu(manifests=manifests) as noxu:
        uid = noxu.get("widgets", "a")["metadata"]["uid"]
    assert made == [0, 2]
    monkeypatch.setattr(templates, "_kept", type(templates._kept)())  # as in another process
    monkeypatch.setattr(sources, "documents", None)
    for _ in range(2):
        with Noxu(manifests=manifests) as noxu:
            assert size(noxu.get("widgets", "a")) == 1
            assert noxu.get("widgets", "a")["metadata"]["uid"] != uid
    assert made == [0, 2]


def test_of_many_files_only_those_that_have_changed_are_read_and_validated_again(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(templates, "MIN_CACHED", 0)
    work: list[str] = []
    for module, name in ((manifest_cache, "split"), (validation, "_spec_errors")):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, _o=original, _n=name, **kw: [work.append(_n), _o(*args, **kw)][1]
        )
    (tmp_path / "crds").mkdir()
    for n in range(3):
        changed = DEFINITION.replace("example.com", f"n{n}.example.com")
        write(tmp_path / "crds" / f"{n}.yaml", changed)
    for version in (5, 6):
        write(tmp_path / "crds" / "1.yaml", DEFINITION.replace("maximum: 5", f"maximum: {version}"))
        work.clear()
        with Noxu(manifests=[tmp_path / "crds"]) as noxu:
            assert len(noxu.list("customresourcedefinitions")) == 3
    assert sorted(work) == ["_spec_errors", "split"]
    assert made == [0, 3, 3]


def test_without_the_cache_nothing_is_kept(made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_templates, "MIN_BYTES", 0)
    monkeypatch.setattr(sources, "uses_cache", False)
    with Noxu(manifests=[DEFINITION]):
        pass
    assert made == [0, 1]
    assert not any(tmp_path.iterdir())


# -- many tests


SUITE = """
import pytest

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 2}}
CRD = "customresourcedefinitions"


@pytest.mark.noxu("widgets.yaml")
@pytest.mark.parametrize("n", range(40))
def test_its_name_is_everywhere_and_no_other(n, noxu):
    name = f"of-{n}"
    noxu.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    noxu.create({**WIDGET, "metadata": {"name": name, "namespace": name}})
    noxu.patch("widgets", "shared", {"metadata": {"labels": {"by": name}}, "spec": {"size": 3}})
    noxu.patch(CRD, "widgets.example.com", {"metadata": {"labels": {"by": name}}})
    crd = noxu.get(CRD, "widgets.example.com")
    group = {**crd["spec"], "group": f"{name}.example.com"}
    noxu.create({**crd, "metadata": {"name": f"widgets.{name}.example.com"}, "spec": group, "status": None})
    seen = [
        {each["metadata"]["name"] for each in noxu.list("namespaces")},
        {each["metadata"].get("namespace") for each in noxu.list("widgets.example.com")},
        {each["metadata"].get("labels", {}).get("by", "") for each in noxu.list("widgets.example.com")},
        {each["metadata"]["name"] for each in noxu.list(CRD)},
    ]
    assert [sorted(text for text in texts if "of-" in text) for texts in seen] == [
        [name], [name], [name], [f"widgets.{name}.example.com"],
    ]
    if n % 2:
        noxu.delete(CRD, "widgets.example.com")
"""


@pytest.mark.slow
def test_tests_of_two_workers_see_nothing_of_each_other(tmp_path: Path) -> None:
    shared = widget("shared", size=1)
    (tmp_path / "widgets.yaml").write_text(f"{DEFINITION}\n---\n{json.dumps(shared)}\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    plugins = ["-p", "xdist", "-p", "noxu.testing.plugin", "-p", "no:cacheprovider"]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("apiserver", "storage")),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *plugins, "test_suite.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "40 passed" in done.stdout, done.stdout + done.stderr
