"""kubectl apply, create, patch, delete and the other commands that write custom resources."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Session = Callable[..., None]

FILES = {
    "ab": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a, labels: {tier: front}}
        spec: {size: 2, colour: red, parts: [{name: x, count: 1}]}
        ---
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: b, labels: {tier: back}}
        spec: {colour: green}
    """,
    "larger": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: a, labels: {tier: front}}
        spec: {size: 3, parts: [{name: z}]}
    """,
    "wrong": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: wrong}
        spec: {size: 1, colour: blue}
    """,
    "unknown": """
        apiVersion: example.com/v1
        kind: Widget
        metadata: {name: unknown}
        spec: {size: 1, weight: 3}
    """,
    "gears": """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: gears.@ns.example.com}
        spec:
          group: @ns.example.com
          scope: Cluster
          names: {plural: gears, kind: Gear}
          versions:
          - name: v1
            served: true
            storage: true
            schema: {openAPIV3Schema: {type: object, properties: {teeth: {type: integer}}}}
    """,
}

WRITING: dict[str, str] = {
    "apply": """
        $ kubectl apply -f ab.yaml
        widget.example.com/a created
        widget.example.com/b created
        $ kubectl apply -f ab.yaml
        widget.example.com/a unchanged
        widget.example.com/b unchanged
        $ kubectl apply -f larger.yaml
        widget.example.com/a configured
        $ kubectl get wd a -o 'jsonpath={.spec}'
        {"parts":[{"name":"z"}],"size":3}
        $ kubectl apply view-last-applied wd/a
        apiVersion: example.com/v1
        …
        spec:
          parts:
          - name: z
          size: 3
    """,
    "apply on the server": """
        $ kubectl apply --server-side -f ab.yaml
        widget.example.com/a serverside-applied
        widget.example.com/b serverside-applied
        $ kubectl apply --server-side --field-manager other -f larger.yaml
        error: Apply failed with 1 conflict: conflict with "kubectl": .spec.size
        Please review the fields above--they currently have other managers. Here
        are the ways you can resolve this warning:
        …
        [1]
        $ kubectl apply --server-side --field-manager other -f larger.yaml --force-conflicts
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o 'jsonpath={.spec}'
        {"colour":"red","parts":[{"count":1,"name":"x"},{"name":"z"}],"size":3}
        $ kubectl apply --server-side -f larger.yaml --force-conflicts
        widget.example.com/a serverside-applied
        $ kubectl get wd a -o 'jsonpath={.spec}'
        {"parts":[{"name":"z"}],"size":3}
    """,
    "migrating from client-side to server-side apply": """
        $ kubectl apply -f ab.yaml
        widget.example.com/a created
        widget.example.com/b created
        $ kubectl apply --server-side -f larger.yaml
        widget.example.com/a serverside-applied
        $ kubectl get wd a --show-managed-fields -o 'jsonpath={.metadata.managedFields[*].manager} {.spec}'
        kubectl-last-applied kubectl {"parts":[{"name":"z"}],"size":3}
    """,
    "apply prunes": """
        $ kubectl apply -f ab.yaml
        widget.example.com/a created
        widget.example.com/b created
        $ kubectl apply --prune --all --prune-allowlist example.com/v1/Widget -n @ns -f larger.yaml
        widget.example.com/a configured
        widget.example.com/b pruned
        $ KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset configmap/set -n @ns -f ab.yaml --force-conflicts
        widget.example.com/a serverside-applied
        widget.example.com/b serverside-applied
        $ KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset configmap/set -n @ns -f larger.yaml
        widget.example.com/a serverside-applied
        widget.example.com/b pruned
    """,
    "diff": """
        $ kubectl diff -f wrong.yaml
        The Widget "wrong" is invalid: spec.colour: Unsupported value: "blue": supported values: "red", "green"
        [2]
        $ kubectl apply -f ab.yaml
        widget.example.com/a created
        widget.example.com/b created
        $ kubectl diff -f ab.yaml
        $ kubectl diff -f larger.yaml
        …
        -  generation: 1
        +  generation: 2
        …
         spec:
        -  colour: red
           parts:
        -  - count: 1
        -    name: x
        -  size: 2
        +  - name: z
        +  size: 3
        [1]
        $ kubectl diff --server-side --force-conflicts -f larger.yaml
        …
        -  size: 2
        +  - name: z
        +  size: 3
        [1]
    """,
    "create": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl create -f larger.yaml
        Error from server (AlreadyExists): error when creating "larger.yaml": widgets.example.com "a" already exists
        [1]
        $ kubectl create -f wrong.yaml
        The Widget "wrong" is invalid: spec.colour: Unsupported value: "blue": supported values: "red", "green"
        [1]
        $ sed 's/name: wrong/generateName: w-/;s/blue/red/' wrong.yaml | kubectl create -f -
        widget.example.com/w-… created
        $ sed 's/Widget/Gear/' wrong.yaml | kubectl create -f -
        error: resource mapping not found for name: "wrong" namespace: "" from "STDIN": no matches for kind "Gear" in version "example.com/v1"
        ensure CRDs are installed first
        [1]
        $ kubectl create -n nowhere -f larger.yaml
        Error from server (NotFound): error when creating "larger.yaml": namespaces "nowhere" not found
        [1]
    """,
    "unknown fields": """
        $ kubectl create -f unknown.yaml
        Error from server (BadRequest): error when creating "unknown.yaml": Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.weight"
        [1]
        $ kubectl create -f unknown.yaml --validate=warn
        Warning: unknown field "spec.weight"
        widget.example.com/unknown created
        $ kubectl apply -f unknown.yaml --validate=ignore
        …
        widget.example.com/unknown configured
        $ kubectl apply -f unknown.yaml --validate=strict
        The request is invalid: patch: Invalid value: …: strict decoding error: unknown field "spec.weight"
        [1]
        $ kubectl get wd unknown -o 'jsonpath={.spec}'
        {"size":1}
    """,
    "dry runs": """
        $ kubectl create -f ab.yaml --dry-run=server
        widget.example.com/a created (server dry run)
        widget.example.com/b created (server dry run)
        $ kubectl create -f ab.yaml --dry-run=client
        widget.example.com/a created (dry run)
        widget.example.com/b created (dry run)
        $ kubectl apply -f ab.yaml --dry-run=server -o 'jsonpath={.items[1].spec}'
        {"colour":"green","size":1}
        $ kubectl get wd
        No resources found in @ns namespace.
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl delete wd a --dry-run=server
        widget.example.com "a" deleted… (server dry run)
        $ kubectl scale wd a --replicas 9 --dry-run=server
        widget.example.com/a scaled (server dry run)
        $ kubectl label wd a x=y --dry-run=server
        widget.example.com/a labeled (server dry run)
        $ kubectl get wd --show-labels
        NAME   SIZE   LABELS
        a      2      tier=front
        b      1      tier=back
    """,
    "edit": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ KUBE_EDITOR='sed -i s/red/green/' kubectl edit wd a
        widget.example.com/a edited
        $ KUBE_EDITOR=true kubectl edit wd a
        Edit cancelled, no changes made.
        $ KUBE_EDITOR='sed -i s/green/blue/' kubectl edit wd a 2>&1 | sed 's/stored to.*/stored/'
        error: widgets.example.com "a" is invalid
        A copy of your changes has been stored
        error: Edit cancelled, no valid changes were saved.
        $ printf 'sed -i "\\$astatus: {size: 8}" $1' >status.sh
        $ KUBE_EDITOR='sh status.sh' kubectl edit --subresource status wd a
        widget.example.com/a edited
        $ kubectl get wd a -o 'jsonpath={.spec.colour} {.status.size}'
        green 8
    """,
    "patch": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl patch wd a --type merge -p '{"spec":{"size":5,"colour":null}}'
        widget.example.com/a patched
        $ kubectl patch wd a --type merge -p '{"spec":{"size":5}}'
        widget.example.com/a patched (no change)
        $ kubectl patch wd a --type json -p '[{"op":"test","path":"/spec/size","value":5},{"op":"add","path":"/spec/parts/-","value":{"name":"z"}}]'
        widget.example.com/a patched
        $ kubectl patch wd a --type json -p '[{"op":"remove","path":"/spec/none"}]'
        The request is invalid: the server rejected our request due to an error in our request
        [1]
        $ kubectl patch wd a -p '{"spec":{"size":6}}'
        error: application/strategic-merge-patch+json is not supported by example.com/v1, Kind=Widget: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        [1]
        $ kubectl patch wd a --type merge -p '{"spec":{"colour":"blue"}}'
        The Widget "a" is invalid: spec.colour: Unsupported value: "blue": supported values: "red", "green"
        [1]
        $ kubectl patch wd a --subresource status --type merge -p '{"spec":{"size":9},"status":{"size":7}}'
        widget.example.com/a patched
        $ kubectl get wd a -o 'jsonpath={.metadata.generation} {.spec} {.status}'
        3 {"parts":[{"count":1,"name":"x"},{"name":"z"}],"size":5} {"size":7}
    """,
    "labels and annotations": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl label wd a tier=middle
        error: 'tier' already has a value (front), and --overwrite is false
        [1]
        $ kubectl label wd a tier=middle --overwrite
        widget.example.com/a labeled
        $ kubectl label wd --all new=yes
        widget.example.com/a labeled
        widget.example.com/b labeled
        $ kubectl label wd -l new=yes tier-
        widget.example.com/a unlabeled
        widget.example.com/b unlabeled
        $ kubectl label wd a 'x=not good'
        error: invalid label value: "x=not good": …
        [1]
        $ kubectl label wd a --list
        new=yes
        $ kubectl annotate wd a note=hello
        widget.example.com/a annotated
        $ kubectl annotate wd a note-
        widget.example.com/a annotated
        $ kubectl get wd a -o 'jsonpath={.metadata.generation} {.metadata.annotations}'
        1
    """,
    "replace": """
        $ kubectl replace -f larger.yaml
        Error from server (NotFound): error when replacing "larger.yaml": widgets.example.com "a" not found
        [1]
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl replace -f larger.yaml
        widget.example.com/a replaced
        $ kubectl get wd a -o json | sed 's/"size": 3/"size": 4/' | kubectl replace -f -
        widget.example.com/a replaced
        $ kubectl get wd a -o json >old.json; kubectl label wd a x=y >/dev/null; kubectl replace -f old.json
        Error from server (Conflict): error when replacing "old.json": Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again
        [1]
        $ kubectl replace --force -f ab.yaml
        widget.example.com "a" deleted…
        widget.example.com "b" deleted…
        widget.example.com/a replaced
        widget.example.com/b replaced
        $ kubectl get wd a -o 'jsonpath={.metadata.generation} {.spec.size}'
        1 2
    """,
    "scale": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl scale wd a --replicas 7
        widget.example.com/a scaled
        $ kubectl scale wd/a wd/b --replicas 8
        widget.example.com/a scaled
        widget.example.com/b scaled
        $ kubectl scale wd a --current-replicas 3 --replicas 9
        error: Expected replicas to be 3, was 8
        [1]
        $ kubectl scale wd a --current-replicas 8 --replicas 9
        widget.example.com/a scaled
        $ kubectl patch wd a --subresource scale --type merge -p '{"spec":{"replicas":10}}'
        scale.autoscaling/a patched
        $ kubectl get wd
        NAME   SIZE
        a      10
        b      8
    """,
    "delete": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl delete wd a
        widget.example.com "a" deleted…
        $ kubectl delete wd a
        Error from server (NotFound): widgets.example.com "a" not found
        [1]
        $ kubectl delete wd a --ignore-not-found
        $ kubectl delete -f ab.yaml --ignore-not-found --wait=false
        widget.example.com "b" deleted…
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl delete wd -l tier=front
        widget.example.com "a" deleted…
        $ kubectl create -f larger.yaml -o name
        widget.example.com/a
        $ kubectl delete wd --field-selector spec.colour=green
        widget.example.com "b" deleted…
        $ kubectl delete wd --all
        widget.example.com "a" deleted…
        $ kubectl delete wd --all
        No resources found
    """,
    "delete waits for finalizers": """
        $ kubectl create -f larger.yaml -o name
        widget.example.com/a
        $ kubectl patch wd a --type merge -p '{"metadata":{"finalizers":["example.com/wait"]}}'
        widget.example.com/a patched
        $ kubectl delete wd a --timeout 1s
        widget.example.com "a" deleted…
        …
        error: timed out waiting for the condition on widgets/a
        [1]
        $ kubectl delete wd a -v=6 2>log &
        > until grep -qs watch=true log; do sleep 0.05; done
        > kubectl patch wd a --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null; wait $!
        widget.example.com "a" deleted…
        $ kubectl get wd
        No resources found in @ns namespace.
    """,
    "wait": """
        $ kubectl create -f ab.yaml -o name
        widget.example.com/a
        widget.example.com/b
        $ kubectl wait wd/a --for condition=Ready --timeout 1s
        error: timed out waiting for the condition on widgets/a
        [1]
        $ kubectl wait wd/a --for condition=Ready --timeout 60s -v=6 2>log &
        > until grep -qs watch=true log; do sleep 0.05; done
        > kubectl patch wd a --subresource status --type merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}' >/dev/null; wait $!
        widget.example.com/a condition met
        $ kubectl wait wd --all --for 'jsonpath={.spec.size}' --timeout 60s
        widget.example.com/a condition met
        widget.example.com/b condition met
        $ kubectl wait wd -l tier=front --for 'jsonpath={.spec.size}=2' --timeout 60s
        widget.example.com/a condition met
        $ kubectl wait wd/b --for delete --timeout 60s -v=6 2>deletion.log &
        > until grep -qs watch=true deletion.log; do sleep 0.05; done; kubectl delete wd b >/dev/null; wait $!
        widget.example.com/b condition met
        $ kubectl wait wd/b --for create --timeout 60s &
        > sleep 0.4; kubectl apply -f ab.yaml >/dev/null 2>&1; wait $!
        widget.example.com/b condition met
    """,
    "definitions": """
        $ kubectl apply -f gears.yaml
        customresourcedefinition.apiextensions.k8s.io/gears.@ns.example.com created
        $ kubectl wait --for condition=Established --timeout 60s crd gears.@ns.example.com
        customresourcedefinition.apiextensions.k8s.io/gears.@ns.example.com condition met
        $ printf '{"apiVersion":"@ns.example.com/v1","kind":"Gear","metadata":{"name":"g"},"teeth":3}' | kubectl apply -f -
        gear.@ns.example.com/g created
        $ kubectl get gears.@ns.example.com
        NAME   AGE
        g      …
        $ sed 's/integer/string/' gears.yaml | kubectl apply -f -
        customresourcedefinition.apiextensions.k8s.io/gears.@ns.example.com configured
        $ kubectl patch gears.@ns.example.com g --type merge -p '{"teeth":4}'
        The Gear "g" is invalid: teeth: Invalid value: "integer": teeth in body must be of type string: "integer"
        [1]
        $ kubectl explain gears.teeth --api-version @ns.example.com/v1
        …
        FIELD: teeth <string>
        …
        $ kubectl delete -f gears.yaml
        customresourcedefinition.apiextensions.k8s.io "gears.@ns.example.com" deleted
        $ kubectl get crd gears.@ns.example.com
        Error from server (NotFound): customresourcedefinitions.apiextensions.k8s.io "gears.@ns.example.com" not found
        [1]
    """,
}


@pytest.mark.parametrize("text", WRITING.values(), ids=WRITING)
def test_the_session_prints_the_expected_output(session: Session, text: str) -> None:
    session(text, **FILES)
