"""Replays the examples of the upstream documents over HTTP against any server.

    python -m conformance.documents --url http://127.0.0.1:6440 [--insecure] [FILE…]

A case is a schema and an object. The schema becomes a CRD and the object is created. A case expects one of:

- `pruned`: the object is stored with exactly these fields;
- `refused`: the object is refused with this code and this set of causes;
- `crd_refused`: the CRD is refused, with causes for these fields.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from conformance.client import Client

DATA = Path(__file__).parent / "documents"
GROUP = "conformance.example.com"  # each case has its own subgroup, because some servers delete slowly


class Case(NamedTuple):
    """One example; `data` is its entry in the file."""

    document: str
    kind: str
    data: dict[str, Any]
    group: str

    @property
    def name(self) -> str:
        return f"{self.document}: {self.data['name']}"


def read(path: Path) -> list[Case]:
    document = yaml.safe_load(path.read_text())
    kind = document.get("kind", "Example")
    return [
        Case(document["title"], kind, data, f"{path.stem}-{n}.{GROUP}") for n, data in enumerate(document["cases"], 1)
    ]


def all_cases() -> list[Case]:
    return [case for path in sorted(DATA.glob("*.yaml")) for case in read(path)]


def definition(case: Case) -> dict[str, Any]:
    plural = f"{case.kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{case.group}"},
        "spec": {
            "group": case.group,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": case.kind.lower(), "kind": case.kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": case.data["schema"]}}
            ],
        },
    }


def run(case: Case, client: Client) -> list[str]:
    """Replay one case; return one line for every unexpected result."""
    crd = definition(case)
    answer = client.create_definition(crd)
    try:
        if "crd_refused" in case.data:
            return list(_refusal(case.data["crd_refused"], answer.code, answer.body))
        if answer.code != 201:
            return [f"the CRD was refused: {answer.code} {answer.body}"]
        client.until_served(case.group, "v1", crd["spec"]["names"]["plural"])
        return list(_run_object(case, client, crd["spec"]["names"]["plural"]))
    finally:
        client.delete_definition(crd["metadata"]["name"])


def _run_object(case: Case, client: Client, plural: str) -> Iterator[str]:
    value = {"apiVersion": f"{case.group}/v1", "kind": case.kind, **case.data["object"]}
    value["metadata"] = {"name": "example", **value.get("metadata", {})}
    path = f"/apis/{case.group}/v1/{plural}"
    answer = client.send("POST", path, value)
    if "refused" in case.data:
        yield from _refusal(case.data["refused"], answer.code, answer.body)
        return
    if answer.code != 201:
        yield f"expected 201, got {answer.code}: {answer.body.get('message')}"
        return
    for verb, stored in (("POST", answer.body), ("GET", client.send("GET", f"{path}/example").body)):
        rest = {name: item for name, item in stored.items() if name not in ("apiVersion", "kind", "metadata")}
        if rest != case.data["pruned"]:
            yield f"{verb}: expected {case.data['pruned']}, got {rest}"
        if "garbage" in stored["metadata"]:
            yield f"{verb}: unknown metadata was kept"


def _refusal(expected: dict[str, Any], code: int, body: dict[str, Any]) -> Iterator[str]:
    if code != expected["code"]:
        yield f"expected {expected['code']}, got {code}: {body}"
        return
    causes = body.get("details", {}).get("causes", [])
    for cause in expected.get("causes", []):
        if cause not in causes:
            yield f"no cause {cause} in {causes}"
    fields = {cause["field"] for cause in causes}
    for name in expected.get("fields", []):
        if name not in fields:
            yield f"no cause for {name}, only for {sorted(fields)}"
    if "causes" in expected and len(causes) != len(expected["causes"]):
        yield f"{len(causes)} causes instead of {len(expected['causes'])}: {causes}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Replay the examples of the upstream documents.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    cases = [case for path in options.files for case in read(path)] or all_cases()
    failed = 0
    with Client(options.url, insecure=options.insecure) as client:
        for case in cases:
            problems = run(case, client)
            failed += bool(problems)
            print(f"{'FAIL' if problems else 'ok  '} {case.name}")
            for problem in problems:
                print(f"     {problem}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
