"""Uses CRDs of other projects and their objects through kubectl, against any server.

    python -m conformance.crds --url http://127.0.0.1:6440 [--insecure] [--kubectl PATH] [--crds FOLDER] [TEXT…]

Each CRD is applied unchanged and has to be established when kubectl exits. Then its objects are created, and the
result — the stored object, warnings, a refusal — is compared with the answer of the reference (`conformance.golden`
compares everything else). `get`, `explain` and `delete` have to work. The last lines count the outcomes by step.
TEXT selects the CRDs whose names contain it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from conformance import corpus, golden
from conformance.corpus import Definition, Sample
from conformance.kubeconfig import kubeconfig

STEPS = ("applied", "established", "created", "refused", "get", "explain", "deleted")
COMMAND_TIMEOUT = 120  # seconds
_TOO_LONG = "metadata.annotations: Too long"  # kubectl stores the applied manifest in an annotation, at most 256 KiB


class Result(NamedTuple):
    """The exit status and the output of a kubectl command."""

    status: int
    out: str
    err: str

    @property
    def message(self) -> str:
        return (self.err or self.out).strip()


class Kubectl:
    """Runs kubectl against one server. `directory` holds its kubeconfig and its cache."""

    def __init__(self, program: str, url: str, directory: Path, *, insecure: bool = False) -> None:
        self._program = program
        path = directory / "kubeconfig"
        path.write_text(kubeconfig(url, insecure=insecure))
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(directory),
            "KUBECONFIG": str(path),
            "KUBECACHEDIR": str(directory / "cache"),
        }

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        try:
            ran = subprocess.run(
                [self._program, *arguments],
                check=False,
                input=stdin,
                capture_output=True,
                env=self._environment,
                timeout=COMMAND_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return Result(124, "", f"not finished after {COMMAND_TIMEOUT} s: kubectl {' '.join(arguments)}")
        return Result(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


class Outcome(NamedTuple):
    """One step for one CRD or object; `problem` is empty if the outcome is the expected one."""

    step: str
    name: str
    problem: str = ""


def use(kubectl: Kubectl, definition: Definition) -> Iterator[Outcome]:
    """Run every step for a CRD and delete it."""
    name, resource = definition.name, f"{definition.spec['names']['plural']}.{definition.spec['group']}"
    kubectl("delete", "crd", name, "--ignore-not-found")
    accepted = definition.recorded["asIs"]["code"] == 201
    applied = _apply(kubectl, definition)
    if not accepted:
        yield Outcome("refused", name, "" if applied.status else "it was accepted")
        kubectl("delete", "crd", name, "--ignore-not-found")
        return
    yield Outcome("applied", name, applied.message if applied.status else "")
    if applied.status:
        return
    yield Outcome("established", name, _established_problem(kubectl, name))
    if definition.has_conversion_webhook:  # which cannot be run here
        kubectl(
            "patch", "crd", name, "--type=merge", "-p", '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
        )
    for sample in definition.samples:
        yield _create(kubectl, definition, sample)
        yield Outcome("get", sample.name, _get_problem(kubectl, resource, sample))
    yield Outcome("explain", name, _explain_problem(kubectl, definition))
    deleted = kubectl("delete", "crd", name)
    after = kubectl("get", "crd", name)
    problem = "" if "NotFound" in after.err else f"it still exists: {after.message}"
    yield Outcome("deleted", name, deleted.message if deleted.status else problem)


def _apply(kubectl: Kubectl, definition: Definition) -> Result:
    applied = kubectl("apply", "-f", "-", stdin=definition.text)
    if _TOO_LONG in applied.err:
        return kubectl("apply", "--server-side", "-f", "-", stdin=definition.text)
    return applied


def _established_problem(kubectl: Kubectl, name: str) -> str:
    got = kubectl("get", "crd", name, "-o", "json")
    if got.status:
        return got.message
    conditions = {
        condition["type"]: condition["status"] for condition in json.loads(got.out)["status"].get("conditions", [])
    }
    return "" if conditions.get("Established") == "True" else f"its conditions are {conditions}"


def _create(kubectl: Kubectl, definition: Definition, sample: Sample) -> Outcome:
    recorded = sample.recorded["create"]
    value = json.dumps(sample.value(namespaced=definition.namespaced)).encode()
    flags = ("--validate=warn", f"--field-manager={golden.MANAGER}", "-o", "json", "--show-managed-fields")
    ran = kubectl("create", "-f", "-", *flags, stdin=value)
    if recorded["code"] != 201:
        return Outcome("refused", sample.name, "" if ran.status else "it was created")
    if ran.status:
        return Outcome("created", sample.name, ran.message)
    differences = list(golden.differences(recorded["object"], golden.scrubbed(json.loads(ran.out))))
    warnings = re.findall(r"^Warning: (.*)$", ran.err, re.MULTILINE)
    differences += golden.differences(_unquoted(recorded["warnings"]), _unquoted(warnings), "warnings")
    return Outcome("created", sample.name, "; ".join(differences[:5]))


def _unquoted(texts: Iterable[str]) -> list[str]:
    """Remove quotes and backslashes: the recorded texts are quoted as in a header, ambiguously at their ends."""
    return sorted(re.sub(r'[\\"]', "", text) for text in texts)


def _get_problem(kubectl: Kubectl, resource: str, sample: Sample) -> str:
    """Check that the object is in the table, that the columns are the recorded ones, and that it can be deleted."""
    if sample.recorded["create"]["code"] != 201:
        return ""
    version = sample.recorded["create"]["object"]["apiVersion"].rpartition("/")[2]
    plural, _, group = resource.partition(".")
    name = sample.recorded["create"]["object"]["metadata"]["name"]
    got = kubectl("get", f"{plural}.{version}.{group}", name, "-o", "wide")
    if got.status:
        return got.message
    columns = [column["name"].upper() for column in sample.recorded["table"]["columns"]]
    header, row = got.out.splitlines()[:2]
    if re.split(r"\s{2,}", header.strip()) != columns:
        return f"the columns are {header} instead of {columns}"
    if sample.recorded["create"]["object"]["metadata"].get("finalizers"):  # no controller runs that would remove them
        patch = '{"metadata":{"finalizers":null}}'
        kubectl("patch", f"{plural}.{version}.{group}", name, "--type=merge", "-p", patch)
    deleted = kubectl("delete", f"{plural}.{version}.{group}", name)
    if deleted.status:
        return deleted.message
    return "" if row.split()[0] == name else f"the row is {row}"


def _explain_problem(kubectl: Kubectl, definition: Definition) -> str:
    spec, version = definition.spec, definition.served[0]
    ran = kubectl("explain", spec["names"]["plural"], f"--api-version={spec['group']}/{version}")
    if ran.status:
        return ran.message
    [schema] = [entry.get("schema", {}) for entry in spec["versions"] if entry["name"] == version]
    expected = {"apiVersion", "kind", "metadata", *schema.get("openAPIV3Schema", {}).get("properties", {})}
    missing = expected - set(re.findall(r"^  (\S+)\t<", ran.out, re.MULTILINE))
    return f"not explained: {sorted(missing)}" if missing else ""


def tally(outcomes: Iterable[Outcome]) -> str:
    """For each step, the numbers of expected and unexpected outcomes."""
    counts = Counter((outcome.step, not outcome.problem) for outcome in outcomes)
    return "\n".join(f"{step:12} {counts[step, True]:4} as expected, {counts[step, False]} not" for step in STEPS)


def main() -> int:
    parser = argparse.ArgumentParser(description="Use CRDs of other projects with kubectl.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    parser.add_argument("--kubectl", default=shutil.which("kubectl") or "kubectl", metavar="PATH")
    parser.add_argument("--crds", type=Path, default=corpus.FOLDER, metavar="FOLDER")
    parser.add_argument("only", nargs="*", metavar="TEXT", help="only CRDs whose names contain TEXT")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as directory:
        kubectl = Kubectl(options.kubectl, options.url, Path(directory), insecure=options.insecure)
        for definition in corpus.definitions(options.crds):
            if options.only and not any(text in definition.name for text in options.only):
                continue
            for outcome in use(kubectl, definition):
                outcomes.append(outcome)
                if outcome.problem:
                    print(f"FAIL {outcome.step} {outcome.name}\n     {outcome.problem:.1000}", flush=True)
    print(tally(outcomes))
    return 1 if any(outcome.problem for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
