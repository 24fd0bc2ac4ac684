"""Compares the answers to CRDs of other projects and their objects with the recorded answers of the reference.

    python -m conformance.golden --url http://127.0.0.1:6440 [--insecure] [--crds FOLDER] [TEXT…]

Each CRD is created three times: unchanged as a dry run, with strict field validation as a dry run, and persistently.
Then its conditions, discovery and OpenAPI document are compared, and each of its objects is created, read in every
version and as a table, applied and patched. TEXT selects the CRDs whose names contain it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformance import corpus
from conformance.client import DEFINITIONS, Client, wait_until
from conformance.corpus import Definition, Sample

MANAGER = "heldout"  # the field manager in the recorded requests
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "selfLink")
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


class Check:
    """One CRD against one server."""

    def __init__(self, client: Client, definition: Definition) -> None:
        self.client = client
        self.definition = definition
        self.url = f"{DEFINITIONS}/{definition.name}"

    def run(self) -> dict[str, list[str]]:
        """The differences, by the name of the CRD or of the sample's file."""
        self._delete()
        try:
            answers = self._definition_answers()
            recorded = {name: value for name, value in self.definition.recorded.items() if name != "samples"}
            found = {self.definition.name: list(differences(recorded, answers))}
            if answers["create"]["code"] == 201:
                for sample in self.definition.samples:
                    found[sample.name] = list(differences(sample.recorded, self._sample_answers(sample)))
            return found
        finally:
            self._delete()

    def _delete(self) -> None:
        if self.client.send("DELETE", self.url).code != 404:
            wait_until(lambda: self.client.send("GET", self.url).code == 404)

    def _request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", accept: str = ""
    ) -> tuple[int, Any, list[str]]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept or "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        code, answer_headers, text = self.client.exchange(method, path, data, headers)
        warnings = sorted(
            re.sub(r"^299 - ", "", value).strip('"') for name, value in answer_headers if name.lower() == "warning"
        )
        try:
            return code, json.loads(text), warnings
        except ValueError:
            return code, text.decode("utf-8", "replace"), warnings

    # -- the definition

    def _definition_answers(self) -> dict[str, Any]:
        crd = self.definition.value
        code, body, warnings = self._request("POST", f"{DEFINITIONS}?dryRun=All&fieldValidation=Warn", crd)
        answers: dict[str, Any] = {"asIs": {"code": code, "warnings": warnings}}
        if code != 201:
            answers["asIs"]["status"] = scrubbed(body)
        if self.definition.has_conversion_webhook:  # which cannot be run here
            crd = {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "None"}}}
            answers["conversionStripped"] = True
        code, body, warnings = self._request("POST", f"{DEFINITIONS}?fieldValidation=Strict&dryRun=All", crd)
        answers["strict"] = {"code": code, "warnings": warnings}
        if code != 201:
            answers["strict"]["message"] = _message(body)
        code, body, warnings = self._request("POST", f"{DEFINITIONS}?fieldManager={MANAGER}", crd)
        answers["create"] = {"code": code, "warnings": warnings, "specSha": _sha(body.get("spec"))}
        if code == 201:
            answers |= self._served()
        else:
            answers["create"]["status"] = scrubbed(body)
        return answers

    def _served(self) -> dict[str, Any]:
        spec = self.definition.spec
        group, plural = spec["group"], spec["names"]["plural"]
        wait_until(lambda: self.client.send("GET", f"/apis/{group}/{self.definition.served[0]}/{plural}").code == 200)
        stored = self.client.send("GET", self.url).body
        status = stored["status"]
        return {
            "conditions": [
                {name: condition.get(name) for name in ("type", "status", "reason", "message")}
                for condition in status.get("conditions") or []
            ],
            "storedVersions": status.get("storedVersions"),
            "acceptedNames": status.get("acceptedNames"),
            "specShaStored": _sha(scrubbed(stored)["spec"]),
            "discovery": {version: self._discovered(group, version) for version in self.definition.served},
            **self._published(group, plural),
        }

    def _discovered(self, group: str, version: str) -> list[Any]:
        document = self.client.send("GET", f"/apis/{group}/{version}").body
        plural = self.definition.spec["names"]["plural"]
        resources = [
            {name: value for name, value in resource.items() if name != "storageVersionHash"}
            for resource in document["resources"]
            if resource["name"].partition("/")[0] == plural
        ]
        return sorted(resources, key=lambda resource: resource["name"])

    def _published(self, group: str, plural: str) -> dict[str, Any]:
        path = f"/openapi/v3/apis/{group}/{self.definition.served[0]}"
        wait_until(lambda: self.client.send("GET", path).code == 200)
        document = self.client.send("GET", path).body
        kind = self.definition.spec["names"]["kind"]
        return {
            "openapiV3": {
                name: _sha(_without_descriptions(schema))
                for name, schema in sorted(document["components"]["schemas"].items())
                if any(entry.get("kind") == kind for entry in schema.get("x-kubernetes-group-version-kind", []))
            },
            "openapiV3paths": sorted(path for path in document["paths"] if f"/{plural}" in path),
        }

    # -- its objects

    def _sample_answers(self, sample: Sample) -> dict[str, Any]:
        value = sample.value(namespaced=self.definition.namespaced)
        version = value["apiVersion"].split("/")[1]
        collection = self._collection(version)
        code, body, warnings = self._request(
            "POST", f"{collection}?dryRun=All&fieldValidation=Strict&fieldManager={MANAGER}", value
        )
        answers: dict[str, Any] = {"strict": {"code": code, "warnings": warnings}}
        if code != 201:
            answers["strict"] |= {"message": _message(body), "details": body.get("details", {}).get("causes")}
        code, body, warnings = self._request("POST", f"{collection}?fieldValidation=Warn&fieldManager={MANAGER}", value)
        answers["create"] = {"code": code, "warnings": warnings, "object": scrubbed(body)}
        if code != 201:
            return answers
        url = f"{collection}/{quote(body['metadata']['name'])}"
        answers["table"] = self._table(url)
        others = [other for other in self.definition.served if other != version]
        if others:
            answers["asVersion"] = {other: self._as_version(url, version, other) for other in others}
        answers |= self._patched(url, value)
        self._request("DELETE", url)
        return answers

    def _collection(self, version: str) -> str:
        group, plural = self.definition.spec["group"], self.definition.spec["names"]["plural"]
        scope = "namespaces/default/" if self.definition.namespaced else ""
        return f"/apis/{group}/{version}/{scope}{plural}"

    def _table(self, url: str) -> dict[str, Any]:
        _, table, _ = self._request("GET", url, accept=TABLE)
        columns = table["columnDefinitions"]
        ages = {n for n, column in enumerate(columns) if column["type"] == "date" or column["name"] == "Age"}
        return {
            "columns": _without_descriptions(columns),
            "cells": [[None if n in ages else cell for n, cell in enumerate(row["cells"])] for row in table["rows"]],
        }

    def _as_version(self, url: str, version: str, other: str) -> dict[str, Any]:
        group = self.definition.spec["group"]
        code, body, _ = self._request("GET", url.replace(f"/apis/{group}/{version}/", f"/apis/{group}/{other}/"))
        return {"code": code, "sha": _sha({name: item for name, item in body.items() if name != "metadata"})}

    def _patched(self, url: str, value: dict[str, Any]) -> dict[str, Any]:
        labels = value["metadata"].setdefault("labels", {})
        if isinstance(labels, dict):
            labels["heldout.dev/ssa"] = "yes"
        apply = "application/apply-patch+yaml"
        code, body, _ = self._request("PATCH", f"{url}?fieldManager={MANAGER}-ssa&force=true", value, apply)
        applied: dict[str, Any] = {"code": code, "sha": _sha(scrubbed(body)) if code == 200 else None}
        if code != 200:
            applied["message"] = _message(body)
        patch = {"metadata": {"annotations": {"heldout.dev/x": "1"}, "finalizers": None}}
        code, _, _ = self._request("PATCH", f"{url}?fieldManager={MANAGER}-m", patch, "application/merge-patch+json")
        return {"ssa": applied, "merge": {"code": code}}


