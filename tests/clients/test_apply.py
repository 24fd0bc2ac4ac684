"""Server-side apply by kubectl, by Python libraries and by client-go."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu.testing.handle import Noxu
from tests.optional import require_package, skip_without_program

Session = Callable[..., None]

FILES = {
    "mine": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a, labels: {tier: front}}
        spec: {size: 2, parts: [{name: p, count: 1}]}
    """,
    "theirs": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a, labels: {tier: back, zone: z}}
        spec: {size: 3, colour: red, parts: [{name: p, count: 2}, {name: q}]}
    """,
    "less": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a}
        spec: {size: 2}
    """,
    "sized": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a}
        status: {size: 2}
    """,
    "wrong": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a}
        spec: {size: two, weight: 3}
    """,
}
MANAGERS = "$ kubectl get wd a --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{\"\\n\"}{end}'"
SPEC = "$ kubectl get wd a -o 'jsonpath={.spec}'"

SESSIONS: dict[str, str] = {
    "every conflict is listed": f"""
        $ kubectl apply --server-side -f mine.yaml
        widget.example.com/a serverside-applied
        $ kubectl apply --server-side --field-manager them -f theirs.yaml
        error: Apply failed with 3 conflicts: conflicts with "kubectl":
        - .metadata.labels.tier
        - .spec.size
        - .spec.parts[name="p"].count
        Please review the fields above--they currently have other managers. Here
        …
        [1]
        {SPEC}
        {{"parts":[{{"count":1,"name":"p"}}],"size":2}}
    """,
    "conflicts with an updater name its version": """
        $ kubectl apply --server-side -f mine.yaml
        widget.example.com/a serverside-applied
        $ kubectl patch wd a --type merge -p '{"spec":{"size":5}}' --field-manager editor
        widget.example.com/a patched
        $ kubectl apply --server-side -f mine.yaml
        error: Apply failed with 1 conflict: conflict with "editor" using example.com/v1: .spec.size
        …
        [1]
    """,
    "force takes the fields": f"""
        $ kubectl apply --server-side -f mine.yaml
        widget.example.com/a serverside-applied
        $ kubectl apply --server-side --field-manager them -f theirs.yaml --force-conflicts
        widget.example.com/a serverside-applied
        {SPEC}
        {{"colour":"red","parts":[{{"count":2,"name":"p"}},{{"name":"q"}}],"size":3}}
        $ kubectl apply --server-side -f less.yaml
        error: Apply failed with 1 conflict: conflict with "them": .spec.size
        …
        [1]
        {MANAGERS}
        kubectl Apply
        them Apply
    """,
    "fields that are no longer applied are removed unless another manager owns them": f"""
        $ kubectl apply --server-side -f mine.yaml
        widget.example.com/a serverside-applied
        $ sed 's/size: 3/size: 2/;s/count: 2/count: 1/;s/back/front/' theirs.yaml | kubectl apply --server-side --field-manager them -f -
        widget.example.com/a serverside-applied
        $ kubectl apply --server-side -f less.yaml
        widget.example.com/a serverside-applied
        {SPEC}
        {{"colour":"red","parts":[{{"count":1,"name":"p"}},{{"name":"q"}}],"size":2}}
        $ kubectl apply --server-side --field-manager them -f less.yaml
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o 'jsonpath={{.spec}} {{.metadata.labels}}'
        {{"size":2}}
    """,
    "a status is applied through its own subresource": f"""
        $ kubectl apply --server-side -f mine.yaml
        widget.example.com/a serverside-applied
        $ kubectl apply --server-side -f sized.yaml --subresource status
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o 'jsonpath={{.spec.size}} {{.status}}'
        2 {{"size":2}}
        {MANAGERS}
        kubectl Apply
        kubectl Apply status
    """,
    "values that do not match the schema are refused": """
        $ kubectl apply --server-side -f wrong.yaml
        Error from server: failed to create typed patch object (@ns/a; example.com/v1, Kind=Widget): errors:
          .spec.size: expected numeric (int or float), got string
          .spec.weight: field not declared in schema
        [1]
    """,
    "a dry run applies nothing": """
        $ kubectl apply --server-side -f mine.yaml --dry-run=server
        widget.example.com/a serverside-applied (server dry run)
        $ kubectl get wd a
        Error from server (NotFound): widgets.example.com "a" not found
        [1]
    """,
    "applying the same again writes nothing": """
        $ kubectl apply --server-side -f mine.yaml -o 'jsonpath={.metadata.resourceVersion}' > first
        $ kubectl apply --server-side -f mine.yaml -o 'jsonpath={.metadata.resourceVersion}' | cmp - first
    """,
    "managed fields are shown only on request": """
        $ kubectl apply --server-side -f less.yaml
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o yaml | grep managed
        [1]
        $ kubectl get wd a --show-managed-fields -o yaml
        …
          managedFields:
          - apiVersion: example.com/v1
            fieldsType: FieldsV1
            fieldsV1:
              f:spec:
                f:size: {}
            manager: kubectl
            operation: Apply
            time: "…Z"
          name: a
        …
    """,
    "migrating from client-side to server-side apply": f"""
        $ kubectl apply -f mine.yaml
        widget.example.com/a created
        {MANAGERS}
        kubectl-client-side-apply Update
        $ kubectl apply --server-side -f less.yaml
        widget.example.com/a serverside-applied
        {SPEC}
        {{"size":2}}
        {MANAGERS}
        kubectl-last-applied Apply
        kubectl Apply
        $ kubectl apply view-last-applied wd/a -o json
        {{
        …
          "spec": {{
            "size": 2
          }}
        }}
        $ kubectl apply -f mine.yaml
        widget.example.com/a configured
        {SPEC}
        {{"parts":[{{"count":1,"name":"p"}}],"size":2}}
    """,
    "migrating conflicts with changes by others": """
        $ kubectl apply -f mine.yaml
        widget.example.com/a created
        $ kubectl scale wd a --replicas 7
        widget.example.com/a scaled
        $ kubectl apply --server-side -f mine.yaml
        error: Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using example.com/v1: .spec.size
        …
        [1]
        $ kubectl apply --server-side -f mine.yaml --force-conflicts
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o 'jsonpath={.spec.size}'
        2
    """,
    "built-in kinds": """
        $ kubectl create configmap c --from-literal a=x
        configmap/c created
        $ kubectl create configmap c --from-literal a=y --from-literal b=z --dry-run=client -o yaml > c.yaml
        $ kubectl apply --server-side -f c.yaml
        error: Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.a
        …
        [1]
        $ kubectl apply --server-side -f c.yaml --force-conflicts
        configmap/c serverside-applied
        $ kubectl get configmap c -o 'jsonpath={.data}'
        {"a":"y","b":"z"}
    """,
}


