"""Updates of built-in kinds: an object, what its file changes to, and what a server says to `kubectl apply` of that."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from noxu.values import Object
from tests.kinds.objects import merged


def obj(api_version: str, kind: str, /, **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, **fields}


class Row(NamedTuple):
    """`change`: a merge patch of the file; a dict whose keys are numbers changes items of a list. `refused`: why, or ""."""

    name: str
    value: Object
    change: Object
    refused: str = ""

    def documents(self, name: str) -> tuple[Object, Object]:
        """The former document and the new one. NAME in the row is this name, which is also that of the object."""
        value: Object = json.loads(json.dumps(self.value).replace("NAME", name))
        old = merged(value, {"metadata": {"name": value["metadata"].get("name", name)}})
        return old, merged(old, self.change)


CONTAINER: Final = {"name": "c", "image": "i", "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "y"}]}
POD_SPEC: Final = {
    "containers": [{**CONTAINER, "volumeMounts": [{"name": "one", "mountPath": "/d"}]}],
    "volumes": [{"name": "one", "emptyDir": {}}, {"name": "two", "emptyDir": {}}],
}
TEMPLATE: Final = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
JOB_TEMPLATE: Final = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
SELECTOR: Final = {"matchLabels": {"app": "a"}}
POD: Final = obj("v1", "Pod", spec=POD_SPEC)
SERVICE: Final = obj(
    "v1", "Service", spec={"selector": {"a": "b"}, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}
)
NODE_PORT: Final = merged(SERVICE, {"spec": {"type": "NodePort"}})
CLAIM: Final = obj(
    "v1",
    "PersistentVolumeClaim",
    spec={"accessModes": ["ReadWriteOnce"], "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}},
)
VOLUME: Final = obj(
    "v1",
    "PersistentVolume",
    spec={
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/a"},
        "storageClassName": "s",
    },
)
WORKLOAD: Final = {"selector": SELECTOR, "template": TEMPLATE}
DEPLOYMENT: Final = obj("apps/v1", "Deployment", spec={"replicas": 2, **WORKLOAD})
STATEFUL_SET: Final = obj(
    "apps/v1",
    "StatefulSet",
    spec={"serviceName": "s", **WORKLOAD, "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": CLAIM["spec"]}]},
)
JOB: Final = obj("batch/v1", "Job", spec={"backoffLimit": 3, "activeDeadlineSeconds": 100, "template": JOB_TEMPLATE})
ROLE_REF: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
SUBJECTS: Final = [
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "v"},
]
BINDING: Final = obj("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=ROLE_REF, subjects=SUBJECTS)
CLUSTER_BINDING: Final = obj(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", roleRef={**ROLE_REF, "kind": "ClusterRole"}
)
CLASS: Final = obj("storage.k8s.io/v1", "StorageClass", provisioner="p", parameters={"a": "b"}, mountOptions=["x"])
WEBHOOK: Final = {
    "name": "a.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "rules": [
        {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
    ],
}
POLICY_RULES: Final = {
    "resourceRules": [
        {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
    ]
}
POLICY: Final = obj(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    spec={"matchConstraints": POLICY_RULES, "validations": [{"expression": "true"}]},
)
DEVICES: Final = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}
IMMUTABLE: Final = "field is immutable"
POD_UPDATE: Final = "spec: Forbidden: pod updates may not change fields other than"

ROWS: Final = [
    Row("a ConfigMap", obj("v1", "ConfigMap", data={"a": "b", "c": "d"}), {"data": {"a": "x", "c": None}}),
    Row("an immutable ConfigMap", obj("v1", "ConfigMap", data={"a": "b"}, immutable=True), {"data": {"a": "x"}}, "data: Forbidden: field is immutable when `immutable` is set"),
    Row("a ConfigMap that would no longer be immutable", obj("v1", "ConfigMap", immutable=True), {"immutable": None}, "immutable: Forbidden: field is immutable when `immutable` is set"),
    Row("a label of an immutable ConfigMap", obj("v1", "ConfigMap", data={"a": "b"}, immutable=True), {"metadata": {"labels": {"a": "b"}}}),
    Row("the type of a Secret", obj("v1", "Secret", type="a/b"), {"type": "c/d"}, f'type: Invalid value: "c/d": {IMMUTABLE}'),
    Row("the type of a Secret that goes", obj("v1", "Secret", type="a/b"), {"type": None}, IMMUTABLE),
    Row("an immutable Secret", obj("v1", "Secret", data={"a": "YQ=="}, immutable=True), {"data": None}, "data: Forbidden: field is immutable when `immutable` is set"),
    Row("the image of a Pod", POD, {"spec": {"containers": {"0": {"image": "j"}}}}),
    Row("a variable of a Pod that goes", POD, {"spec": {"containers": {"0": {"env": [{"name": "A", "value": "x"}]}}}}, POD_UPDATE),
    Row("a volume of a Pod that goes", POD, {"spec": {"volumes": [{"name": "one", "emptyDir": {}}]}}, POD_UPDATE),
    Row("a volume of a Pod with another source", POD, {"spec": {"volumes": {"0": {"emptyDir": None, "configMap": {"name": "x"}}}}}, POD_UPDATE),
    Row("a label of a Pod", POD, {"metadata": {"labels": {"a": "b"}}}),
    Row("a toleration of a Pod that is added", POD, {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    Row("the restart policy of a Pod", POD, {"spec": {"restartPolicy": "Never"}}, POD_UPDATE),
    Row("a service account of a Pod", POD, {"spec": {"serviceAccountName": "other"}}, POD_UPDATE),
    Row("the port of a Service", SERVICE, {"spec": {"ports": {"0": {"port": 8080}}}}),
    Row("a port of a Service that goes", SERVICE, {"spec": {"ports": [{"name": "a", "port": 80}]}}),
    Row("a Service that becomes headless", SERVICE, {"spec": {"clusterIP": "None"}}, 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'),
    Row("a Service that is headless no more", merged(SERVICE, {"spec": {"clusterIP": "None"}}), {"spec": {"clusterIP": None}}),
    Row("the address of a Service", merged(SERVICE, {"spec": {"clusterIP": "10.0.0.7"}}), {"spec": {"clusterIP": "10.0.0.8"}}, "may not change once set"),  # addresses that are not given to others (the lower band)
    Row("a Service that gets node ports", SERVICE, {"spec": {"type": "NodePort"}}),
    Row("a Service that has node ports no more", NODE_PORT, {"spec": {"type": None}}),
    Row("the port of a NodePort Service", NODE_PORT, {"spec": {"ports": {"0": {"port": 8080}}}}),
    Row("a Service that becomes an external name", SERVICE, {"spec": {"type": "ExternalName", "externalName": "a.example.com"}}),
    Row("a Service with another selector", SERVICE, {"spec": {"selector": {"a": None, "c": "d"}}}),
    Row("the mode of a claim", CLAIM, {"spec": {"accessModes": ["ReadOnlyMany"]}}, "spec: Forbidden: spec is immutable after creation"),
    Row("the class of a claim", CLAIM, {"spec": {"storageClassName": "t"}}, "spec: Forbidden: spec is immutable after creation"),
    Row("the class of a claim that goes", CLAIM, {"spec": {"storageClassName": None}}, "spec: Forbidden: spec is immutable after creation"),
    Row("a label of a claim", CLAIM, {"metadata": {"labels": {"a": "b"}}}),
    Row("the size of a volume", VOLUME, {"spec": {"capacity": {"storage": "2Gi"}}}),
    Row("the path of a volume", VOLUME, {"spec": {"hostPath": {"path": "/b"}}}, "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"),
    Row("the source of a volume", VOLUME, {"spec": {"hostPath": None, "nfs": {"server": "s", "path": "/"}}}, "is immutable after creation"),
    Row("the volume mode of a volume", VOLUME, {"spec": {"volumeMode": "Block"}}, IMMUTABLE),
    Row("a Job with fewer variables", JOB, {"spec": {"template": {"spec": {"containers": {"0": {"env": None}}}}}}, "spec.template: Invalid value"),
    Row("a Job without its deadline", JOB, {"spec": {"activeDeadlineSeconds": None}}),
    Row("the parallelism of a Job", JOB, {"spec": {"parallelism": 2}}),
    Row("the image of a Job", JOB, {"spec": {"template": {"spec": {"containers": {"0": {"image": "j"}}}}}}, IMMUTABLE),
    Row("the completions of a Job", JOB, {"spec": {"completions": 2}}, "spec.completions: Invalid value: 2: field is immutable"),
    Row("the mode of a Job", JOB, {"spec": {"completionMode": "Indexed", "completions": 1}}, IMMUTABLE),
    Row("the template of a CronJob", obj("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}), {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": {"0": {"image": "j", "env": None}}}}}}}}),
    Row("the image of a Deployment", DEPLOYMENT, {"spec": {"template": {"spec": {"containers": {"0": {"image": "j", "env": None}}}}}}),
    Row("a Deployment without its replicas", DEPLOYMENT, {"spec": {"replicas": None}}),
    Row("the selector of a Deployment", DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}, f"{IMMUTABLE}"),
    Row("labels that no selector has", DEPLOYMENT, {"spec": {"template": {"metadata": {"labels": {"app": "b"}}}}}, "`selector` does not match template `labels`"),
    Row("the strategy of a Deployment", merged(DEPLOYMENT, {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}), {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
    Row("the selector of a ReplicaSet", obj("apps/v1", "ReplicaSet", spec=WORKLOAD), {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}, IMMUTABLE),
    Row("the selector of a DaemonSet", obj("apps/v1", "DaemonSet", spec=WORKLOAD), {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}, IMMUTABLE),
    Row("the template of a DaemonSet", obj("apps/v1", "DaemonSet", spec=WORKLOAD), {"spec": {"template": {"spec": {"containers": {"0": {"image": "j"}}}}}}),
    Row("the replicas of a StatefulSet", STATEFUL_SET, {"spec": {"replicas": 3}}),
    Row("the Service of a StatefulSet", STATEFUL_SET, {"spec": {"serviceName": "t"}}, IMMUTABLE),
    Row("a claim template that goes", STATEFUL_SET, {"spec": {"volumeClaimTemplates": None}}, IMMUTABLE),
    Row("the size of a claim template", STATEFUL_SET, {"spec": {"volumeClaimTemplates": {"0": {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}}}}, IMMUTABLE),
    Row("a ReplicationController", obj("v1", "ReplicationController", spec={"selector": {"app": "a"}, "template": TEMPLATE}), {"spec": {"replicas": 2}}),
    Row("the data of a revision", obj("apps/v1", "ControllerRevision", revision=1, data={"a": 1}), {"data": {"a": 2}}, IMMUTABLE),
    Row("the number of a revision", obj("apps/v1", "ControllerRevision", revision=1, data={"a": 1}), {"revision": 2}),
    Row("the taints of a Node", obj("v1", "Node", spec={"podCIDR": "10.1.0.0/24"}), {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
    Row("the network of a Node", obj("v1", "Node", spec={"podCIDR": "10.1.0.0/24"}), {"spec": {"podCIDR": "10.2.0.0/24"}}, "node updates may not change podCIDR"),
    Row("the provider of a Node", obj("v1", "Node", spec={"providerID": "a"}), {"spec": {"providerID": "b"}}, "spec.providerID: Invalid value"),
    Row("a label of a Namespace", obj("v1", "Namespace"), {"metadata": {"labels": {"a": "b"}}}),
    Row("a ServiceAccount", obj("v1", "ServiceAccount", secrets=[{"name": "a"}]), {"secrets": None, "automountServiceAccountToken": False}),
    Row("the scopes of a quota", obj("v1", "ResourceQuota", spec={"hard": {"pods": 1000}, "scopes": ["BestEffort"]}), {"spec": {"scopes": ["NotBestEffort"]}}, IMMUTABLE),
    Row("a limit", obj("v1", "LimitRange", spec={"limits": [{"type": "Pod", "max": {"cpu": "1k"}}]}), {"spec": {"limits": {"0": {"min": {"cpu": "2k"}}}}}, "spec.limits[0].min[cpu]: Invalid value"),
    Row("a level of priority", obj("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}), {"spec": {"limited": {"nominalConcurrencyShares": -1}}}, "spec.limited.nominalConcurrencyShares: Invalid value"),
    Row("Endpoints", obj("v1", "Endpoints", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 1}]}]), {"subsets": {"0": {"addresses": [{"ip": "10.1.1.2"}]}}}),
    Row("the type of an EndpointSlice", obj("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[]), {"addressType": "IPv6"}, IMMUTABLE),
    Row("the role of a binding", BINDING, {"roleRef": {"name": "s"}}, "roleRef: Invalid value"),
    Row("a subject of a binding that goes", BINDING, {"subjects": [SUBJECTS[1]]}),
    Row("the role of a cluster's binding", CLUSTER_BINDING, {"roleRef": {"name": "s"}}, IMMUTABLE),
    Row("the rules of a Role", obj("rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]), {"rules": None}),
    Row("the parameters of a StorageClass", CLASS, {"parameters": {"a": "c"}}, "parameters: Forbidden: updates to parameters are forbidden."),
    Row("the parameters of a StorageClass that go", CLASS, {"parameters": None}, "parameters: Forbidden: updates to parameters are forbidden."),
    Row("the provisioner of a StorageClass", CLASS, {"provisioner": "q"}, "provisioner: Invalid value"),
    Row("the binding mode of a StorageClass", CLASS, {"volumeBindingMode": "WaitForFirstConsumer"}, "volumeBindingMode: Invalid value"),
    Row("the mount options of a StorageClass", CLASS, {"mountOptions": ["y"]}),
    Row("the expansion of a StorageClass", CLASS, {"allowVolumeExpansion": True}),
    Row("the driver of attributes", obj("storage.k8s.io/v1", "VolumeAttributesClass", driverName="d.example.com", parameters={"a": "b"}), {"driverName": "e.example.com"}, "driverName: Forbidden"),
    Row("a CSIDriver", obj("storage.k8s.io/v1", "CSIDriver", spec={"attachRequired": True}), {"spec": {"attachRequired": False}}, IMMUTABLE),
    Row("a CSINode", obj("storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "d", "nodeID": "n"}]}), {"spec": {"drivers": {"0": {"nodeID": "m"}}}}, IMMUTABLE),
    Row("an attachment", obj("storage.k8s.io/v1", "VolumeAttachment", spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}), {"spec": {"nodeName": "m"}}, IMMUTABLE),
    Row("a capacity", obj("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s", capacity="1Gi"), {"storageClassName": "t"}, IMMUTABLE),
    Row("the controller of an IngressClass", obj("networking.k8s.io/v1", "IngressClass", spec={"controller": "example.com/a"}), {"spec": {"controller": "example.com/b"}}, IMMUTABLE),
    Row("the rules of an Ingress", obj("networking.k8s.io/v1", "Ingress", spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}), {"spec": {"defaultBackend": {"service": {"port": {"number": None, "name": "http"}}}}}),
    Row("a NetworkPolicy", obj("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{}]}), {"spec": {"podSelector": {"matchLabels": {"a": None}}, "ingress": None}}),
    Row("the range of a ServiceCIDR", obj("networking.k8s.io/v1", "ServiceCIDR", spec={"cidrs": ["10.200.0.0/24"]}), {"spec": {"cidrs": ["10.201.0.0/24"]}}, "spec.cidrs[0]: Invalid value"),
    Row("the value of a PriorityClass", obj("scheduling.k8s.io/v1", "PriorityClass", value=1), {"value": 2}, "value: Forbidden: may not be changed in an update."),
    Row("the policy of a PriorityClass", obj("scheduling.k8s.io/v1", "PriorityClass", value=1), {"preemptionPolicy": "Never"}, IMMUTABLE),
    Row("the description of a PriorityClass", obj("scheduling.k8s.io/v1", "PriorityClass", value=1, description="a"), {"description": None}),
    Row("the handler of a RuntimeClass", obj("node.k8s.io/v1", "RuntimeClass", handler="a"), {"handler": "b"}, IMMUTABLE),
    Row("a Lease", obj("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "a", "leaseTransitions": 3}), {"spec": {"holderIdentity": "b", "leaseTransitions": 2}}),
    Row("the target of an autoscaler", obj("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}), {"spec": {"scaleTargetRef": {"name": "b"}, "metrics": None}}),
    Row("a disruption budget", obj("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": SELECTOR}), {"spec": {"minAvailable": None, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "b"}}}}),
    Row("the devices of a claim", obj("resource.k8s.io/v1", "ResourceClaim", spec=DEVICES), {"spec": {"devices": {"requests": {"0": {"name": "b"}}}}}, IMMUTABLE),
    Row("the devices of a template", obj("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": DEVICES}), {"spec": {"spec": {"devices": {"requests": {"0": {"name": "b"}}}}}}, IMMUTABLE),
    Row("a DeviceClass", obj("resource.k8s.io/v1", "DeviceClass", spec={"selectors": [{"cel": {"expression": "true"}}]}), {"spec": {"selectors": None}}),
    Row("the driver of a ResourceSlice", obj("resource.k8s.io/v1", "ResourceSlice", spec={"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}), {"spec": {"driver": "e.example.com"}}, IMMUTABLE),
    Row("the webhooks of a configuration", obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=[WEBHOOK]), {"webhooks": None}),
    Row("a webhook without a needed field", obj("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", webhooks=[WEBHOOK]), {"webhooks": {"0": {"sideEffects": "Some"}}}, "webhooks[0].sideEffects"),
    Row("the expressions of a policy", POLICY, {"spec": {"validations": [{"expression": "object.a == 1"}]}}),
    Row("an expression that does not compile", POLICY, {"spec": {"validations": [{"expression": "a +"}]}}, "spec.validations[0].expression: Invalid value"),
    Row("the policy of a policy's binding", obj("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", spec={"policyName": "p", "validationActions": ["Deny"]}), {"spec": {"policyName": "q"}}),
    Row("a FlowSchema", obj("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", spec={"priorityLevelConfiguration": {"name": "catch-all"}, "matchingPrecedence": 1000}), {"spec": {"matchingPrecedence": -1}}, "spec.matchingPrecedence: Invalid value"),
    Row("an APIService", obj("apiregistration.k8s.io/v1", "APIService", spec={"group": "NAME.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, "service": {"name": "s", "namespace": "default"}, "insecureSkipTLSVerify": True}) | {"metadata": {"name": "v1.NAME.example.com"}}, {"spec": {"versionPriority": 2}}),
    Row("a PodTemplate", obj("v1", "PodTemplate", template=TEMPLATE), {"template": {"spec": {"containers": {"0": {"env": None}}}}}),
    Row("an Event", obj("v1", "Event", involvedObject={"kind": "Pod", "name": "a", "namespace": "default"}, reason="a", type="Normal"), {"reason": "b"}),
    Row("a finalizer that goes", obj("v1", "ConfigMap") | {"metadata": {"finalizers": ["a.example.com/b"]}}, {"metadata": {"finalizers": None}}),
]  # fmt: skip
