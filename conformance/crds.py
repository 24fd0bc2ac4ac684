"""Real-life CRDs and their objects, used as people use them: with kubectl, against any server.

    python -m conformance.crds --url http://127.0.0.1:6440 [--insecure] [--kubectl PATH] [--crds FOLDER] [TEXT…]

Each CRD is applied as its project publishes it. It has to be established when kubectl comes back; then its objects are
created, and what is stored — pruned, defaulted, warned of, refused — is compared with what the reference answered
(`conformance.golden` compares everything else). `get`, `explain` and `delete` have to work. At the end there is a tally.
TEXT picks CRDs by what their names contain.
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

STEPS = ("applied", "established", "created", "refused", "get", "explain", "deleted")
PATIENCE = 60  # seconds that a command may take
_TOO_LONG = "metadata.annotations: Too long"  # kubectl keeps what it applied in an annotation


class Ran(NamedTuple):
    """What kubectl said."""

    status: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return (self.err or self.out).strip()


class Kubectl:
    """kubectl, of one server. `directory` is for its kubeconfig and its cache."""

    def __init__(self, program: str, url: str, directory: Path, *, insecure: bool = False) -> None:
        self._program = program
        kubeconfig = directory / "kubeconfig"
        cluster = {"server": url, **({"insecure-skip-tls-verify": True} if insecure else {})}
        context = {"cluster": "here", "user": "me", "namespace": "default"}
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "here", "cluster": cluster}],
                    "users": [{"name": "me", "user": {}}],
                    "contexts": [{"name": "here", "context": context}],
                }
            )
        )
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(directory),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(directory / "cache"),
        }

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        try:
            ran = subprocess.run(
                [self._program, *arguments],
                check=False,
                input=stdin,
                capture_output=True,
                env=self._environment,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return Ran(124, "", f"no end after {PATIENCE} s: kubectl {' '.join(arguments)}")
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


class Outcome(NamedTuple):
    """One step for one CRD or object; it went well if there is nothing in `problem`."""

    step: str
    name: str
    problem: str = ""


def use(kubectl: Kubectl, definition: Definition) -> Iterator[Outcome]:
    """Everything that is done with a CRD. It is gone afterwards."""
    name, resource = definition.name, f"{definition.spec['names']['plural']}.{definition.spec['group']}"
    kubectl("delete", "crd", name, "--ignore-not-found")
    accepted = definition.recorded["asIs"]["code"] == 201
    applied = _apply(kubectl, definition)
    if not accepted:
        yield Outcome("refused", name, "" if applied.status else "it was accepted")
        kubectl("delete", "crd", name, "--ignore-not-found")
        return
    yield Outcome("applied", name, applied.told if applied.status else "")
    if applied.status:
        return
    yield Outcome("established", name, _not_established(kubectl, name))
    if definition.converts:  # its webhook is not there
        kubectl(
            "patch", "crd", name, "--type=merge", "-p", '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
        )
    for sample in definition.samples:
        yield _create(kubectl, definition, sample)
        yield Outcome("get", sample.name, _not_got(kubectl, resource, sample))
    yield Outcome("explain", name, _not_explained(kubectl, definition))
    deleted = kubectl("delete", "crd", name)
    gone = kubectl("get", "crd", name)
    still = "" if "NotFound" in gone.err else f"it is still there: {gone.told}"
    yield Outcome("deleted", name, deleted.told if deleted.status else still)


def _apply(kubectl: Kubectl, definition: Definition) -> Ran:
    applied = kubectl("apply", "-f", "-", stdin=definition.text)
    if _TOO_LONG in applied.err:
        return kubectl("apply", "--server-side", "-f", "-", stdin=definition.text)
    return applied


def _not_established(kubectl: Kubectl, name: str) -> str:
    got = kubectl("get", "crd", name, "-o", "json")
    if got.status:
        return got.told
    conditions = {one["type"]: one["status"] for one in json.loads(got.out)["status"].get("conditions", [])}
    return "" if conditions.get("Established") == "True" else f"its conditions are {conditions}"


def _create(kubectl: Kubectl, definition: Definition, sample: Sample) -> Outcome:
    recorded = sample.recorded["create"]
    value = json.dumps(sample.value(namespaced=definition.namespaced)).encode()
    flags = ("--validate=warn", f"--field-manager={golden.MANAGER}", "-o", "json", "--show-managed-fields")
    ran = kubectl("create", "-f", "-", *flags, stdin=value)
    if recorded["code"] != 201:
        return Outcome("refused", sample.name, "" if ran.status else "it was created")
    if ran.status:
        return Outcome("created", sample.name, ran.told)
    differences = list(golden.differences(recorded["object"], golden.scrubbed(json.loads(ran.out))))
    warnings = re.findall(r"^Warning: (.*)$", ran.err, re.MULTILINE)
    differences += golden.differences(_unquoted(recorded["warnings"]), _unquoted(warnings), "warnings")
    return Outcome("created", sample.name, "; ".join(differences[:5]))


def _unquoted(texts: Iterable[str]) -> list[str]:
    """The recorded ones are quoted as in a header, and their ends are not to be told from the quotes around them."""
    return sorted(re.sub(r'[\\"]', "", text) for text in texts)


def _not_got(kubectl: Kubectl, resource: str, sample: Sample) -> str:
    """Is it in the table, does the table have the columns that it had, and can it be deleted?"""
    if sample.recorded["create"]["code"] != 201:
        return ""
    version = sample.recorded["create"]["object"]["apiVersion"].rpartition("/")[2]
    plural, _, group = resource.partition(".")
    name = sample.recorded["create"]["object"]["metadata"]["name"]
    got = kubectl("get", f"{plural}.{version}.{group}", name, "-o", "wide")
    if got.status:
        return got.told
    columns = [column["name"].upper() for column in sample.recorded["table"]["columns"]]
    header, row = got.out.splitlines()[:2]
    if re.split(r"\s{2,}", header.strip()) != columns:
        return f"the columns are {header} instead of {columns}"
    if sample.recorded["create"]["object"]["metadata"].get("finalizers"):  # nobody else takes them away
        patch = '{"metadata":{"finalizers":null}}'
        kubectl("patch", f"{plural}.{version}.{group}", name, "--type=merge", "-p", patch)
    deleted = kubectl("delete", f"{plural}.{version}.{group}", name)
    if deleted.status:
        return deleted.told
    return "" if row.split()[0] == name else f"the row is {row}"


def _not_explained(kubectl: Kubectl, definition: Definition) -> str:
    spec, version = definition.spec, definition.served[0]
    ran = kubectl("explain", spec["names"]["plural"], f"--api-version={spec['group']}/{version}")
    if ran.status:
        return ran.told
    [schema] = [one.get("schema", {}) for one in spec["versions"] if one["name"] == version]
    wanted = {"apiVersion", "kind", "metadata", *schema.get("openAPIV3Schema", {}).get("properties", {})}
    missing = wanted - set(re.findall(r"^  (\S+)\t<", ran.out, re.MULTILINE))
    return f"not explained: {sorted(missing)}" if missing else ""


def tally(outcomes: Iterable[Outcome]) -> str:
    """How often each step went well, and how often it did not."""
    counts = Counter((outcome.step, not outcome.problem) for outcome in outcomes)
    return "\n".join(f"{step:12} {counts[step, True]:4} as expected, {counts[step, False]} not" for step in STEPS)


def main() -> int:
    parser = argparse.ArgumentParser(description="Use real-life CRDs with kubectl.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify certificates")
    parser.add_argument("--kubectl", default=shutil.which("kubectl") or "kubectl", metavar="PATH")
    parser.add_argument("--crds", type=Path, default=corpus.FOLDER, metavar="FOLDER")
    parser.add_argument("only", nargs="*", metavar="TEXT", help="CRDs whose names contain this")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as directory:
        kubectl = Kubectl(given.kubectl, given.url, Path(directory), insecure=given.insecure)
        for definition in corpus.definitions(given.crds):
            if given.only and not any(text in definition.name for text in given.only):
                continue
            for outcome in use(kubectl, definition):
                outcomes.append(outcome)
                if outcome.problem:
                    print(f"FAIL {outcome.step} {outcome.name}\n     {outcome.problem:.1000}", flush=True)
    print(tally(outcomes))
    return 1 if any(outcome.problem for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
