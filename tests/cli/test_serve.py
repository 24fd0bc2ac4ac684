"""`noxu serve`: starting and stopping. What it serves is tested elsewhere."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from noxu.process.kubeconfig import write_kubeconfig
from noxu.security.kubeconfig import Access
from tests.timing import HANGS_AFTER, eventually

pytestmark = pytest.mark.slow(every=5)

Make = Callable[..., Any]

GONE = "http://127.0.0.1:1"
OTHER_KUBECONFIG = "apiVersion: v1\nkind: Config\ncurrent-context: production\n"

REFUSED: list[tuple[str, str, str]] = [
    ("a missing file", "--memory none.yaml", "none.yaml: no such file or directory"),
    ("a URL", "--memory https://example.com/a.yaml", "https://example.com/a.yaml: it is a URL, not a file: curl -fsSL https://example.com/a.yaml | noxu serve -"),
    ("a file that is not YAML", "--memory broken.yaml", "broken.yaml:2:1: yaml: did not find expected node content"),
    ("an object without its CRD", "--memory widget.json", 'widget.json:1:1: no matches for kind "Widget" in version "example.com/v1": load its CRD, too'),
    ("an object that is refused", "--memory crd.json wrong.json", 'wrong.json:1:88: Widget.example.com "a" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ("data in a file", "--data file", "cannot keep data in file: File exists"),
    ("another kubeconfig", "--memory --kubeconfig file", "file exists and was not written by Noxu, so it is not overwritten; choose another --kubeconfig"),
    ("a kubeconfig in a file", "--memory --kubeconfig file/x", "cannot write the kubeconfig file/x: File exists; choose another --kubeconfig"),
    ("a kubeconfig that is a directory", "--memory --kubeconfig .", "cannot write the kubeconfig .: Is a directory; choose another --kubeconfig"),

    ("an unknown host name", "--memory --host unknown.invalid", "--host unknown.invalid: "),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_it_does_not_start_with(
    run: Make, write: Make, crd: Make, widget: Make, here: Path, arguments: str, why: str
) -> None:
    write("broken.yaml", "a: [")
    write("widget.json", widget("a", size=1))
    write("wrong.json", widget("a", size="big"))
    write("crd.json", crd(size={"type": "integer"}))
    write("file", OTHER_KUBECONFIG)
    ran = run(f"serve --port 0 {arguments}")
    assert (ran.status, ran.out) == (1, "")
    assert any(line.startswith(f"noxu: {why}") for line in ran.err.splitlines())
    assert (here / "file").read_text() == OTHER_KUBECONFIG


OLD_INGRESS = {"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "a"}}

ERRORS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("unreadable files and refused objects", {"a.yaml": "a: [", "b.json": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "A"}}, "c.yaml": "apiVersion: v1"}, [
        "a.yaml:2:1: yaml: did not find expected node content",
        "c.yaml:1:1: not a Kubernetes object: it has no kind",
        'b.json:1:56: ConfigMap "A" is invalid: metadata.name: Invalid value: "A": ',
        "3 errors; --keep-going starts the server without these objects",
    ]),
    ("versions that are not served any more", {"a.json": OLD_INGRESS}, [
        'a.json:1:1: no matches for kind "Ingress" in version "extensions/v1beta1": it is served in networking.k8s.io/v1: change the apiVersion, and the fields that differ',
        "one error; --keep-going starts the server without these objects",
    ]),
    ("several fields", {"a.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata:\n  name: A\ndata:\n  a/b: c\n"}, [
        'a.yaml:8:3: ConfigMap "A" is invalid: metadata.name: Invalid value: "A": ',
        'a.yaml:10:3: ConfigMap "A" is invalid: data[a/b]: Invalid value: "a/b": ',
        "2 errors; ",
    ]),
    ("a value of another type", {"a.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  a: b\n  c: 1\n"}, [
        "a.yaml:6:3: data[c]: must be a string, not a number",
        "one error; ",
    ]),
    ("kinds of others with the name of a built-in one", {"a.json": {**OLD_INGRESS, "apiVersion": "networking.example.com/v1"}}, [
        'a.json:1:1: no matches for kind "Ingress" in version "networking.example.com/v1": load its CRD, too',
        "one error; ",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "lines"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_all_errors_are_reported_at_once(
    run: Make, write: Make, here: Path, files: dict[str, Any], lines: list[str]
) -> None:
    for name, content in files.items():
        write(name, content)
    ran = run(f"serve --port 0 {' '.join(files)}")
    assert (ran.status, ran.out) == (1, "")
    found = [line for line in ran.err.splitlines() if line.startswith("noxu: ")]
    assert len(found) == len(lines)
    assert all(line.startswith(f"noxu: {expected}") for line, expected in zip(found, lines, strict=True))


def test_objects_of_a_crd_that_is_refused_have_no_errors_of_their_own(
    run: Make, write: Make, crd: Make, widget: Make
) -> None:
    write("crd.json", crd(schema={"type": "wrong"}))
    write("a.json", widget("a"))
    ran = run("serve --port 0 --memory crd.json a.json")
    assert {line.split(":")[1] for line in ran.err.splitlines()[:-1]} == {" crd.json"}


def test_nothing_is_written_if_a_file_cannot_be_read(run: Make, write: Make, crd: Make, here: Path) -> None:
    write("crd.json", crd())
    write("broken.yaml", "a: [")
    assert run("serve --port 0 --data d crd.json broken.yaml").status == 1
    assert not (here / "d").exists()


def test_it_starts_without_objects_that_have_errors_if_it_is_to_keep_going(
    here: Path, write: Make, crd: Make, widget: Make, run: Make
) -> None:
    write("d/a.json", widget("a", size="big"))
    write("d/b.json", widget("b", size=1))
    write("d/broken.yaml", "a: [")
    write("d/crd.json", crd(size={"type": "integer"}))
    with _serve(here, "--kubeconfig", "k", "--keep-going", "d") as process:
        _until_written(here / "k")
        assert run("validate --stored --kubeconfig k").out == "1 object of 1 CRD: 0 no longer validate\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=HANGS_AFTER)
    assert [re.sub(r"^\S+ ", "", line).partition(" is ")[0] for line in err.splitlines()] == [
        "ERROR not loaded: d/broken.yaml:2:1: yaml: did not find expected node content",
        "INFO 2 objects applied: 2 created",
        'ERROR not loaded: d/a.json:1:88: Widget.example.com "a"',
    ]


def test_it_creates_the_namespaces_that_no_file_makes(here: Path, write: Make, run: Make) -> None:
    write("a.json", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "attic"}})
    ran = run("serve --port 0 --memory a.json")
    assert ran.status == 1
    assert 'noxu: a.json:1:1: namespaces "attic" not found' in ran.err
    assert "noxu: --create-namespace creates the namespaces that no file makes" in ran.err
    with _serve(here, "--memory", "--kubeconfig", "k", "--create-namespace", "a.json") as process:
        _until_written(here / "k")
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=HANGS_AFTER)[1]
        assert [line.partition("INFO ")[2] for line in log.splitlines()] == ["1 object applied: 1 created"]


def test_it_adds_a_context_to_the_users_kubeconfig(here: Path, write: Make) -> None:
    write("mine", OTHER_KUBECONFIG)
    environment = {**_environment(), "KUBECONFIG": "mine"}
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0", "--merge-kubeconfig", "--context", "x"]
    with subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        banner = "".join(iter(process.stdout.readline, "Press Ctrl-C to stop the server.\n"))
        assert "\n  context     x in mine\n" in banner
        assert "\n  kubectl --context x api-resources\n" in banner
        assert '{"name":"x","context":{"cluster":"x"' in (here / "mine").read_text()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANGS_AFTER)
    assert (here / "mine").read_text() == OTHER_KUBECONFIG
    assert [path.name for path in here.iterdir()] == ["mine"]


CONTEXTS: list[tuple[str, str, str, int]] = [
    ("a context that exists", "--memory --merge-kubeconfig --context production", "noxu: mine has context production already, which is not Noxu's and is not overwritten: choose another name with --context", 1),
    ("a context without the option", "--context a", "noxu serve: error: --context needs --merge-kubeconfig", 2),
    ("nothing to watch", "--watch -", "noxu serve: error: --watch needs files, directories, or -k", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why", "status"), [row[1:] for row in CONTEXTS], ids=[row[0] for row in CONTEXTS]
)
def test_options_that_are_refused(
    run: Make, write: Make, monkeypatch: pytest.MonkeyPatch, arguments: str, why: str, status: int
) -> None:
    monkeypatch.setenv("KUBECONFIG", "mine")
    write("mine", f"{OTHER_KUBECONFIG}contexts: [{{name: production, context: {{}}}}]\n")
    ran = run(f"serve --port 0 {arguments}")
    assert (ran.status, ran.err.splitlines()[-1]) == (status, why)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "1.5", ""])
def test_invalid_ports(run: Make, port: str) -> None:
    ran = run(f"serve --port={port}")
    assert (ran.status, ran.err.splitlines()[-1]) == (
        2,
        "noxu serve: error: argument --port: must be a number from 0 to 65535",
    )


def test_its_own_kubeconfig_and_an_empty_file_are_replaced(here: Path, write: Make) -> None:
    write_kubeconfig(here / "old", Access(GONE))
    write("empty", "")
    for name in ("old", "empty"):
        with _serve(here, "--kubeconfig", name) as process:
            assert "http://127.0.0.1:" in _until_written(here / name)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=HANGS_AFTER)
        assert (process.returncode, err) == (0, "")
        assert f"export KUBECONFIG={here / name}\n" in out
        assert not (here / name).exists()


def test_files_are_loaded_before_the_server_is_ready(
    here: Path, write: Make, crd: Make, widget: Make, run: Make
) -> None:
    write("d/a.json", widget("a", size=0))
    write("d/crd.json", crd(size={"type": "integer"}))
    write("new.json", crd(size={"type": "integer", "minimum": 1}))
    with _serve(here, "--kubeconfig", "k", "d") as process:
        _until_written(here / "k")
        assert "1 object of 1 CRD: 0 no longer validate\n" in run("validate --stored --kubeconfig k").out
        ran = run("validate --stored --kubeconfig k -f new.json")
        assert ran.out.splitlines() == [
            "Widget default/a (example.com/v1): no longer validates",
            "  spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
            "1 object of 1 CRD: 1 no longer validate",
        ]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANGS_AFTER)
    assert process.returncode == 0


TLS_REFUSED: list[tuple[str, str, int, str]] = [
    ("a certificate without its key", "--tls-cert-file a", 2, "noxu serve: error: --tls-cert-file and --tls-private-key-file need each other"),
    ("a certificate for names without its key", "--tls-sni-cert-key a", 2, "noxu serve: error: argument --tls-sni-cert-key: expected comma separated certificate and key file paths"),
    ("an old version", "--tls-min-version VersionTLS11", 2, "noxu serve: error: argument --tls-min-version: invalid choice: 'VersionTLS11'"),
    ("an absent certificate", "--memory --tls-cert-file a --tls-private-key-file b", 1, "noxu: a: No such file or directory"),
    ("an absent CA of clients", "--memory --client-ca-file a", 1, "noxu: a: No such file or directory"),
    ("a CA that is none", "--memory --client-ca-file file", 1, "noxu: a CA of --client-ca-file or --requestheader-client-ca-file cannot be used: a part in PEM is missing"),
    ("a directory of certificates that is a file", "--memory --cert-dir file", 1, "noxu: cannot keep certificates in file: File exists"),
    ("a name that no certificate can have", "--memory --tls --external-hostname a_b..c", 1, "noxu: a_b..c is neither a DNS name nor an address, so no certificate can have it"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "status", "why"), [row[1:] for row in TLS_REFUSED], ids=[row[0] for row in TLS_REFUSED]
)
def test_https_is_not_served_with(run: Make, write: Make, arguments: str, status: int, why: str) -> None:
    write("file", "no certificate")
    ran = run(f"serve --port 0 {arguments}")
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.splitlines()[-1].startswith(why)


HTTPS: list[tuple[str, list[str]]] = [
    ("--tls", ["--memory", "--port", "0", "--tls"]),
    ("--secure-port", ["--memory", "--secure-port", "0"]),
    ("--tls-min-version", ["--memory", "--port", "0", "--tls-min-version", "VersionTLS13"]),
    ("--cert-dir", ["--memory", "--port", "0", "--cert-dir", "certs"]),
    ("a data directory", ["--data", "data", "--port", "0", "--tls"]),
    ("a name", ["--memory", "--port", "0", "--tls", "--external-hostname", "localhost"]),
]


@pytest.mark.parametrize("arguments", [row[1] for row in HTTPS], ids=[row[0] for row in HTTPS])
def test_https_with(here: Path, run: Make, arguments: list[str]) -> None:
    """The commands of Noxu verify the server's certificate, and send that of the kubeconfig."""
    command = [sys.executable, "-m", "noxu", "serve", "--kubeconfig", "k", *arguments]
    with subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        text = _until_written(here / "k")
        assert "https://localhost:" in text or "https://127.0.0.1:" in text
        assert run("validate --stored --kubeconfig k").out == "0 objects of 0 CRDs: 0 no longer validate\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HANGS_AFTER)
    assert (process.returncode, err) == (0, "")
    assert "PRIVATE" not in out
    assert not (here / "k").exists()


