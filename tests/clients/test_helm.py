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
    configmap/kube-root-ca.crt
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
    $ kubectl get wd,svc,secret
    No resources found in @ns namespace.
"""


APPLICATION = """
    {{- $labels := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name }}
    apiVersion: v1
    kind: ServiceAccount
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    data: {message: "{{ .Values.message }}", server: "{{ .Capabilities.KubeVersion.Major }}"}
    ---
    apiVersion: v1
    kind: Secret
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    stringData: {message: "{{ .Values.message }}"}
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ .Release.Name }}"}
    subjects: [{kind: ServiceAccount, name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: "{{ .Release.Namespace }}", labels: {{ toJson $labels }}}
    rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: "{{ .Release.Namespace }}", labels: {{ toJson $labels }}}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{ .Release.Namespace }}"}
    subjects: [{kind: ServiceAccount, name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}]
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    spec: {selector: {{ toJson $labels }}, ports: [{name: http, port: {{ .Values.port }}, targetPort: http}]}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    spec:
      replicas: {{ .Values.replicas }}
      selector: {matchLabels: {{ toJson $labels }}}
      template:
        metadata: {labels: {{ toJson $labels }}}
        spec:
          serviceAccountName: "{{ .Release.Name }}"
          containers:
          - name: web
            image: "registry.example.com/web:{{ .Values.tag }}"
            ports: [{name: http, containerPort: 8080}]
            env: [{name: MESSAGE, valueFrom: {configMapKeyRef: {name: "{{ .Release.Name }}", key: message}}}]
            readinessProbe: {httpGet: {path: /readyz, port: http}}
            resources: {requests: {cpu: 100m, memory: 64Mi}}
            volumeMounts: [{name: secret, mountPath: /secret, readOnly: true}]
          volumes: [{name: secret, secret: {secretName: "{{ .Release.Name }}"}}]
    ---
    {{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    spec: {maxUnavailable: 25%, selector: {matchLabels: {{ toJson $labels }}}}
    {{- end }}
    ---
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    spec:
      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}"}
      maxReplicas: 5
      metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 75}}}]
    ---
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: "{{ .Release.Name }}", labels: {{ toJson $labels }}}
    spec:
      rules:
      - host: web.example.com
        http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: "{{ .Release.Name }}", port: {name: http}}}}]}
    ---
    apiVersion: batch/v1
    kind: Job
    metadata: {name: "{{ .Release.Name }}-{{ .Values.tag }}", labels: {{ toJson $labels }}}
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: migrate, image: "registry.example.com/web:{{ .Values.tag }}"}]}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: "{{ .Release.Name }}-hook"
      annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
    data: {revision: "{{ .Release.Revision }}"}
"""
APPLICATION_VALUES = "{replicas: 2, tag: v1, message: hello, port: 80}"
KINDS = "sa,cm,secret,role,rolebinding,svc,deploy,pdb,hpa,ing,job"
APPLICATION_SESSION = f"""
    $ mkdir -p demo/templates && mv chart.yaml demo/Chart.yaml && mv values.yaml demo && mv template.yaml demo/templates
    $ helm install web demo | grep -E 'STATUS|REVISION'
    STATUS: deployed
    REVISION: 1
    $ kubectl get {KINDS} -l app.kubernetes.io/instance=web -o name
    serviceaccount/web
    configmap/web
    secret/web
    role.rbac.authorization.k8s.io/web
    rolebinding.rbac.authorization.k8s.io/web
    service/web
    deployment.apps/web
    poddisruptionbudget.policy/web
    horizontalpodautoscaler.autoscaling/web
    ingress.networking.k8s.io/web
    job.batch/web-v1
    $ kubectl get clusterrole,clusterrolebinding @ns -o name
    clusterrole.rbac.authorization.k8s.io/@ns
    clusterrolebinding.rbac.authorization.k8s.io/@ns
    $ helm upgrade web demo --set tag=v2,message=bye | grep -E 'STATUS|REVISION'
    STATUS: deployed
    REVISION: 2
    $ kubectl get deploy web -o 'jsonpath={{.metadata.generation}} {{.spec.template.spec.containers[*].image}}'
    2 registry.example.com/web:v2
    $ kubectl get cm web web-hook -o 'jsonpath={{.items[*].data}}'
    {{"message":"bye","server":"1"}} {{"revision":"2"}}
    $ kubectl get job -l app.kubernetes.io/instance=web -o name
    job.batch/web-v2
    $ helm upgrade web demo --reuse-values | grep REVISION
    REVISION: 3
    $ kubectl get deploy web -o 'jsonpath={{.metadata.generation}}'
    2
    $ helm upgrade web demo --reuse-values --set port=0 >out.txt 2>&1; grep -o 'Invalid value: 0: must be between 1 and 65535' out.txt | head -1
    Invalid value: 0: must be between 1 and 65535
    $ helm rollback web 1
    Rollback was a success! Happy Helming!
    $ kubectl get deploy web -o 'jsonpath={{.metadata.generation}} {{.spec.template.spec.containers[*].image}}'
    3 registry.example.com/web:v1
    $ kubectl get secret web -o 'jsonpath={{.data.message}}' | base64 -d
    hello
    $ helm history web --max 9 | awk 'NR > 1 {{print $1}}'
    1
    2
    3
    4
    5
    $ helm uninstall web
    release "web" uninstalled
    $ kubectl get {KINDS} -l app.kubernetes.io/instance=web
    No resources found in @ns namespace.
    $ kubectl get clusterrole,clusterrolebinding @ns --ignore-not-found
"""


@needs_program("helm")
def test_a_release_of_an_application_has_all_kinds_of_a_usual_chart(session: Callable[..., None]) -> None:
    session(APPLICATION_SESSION, chart=CHART, values=APPLICATION_VALUES, template=APPLICATION)


@needs_program("helm")
def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(session: Callable[..., None]) -> None:
    session(SESSION, chart=CHART, values=VALUES, template=TEMPLATE)
