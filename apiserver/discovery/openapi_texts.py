"""The descriptions in the published OpenAPI documents, in our own words, as `kubectl explain` shows them.

Custom resources have their own descriptions. A definition or field without a text here is published without one.
"""

from __future__ import annotations

from typing import Final

TYPE_META: Final = {
    "apiVersion": "The group and version of this object's schema, as GROUP/VERSION.",
    "kind": "The kind of this object, in CamelCase. It cannot be changed.",
}
OBJECT_METADATA: Final = "The object's metadata: name, labels, annotations and more."
LIST_METADATA: Final = "The metadata of the list."

EMBEDDED_TYPE_META: Final = {
    "apiVersion": "The group and version of the embedded object, as GROUP/VERSION.",
    "kind": "The kind of the embedded object, in CamelCase.",
}

RESPONSES: Final = {
    "200": "OK",
    "201": "Created",
    "202": "Accepted",
    "401": "Unauthorized",
}

_CONTENTS: Final = {
    "metadata": OBJECT_METADATA,
    "spec": "The desired state.",
    "status": "The observed state.",
}

KINDS: Final = {
    # meta/v1
    "DeleteOptions": "Options for deleting an object.",
    "FieldsV1": "A set of fields as a tree: `f:NAME` is a field, `k:KEYS` and `v:VALUE` are items of a list, `.` is the "
    "node itself.",
    "LabelSelector": "Selects objects by their labels. All conditions must hold; an empty selector selects all "
    "objects.",
    "LabelSelectorRequirement": "One condition on one label.",
    "ListMeta": "The metadata of a list.",
    "ManagedFieldsEntry": "The fields that one manager set in one way.",
    "MicroTime": "A time with microseconds in the format of RFC 3339.",
    "ObjectMeta": "The metadata of every stored object: its name, and data for the server and its clients.",
    "OwnerReference": "An owner: this object is deleted when all of its owners are gone. Owners are cluster-scoped, or "
    "in the same namespace.",
    "Patch": "A change to an object. Its format depends on the type of the patch.",
    "Preconditions": "Conditions without which a request fails.",
    "ShardInfo": "The part of a collection that a list contains.",
    "Status": "The answer to a request that does not return an object.",
    "StatusCause": "One reason of a failure.",
    "StatusDetails": "Details of a Status, depending on its reason.",
    "Time": "A time in the format of RFC 3339.",
    # autoscaling
    "Scale": "The size of another object: its desired and actual replicas.",
    "ScaleSpec": "The desired size.",
    "ScaleStatus": "The actual size.",
    # core and events
    "ConfigMap": "Configuration data: strings and files by name.",
    "Event": "A report of something that happened. Events are deleted after an hour.",
    "EventSeries": "A series of events that continues.",
    "EventSource": "The component that reported an event.",
    "LocalObjectReference": "The name of an object in the same namespace.",
    "Namespace": "A scope for names. Deleting it deletes everything in it.",
    "NamespaceCondition": "The progress of a namespace's deletion.",
    "NamespaceSpec": "The desired state of a namespace.",
    "NamespaceStatus": "The observed state of a namespace.",
    "ObjectReference": "A reference to another object or a part of it.",
    "Secret": "Confidential data: bytes by name.",
    "Service": "A network service. This server only stores it: there is no network.",
    "ServiceAccount": "An identity for processes in a namespace.",
    "ServicePort": "One port of a service.",
    "ServiceSpec": "The desired state of a service.",
    "ServiceStatus": "The observed state of a service.",
    "LoadBalancerIngress": "An address of a load balancer.",
    "LoadBalancerStatus": "The addresses of a load balancer.",
    "PortStatus": "The state of a port of a load balancer.",
    "SessionAffinityConfig": "The configuration of session affinity.",
    "ClientIPConfig": "The configuration of session affinity by client address.",
    # coordination, authentication, authorization
    "Lease": "A lock that expires unless its holder renews it.",
    "LeaseSpec": "The holder of a lease, and its times.",
    "LocalSubjectAccessReview": "Checks whether a user may perform an action in one namespace.",
    "SelfSubjectAccessReview": "Checks whether the caller may perform an action.",
    "SelfSubjectReview": "Returns the caller's user information.",
    "SelfSubjectRulesReview": "Returns the actions that the caller may perform in a namespace.",
    "SubjectAccessReview": "Checks whether a user may perform an action.",
    "TokenRequest": "Requests a token for a service account.",
    "TokenReview": "Checks a token, and returns its user.",
    # admissionregistration
    "MutatingAdmissionPolicy": "CEL expressions that change objects in write requests.",
    "MutatingAdmissionPolicyBinding": "Applies a mutating admission policy to resources, with parameters.",
    "MutatingWebhookConfiguration": "Webhooks that may change or refuse objects in write requests.",
    "ValidatingAdmissionPolicy": "CEL expressions that objects in write requests must satisfy.",
    "ValidatingAdmissionPolicyBinding": "Applies a validating admission policy to resources, with parameters.",
    "ValidatingWebhookConfiguration": "Webhooks that may refuse objects in write requests.",
    # apiextensions
    "CustomResourceColumnDefinition": "One column of the table that `kubectl get` prints.",
    "CustomResourceConversion": "The conversion of objects between versions.",
    "CustomResourceDefinition": "The definition of a custom resource: its names, scope, versions and schemas.",
    "CustomResourceDefinitionCondition": "A condition of a definition.",
    "CustomResourceDefinitionNames": "The names of a resource.",
    "CustomResourceDefinitionSpec": "The desired state of a custom resource definition.",
    "CustomResourceDefinitionStatus": "The observed state of a custom resource definition.",
    "CustomResourceDefinitionVersion": "One version of a resource.",
    "CustomResourceSubresourceScale": "The paths of the values in /scale.",
    "CustomResourceSubresourceStatus": "Enables /status. It has no settings.",
    "CustomResourceSubresources": "The subresources of a version.",
    "CustomResourceValidation": "The schema of a version.",
    "JSON": "Any JSON value.",
    "JSONSchemaProps": "An OpenAPI v3 schema with the Kubernetes extensions. It must be structural.",
    "JSONSchemaPropsOrArray": "A schema, or a list of schemas.",
    "JSONSchemaPropsOrBool": "A schema, or a boolean.",
    "JSONSchemaPropsOrStringArray": "A schema, or a list of names.",
    "SelectableField": "A field that field selectors may use.",
    "ServiceReference": "A service in the cluster.",
    "ValidationRule": "A CEL expression that a value must satisfy.",
    "WebhookClientConfig": "The address of a webhook: a URL or a service.",
    "WebhookConversion": "The conversion webhook.",
    # other packages
    "Info": "The version of the server.",
    "IntOrString": "An integer or a string.",
    "RawExtension": "Any object.",
}
"""By type."""