@pytest.mark.parametrize("name", SESSIONS)
def test_the_session_prints_the_expected_output(session: Session, name: str) -> None:
    session(SESSIONS[name], **FILES)


# -- libraries

BUILD_TIMEOUT = 1200  # seconds: the first build on a machine compiles all of client-go
PROGRAMS = sorted(Path(__file__).with_name("applying").glob("with_*.py"))


def run(command: list[str | Path]) -> None:
    process = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_TIMEOUT
    )
    if process.returncode:
        pytest.fail(process.stdout[-4000:], pytrace=False)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem.removeprefix("with_"))
def test_a_library_applies(program: Path, server: Noxu, new_namespace: Callable[[], str]) -> None:
    require_package(program.stem.removeprefix("with_"))
    run([sys.executable, program, server.kubeconfig, new_namespace()])


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
def test_client_go_applies(
    server: Noxu, new_namespace: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = shutil.which("go")
    if not go:
        skip_without_program("go")
    source = Path(__file__).with_name("applying")
    monkeypatch.setenv("GOPROXY", "off")  # use the module cache only
    monkeypatch.setenv("GOFLAGS", "-mod=readonly")
    dependencies = subprocess.run(
        [go, "list", "-deps", "."], check=False, cwd=source, capture_output=True, env=os.environ
    )
    if dependencies.returncode:
        skip_without_program("go with client-go in its module cache")
    program = tmp_path / "applying"
    run([go, "build", "-C", source, "-o", program, "."])
    run([program, server.kubeconfig, new_namespace()])
