"""kubectl with built-in kinds, whose bodies it sends as protobuf."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Session = Callable[..., None]

BUILT_IN: dict[str, str] = {
    "namespaces": """
        $ kubectl create namespace @ns-x
        namespace/@ns-x created
        $ kubectl create namespace @ns-x
        Error from server (AlreadyExists): namespaces "@ns-x" already exists
        [1]
        $ kubectl get ns @ns-x --show-labels
        NAME…STATUS   AGE…LABELS
        @ns-x…Active…kubernetes.io/metadata.name=@ns-x
        $ kubectl describe ns @ns-x
        Name:         @ns-x
        Labels:       kubernetes.io/metadata.name=@ns-x
        Annotations:  <none>
        Status:       Active
        …
        $ kubectl create configmap c -n @ns-x --from-literal a=b
        configmap/c created
        $ printf '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}' | kubectl create -n @ns-x -f -
        widget.example.com/w created
        $ kubectl delete ns @ns-x
        namespace "@ns-x" deleted
        $ kubectl get wd,cm -n @ns-x
        No resources found in @ns-x namespace.
        $ kubectl delete ns default
        Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
        [1]
    """,
    "config maps": """
        $ kubectl create configmap c --from-literal a=b --from-literal empty=
        configmap/c created
        $ kubectl get cm c
        NAME   DATA   AGE
        c      2      …
        $ kubectl patch cm c -p '{"data":{"c":"d","a":null}}'
        configmap/c patched
        $ kubectl patch cm c --type json -p '[{"op":"add","path":"/data/e","value":"f"}]'
        configmap/c patched
        $ kubectl get cm c -o 'jsonpath={.data}'
        {"c":"d","e":"f","empty":""}
        $ kubectl describe cm c
        Name:         c
        Namespace:    @ns
        …
        c:
        ----
        d
        …
        $ kubectl create configmap c --from-literal a=z --dry-run=client -o yaml | kubectl apply -f -
        Warning: resource configmaps/c is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
        configmap/c configured
        $ kubectl create configmap c --from-literal a=y --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts -f -
        configmap/c serverside-applied
        $ kubectl get cm c -o 'jsonpath={.data}'
        {"a":"y","c":"d","e":"f","empty":""}
        $ kubectl delete cm c
        configmap "c" deleted…
    """,
    "secrets": """
        $ kubectl create secret generic s --from-literal a=b
        secret/s created
        $ kubectl get secret s
        NAME   TYPE     DATA   AGE
        s      Opaque   1      …
        $ kubectl get secret s -o 'jsonpath={.data.a}' | base64 -d
        b
        $ kubectl patch secret s -p '{"stringData":{"c":"d"}}'
        secret/s patched
        $ kubectl get secret s -o 'jsonpath={.data.a} {.data.c}'
        Yg== ZA==
        $ kubectl patch secret s -p '{"type":"other"}'
        The Secret "s" is invalid: type: Invalid value: "other": field is immutable
        [1]
    """,
    "services": """
        $ kubectl create service clusterip web --tcp 80:8080
        service/web created
        $ kubectl get svc
        NAME   TYPE        CLUSTER-IP…
        web    ClusterIP   10.0.0.…
        $ kubectl patch svc web -p '{"spec":{"ports":[{"port":81,"name":"b"},{"port":80,"name":"a"}]}}'
        service/web patched
        $ kubectl get svc web -o 'jsonpath={.spec.ports[*].port} {.spec.ports[*].targetPort}'
        81 80 81 8080
        $ kubectl cluster-info | head -1
        …Kubernetes control plane…http://127.0.0.1:…
    """,
    "service accounts": """
        $ kubectl create serviceaccount robot
        serviceaccount/robot created
        $ kubectl create token robot --duration 1h
        ey….….…
        $ kubectl get sa robot -o name
        serviceaccount/robot
    """,
    "authorization": """
        $ kubectl auth can-i create widgets
        yes
        $ kubectl auth can-i get configmaps --subresource status -n @ns
        yes
        $ kubectl auth can-i --list
        Resources   Non-Resource URLs   Resource Names   Verbs
        *.*         []                  []               [*]
                    [*]                 []               [*]
        $ kubectl auth whoami -o 'jsonpath={.status.userInfo.username}'
        system:anonymous
    """,
    "several kinds from one file": """
        $ kubectl create configmap c --from-literal a=b --dry-run=client -o yaml >all.yaml
        $ printf -- '---\\napiVersion: v1\\nkind: List\\nitems:\\n- {apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}\\n' >>all.yaml
        $ kubectl apply -f all.yaml
        configmap/c created
        widget.example.com/w created
        $ kubectl diff -f all.yaml
        $ kubectl get -f all.yaml -o name
        configmap/c
        widget.example.com/w
        $ kubectl delete -f all.yaml
        configmap "c" deleted…
        widget.example.com "w" deleted…
    """,
    "kustomize": """
        $ printf 'resources: [w.yaml]\\nnamePrefix: my-\\nconfigMapGenerator: [{name: c, literals: [a=b]}]\\n' >kustomization.yaml
        $ printf '{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {}}' >w.yaml
        $ kubectl apply -k .
        configmap/my-c-… created
        widget.example.com/my-w created
        $ kubectl delete -k .
        configmap "my-c-…" deleted…
        widget.example.com "my-w" deleted…
    """,
    "kinds that are not served": """
        $ kubectl get podmetrics
        error: the server doesn't have a resource type "podmetrics"
        [1]
    """,
    "workloads are stored": """
        $ kubectl create deployment d --image i
        deployment.apps/d created
        $ kubectl scale deployment d --replicas 3
        deployment.apps/d scaled
        $ kubectl get deployment d -o jsonpath={.spec.replicas},{.spec.strategy.type},{.metadata.generation}
        3,RollingUpdate,2
        $ kubectl get pods
        No resources found in … namespace.
    """,
}


@pytest.mark.parametrize("text", BUILT_IN.values(), ids=BUILT_IN)
def test_the_session_prints_the_expected_output(session: Session, text: str) -> None:
    session(text)
