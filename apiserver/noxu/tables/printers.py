"""Tables of the built-in kinds, as `kubectl get` shows them (upstream's pkg/printers/internalversion).

The columns of a kind are data (`kinds/data/columns.json`); `cells` makes functions of them. Columns of priority 1 are for
`-o wide`. Some kinds have the columns of upstream's kinds without a printer: name and creation time. Definitions of custom
resources have a printer in apiextensions, whose `rows` are null without objects.

An event of events.k8s.io is shown as the event of core/v1 that it is stored as, an autoscaler of v1 as one of v2.
Several storage classes may be marked as default: a list shows only the newest as such, because that one is used.

The definitions of tables describe their columns. The texts are ours, except those of metadata. A column is found by its
kind and name (`Pod/Ready`), or by its name if all kinds with such a column share the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from noxu.kinds import autoscalers, events, facts
from noxu.tables.cells import cell
from noxu.tables.table import CREATED, NAME, Age, Cells, Columns, definition
from noxu.values import Json, Object, nested_field


def description(kind: str, column: str) -> str:
    """The description of a column. Raises KeyError if there is none."""
    return _OF_KINDS.get(f"{kind}/{column}") or _COMMON[column]


_COMMON: Final = {
    "Access Modes": "How nodes may mount the volume.",
    "Active": "How many jobs are running.",
    "Address": "The addresses of the load balancer.",
    "AddressType": "The type of the addresses: IPv4, IPv6 or FQDN.",
    "Age": CREATED,
    "AllowVolumeExpansion": "Whether volumes can grow.",
    "Allowed Disruptions": "How many pods may be disrupted now.",
    "AttachRequired": "Whether volumes are attached to nodes before they are mounted.",
    "Attached": "Whether the volume is attached.",
    "Attacher": "The driver that attaches the volume.",
    "Available": "How many pods are available.",
    "CIDRs": "The ranges of addresses for services.",
    "Capacity": "The size of the volume.",
    "Claim": "The claim that the volume is bound to.",
    "Class": "The class of the ingress.",
    "Cluster-IP": "The address in the cluster.",
    "Completions": "How many pods succeeded, and how many have to.",
    "Condition": "Whether the request is approved, and the certificate issued.",
    "Container-Runtime": "The name and version of the container runtime.",
    "Containers": "The names of the containers in the template.",
    "Controller": "The controller that owns the object.",
    "Count": "How often this has been observed.",
    "Created At": CREATED,
    "Current": "How many pods there are.",
    "Data": "How many entries there are.",
    "Desired": "How many pods there should be.",
    "DistinguisherMethod": "What separates the flows of requests.",
    "Driver": "The driver that published the slice.",
    "DriverName": "The driver of the volumes.",
    "Drivers": "How many drivers are installed on the node.",
    "Duration": "How long the job has been running, or ran.",
    "Effect": "What the taint does to pods that do not tolerate it.",
    "Endpoints": "The first endpoints.",
    "Error": "The error of the last check.",
    "External-IP": "The addresses outside of the cluster.",
    "First Seen": "When this was first observed.",
    "Global-Default": "Whether pods without a class have this one.",
    "Groups": "The groups that have the role.",
    "HandSize": "How many queues are candidates for a flow.",
    "Handler": "The configuration of the container runtime.",
    "Holder": "Who holds the lease.",
    "Hosts": "The first hosts in the rules.",
    "IP": "The address of the pod.",
    "Images": "The images of the containers in the template.",
    "Internal-IP": "The address inside the cluster.",
    "Kernel-Version": "The version of the kernel and the architecture.",
    "Key": "The key of the taint.",
    "Last Schedule": "When a job was last started.",
    "Last Seen": "When this was last observed.",
    "Limit": "The limits that are used, and their quota.",
    "MatchingPrecedence": "The order of schemas: the smallest number that matches counts.",
    "Max Unavailable": "How many pods may be unavailable.",
    "MaxPods": "The largest number of pods.",
    "Min Available": "How many pods must be available.",
    "MinPods": "The smallest number of pods.",
    "MissingPL": "Whether the priority level does not exist.",
    "Modes": "The types of volumes that the driver supports.",
    "Mutations": "How many mutations there are.",
    "Name": NAME,
    "Node": "The node.",
    "Node Selector": "The labels of the nodes that run pods.",
    "NodeName": "The node of the pod.",
    "Nominated Node": "The node that is being cleared for the pod.",
    "NominalConcurrencyShares": "The share of the server's concurrency.",
    "OS-Image": "The operating system.",
    "Object": "What the event is about.",
    "PV": "The volume that is attached.",
    "ParamKind": "The kind of the policy's parameters.",
    "ParamRef": "The parameters that it is bound with.",
    "Parameters": "The object with further parameters.",
    "ParentRef": "The object that uses the address.",
    "Pod Labels": "The labels of the template.",
    "Pod-Selector": "The labels of the pods to which the policy applies.",
    "PodInfoOnMount": "Whether the driver is given information about the pod.",
    "PodName": "The pod that requests the certificate.",
    "PolicyName": "The policy that is bound.",
    "Pool": "The pool to which the slice belongs.",
    "Port(s)": "The ports.",
    "Ports": "The ports.",
    "PreemptionPolicy": "Whether pods of the class evict others.",
    "PriorityLevel": "The priority level of the requests.",
    "Provisioner": "What creates the volumes.",
    "QueueLengthLimit": "How many requests may wait in a queue.",
    "Queues": "How many queues there are.",
    "Readiness Gates": "How many readiness gates are passed, and how many there are.",
    "Ready": "How many pods are ready.",
    "Reason": "Why this happened, in one word.",
    "Reclaim Policy": "What happens to the volume when its claim is deleted.",
    "ReclaimPolicy": "What happens to volumes when their claims are deleted.",
    "Reference": "What is scaled.",
    "Replicas": "How many pods there are.",
    "Request": "The requests and objects that are used, and their quota.",
    "RequestedDuration": "How long the certificate should be valid.",
    "Requestor": "Who made the request.",
    "RequiresRepublish": "Whether volumes are published again from time to time.",
    "Resource": "The resource whose objects are migrated.",
    "Restarts": "How often containers were restarted, and when last.",
    "Revision": "The number of the revision.",
    "Role": "The role that is given.",
    "Roles": "The roles of the node.",
    "Schedule": "When jobs are started, in the format of cron.",
    "Selector": "Which pods belong to it.",
    "Service": "The service of the API.",
    "ServiceAccountName": "The service account of the pod.",
    "ServiceAccounts": "The service accounts that have the role.",
    "SignerName": "Who signs.",
    "Source": "Who reports the event.",
    "StorageCapacity": "Whether the scheduler considers the capacity of the driver.",
    "StorageClass": "The storage class.",
    "Subobject": "Which part of the object the event is about.",
    "Suspend": "Whether no further jobs are started.",
    "Targets": "The current values and the targets of the metrics.",
    "TimeAdded": "When the taint was added.",
    "Timezone": "The time zone of the schedule.",
    "TokenRequests": "The audiences of the tokens that the driver is given.",
    "UnverifiedUserAnnotations": "Annotations that the server did not check.",
    "Up-to-date": "How many pods have the current template.",
    "Users": "The users that have the role.",
    "Validations": "How many validations there are.",
    "Version": "The version of the kubelet.",
    "Volume": "The volume that the claim is bound to.",
    "VolumeAttributesClass": "The class of the volume's attributes.",
    "VolumeBindingMode": "When claims are bound.",
    "VolumeMode": "Whether the volume has a file system.",
    "Webhooks": "How many webhooks there are.",
}

_OF_KINDS: Final = {
    "APIService/Available": "Whether the API is available.",
    "ComponentStatus/Message": "The message of the last check.",
    "ComponentStatus/Status": "Whether the component is healthy.",
    "CustomResourceDefinition/Established": "Established status",
    "CustomResourceDefinition/Group": "API group",
    "CustomResourceDefinition/Kind": "CustomResource kind",
    "CustomResourceDefinition/Scope": "Cluster/Namespaced",
    "CustomResourceDefinition/ShortNames": "Short names",
    "CustomResourceDefinition/Versions": "Served versions",
    "DeviceTaintRule/Value": "The value of the taint.",
    "Event/Message": "What happened, for people.",
    "Event/Type": "Normal or Warning.",
    "IngressClass/Controller": "The controller that handles ingresses of the class.",
    "Job/Status": "Whether the job is running, complete or failed.",
    "Namespace/Status": "Active or Terminating.",
    "Node/Status": "Whether the node is ready, and takes new pods.",
    "PersistentVolume/Reason": "Why the volume is in its state.",
    "PersistentVolume/Status": "The phase of the volume.",
    "PersistentVolumeClaim/Status": "The phase of the claim.",
    "Pod/Ready": "How many containers are ready, and how many there are.",
    "Pod/Status": "The phase of the pod, or why its containers are not running.",
    "PodCertificateRequest/State": "Whether the certificate is issued.",
    "PriorityClass/Value": "The priority of pods of the class.",
    "PriorityLevelConfiguration/Type": "Exempt or Limited.",
    "ResourceClaim/State": "Whether devices are allocated and reserved.",
    "Scale/Available": "How many replicas there are.",
    "Scale/Desired": "How many replicas there should be.",
    "Secret/Type": "What kind of secret it is.",
    "Service/Type": "How the service is reached.",
    "StorageVersionMigration/Status": "Whether the migration is running, failed or succeeded.",
}


_DEFINITION: Final = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_CONVERSIONS: Final = {
    "autoscaling/v1/HorizontalPodAutoscaler": autoscalers.to_v2,
    "events.k8s.io/v1/Event": events.to_core,
}
"""By the name of a kind that is shown as another version of itself."""


@cache
def built_in_columns(api_version: str, kind: str) -> Columns:
    """The table of a built-in kind."""
    data = _data()
    name = f"{api_version}/{kind}"
    shown = data["as"].get(name, name)
    columns = data["kinds"].get(shown) or data["defaultColumns"]
    functions = [cell(column["value"], column["type"]) for column in columns]
    functions += [cell(extra) for extra in data["extraCells"].get(shown, ())]
    adopt = _CONVERSIONS[name] if shown != name else None

    def cells(value: Object) -> list[Json | Age]:
        seen = value if adopt is None else adopt(value)
        return [function(seen) for function in functions]

    group = api_version.rpartition("/")[0] or "core"
    return Columns(
        [_definition(kind, column) for column in columns],
        cells,
        no_rows=None if name == _DEFINITION or columns is data["defaultColumns"] else [],
        go_type=f"*{group.partition('.')[0]}.{kind}",
        conditions=_row_conditions(data["rowConditions"].get(shown)),
        cells_of_list=_default_class_marked(cells) if _marks_default(columns) else None,
    )


@cache
def scale_columns() -> Columns:
    """The table of a built-in kind's /scale."""
    columns = _data()["others"]["autoscaling/v1/Scale"]
    functions = [cell(column["value"], column["type"]) for column in columns]
    return Columns(
        [_definition("Scale", column) for column in columns],
        lambda value: [function(value) for function in functions],
        go_type="*autoscaling.Scale",
    )


