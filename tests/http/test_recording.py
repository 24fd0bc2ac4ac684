"""A server that is recorded, and the recording replayed: what is in the file, and what counts as a difference."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from noxu.api.errors import ApiError
from noxu.go import cbor_writer
from noxu.http import recording as recording_module
from noxu.recordings import lines
from noxu.recordings.lines import ServerRecording
from noxu.recordings.replaying import Replay, ReplayedStep, ReplayTarget
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.definitions import version, widgets
from tests.timing import HANGS_AFTER, eventually

SPEC: Final = {"type": "object", "properties": {"size": {"type": "integer"}}}
DEFINITION: Final = widgets(version({"type": "object", "properties": {"spec": SPEC}}))
WATCH: Final = "/apis/example.com/v1/widgets?watch=true"


def widget(size: int, **metadata: Any) -> Object:
    named = {"name": "a", "namespace": "default", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": named, "spec": {"size": size}}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a server that has widgets from its start, with a restart."""
    path = tmp_path_factory.mktemp("recording") / "run.noxu"
    with Noxu(manifests=[DEFINITION, widget(0, name="first")], profile="envtest", record=path) as server:
        watch = ReplayTarget(server.url).open(WATCH, {"User-Agent": "informer"})
        server.create(widget(1))
        server.create(widget(1, name="", generateName="web-"))
        stored = server.get("widgets", "a")
        server.patch("widgets", "a", {"spec": {"size": 2}})
        with pytest.raises(ApiError, match="modified"):
            server.update(stored)  # with an old resourceVersion
        server.update(server.get("widgets", "a") | {"spec": {"size": 3}})
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s", "namespace": "default"},
                "stringData": {"p": "hunter2"},
            }
        )
        server.get("secrets", "s")
        server.list("widgets")
        server.delete("widgets", "a")
        assert len(watch.wait(6, HANGS_AFTER)) == 6
        watch.close()
        server.stop()
        server.start()
        server.create(widget(7, name="later"))
    return path


@pytest.fixture(scope="module")
def recording(file: Path) -> ServerRecording:
    return lines.read(file)


@pytest.fixture(scope="module")
def fresh() -> Iterator[Noxu]:
    with Noxu(profile="envtest") as server:
        yield server


def replayed(recording: ServerRecording, server: Noxu) -> list[ReplayedStep]:
    """The differences; what the replay has made is undone."""
    with server.rollback(), contextlib.closing(ReplayTarget(server.url)) as target:
        return list(Replay(recording, target, patience=HANGS_AFTER).run())


def changed(recording: ServerRecording, kind: str, old: str, new: str) -> ServerRecording:
    """The recording with a text replaced in what was answered (`expect`) or sent to watches (`events`)."""
    changed_lines = [
        {**line, kind: _replaced(line[kind], old, new)} if kind in line else line for line in recording.lines
    ]
    return dataclasses.replace(recording, lines=changed_lines)


def _replaced(value: Any, old: str, new: str) -> Any:
    return orjson.loads(orjson.dumps(value).replace(old.encode(), new.encode()))


# -- the file


def test_steps_have_the_requests_and_their_answers(recording: ServerRecording) -> None:
    steps = [line for line in recording.lines if "method" in line]
    assert [(step["method"], step["expect"]["code"]) for step in steps] == [
        ("POST", 201), ("POST", 201), ("GET", 200), ("PATCH", 200), ("PUT", 409), ("GET", 200), ("PUT", 200), ("POST", 201),
        ("GET", 200), ("GET", 200), ("DELETE", 200), ("POST", 201),
    ]  # fmt: skip
    assert steps[0]["body"]["spec"] == {"size": 1}
    assert steps[0]["client"] == {"user": "system:anonymous", "agent": "noxu-handle"}


def test_numbers_of_steps_are_different(recording: ServerRecording) -> None:
    """Also those after a restart of the server, which goes on with the file."""
    numbers = [line["step"] for line in recording.lines if "step" in line]
    assert sorted(set(numbers)) == numbers


def test_a_watch_has_the_events_that_it_was_sent(recording: ServerRecording) -> None:
    [watch] = [line for line in recording.lines if "watch" in line]
    events = [event for line in recording.lines if line.get("of") == watch["step"] for event in line["events"]]
    assert watch["client"]["agent"] == "informer"
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert {"ended": watch["step"]}.items() <= next(line for line in recording.lines if "ended" in line).items()


def test_each_write_has_its_author_once(recording: ServerRecording) -> None:
    writes = [write for write in recording.writes if write["resource"] == "widgets.example.com"]
    revisions = [write["revision"] for write in writes]
    assert sorted(set(revisions)) == revisions
    assert [write["verb"] for write in writes] == ["create", "create", "patch", "update", "delete", "create"]
    assert {write["userAgent"] for write in writes} == {"noxu-handle"}
    assert writes[2]["object"]["spec"] == {"size": 2}
    assert writes[3]["why"][0]["revision"] == writes[2]["revision"]


def test_what_was_there_is_recorded(recording: ServerRecording) -> None:
    names = [line["name"] for line in recording.stored if line["resource"] == "widgets.example.com"]
    assert names == ["first"]


def test_no_secret_is_in_the_file(file: Path) -> None:
    content = file.read_bytes()
    assert b"hunter2" not in content
    assert b"aHVudGVyMg" not in content
    assert b"Authorization" not in content


