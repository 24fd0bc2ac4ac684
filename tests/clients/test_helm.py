"""helm: a chart is installed, upgraded, rolled back and uninstalled."""

from __future__ import annotations

from collections.abc import Callable

from tests.optional import needs_program

CHART = """
    apiVersion: v2
    name: demo
    version: 0.1.0
"""
VALUES = "size: 3\n"
TEMPLATE = """
    apiVersion: example.com/v1
    kind: Widget
    metadata: {name: "{{ .Release.Name }}"}
    spec: {size: {{ .Values.size }}}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ .Release.Name }}"}
    data: {size: "{{ .Values.size }}"}
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: "{{ .Release.Name }}"}
    spec: {ports: [{port: 80}]}
"""
SESSION = """
    $ mkdir -p demo/templates && mv chart.yaml demo/Chart.yaml && mv values.yaml demo && mv template.yaml demo/templates
    $ helm install one demo --wait --timeout 60s | grep -E 'STATUS|REVISION'
    STATUS: deployed
    REVISION: 1
    $ kubectl get wd,cm,svc,secret -o name
    widget.example.com/one
    configmap/one
    service/one
    secret/sh.helm.release.v1.one.v1
    $ helm upgrade one demo --set size=5 --wait --timeout 60s | grep -E 'STATUS|REVISION'
    STATUS: deployed
    REVISION: 2
    $ kubectl get wd one -o 'jsonpath={.spec.size}'
    5
    $ helm upgrade one demo --set size=-1 >out.txt 2>&1; grep -q 'should be greater than or equal to 0' out.txt && echo refused
    refused
    $ helm rollback one 1 --wait --timeout 60s
    Rollback was a success! Happy Helming!
    $ kubectl get wd one -o 'jsonpath={.spec.size}'
    3
    $ helm list -q
    one
    $ helm uninstall one --wait --timeout 60s
    release "one" uninstalled
    $ kubectl get wd,cm,svc,secret
    No resources found in @ns namespace.
"""


@needs_program("helm")
def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(session: Callable[..., None]) -> None:
    session(SESSION, chart=CHART, values=VALUES, template=TEMPLATE)
