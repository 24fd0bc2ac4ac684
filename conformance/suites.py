"""Runs the test programs of a project that tests against envtest, and prints the failing specs.

    python -m conformance.suites (--url URL [--insecure] | --start | --assets FOLDER) [--timeout SECONDS]
        PROGRAM[=DIRECTORY]… [-- OPTION…]

A PROGRAM is a compiled test program of a package that uses Ginkgo and controller-runtime's `envtest.Environment`. It runs
in DIRECTORY, which is the folder of the package: tests read files relative to it. `USE_EXISTING_CLUSTER` makes envtest
use the server that `KUBECONFIG` names. With `--start`, every program has a new server with the profile envtest, as with
envtest itself. With `--assets`, envtest starts the programs in this folder (`noxu envtest FOLDER`), as often as the suite
asks for environments. The OPTIONs are given to every program, for example `-ginkgo.focus=TEXT`.

Counted are the specs of Ginkgo's report, and the Go tests of the program that are not suites of Ginkgo. The exit status
is 1 if any spec or program failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance import client
from conformance.kubeconfig import kubeconfig

PASSED: Final = "passed"
NOT_RUN: Final = frozenset({"skipped", "pending"})
TIMEOUT: Final = 900.0  # seconds for one program
_GO_TEST: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
_PANIC: Final = re.compile(r"^panic: .*", re.MULTILINE)  # ends the program: the remaining Go tests did not run
_STATES: Final = {"PASS": PASSED, "FAIL": "failed", "SKIP": "skipped"}
_SHOWN: Final = 600  # characters of a failure


class Spec(NamedTuple):
    """A spec, or a node of a suite such as BeforeSuite. `state`: of Ginkgo; `problem`: why it failed."""

    name: str
    state: str
    problem: str = ""

    @property
    def failed(self) -> bool:
        return self.state != PASSED and self.state not in NOT_RUN


class Program(NamedTuple):
    path: Path
    directory: Path
    """The folder of the package whose tests these are."""


def program(text: str) -> Program:
    """PROGRAM or PROGRAM=DIRECTORY."""
    path, _, directory = text.partition("=")
    return Program(Path(path).resolve(), Path(directory or ".").resolve())


def run(program: Program, variables: Mapping[str, str], options: Sequence[str], timeout: float) -> list[Spec]:
    """Run one program. The variables of its environment tell envtest which server to use."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        environment = os.environ | dict(variables)
        command = [str(program.path), "-test.v", "-ginkgo.no-color", f"-ginkgo.json-report={report}", *options]
        try:
            ran = subprocess.run(
                command,
                check=False,
                cwd=program.directory,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return [Spec(program.path.name, "failed", f"not finished after {timeout:g} s")]
        output = ran.stdout.decode("utf-8", "replace")
        suites = json.loads(report.read_bytes()) if report.exists() else []
    found = [*specs(suites), *go_tests(output, suites)]
    if panic := _PANIC.search(output):
        found.append(Spec(program.path.name, "failed", panic[0]))
    if ran.returncode and not any(spec.failed for spec in found):
        found.append(Spec(program.path.name, "failed", f"exit status {ran.returncode}: {output[-_SHOWN:]}"))
    return found


def specs(suites: Sequence[dict[str, Any]]) -> Iterator[Spec]:
    """The specs of a report of Ginkgo, and other nodes that failed."""
    for suite in suites:
        for report in suite.get("SpecReports") or ():
            names = [*(report.get("ContainerHierarchyTexts") or ()), report.get("LeafNodeText", "")]
            problem = (report.get("Failure") or {}).get("Message", "")
            spec = Spec(" / ".join(filter(None, names)) or report["LeafNodeType"], report["State"], problem)
            if report["LeafNodeType"] == "It" or spec.failed:
                yield spec


def go_tests(output: str, suites: Sequence[dict[str, Any]]) -> Iterator[Spec]:
    """The Go tests without subtests; those that only run a suite of Ginkgo are left out.

    Such a test is the one named in the first lines of its suite's output, between `=== RUN` and `Running Suite:`.
    """
    found = {name: state for state, name in _GO_TEST.findall(output)}
    runners = set(re.findall(r"^=== RUN +(\S+)\nRunning Suite:", output, re.MULTILINE)) if suites else set()
    for name, state in found.items():
        if name not in runners and not any(other.startswith(f"{name}/") for other in found):
            yield Spec(name, _STATES[state])


def of_cluster(config: Path) -> dict[str, str]:
    """The variables for the server of a kubeconfig."""
    return {"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(config)}


@contextlib.contextmanager
def started(directory: Path) -> Iterator[Path]:
    """A new server in memory; its kubeconfig."""
    config = directory / "kubeconfig"
    options = ("--memory", "--port=0", "--profile=envtest", f"--kubeconfig={config}")
    command = [sys.executable, "-m", "noxu", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            client.wait_until(lambda: config.exists() or server.poll() is not None)
            if server.poll() is not None:
                raise SystemExit("the server did not start")
            yield config
        finally:
            server.terminate()


@contextlib.contextmanager
def existing(url: str, directory: Path, *, insecure: bool) -> Iterator[Path]:
    """The kubeconfig for a server that runs already."""
    config = directory / "kubeconfig"
    config.write_text(kubeconfig(url, insecure=insecure))
    yield config


@contextlib.contextmanager
def server_of(options: argparse.Namespace, directory: Path) -> Iterator[dict[str, str]]:
    """The variables for the server that the command line selects, which runs meanwhile."""
    if options.assets:
        yield {"KUBEBUILDER_ASSETS": str(options.assets.resolve())}
        return
    with started(directory) if options.start else existing(options.url, directory, insecure=options.insecure) as config:
        yield of_cluster(config)


def counts(found: Sequence[Spec]) -> str:
    states = Counter("failed" if spec.failed else spec.state for spec in found)
    return ", ".join(f"{states[state]} {state}" for state in (PASSED, "failed", "pending", "skipped"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run test programs that use envtest.")
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--url")
    server.add_argument("--start", action="store_true", help="start a server for each program")
    server.add_argument("--assets", type=Path, help="the folder of the programs that envtest starts")
    parser.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help="for each program")
    parser.add_argument("programs", nargs="+", type=program, metavar="PROGRAM[=DIRECTORY]")
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    everything: list[Spec] = []
    for each in options.programs:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            with server_of(options, directory) as variables:
                found = run(each, variables, given[end + 1 :], options.timeout)
        print(f"{each.path.name}: {counts(found)}", flush=True)
        for spec in filter(lambda spec: spec.failed, found):
            print(f"FAIL {spec.name}\n     {spec.problem:.{_SHOWN}}", flush=True)
        everything += found
    print(f"all: {counts(everything)}")
    return 1 if any(spec.failed for spec in everything) else 0


if __name__ == "__main__":
    sys.exit(main())
