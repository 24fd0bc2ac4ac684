"""`noxu run`: a server for the life of a command. What the command gets, how it ends, and that nothing is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from noxu.testing.handle import MakeNoxu, Noxu
from tests.optional import needs_platform, needs_program, program
from tests.timing import HANGS_AFTER, eventually

pytestmark = [
    pytest.mark.slow(every=5),
    needs_platform("fork", present=hasattr(os, "fork")),
]
on_linux = needs_platform("/proc", present=Path("/proc/self/task").exists())
WAITS = "while :; do sleep 0.05; done"
NOXU = (sys.executable, "-m", "noxu", "run")


class Left(NamedTuple):
    """What a run may leave behind: the files in `folder`, which is its TMPDIR, and the servers at `urls`."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*NOXU, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER,
            check=False,
            **options,
        )
        self.check()
        return done

    def check(self) -> None:
        assert list(self.folder.iterdir()) == []


@pytest.fixture
def left(tmp_path: Path) -> Left:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return Left(folder, {**os.environ, "TMPDIR": str(folder)})


def listens(url: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), 5):
        return True
    return False


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- what the command gets ---------------------------------------------------------------------------------------------


def test_the_command_has_the_server_in_its_environment(left: Left) -> None:
    done = left.run("--", "sh", "-c", 'echo "$NOXU_URL"; cat "$KUBECONFIG"')
    assert (done.returncode, done.stderr) == (0, "")
    url, _, kubeconfig = done.stdout.partition("\n")
    assert json.loads(kubeconfig)["clusters"][0]["cluster"]["server"] == url
    assert url.startswith("http://127.0.0.1:")
    assert not listens(url)


@needs_program("kubectl")
def test_the_files_are_loaded_before_it_starts(left: Left, write: Callable[..., Path], crd: Callable[..., Any]) -> None:
    write("crds/a.json", crd())
    done = left.run("crds", "--", program("kubectl") or "", "get", "crd", "-o", "name")
    assert done.stdout == "customresourcedefinition.apiextensions.k8s.io/widgets.example.com\n"
    assert done.returncode == 0


def test_its_input_and_its_outputs_are_its_own(left: Left) -> None:
    done = left.run("--", "sh", "-c", "cat; echo problem >&2", input="what is sent")
    assert (done.stdout, done.stderr) == ("what is sent", "problem\n")


@pytest.mark.parametrize(
    ("closed", "numbers"), [("<&-", [0]), (">&-", [1]), ("2>&-", [2]), ("<&- >&- 2>&-", [0, 1, 2])]
)
def test_closed_streams_stay_closed(left: Left, closed: str, numbers: list[int]) -> None:
    """And no socket of the server takes their place."""
    program = (
        "import os, sys\nclosed = []\nfor number in range(3):\n  try: os.fstat(number)\n"
        "  except OSError: closed.append(number)\nopen(sys.argv[1], 'w').write(str(closed))\n"
    )
    out = left.folder.with_name("out")
    words = shlex.join([*NOXU, "--", sys.executable, "-c", program, str(out)])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], env=left.environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_text() == str(numbers)
    left.check()