@pytest.mark.parametrize(
    ("resource", "content_type", "body"),
    [
        ("tokenreviews", "application/json", b'{"spec": {"token": "hunter2"}}'),
        ("tokenreviews", "application/json", b'{"spec": {"token": "hunter2"},}'),
        ("secrets", "application/json", b'{"stringData": {"p": "hunter2"},}'),
        ("secrets", "application/yaml", b"stringData: {p: hunter2"),
        ("secrets", "text/plain", b"hunter2"),
    ],
    ids=["without a kind", "malformed", "a malformed Secret", "malformed YAML", "a text"],
)
def test_no_secret_of_a_body_that_says_not_what_it_is(
    tmp_path: Path, resource: str, content_type: str, body: bytes, fresh: Noxu
) -> None:
    base = "/api/v1/namespaces/default" if resource == "secrets" else "/apis/authentication.k8s.io/v1"
    with (
        Noxu(profile="envtest", record=tmp_path / "run.noxu") as server,
        contextlib.closing(ReplayTarget(server.url)) as target,
    ):
        target.send("POST", f"{base}/{resource}", body, {"Content-Type": content_type, "User-Agent": "a"})
    [step] = lines.read(tmp_path / "run.noxu").conversation
    assert "hunter2" not in str(step)
    assert replayed(lines.read(tmp_path / "run.noxu"), fresh) == []


def test_a_body_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "MAX_BODY", 2_000)
    with Noxu(profile="envtest", record=tmp_path / "run.noxu") as server:
        server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"},
                       "data": {"k": "v" * 2_000}})  # fmt: skip
        server.get("configmaps", "a")
        server.list("configmaps")
    created, *others = lines.read(tmp_path / "run.noxu").conversation
    assert created["omitted"] > 2_000
    assert [step["expect"]["omitted"] > 2_000 for step in (created, *others)] == [True] * 3
    assert (tmp_path / "run.noxu").read_bytes().count(b"vvv" * 100) == 6  # of the write alone


def test_requests_and_watches_go_on_if_they_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    with Noxu(profile="envtest", record=tmp_path / "run.noxu") as server:
        watch = ReplayTarget(server.url).open(
            "/api/v1/namespaces/default/configmaps?watch=true", {"User-Agent": "informer"}
        )
        monkeypatch.setattr(recording_module, "masked", fail)
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        server.create(value)
        assert len(watch.wait(1, HANGS_AFTER)) == 1
        eventually(lambda: len(caplog.records) >= 3)  # a write is recorded later
        monkeypatch.undo()
        server.create({**value, "metadata": {"name": "b", "namespace": "default"}})
        watch.close()
    recorded = lines.read(tmp_path / "run.noxu")
    assert [write["name"] for write in recorded.writes if write["resource"] == "configmaps"][-1] == "b"
    failed = [record.getMessage().partition(" of ")[0] for record in caplog.records]
    assert failed == ["the recording"] * 3  # of the request, the event and the write


# -- the replay


def test_a_new_server_answers_as_recorded(recording: ServerRecording, fresh: Noxu) -> None:
    assert replayed(recording, fresh) == []


def test_what_was_binary_is_asked_as_json(tmp_path: Path) -> None:
    gates = {"CBORServingAndStorage": True}
    protobuf = "application/vnd.kubernetes.protobuf"
    maps, named = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"
    metadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    with (
        Noxu(profile="envtest", gates=gates, record=tmp_path / "run.noxu") as server,
        contextlib.closing(ReplayTarget(server.url)) as target,
    ):

        def send(method: str, path: str, accept: str, body: bytes | None = None, sent: str = "") -> int:
            headers = {"User-Agent": "operator", "Accept": accept} | ({"Content-Type": sent} if sent else {})
            return target.send(method, path, body, headers).code

        watch = target.open(f"{maps}?watch=true", {"Accept": protobuf, "User-Agent": "informer"})
        codes = [
            send(
                "PATCH", f"{named}?fieldManager=m", protobuf, cbor_writer.write(applied), "application/apply-patch+cbor"
            ),
            send("GET", named, f"{protobuf}{metadata},application/json{metadata}"),
            send("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/cbor"),
            send("POST", maps, "application/json", b"k8s", "application/vnd.kubernetes.protobuf+x"),
            send("GET", named, "image/png"),
        ]
        eventually(lambda: b'"of":1' in (tmp_path / "run.noxu").read_bytes())
        watch.close()
    assert codes == [201, 200, 200, 415, 406]
    with Noxu(profile="envtest", gates=gates) as server:
        assert replayed(lines.read(tmp_path / "run.noxu"), server) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        ("expect", '"code":409', '"code":200', "step 6: PUT /apis/example.com/v1/namespaces/default/widgets/a"),
        ("events", '"size":3', '"size":4', f"WATCH {WATCH}"),
        ("events", '"type":"DELETED"', '"type":"MODIFIED"', "expected 'MODIFIED'"),
        ("expect", "Operation cannot be fulfilled", "It is not possible", "expected 'It is not possible"),
    ],
    ids=["a code", "an object in an event", "the type of an event", "a message"],
)
def test_a_difference_is_found(
    recording: ServerRecording, fresh: Noxu, kind: str, old: str, new: str, expected: str
) -> None:
    [step] = replayed(changed(recording, kind, old, new), fresh)
    assert expected in str(step)


def test_the_handle_replays_a_file(file: Path, fresh: Noxu) -> None:
    with fresh.rollback():
        assert fresh.replay(file) == []