def test_a_server_stops_with_the_process_that_has_started_it(here: Path) -> None:
    program = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'noxu', 'serve', '--memory', '--port', '0', '--kubeconfig', 'k', "
        "'--exit-with-parent'])\ntime.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
    ) as parent:
        _until_written(here / "k")
        parent.kill()
        out, err = parent.communicate(timeout=HANGS_AFTER)
    assert out.endswith("Press Ctrl-C to stop the server.\n")
    assert "the server stops: the process that has started it has ended" in err
    assert not (here / "k").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="platform: SIGHUP")
@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_a_signal_leaves_no_directory_behind(here: Path, name: str) -> None:
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0"]
    environment = _environment() | {"TMPDIR": str(here)}
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:  # fmt: skip
        assert process.stdout is not None
        while "Ctrl-C" not in process.stdout.readline():
            pass
        assert [path.name[:5] for path in here.iterdir()] == ["noxu-"]
        process.send_signal(signal.Signals[name])
        assert process.wait(HANGS_AFTER) == 0
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("place", ["tcp:1", "unix:", "fd:x"])
def test_a_place_that_is_none(run: Make, place: str) -> None:
    ran = run(f"serve --listen {place}")
    assert ran.err.splitlines()[-1] == "noxu serve: error: argument --listen: must be unix:PATH or fd:NUMBER"