def test_its_words_are_its_own(left: Left) -> None:
    words = ["--help", "-k", "x", "--", "--port=1"]
    done = left.run("--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
    assert done.stdout == f"{words}\n"


def test_the_options_are_those_of_serve(left: Left) -> None:
    done = left.run("--tls", "--verbose", "--", "sh", "-c", "echo $NOXU_URL")
    assert done.stdout.startswith("https://127.0.0.1:")
    assert f"Noxu serves the Kubernetes API at {done.stdout}" in done.stderr


# -- a tenant ----------------------------------------------------------------------------------------------------------


def test_a_command_has_a_tenant_of_a_running_server(
    left: Left, make_noxu: MakeNoxu, write: Callable[..., Path], crd: Callable[..., Any], widget: Callable[..., Any]
) -> None:
    """With what the server was started with, and the objects of the files."""
    server = make_noxu(manifests=[crd()])
    write("objects/a.json", widget("a"))
    program = (
        "import json, os, urllib.request\n"
        "url = os.environ['NOXU_URL']\n"
        "print(url, json.load(open(os.environ['KUBECONFIG']))['clusters'][0]['cluster']['server'] == url)\n"
        "answer = urllib.request.urlopen(url + '/apis/example.com/v1/widgets')\n"
        "print([item['metadata']['name'] for item in json.load(answer)['items']])\n"
    )
    done = left.run("--server", server.url, "objects", "--", sys.executable, "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    url, *printed = done.stdout.split(maxsplit=1)
    assert printed == ["True\n['a']\n"]
    assert url != server.url
    eventually(lambda: not listens(url))
    assert server.list("widgets") == []


def test_the_server_of_a_tenant_is_named_by_its_kubeconfig(left: Left, make_noxu: MakeNoxu) -> None:
    server = make_noxu(tls=True, authorization_modes=["RBAC"])
    done = left.run("--server", str(server.kubeconfig), "--", "sh", "-c", "echo $NOXU_URL")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("https://127.0.0.1:")
    done = left.run("--server", server.url, "--", "echo", "it runs")
    assert (done.returncode, done.stdout) == (1, "")
    assert "certificate verify failed" in done.stderr or "self-signed certificate" in done.stderr


NO_TENANT: list[tuple[str, Sequence[str], int, str]] = [
    ("no server", ["--server", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1 does not answer: Connection refused"),
    ("no kubeconfig", ["--server", "nothing"], 1, "nothing: No such file or directory"),
    ("a missing file", ["--server", "@", "nothing.yaml"], 1, "nothing.yaml"),
    ("an option of a server", ["--server", "@", "--tls"], 2, "--tls is an option of the server, which --server names"),
]


@pytest.mark.parametrize(
    ("words", "status", "message"), [row[1:] for row in NO_TENANT], ids=[row[0] for row in NO_TENANT]
)
def test_without_a_tenant_nothing_runs(
    left: Left, here: Path, noxu: Noxu, words: Sequence[str], status: int, message: str
) -> None:
    done = left.run(*[word.replace("@", noxu.url) for word in words], "--", "echo", "it runs")
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr


@on_linux
def test_nothing_is_left_of_a_tenant_when_it_is_killed(left: Left, noxu: Noxu) -> None:
    with started(left, WAITS, "--server", noxu.url) as run:
        run.process.kill()
        run.process.wait(HANGS_AFTER)
        eventually(lambda: is_gone(left, run))


# -- how it ends -------------------------------------------------------------------------------------------------------


STATUSES: list[tuple[str, str, int]] = [
    ("success", "exit 0", 0),
    ("a failure", "exit 7", 7),
    ("a signal", "kill -KILL $$", 137),
]


@pytest.mark.parametrize(("line", "status"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_the_exit_status_is_that_of_the_command(left: Left, line: str, status: int) -> None:
    assert left.run("--", "sh", "-c", line).returncode == status


NOT_RUN: list[tuple[str, str, int, str]] = [
    ("no such command", "nothing-of-that-name", 127, "there is no command nothing-of-that-name in the PATH"),
    ("no such file", "./nothing", 127, "there is no command ./nothing"),
    ("no program", "./text", 126, "text is not executable"),
    ("a folder", "./folder", 126, "folder is not executable"),
    ("no interpreter", "./lost", 127, "there is no command ./lost, or no program that interprets it"),
    ("no format", "./empty", 126, "./empty cannot be run: Exec format error; a script begins with #!"),
]


@pytest.mark.parametrize(("name", "status", "message"), [row[1:] for row in NOT_RUN], ids=[row[0] for row in NOT_RUN])
def test_what_cannot_be_run(left: Left, here: Path, name: str, status: int, message: str) -> None:
    (here / "folder").mkdir()
    for file, content, mode in (("text", "", 0o600), ("lost", "#!/nothing\n", 0o700), ("empty", "\0", 0o700)):
        (here / file).write_text(content)
        (here / file).chmod(mode)
    done = left.run("--", name)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", f"noxu: {message}\n")


def test_without_a_command(left: Left) -> None:
    done = left.run("crds")
    assert done.returncode == 2
    assert "a command is missing; it stands after --, as in: noxu run config/crd -- pytest" in done.stderr


def test_a_server_that_cannot_start(left: Left) -> None:
    done = left.run("nothing.yaml", "--", "echo", "it runs")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing.yaml" in done.stderr


# -- signals -----------------------------------------------------------------------------------------------------------


class Started(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    command: int
    """The id of its process."""
    keeper: int


@contextlib.contextmanager
def started(left: Left, line: str, *options: str) -> Iterator[Started]:
    """A run whose command says who it is, and then runs a line of the shell."""
    said = 'echo "$NOXU_URL $$ $PPID"; '
    with subprocess.Popen(
        [*NOXU, *options, "--", "sh", "-c", said + line],
        env=left.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url, command, supervisor = process.stdout.readline().split()
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        [keeper] = {int(child) for child in children} - {int(command)}
        try:
            yield Started(process, url, int(command), keeper)
        finally:
            process.kill()


def is_gone(left: Left, run: Started) -> bool:
    pids = (run.command, run.keeper)
    return not any(map(is_alive, pids)) and not listens(run.url) and not list(left.folder.iterdir())


@on_linux
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_signal_is_passed_on(left: Left, name: str) -> None:
    with started(left, f"trap 'echo got {name}; exit 3' {name}; echo ready; {WAITS}") as run:
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == "ready\n"
        run.process.send_signal(signal.Signals[f"SIG{name}"])
        out, _ = run.process.communicate(timeout=HANGS_AFTER)
        assert (out, run.process.returncode) == (f"got {name}\n", 3)
        assert is_gone(left, run)


@on_linux
def test_a_signal_that_ends_the_command(left: Left) -> None:
    with started(left, WAITS) as run:
        run.process.terminate()
        assert run.process.wait(HANGS_AFTER) == 128 + signal.SIGTERM
        assert is_gone(left, run)


@on_linux
@pytest.mark.parametrize("line", [WAITS, f"trap '' TERM; {WAITS}"], ids=["", "and the command ignores SIGTERM"])
def test_nothing_is_left_when_it_is_killed(left: Left, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(left, line) as run:
        run.process.kill()
        run.process.wait(HANGS_AFTER)
        eventually(lambda: is_gone(left, run))


@on_linux
def test_a_server_that_is_killed(left: Left) -> None:
    with started(left, f"trap 'exit 4' TERM; echo ready; {WAITS}") as run:
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == "ready\n"  # from now on it has its trap
        os.kill(run.keeper, signal.SIGKILL)
        assert run.process.stderr is not None
        said = run.process.stderr.readline()
        assert said == "noxu: the server has ended, and the command runs on without it\n"
        run.process.terminate()
        assert run.process.wait(HANGS_AFTER) == 4
        assert not is_alive(run.command)


def test_a_signal_while_the_server_starts(left: Left) -> None:
    """It reads its standard input, which does not end."""
    with subprocess.Popen(
        [*NOXU, "-", "--", "echo", "it runs"], env=left.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        eventually(lambda: catches(process.pid, signal.SIGTERM))
        process.terminate()
        out, _ = process.communicate(timeout=HANGS_AFTER)
        assert (out, process.returncode) == (b"", 128 + signal.SIGTERM)
    left.check()


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def test_ctrl_c_in_a_terminal_reaches_the_command_once(left: Left) -> None:
    program = (
        "import signal, time\ntimes = []\nsignal.signal(signal.SIGINT, lambda *_: times.append(1))\nprint('ready', flush=True)\n"
        "while not times: time.sleep(0.05)\ntime.sleep(0.3)\nprint('times', len(times), flush=True)"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [*NOXU, "--", sys.executable, "-c", program], dict(left.environment))
    shown = b""
    with contextlib.suppress(OSError):  # the end of the terminal
        while more := os.read(terminal, 1024):
            shown += more
            if shown.endswith(b"ready\r\n"):
                os.write(terminal, b"\x03")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"times 1\r\n" in shown
    left.check()