# -- comparing --------------------------------------------------------------------------------------------------------


def scrubbed(value: Any) -> Any:
    """A copy without the values that differ from server to server."""
    if not isinstance(value, dict):
        return value
    value = json.loads(json.dumps(value))
    metadata = value.get("metadata") or {}
    for name in SERVER_SET:
        metadata.pop(name, None)
    for entry in metadata.get("managedFields") or []:
        entry.pop("time", None)
    if value.get("kind") == "CustomResourceDefinition":
        for condition in value.get("status", {}).get("conditions") or []:
            condition.pop("lastTransitionTime", None)
    if value.get("kind") == "Status":
        value.get("details", {}).pop("uid", None)
    return value


def _without_descriptions(value: Any) -> Any:
    """Remove descriptions: their wording is not behaviour."""
    if isinstance(value, dict):
        return {
            name: _without_descriptions(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [_without_descriptions(item) for item in value] if isinstance(value, list) else value


def _sha(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:24]


def _message(body: Any) -> Any:
    return body.get("message") if isinstance(body, dict) else body


def differences(recorded: Any, actual: Any, path: str = "") -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for name in sorted(recorded.keys() | actual.keys()):
            if name not in actual:
                yield f"{path}.{name}: missing (expected {recorded[name]!r:.160})"
            elif name not in recorded:
                yield f"{path}.{name}: unexpected {actual[name]!r:.160}"
            else:
                yield from differences(recorded[name], actual[name], f"{path}.{name}")
    elif isinstance(recorded, list) and isinstance(actual, list) and len(recorded) == len(actual):
        if path.endswith((".causes", ".conditions", ".details")):  # in no fixed order
            recorded, actual = (
                sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) for items in (recorded, actual)
            )
        for n, (old, new) in enumerate(zip(recorded, actual, strict=True)):
            yield from differences(old, new, f"{path}[{n}]")
    elif recorded != actual and not (path.endswith(".message") and _same_text(recorded, actual)):
        yield f"{path}: expected {recorded!r:.300}, got {actual!r:.300}"


def _same_text(recorded: Any, actual: Any) -> bool:
    """Equal apart from the order of the errors, and from which of several undeclared fields is named."""
    if not isinstance(recorded, str) or not isinstance(actual, str):
        return False
    undeclared = "field not declared in schema"
    if undeclared in recorded and undeclared in actual:
        return recorded.partition("): ")[0] == actual.partition("): ")[0]
    old, new = (sorted(re.findall(r"[^\s\[\],]+", text)) for text in (recorded, actual))
    return old == new


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the answers to CRDs of other projects with recorded ones.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    parser.add_argument("--crds", type=Path, default=corpus.FOLDER, metavar="FOLDER")
    parser.add_argument("only", nargs="*", metavar="TEXT", help="only CRDs whose names contain TEXT")
    options = parser.parse_args()
    passed = failed = 0
    with Client(options.url, insecure=options.insecure) as client:
        for definition in corpus.definitions(options.crds):
            if options.only and not any(text in definition.name for text in options.only):
                continue
            for name, found in Check(client, definition).run().items():
                passed, failed = passed + (not found), failed + bool(found)
                if found:
                    print(f"FAIL {name}\n     " + "\n     ".join(found[:12]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