FIELDS: Final[dict[str, dict[str, str]]] = {
    "DeleteOptions": {
        "dryRun": "`All`: process the request without deleting the object.",
        "gracePeriodSeconds": "The seconds until the object is deleted, for kinds that support it. Not negative.",
        "ignoreStoreReadErrorWithClusterBreakingPotential": "Delete the object even if it cannot be read from "
        "storage. Dangerous: finalizers and preconditions are ignored.",
        "orphanDependents": "Deprecated, use propagationPolicy. Whether dependent objects are kept.",
        "preconditions": "Conditions without which the object is not deleted (409).",
        "propagationPolicy": "What happens to dependent objects. Orphan: they are kept. Background: they are "
        "deleted afterwards. Foreground: they are deleted first.",
    },
    "Preconditions": {
        "resourceVersion": "The required resourceVersion.",
        "uid": "The required uid.",
    },
    "ListMeta": {
        "continue": "Set if there are more items: an opaque token for the parameter `continue`.",
        "remainingItemCount": "The number of remaining items, if the server knows it.",
        "resourceVersion": "The version of the collection in the list. A watch may start from it.",
        "selfLink": "Deprecated. Never set.",
        "shardInfo": "The part of the collection in the list, if it is not the whole.",
    },
    "ShardInfo": {"selector": "The selector of the part, as in the request."},
    "ManagedFieldsEntry": {
        "apiVersion": "The version of the object to which the fields belong.",
        "fieldsType": "The format of the field set: FieldsV1.",
        "fieldsV1": "The fields.",
        "manager": "The name of the manager that set the fields.",
        "operation": "The operation that set the fields: Apply or Update.",
        "subresource": "The subresource through which the fields were set, if any.",
        "time": "The time of the last change to the set.",
    },
    "ObjectMeta": {
        "annotations": "Data of tools and libraries by name. Selectors cannot use them.",
        "creationTimestamp": "The time of creation. Set by the server.",
        "deletionGracePeriodSeconds": "The seconds between the request for deletion and the deletion. Set by the "
        "server.",
        "deletionTimestamp": "The time of deletion, set by the server on request. The object is deleted when it has no finalizers.",
        "finalizers": "Names of tasks that must finish before the object is deleted. During deletion entries can only be "
        "removed.",
        "generateName": "A prefix for a name that the server generates with random characters.",
        "generation": "The number of changes to the desired state. Set by the server.",
        "labels": "Names and values by which objects can be selected.",
        "managedFields": "The managers of fields. Maintained by the server, and rarely of interest to users.",
        "name": "The name, unique among objects of its kind in a namespace. It cannot be changed.",
        "namespace": "The namespace in which the name is unique; empty for cluster-scoped kinds. It cannot be changed.",
        "ownerReferences": "The objects that this one depends on: it is deleted when all of them are gone.",
        "resourceVersion": "The version of the object, to detect changes and to watch it. It is opaque: return it "
        "unmodified.",
        "selfLink": "Deprecated. Never set.",
        "uid": "Distinguishes this object from others that have had the same name. Set by the server.",
    },
    "OwnerReference": {
        "apiVersion": "The owner's group and version.",
        "blockOwnerDeletion": "Whether deleting the owner in the foreground waits for this object.",
        "controller": "Whether this owner is the object's controller. At most one owner is.",
        "kind": "The owner's kind.",
        "name": "The owner's name.",
        "uid": "The owner's uid.",
    },
    "Status": {
        "code": "The HTTP status code.",
        "details": "Details, depending on the reason.",
        "message": "A description for people.",
        "metadata": LIST_METADATA,
        "reason": "A machine-readable reason.",
        "status": "Success or Failure.",
    },
    "StatusDetails": {
        "causes": "The causes of the failure.",
        "group": "The group of the resource.",
        "kind": "The kind or resource.",
        "name": "The name of the object.",
        "retryAfterSeconds": "The seconds after which a retry may succeed.",
        "uid": "The uid of the object.",
    },
    "StatusCause": {
        "field": "The path of the field; indexes begin at 0.",
        "message": "A description for people.",
        "reason": "A machine-readable reason.",
    },
    "LabelSelector": {
        "matchExpressions": "Conditions.",
        "matchLabels": "Labels and their required values.",
    },
    "LabelSelectorRequirement": {
        "key": "The label.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "For In and NotIn: the values.",
    },
    "Scale": _CONTENTS,
    "ScaleSpec": {"replicas": "The desired number of replicas."},
    "ScaleStatus": {
        "replicas": "The actual number of replicas.",
        "selector": "A label selector for the replicas, in query syntax.",
    },
    "ConfigMap": {
        "binaryData": "Base64-encoded bytes by name.",
        "data": "Strings by name.",
        "immutable": "If true, only the metadata can be changed.",
        "metadata": OBJECT_METADATA,
    },
    "Secret": {
        "data": "Base64-encoded bytes by name.",
        "immutable": "If true, only the metadata can be changed.",
        "metadata": OBJECT_METADATA,
        "stringData": "Write-only: strings that are added to data, and take precedence.",
        "type": "The type of the secret, for programs.",
    },
    "Namespace": _CONTENTS,
    "NamespaceSpec": {"finalizers": "Names of tasks that must finish before the namespace is deleted."},
    "NamespaceStatus": {
        "conditions": "The progress of its deletion.",
        "phase": "Active or Terminating.",
    },
    "ServiceAccount": {
        "automountServiceAccountToken": "Whether pods get a token of the account.",
        "imagePullSecrets": "Secrets for pulling images.",
        "metadata": OBJECT_METADATA,
        "secrets": "The secrets that pods with this account may use.",
    },
    "Event": {
        "action": "The action that was taken.",
        "count": "The number of occurrences.",
        "eventTime": "The time of the first occurrence.",
        "firstTimestamp": "The time of the first report.",
        "involvedObject": "The object of the event.",
        "lastTimestamp": "The time of the last report.",
        "message": "A description for people.",
        "metadata": OBJECT_METADATA,
        "note": "A description for people.",
        "reason": "The reason, in one CamelCase word.",
        "regarding": "The object of the event.",
        "related": "Another object that is involved.",
        "reportingComponent": "The reporting controller, such as example.com/controller.",
        "reportingController": "The reporting controller, such as example.com/controller.",
        "reportingInstance": "The instance of the controller.",
        "series": "The series, if the event continues.",
        "source": "The reporting component.",
        "type": "Normal or Warning.",
    },
    "Lease": {"metadata": OBJECT_METADATA, "spec": "The holder of the lease, and its times."},
    "LeaseSpec": {
        "acquireTime": "The time when the holder acquired the lease.",
        "holderIdentity": "The identity of the holder.",
        "leaseDurationSeconds": "The seconds after the last renewal when others may acquire the lease.",
        "leaseTransitions": "The number of changes of the holder.",
        "renewTime": "The time of the last renewal.",
    },
    "CustomResourceDefinition": _CONTENTS,
    "CustomResourceDefinitionSpec": {
        "conversion": "The conversion of objects between versions.",
        "group": "The API group. The definition's name is PLURAL.GROUP.",
        "names": "The names of the resource.",
        "preserveUnknownFields": "Deprecated: must be false.",
        "scope": "Namespaced or Cluster. It cannot be changed.",
        "versions": "The versions; one of them is the storage version.",
    },
    "CustomResourceDefinitionNames": {
        "categories": "Groups of resources to which it belongs, such as `all`.",
        "kind": "The kind of its objects, in CamelCase and singular.",
        "listKind": "The kind of its lists; KINDList by default.",
        "plural": "The name in URLs, in lower case.",
        "shortNames": "Short names for command lines.",
        "singular": "The singular name, in lower case.",
    },
    "CustomResourceDefinitionVersion": {
        "additionalPrinterColumns": "Additional columns of `kubectl get`.",
        "deprecated": "Whether clients of this version are warned.",
        "deprecationWarning": "The warning, if it is not the default.",
        "name": "The name, such as v1 or v1beta1.",
        "schema": "The schema of its objects.",
        "selectableFields": "Fields that field selectors may use, at most 8.",
        "served": "Whether clients can use this version.",
        "storage": "Whether objects are stored in this version. Exactly one version is the storage version.",
        "subresources": "Its subresources.",
    },
    "CustomResourceColumnDefinition": {
        "description": "A description of the column.",
        "format": "The format of its values; `name` marks the object's name.",
        "jsonPath": "The path of its value in an object.",
        "name": "The heading.",
        "priority": "0 is always shown, higher numbers only with `-o wide`.",
        "type": "integer, number, string, boolean or date.",
    },
    "CustomResourceSubresourceScale": {
        "labelSelectorPath": "The path of the label selector, a string.",
        "specReplicasPath": "The path of the desired number, under .spec.",
        "statusReplicasPath": "The path of the actual number, under .status.",
    },
    "CustomResourceDefinitionStatus": {
        "acceptedNames": "The names under which it is served.",
        "conditions": "Whether its names are accepted, whether it is served, and so on.",
        "observedGeneration": "The generation to which the status belongs.",
        "storedVersions": "All versions in which objects may be stored.",
    },
    "ValidationRule": {
        "fieldPath": "The field that is reported in errors.",
        "message": "The message if the rule fails.",
        "messageExpression": "A CEL expression for the message; it takes precedence.",
        "optionalOldSelf": "Whether a transition rule is also evaluated without an old value.",
        "reason": "A machine-readable reason for the failure.",
        "rule": "A CEL expression: `self` is the value, `oldSelf` the old value.",
    },
}
"""By type and field."""

