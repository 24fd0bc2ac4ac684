"""`noxu replay` and `noxu open`: a recording against a new server, against a running one, and as a page."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from noxu.commands.open import answered, handler_of
from noxu.exploration.recording import ObjectPlace, RecordedChange, RunFile, RunRecording, to_bytes
from noxu.recordings import lines
from noxu.recordings.replaying import ReplayTarget
from noxu.testing.handle import Noxu
from tests.cli.conftest import Run

OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default"},
    "data": {"k": "v"},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.noxu"
    with Noxu(profile="envtest", record=path) as server:
        server.create(OBJECT)
        server.get("configmaps", "a")
    return path


def test_a_new_server_answers_as_recorded(run: Run, file: Path) -> None:
    ran = run(f"replay {file}")
    assert (ran.status, ran.out, ran.err) == (0, "2 steps, 2 answered as recorded, 0 otherwise\n", "")


def test_a_running_server_that_answers_otherwise(run: Run, file: Path) -> None:
    with Noxu(profile="envtest", manifests=[OBJECT]) as server:
        ran = run(f"replay {file} --server {server.url}")
    assert ran.status == 1
    assert ran.out.splitlines()[:2] == [
        "step 1: POST /api/v1/namespaces/default/configmaps?fieldManager=noxu&fieldValidation=Warn",
        '     code: expected 201, got 409: configmaps "a" already exists',
    ]
    assert ran.out.splitlines()[-1] == "2 steps, 1 answered as recorded, 1 otherwise"


def test_a_field_that_is_not_compared(run: Run, file: Path, here: Path) -> None:
    content = file.read_bytes().replace(b'"k":"v"}}},"at"', b'"k":"w"}}},"at"')
    (here / "changed.noxu").write_bytes(content)
    assert run("replay changed.noxu --quiet --wait 0").out.splitlines()[1:] == [
        "     .data.k: expected 'w'",
        "            got      'v'",
        "step 2: GET /api/v1/namespaces/default/configmaps/a",
        "     .data.k: expected 'w'",
        "            got      'v'",
    ]
    assert run("replay changed.noxu --quiet --ignore k").status == 0


def test_the_end_of_a_killed_server(run: Run, file: Path, here: Path) -> None:
    (here / "cut.noxu").write_bytes(file.read_bytes() + b'{"step": 3, "me')
    assert run("replay cut.noxu").out == (
        "2 steps, 2 answered as recorded, 0 otherwise; the last line of the recording is not whole, and was not read\n"
    )


def test_the_new_server_is_started_as_the_recorded_one(run: Run, here: Path) -> None:
    file = here / "old.noxu"
    with Noxu(profile="envtest", kubernetes="1.29", gates={"CRDValidationRatcheting": True}, record=file) as server:
        started = lines.read(file).server
        with contextlib.closing(ReplayTarget(server.url)) as target:
            target.send("GET", "/apis/resource.k8s.io/v1/deviceclasses", None, {"User-Agent": "a"})
    assert started == {"profile": "envtest", "kubernetes": "1.29", "gates": {"CRDValidationRatcheting": True}}
    assert run("replay old.noxu").out == "1 steps, 1 answered as recorded, 0 otherwise\n"
    file.write_bytes(file.read_bytes().replace(b'"1.29"', b'"1.99"'))
    ran = run("replay old.noxu")
    assert ran.status == 1
    assert '"1.99" is not a known version of Kubernetes' in ran.err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("missing.noxu", "noxu: missing.noxu: No such file or directory\n"),
        ("other.noxu", "noxu: other.noxu is no recording: `noxu serve --record FILE` makes one\n"),
    ],
)
def test_a_file_that_cannot_be_replayed(run: Run, here: Path, line: str, expected: str) -> None:
    (here / "other.noxu").write_text("{}\n")
    ran = run(f"replay {line}")
    assert (ran.status, ran.err) == (1, expected)


# -- noxu open


def test_a_recording_as_one_file(run: Run, file: Path, here: Path) -> None:
    ran = run(f"open {file} --html page.html")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert "/api/v1/namespaces/default/configmaps/a" in (here / "page.html").read_text()


def test_a_run_of_an_exploration_as_one_file(run: Run, here: Path) -> None:
    place = ObjectPlace("widgets.example.com", "default", "a")
    change = RecordedChange(
        7, "create", "", place, "controller", None, {"kind": "Widget", "metadata": {"name": "a"}}, (), 0
    )
    run_ = RunRecording([change], [], [], [], [], "", 1.0)
    (here / "explore-1.noxu").write_bytes(to_bytes(RunFile({"title": "a crash"}, run_)))
    assert run("open explore-1.noxu --html page.html").status == 0
    assert '"revision":7' in (here / "page.html").read_text()


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [("127.0.0.1", "/", 200), ("localhost", "/", 200), ("evil.example", "/", 404), ("127.0.0.1", "/a", 404)],
)
def test_only_this_machine_is_shown_the_page(host: str, path: str, status: int) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(b"the page")) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.server_port)) as connection:
            connection.request("GET", path, headers={"Host": f"{host}:{server.server_port}"})
            answer = connection.getresponse()
            assert (answer.status, answer.read() == b"the page") == (status, status == 200)
        thread.join()


def test_a_page_asks_about_a_further_file(file: Path) -> None:
    content = base64.b64encode(gzip.compress(file.read_bytes())).decode()
    status, body = answered(json.dumps({"name": "run.noxu", "content": content}).encode())
    assert (status, json.loads(body)["/_noxu/console/session"]["mayOpen"]) == (200, True)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "a recording has at most 3145728 bytes here"),
        (b'{"name": "a.txt", "content": "aGVsbG8="}', "a.txt is no recording: `noxu serve --record FILE` makes one"),
    ],
    ids=["too long", "another file"],
)
def test_what_is_no_recording_is_refused(sent: bytes, message: str) -> None:
    assert answered(sent) == (422, json.dumps({"message": message}).encode())


def test_two_recordings_as_one_file(run: Run, file: Path, here: Path) -> None:
    (here / "other.noxu").write_bytes(file.read_bytes().replace(b'"k":"v"', b'"k":"w"'))
    assert run(f"open {file} other.noxu --html page.html").status == 0
    assert "1 object differs at the end" in (here / "page.html").read_text()
