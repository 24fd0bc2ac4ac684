"""Specs of pods: a change of a minimal one, and upstream's messages about it."""

from __future__ import annotations

import pytest

from noxu.kinds.kind import Context
from noxu.values import Json
from tests.kinds.objects import create_messages, created, kind_of, merged
from tests.rows import rows
from tests.timing import cpu_seconds

POD = kind_of("v1", "Pod")
MINIMAL = {"containers": [{"name": "c", "image": "nginx"}]}
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def container(**fields: Json) -> Json:
    return {"containers": {"0": fields}}


def port(**fields: Json) -> Json:
    return container(ports=[{"containerPort": 80, **fields}])


def variable(source: Json, **more: Json) -> Json:
    return container(env=[{"name": "A", "valueFrom": source, **more}])


def requests(limits: Json, requests: Json) -> Json:
    return container(resources={"limits": limits, "requests": requests})


def context(**fields: Json) -> Json:
    return container(securityContext=fields)


CONTAINERS: list[tuple[str, Json, list[str]]] = [
    ("nothing wrong", {}, []),
    ("no containers", {"containers": []}, ["spec.containers: Required value"]),
    ("no name", container(name=None), ["spec.containers[0].name: Required value"]),
    ("no image", container(image=None), ["spec.containers[0].image: Required value"]),
    ("a name that is no label", container(name="A"), [f'spec.containers[0].name: Invalid value: "A": {LABEL}']),
    ("two of one name", {"containers": [{"name": "c", "image": "a"}, {"name": "c", "image": "b"}]}, ['spec.containers[1].name: Duplicate value: "c"']),
    ("an init container of that name", {"initContainers": [{"name": "c", "image": "a"}]}, ['spec.initContainers[0].name: Duplicate value: "c"']),
    ("an image in spaces", container(image=" x"), ['spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace']),
    ("a message policy that is none", container(terminationMessagePolicy="x"), ['spec.containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError"']),
    ("a pull policy that is none", container(imagePullPolicy="x"), ['spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"']),
    ("ephemeral containers in a new pod", {"ephemeralContainers": [{"name": "d", "image": "a"}]}, ["spec.ephemeralContainers: Forbidden: cannot be set on create"]),
    ("a probe of an init container", {"initContainers": [{"name": "i", "image": "a", "readinessProbe": {"exec": {"command": ["a"]}}}]}, ["spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"]),
    ("a probe of a sidecar", {"initContainers": [{"name": "i", "image": "a", "restartPolicy": "Always", "readinessProbe": {"exec": {"command": ["a"]}}}]}, []),
    ("rules without a restart policy", container(restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]), ["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"]),
    ("a rule without operator", container(restartPolicy="Never", restartPolicyRules=[{"action": "Restart", "exitCodes": {"values": [1]}}]), ['spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "": supported values: "In", "NotIn"']),
]  # fmt: skip
PORTS: list[tuple[str, Json, list[str]]] = [
    ("no number", port(containerPort=0), ["spec.containers[0].ports[0].containerPort: Required value"]),
    ("too large a number", port(containerPort=70000), ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
    ("too large a host port", port(hostPort=70000), ["spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
    ("a long name", port(name="a" * 16), [f'spec.containers[0].ports[0].name: Invalid value: "{"a" * 16}": must be no more than 15 characters']),
    ("a name without letters", port(name="1--"), [
        'spec.containers[0].ports[0].name: Invalid value: "1--": must contain at least one letter (a-z)',
        'spec.containers[0].ports[0].name: Invalid value: "1--": must not contain consecutive hyphens',
        'spec.containers[0].ports[0].name: Invalid value: "1--": must not begin or end with a hyphen',
    ]),
    ("two of one name", container(ports=[{"name": "http", "containerPort": 80}, {"name": "http", "containerPort": 81}]), ['spec.containers[0].ports[1].name: Duplicate value: "http"']),
    ("a protocol that is none", port(protocol="x"), ['spec.containers[0].ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"']),
    ("a port of the host twice", container(ports=[{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 8080}]), ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8080"']),
    ("another port of the host in its network", {**port(hostPort=81), "hostNetwork": True}, ["spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"]),
]  # fmt: skip
VARIABLES: list[tuple[str, Json, list[str]]] = [
    ("no name", container(env=[{"value": "a"}]), ["spec.containers[0].env[0].name: Required value"]),
    ("a name with a dot and a digit", container(env=[{"name": "1.a", "value": "a"}]), []),
    ("a name with an equals sign", container(env=[{"name": "a=b"}]), ["spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='"]),
    ("a value and a source", variable({"fieldRef": {"fieldPath": "metadata.name"}}, value="x"), ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty']),
    ("no source", variable({}), ['spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`']),
    ("two sources", variable({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}}), ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time']),
    ("no key of a secret", variable({"secretKeyRef": {"name": "s"}}), ["spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"]),
    ("no field", variable({"fieldRef": {}}), ["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value"]),
    ("a label", variable({"fieldRef": {"fieldPath": "metadata.labels['app']"}}), []),
    ("a label that is none", variable({"fieldRef": {"fieldPath": "metadata.labels['-']"}}), [f'spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "-": {KEY_NAME}']),
    ("a field that cannot be shown", variable({"fieldRef": {"fieldPath": "spec.containers"}}), ['spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers": error converting fieldPath: field label not supported: spec.containers']),
    ("a field of files", variable({"fieldRef": {"fieldPath": "metadata.labels"}}), ['spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"']),
    ("a resource that is none", variable({"resourceFieldRef": {"resource": "limits.x"}}), ['spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.x": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"']),
    ("a divisor that is none", variable({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}), ["spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"]),
    ("all keys of nothing", container(envFrom=[{"prefix": "a"}]), ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`']),
    ("all keys of a secret without name", container(envFrom=[{"secretRef": {}}]), ["spec.containers[0].envFrom[0].secretRef.name: Required value"]),
]  # fmt: skip
RESOURCES: list[tuple[str, Json, list[str]]] = [
    ("a request above its limit", requests({"cpu": "1"}, {"cpu": "2"}), ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1']),
    ("the same in other words", requests({"cpu": "1"}, {"cpu": "1000m"}), []),
    ("a negative limit", requests({"cpu": "-1"}, {"cpu": "-1"}), [
        'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ]),
    ("a name that is none", requests({"foo": "1"}, {}), [
        f'spec.containers[0].resources.{kind}[foo]: Invalid value: "foo": {text}'
        for kind in ("limits", "requests")
        for text in ("must be a standard resource type or fully qualified", "must be a standard resource for containers")
    ]),
    ("a resource of others", requests({"example.com/gpu": "1"}, {}), []),
    ("half a resource of others", requests({"example.com/gpu": "500m"}, {}), [
        f'spec.containers[0].resources.{kind}[example.com/gpu]: Invalid value: "500m": must be an integer' for kind in ("limits", "requests")
    ]),
    ("fewer requested than limited of others", requests({"example.com/gpu": "2"}, {"example.com/gpu": "1"}), ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2']),
    ("others without limit", requests({}, {"example.com/gpu": "1"}), ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"]),
    ("huge pages alone", requests({"hugepages-2Mi": "4Mi"}, {}), ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"]),
    ("half a huge page", requests({"hugepages-2Mi": "1Mi", "cpu": "1"}, {}), [
        f'spec.containers[0].resources.{kind}[hugepages-2Mi]: Invalid value: "1Mi": 1Mi is not positive integer multiple of hugepages-2Mi' for kind in ("limits", "requests")
    ]),
    ("a claim of no pod", container(resources={"claims": [{"name": "x"}]}), ['spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty']),
    ("a pod with less than its containers", {**requests({}, {"cpu": "2"}), "resources": {"requests": {"cpu": "1"}}}, ['spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2']),
]  # fmt: skip
PROBES: list[tuple[str, Json, list[str]]] = [
    ("no handler", container(livenessProbe={}), ["spec.containers[0].livenessProbe: Required value: must specify a handler type"]),
    ("two handlers", container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}), ["spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"]),
    ("two successes of liveness", container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}), ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"]),
    ("two successes of readiness", container(readinessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}), []),
    ("a negative delay", container(readinessProbe={"tcpSocket": {"port": 1}, "initialDelaySeconds": -1}), ["spec.containers[0].readinessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0"]),
    ("a grace period of readiness", container(readinessProbe={"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}), ["spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"]),
    ("no port", container(startupProbe={"httpGet": {}}), ["spec.containers[0].startupProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
    ("a scheme that is none", container(startupProbe={"httpGet": {"port": "web", "scheme": "x"}}), ['spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "x": supported values: "HTTP", "HTTPS"']),
    ("a header that is none", container(startupProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": "a b"}]}}), ["spec.containers[0].startupProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"]),
    ("no command", container(lifecycle={"preStop": {"exec": {}}}), ["spec.containers[0].lifecycle.preStop.exec.command: Required value"]),
    ("a long sleep", container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), ["spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"]),
]  # fmt: skip
SECURITY: list[tuple[str, Json, list[str]]] = [
    ("a negative user", context(runAsUser=-1), ["spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
    ("privileged without escalation", context(privileged=True, allowPrivilegeEscalation=False), ['spec.containers[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true']),
    ("a local profile without name", context(seccompProfile={"type": "Localhost"}), ["spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"]),
    ("a profile that is none", context(appArmorProfile={"type": "x"}), ['spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: "x": supported values: "Localhost", "RuntimeDefault", "Unconfined"']),
    ("all of /proc", context(procMount="Unmasked"), ['spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`']),
    ("a negative group of the pod", {"securityContext": {"fsGroup": -1}}, ["spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
    ("a sysctl twice", {"securityContext": {"sysctls": [{"name": "a.b", "value": "1"}, {"name": "a.b", "value": "1"}]}}, ['spec.securityContext.sysctls[1].name: Duplicate value: "a.b"']),
    ("a sysctl of the network of the host", {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.a", "value": "1"}]}}, ["spec.securityContext.sysctls[0].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true"]),
    ("own users, processes of the host", {"hostUsers": False, "hostPID": True}, ["spec.HostPID: Forbidden: when `pod.Spec.HostUsers` is false"]),
    ("processes of the pod and the host", {"shareProcessNamespace": True, "hostPID": True}, ["spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"]),
    ("a system that is none", {"os": {"name": "x"}}, ['spec.os: Unsupported value: "x": supported values: "linux", "windows"']),
    ("capabilities on Windows", {"os": {"name": "windows"}, **context(capabilities={})}, ["spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod"]),
]  # fmt: skip
POLICIES: list[tuple[str, Json, list[str]]] = [
    ("a restart policy that is none", {"restartPolicy": "x"}, ['spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"']),
    ("a DNS policy that is none", {"dnsPolicy": "x"}, ['spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"']),
    ("no DNS", {"dnsPolicy": "None"}, ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
    ("a server that is none", {"dnsConfig": {"nameservers": ["x"]}}, ['spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']),
    ("four servers", {"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}}, ['spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","1.1.1.1","1.1.1.1","1.1.1.1"]: must not have more than 3 nameservers']),
    ("a search domain with an underscore", {"dnsConfig": {"searches": ["_tcp.example.com.", "."]}}, []),
    ("a deadline of zero", {"activeDeadlineSeconds": 0}, ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]),
    ("a host name with a dot", {"hostname": "a.b"}, ['spec.hostname: Invalid value: "a.b": must not contain dots']),
    ("a preemption policy that is none", {"preemptionPolicy": "x"}, ['spec.preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"']),
    ("an alias of no address", {"hostAliases": [{"ip": "010.0.0.1"}]}, ['spec.hostAliases[0].ip: Invalid value: "010.0.0.1": must not have leading 0s']),
    ("a gate twice", {"schedulingGates": [{"name": "a"}, {"name": "a"}]}, ['spec.schedulingGates[1]: Duplicate value: "a"']),
    ("gates of a pod on a node", {"schedulingGates": [{"name": "a"}], "nodeName": "n"}, ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]),
    ("a claim of two sources", {"resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]}, ['spec.resourceClaims[0]: Invalid value: {"name":"a","resourceClaimName":"b","resourceClaimTemplateName":"c"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified']),
]  # fmt: skip
TERM = {"topologyKey": "t", "labelSelector": {}}


def node_term(requirement: Json) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def spread(**fields: Json) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, **fields}
    return {"topologySpreadConstraints": [constraint]}


REQUIRED_NODE = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
PREFERRED_POD = "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution"
PLACEMENT: list[tuple[str, Json, list[str]]] = [
    ("no terms for nodes", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}, [f"{REQUIRED_NODE}: Required value: must have at least one node selector term"]),
    ("no values", node_term({"key": "a", "operator": "In"}), [f"{REQUIRED_NODE}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("two values of Gt", node_term({"key": "a", "operator": "Gt", "values": ["1", "2"]}), [f"{REQUIRED_NODE}[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"]),
    ("an operator that is none", node_term({"key": "a", "operator": "x"}), [f'{REQUIRED_NODE}[0].matchExpressions[0].operator: Invalid value: "x": not a valid selector operator']),
    ("no weight", {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": TERM}]}}}, [f"{PREFERRED_POD}[0].weight: Invalid value: 0: must be in the range 1-100"]),
    ("keys without selector", {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "t", "matchLabelKeys": ["a"]}}]}}}, [f"{PREFERRED_POD}[0].podAffinityTerm.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    ("a toleration of no key", {"tolerations": [{"operator": "Equal"}]}, ['spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"']),
    ("a toleration for a time", {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]}, ["spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"]),
    ("a toleration of a value that exists", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, ["spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"]),
    ("an effect that is none", {"tolerations": [{"key": "a", "effect": "x"}]}, ['spec.tolerations[0].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"']),
    ("no skew", spread(maxSkew=0), ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"]),
    ("no topology", spread(topologyKey=""), ["spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"]),
    ("an action that is none", spread(whenUnsatisfiable="x"), ['spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported values: "DoNotSchedule", "ScheduleAnyway"']),
    ("domains without force", spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway"), ["spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"]),
    ("two constraints alike", {"topologySpreadConstraints": [*spread()["topologySpreadConstraints"], *spread()["topologySpreadConstraints"]]}, ['spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{t, DoNotSchedule}"']),
]  # fmt: skip


def volume(**source: Json) -> Json:
    return {"volumes": [{"name": "v", **source}]}


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MOUNT = {"name": "v", "mountPath": "/x"}
VOLUMES: list[tuple[str, Json, list[str]]] = [
    ("no source", volume(), []),
    ("two of one name", {"volumes": [{"name": "v"}, {"name": "v"}]}, ['spec.volumes[1].name: Duplicate value: "v"']),
    ("no name", {"volumes": [{}]}, ["spec.volumes[0].name: Required value"]),
    ("two sources", volume(emptyDir={}, hostPath={"path": "/x"}), ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"]),
    ("a way up", volume(hostPath={"path": "/x/../y"}), ["spec.volumes[0].hostPath.path: Invalid value: \"/x/../y\": must not contain '..'"]),
    ("a type that is none", volume(hostPath={"path": "/x", "type": "x"}), ['spec.volumes[0].hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"']),
    ("no name of a secret", volume(secret={}), ["spec.volumes[0].secret.secretName: Required value"]),
    ("no name of a ConfigMap", volume(configMap={}), ["spec.volumes[0].configMap.name: Required value"]),
    ("a mode that is none", volume(secret={"secretName": "s", "defaultMode": 512}), ["spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"]),
    ("an absolute file", volume(secret={"secretName": "s", "items": [{"key": "a", "path": "/a"}]}), ['spec.volumes[0].secret.items[0].path: Invalid value: "/a": must be a relative path']),
    ("no claim", volume(persistentVolumeClaim={}), ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"]),
    ("no disk", volume(gcePersistentDisk={}), ["spec.volumes[0].persistentDisk.pdName: Required value"]),
    ("a driver that is none", volume(csi={"driver": "-"}), ["spec.volumes[0].csi.driver: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
    ("a short token", {"serviceAccountName": "a", **volume(projected={"sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 599}}]})}, ["spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"]),
    ("a token of no account", volume(projected={"sources": [{"serviceAccountToken": {"path": "a"}}]}), ["spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"]),
    ("two sources in one", volume(projected={"sources": [{"secret": {"name": "a"}, "configMap": {"name": "b"}}]}), ["spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"]),
    ("one file of two sources", volume(projected={"sources": [{kind: {"name": "a", "items": [{"key": "k", "path": "p"}]}} for kind in ("secret", "configMap")]}), ['spec.volumes[0].projected: Invalid value: "a": conflicting duplicate paths']),
    ("a file of no field", volume(downwardAPI={"items": [{"path": "p"}]}), ["spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"]),
    ("an image without reference", volume(image={}), ["spec.volumes[0].image.reference: Required value"]),
    ("a claim with a name", volume(ephemeral={"volumeClaimTemplate": {"metadata": {"name": "a"}, "spec": CLAIM}}), ["spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"]),
    ("a claim without modes and size", volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}), ["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required", "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"]),
    ("a claim that is made for it", {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}, {"name": "w", "persistentVolumeClaim": {"claimName": "x-v"}}]}, ['spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "x-v": must not reference a PVC that gets created for an ephemeral volume']),
    ("a mount of nothing", container(volumeMounts=[MOUNT]), ['spec.containers[0].volumeMounts[0].name: Not found: "v"']),
    ("a mount at no path", {**volume(), **container(volumeMounts=[{"name": "v"}])}, ["spec.containers[0].volumeMounts[0].mountPath: Required value"]),
    ("two mounts at a path", {**volume(), **container(volumeMounts=[MOUNT, MOUNT])}, ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique']),
    ("an absolute part", {**volume(), **container(volumeMounts=[{**MOUNT, "subPath": "/a"}])}, ['spec.containers[0].volumeMounts.subPath: Invalid value: "/a": must be a relative path']),
    ("mounts for the host", {**volume(), **container(volumeMounts=[{**MOUNT, "mountPropagation": "Bidirectional"}])}, ["spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"]),
    ("a device of files", {**volume(), **container(volumeDevices=[{"name": "v", "devicePath": "/d"}])}, ['spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode']),
]  # fmt: skip
ROWS = {
    "containers": CONTAINERS,
    "ports": PORTS,
    "variables": VARIABLES,
    "resources": RESOURCES,
    "probes": PROBES,
    "security": SECURITY,
    "policies": POLICIES,
    "placement": PLACEMENT,
    "volumes": VOLUMES,
}


@rows(
    ("change", "messages"),
    [pytest.param(*row[1:], id=f"{group}: {row[0]}") for group, rows in ROWS.items() for row in rows],
)
def test_specs_are_validated(change: Json, messages: list[str]) -> None:
    assert create_messages(POD, {"metadata": {"name": "x"}, "spec": merged(MINIMAL, change)}) == messages


def test_templates_report_paths_below_them() -> None:
    given = {"metadata": {"labels": {"a": "-"}, "annotations": {"/": "b"}}, "spec": {**MINIMAL, "volumes": [{}]}}
    template = kind_of("v1", "PodTemplate")
    messages = create_messages(template, {"metadata": {"name": "x"}, "template": given})
    assert list(dict.fromkeys(message.split(": ")[0] for message in messages)) == [
        "template.labels", "template.annotations", "template.spec.volumes[0].name"
    ]  # fmt: skip


ANNOTATIONS: list[tuple[str, dict[str, str], list[str]]] = [
    ("a cost", {"controller.kubernetes.io/pod-deletion-cost": "-5"}, []),
    ("a cost that is none", {"controller.kubernetes.io/pod-deletion-cost": "+5"}, ['metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+5": must be a 32bit integer']),
    ("a mirror of no node", {"kubernetes.io/config.mirror": "a"}, ['metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "a": must set spec.nodeName if mirror pod annotation is set']),
    ("a profile of no container", {"container.apparmor.security.beta.kubernetes.io/d": "x"}, [
        'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found',
        'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "x": invalid AppArmor profile name: "x"',
    ]),
    ("a seccomp profile that is none", {"seccomp.security.alpha.kubernetes.io/pod": "x"}, ['metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile']),
]  # fmt: skip


@pytest.mark.parametrize(("given", "messages"), [row[1:] for row in ANNOTATIONS], ids=[row[0] for row in ANNOTATIONS])
def test_annotations_are_validated(given: dict[str, str], messages: list[str]) -> None:
    assert create_messages(POD, {"metadata": {"name": "x", "annotations": given}, "spec": MINIMAL}) == messages


def test_finalizers_are_standard_or_qualified() -> None:
    pod = {"metadata": {"name": "x", "finalizers": ["example.com/a", "foregroundDeletion", "b"]}, "spec": MINIMAL}
    assert create_messages(POD, pod) == [
        'metadata.finalizers[2]: Invalid value: "b": name is neither a standard finalizer name nor is it fully qualified'
    ]


MANY = 3_000
LARGE: list[tuple[str, Json]] = [
    ("tolerations", {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(MANY)]}),
    ("constraints", {"topologySpreadConstraints": [spread(topologyKey=f"t{n}")["topologySpreadConstraints"][0] for n in range(MANY)]}),
    ("sysctls", {"securityContext": {"sysctls": [{"name": f"a{n}", "value": "1"} for n in range(MANY)]}}),
    ("ports", container(ports=[{"containerPort": 80, "hostPort": n + 1} for n in range(MANY)])),
    ("claims", {"resourceClaims": [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(MANY)], **container(resources={"claims": [{"name": f"c{n}"} for n in range(MANY)]})}),
    ("volumes", {"volumes": [{"name": f"v{n}"} for n in range(MANY)], **container(volumeMounts=[{"name": f"v{n}", "mountPath": f"/{n}"} for n in range(MANY)])}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", [row[1] for row in LARGE], ids=[row[0] for row in LARGE])
def test_the_time_grows_with_the_size(change: Json) -> None:
    """Comparing all pairs of 3 000 items takes seconds, walking them some hundredths of a second."""
    new = created(POD, {"metadata": {"name": "x"}, "spec": merged(MINIMAL, change)})

    def work() -> None:
        assert (
            len(POD.validate(new, None, Context()) + POD.validate(new, new, Context()) + POD.warnings(new, None)) < MANY
        )

    assert cpu_seconds(work) < 1