ENDS: list[tuple[str, str, str]] = [
    ("the noxu command", "command()", ""),
    ("another program that calls it", "sys.exit(main(sys.argv[1:]))", "torn down\n"),
]


@pytest.mark.parametrize(("call", "end"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_how_the_process_of_a_stopped_server_ends(here: Path, call: str, end: str) -> None:
    """The interpreter's teardown would free a large heap object by object."""
    program = f"import atexit, sys\nfrom noxu.cli import command, main\natexit.register(print, 'torn down')\n{call}"
    with _serve(here, "--kubeconfig", "k", program=["-c", program]) as process:
        _until_written(here / "k")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HANGS_AFTER)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("Press Ctrl-C to stop the server.\n" + end)
    assert not (here / "k").exists()


@pytest.mark.parametrize(("call", "end"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
@pytest.mark.parametrize(("arguments", "status"), [("version", 0), ("validate none.yaml", 2)])
def test_how_the_process_of_another_command_ends(here: Path, call: str, end: str, arguments: str, status: int) -> None:
    program = f"import atexit, sys\nfrom noxu.cli import command, main\natexit.register(print, 'torn down')\n{call}"
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments.split()],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (status, "")
    lines = ran.stdout.splitlines(keepends=True)
    assert len(lines) > 1
    assert (lines[-1] == "torn down\n") == bool(end)


def test_a_second_server_leaves_the_kubeconfig_of_the_first_one(here: Path, run: Make) -> None:
    """Both are in memory and on ports of their own, so they share nothing else."""
    with _serve(here, "--kubeconfig", "k") as process:
        first = _until_written(here / "k")
        ran = run("serve --memory --port 0 --kubeconfig k")
        assert (ran.status, ran.err) == (
            1,
            "noxu: k is the kubeconfig of a server that is running; choose another --kubeconfig\n",
        )
        assert (here / "k").read_text() == first
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANGS_AFTER)
    assert not (here / "k").exists()


# A finder of modules that sends this process a signal when a module is imported.
INTERRUPTS = """
import os, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Finder())
"""
MODULES = [
    "noxu.cli",
    "noxu.arguments.serve",
    "noxu.arguments",
    "noxu.commands.serve",
    "aiohttp",
    "noxu.process.server",
    "noxu.http.http_server",
    "uvloop",
    "noxu_storage.memory",
]


@pytest.mark.parametrize(
    ("module", "number"),
    [
        *((module, signal.SIGINT) for module in MODULES),
        ("aiohttp", signal.SIGTERM),
        ("noxu_storage.memory", signal.SIGTERM),
    ],
)
def test_a_signal_during_the_start_leaves_no_traceback(here: Path, module: str, number: signal.Signals) -> None:
    (here / "sitecustomize.py").write_text(INTERRUPTS.format(module=module, number=int(number)))
    environment = {**_environment(), "PYTHONPATH": f"{here}:{_environment()['PYTHONPATH']}"}
    with _serve(here, "--kubeconfig", "k", environment=environment) as process:
        out, err = process.communicate(timeout=HANGS_AFTER)
    assert (out, err) == ("", "")
    assert process.returncode in (-number, 128 + number)
    assert not (here / "k").exists()


def test_a_signal_stops_the_loading_of_files(here: Path, write: Make, crd: Make, widget: Make) -> None:
    """The signal arrives when the first object of the files is written."""
    write("crd.json", crd(size={"type": "integer", "minimum": 1}))
    write("a.json", {"kind": "List", "items": [widget(f"w{n}", size=1) for n in range(3000)]})
    (here / "sitecustomize.py").write_text(INTERRUPTS.format(module="noxu.crd.validation", number=2))
    environment = {**_environment(), "PYTHONPATH": f"{here}:{_environment()['PYTHONPATH']}"}
    with _serve(here, "--kubeconfig", "k", "--data", "d", "crd.json", "a.json", environment=environment) as process:
        out, err = process.communicate(timeout=HANGS_AFTER)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_closed_output_pipe_is_not_an_error(here: Path, write: Make, widget: Make) -> None:
    write("a.json", {"kind": "List", "items": [widget(f"w{n}") for n in range(2000)]})
    command = [sys.executable, "-m", "noxu", "validate", "-f", "a.json"]
    with subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def _serve(
    here: Path,
    *arguments: str,
    program: Sequence[str] = ("-m", "noxu"),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    storage = () if "--data" in arguments else ("--memory",)
    return subprocess.Popen(
        [sys.executable, *program, "serve", *storage, "--port", "0", *arguments],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment or _environment(),
    )


def _environment() -> dict[str, str]:
    return {"PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])}


def _until_written(path: Path) -> str:
    """Wait for the kubeconfig of the server that has been started, which replaces an older one."""

    def written() -> str:
        try:
            text = path.read_text()
        except FileNotFoundError:  # also if the server removes the older one at this moment
            return ""
        return text if "current-context" in text and f'"{GONE}"' not in text else ""

    return eventually(written)