PARAMETERS: Final = {
    "allowWatchBookmarks": "Send bookmarks: events with the progress of the watch only.",
    "continue": "Continue a list: the token in its metadata.continue.",
    "dryRun": "`All`: process the request without storing the object.",
    "fieldManager": "The manager of the changed fields in metadata.managedFields. At most 128 printable characters.",
    "fieldSelector": "Restricts the objects by their fields.",
    "fieldValidation": "The handling of unknown and duplicate fields. Ignore: drop them. Warn: drop them with a warning "
    "(the default). Strict: refuse the request.",
    "force": "Take over fields of other managers. For apply patches only.",
    "gracePeriodSeconds": FIELDS["DeleteOptions"]["gracePeriodSeconds"],
    "ignoreStoreReadErrorWithClusterBreakingPotential": FIELDS["DeleteOptions"][
        "ignoreStoreReadErrorWithClusterBreakingPotential"
    ],
    "labelSelector": "Restricts the objects by their labels.",
    "limit": "The maximum number of items; metadata.continue is set if there are more.",
    "namespace": "The namespace.",
    "orphanDependents": FIELDS["DeleteOptions"]["orphanDependents"],
    "pretty": "If `true`, JSON is indented.",
    "propagationPolicy": FIELDS["DeleteOptions"]["propagationPolicy"],
    "resourceVersion": "The minimum version of the result. 0: any version. Unset: the most recent one.",
    "resourceVersionMatch": "How resourceVersion is applied: NotOlderThan or Exact.",
    "sendInitialEvents": "Begin a watch with all existing objects, followed by a bookmark.",
    "shardSelector": "Restricts the objects to a part of the collection.",
    "timeoutSeconds": "The seconds after which the request ends.",
    "watch": "Watch: send events about changes instead of a list.",
}
"""By the parameter's name."""