@cache
def _data() -> Object:
    columns: Object = facts.read("columns.json")
    return columns


def _definition(kind: str, column: Object) -> Object:
    text = description(kind, column["name"])
    return definition(column["name"], column["type"], text, form=column.get("format", ""), priority=column["priority"])


# -- row conditions ---------------------------------------------------------------------------------------------------

_MESSAGES: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _row_conditions(declarations: list[Object] | None) -> Callable[[Object], list[Json]] | None:
    """The conditions of an object's row: pods that are done have the condition Completed."""
    if declarations is None:
        return None
    rules = [
        (
            rule["when"],
            {name: rule[name] for name in ("type", "status", "reason")} | {"message": _MESSAGES[rule["reason"]]},
        )
        for rule in declarations
    ]

    def conditions(value: Object) -> list[Json]:
        return [
            condition
            for when, condition in rules
            if all(nested_field(value, path) == expected for path, expected in when.items())
        ]

    return conditions


# -- the default storage class ----------------------------------------------------------------------------------------

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _marks_default(columns: list[Object]) -> bool:
    return any(column["value"].get("when", {}).get("defaultStorageClassOfList") for column in columns)


def _default_class_marked(cells: Cells) -> Callable[[Iterable[Object]], Cells]:
    """The cells of a list's rows; the row of the default class is marked."""

    def of_list(items: Iterable[Object]) -> Cells:
        metadata = [item["metadata"] for item in items]
        candidates = [candidate for candidate in metadata if _is_default(candidate)]
        newest = max((candidate.get("creationTimestamp") or "" for candidate in candidates), default="")
        names = (candidate["name"] for candidate in candidates if (candidate.get("creationTimestamp") or "") == newest)
        marked = min(names, default=None)

        def shown(value: Object) -> list[Json | Age]:
            name, *rest = cells(value)
            return [f"{name} (default)" if name == marked else name, *rest]

        return shown

    return of_list


def _is_default(metadata: Object) -> bool:
    annotations = metadata.get("annotations") or {}
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)
