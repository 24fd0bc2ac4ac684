"""What the published documents say in prose: in our own words, for `kubectl explain` and those who read on.

Custom resources bring their own descriptions. Where a definition or a field has no text here it is published without.
"""

from __future__ import annotations

from typing import Final

TYPE_META: Final = {
    "apiVersion": "The group and version whose schema this object follows, written GROUP/VERSION.",
    "kind": "What sort of object this is, in CamelCase. It cannot be changed.",
}
OBJECT_METADATA: Final = "Name, labels and whatever else every object has."
LIST_METADATA: Final = "What the server says of the list as a whole."

EMBEDDED_TYPE_META: Final = {
    "apiVersion": "The group and version of the embedded object, written GROUP/VERSION.",
    "kind": "What sort of object is embedded, in CamelCase.",
}

RESPONSES: Final = {
    "200": "OK",
    "201": "Created",
    "202": "Accepted",
    "401": "Unauthorized",
}

_CONTENTS: Final = {
    "metadata": OBJECT_METADATA,
    "spec": "What is wanted.",
    "status": "What is.",
}

KINDS: Final = {
    # meta/v1
    "DeleteOptions": "How something is to be deleted.",
    "FieldsV1": "A set of fields as a tree: `f:NAME` is a field, `k:KEYS` and `v:VALUE` are items of a list, `.` is the "
    "node itself.",
    "LabelSelector": "Which objects are meant, by their labels. Every condition has to hold; an empty selector means "
    "all of them.",
    "LabelSelectorRequirement": "One condition on one label.",
    "ListMeta": "What every list has beside its items.",
    "ManagedFieldsEntry": "The fields that one manager set in one way.",
    "MicroTime": "A moment with microseconds, as RFC 3339 writes it.",
    "ObjectMeta": "What every stored object has: a name, and data for the server and its clients.",
    "OwnerReference": "An owner: this object goes when all of its owners have gone. Owners are cluster-scoped, or in the "
    "same namespace.",
    "Patch": "A change to an object. Its form depends on the type of the patch.",
    "Preconditions": "What has to hold, or else nothing is done.",
    "ShardInfo": "Which part of a collection a list is.",
    "Status": "The answer to a request that does not return an object.",
    "StatusCause": "One reason of a failure.",
    "StatusDetails": "What a status is about, and more on what happened.",
    "Time": "A moment, as RFC 3339 writes it.",
    # autoscaling
    "Scale": "The size of another object: its replicas, wanted and there.",
    "ScaleSpec": "The size that is wanted.",
    "ScaleStatus": "The size that is.",
    # core and events
    "ConfigMap": "Configuration as named texts and files.",
    "Event": "Something that happened, for people to read. Events are forgotten after an hour.",
    "EventSeries": "An event that goes on happening.",
    "EventSource": "Where an event was noticed.",
    "LocalObjectReference": "The name of an object in the same namespace.",
    "Namespace": "A scope for names. What is in it goes when it is deleted.",
    "NamespaceCondition": "How far the deletion of a namespace has come.",
    "NamespaceSpec": "What is wanted of a namespace.",
    "NamespaceStatus": "What a namespace is like.",
    "ObjectReference": "Another object, or a part of it.",
    "Secret": "Named bytes that not everybody should read.",
    "Service": "A name for something in the network. Here it is kept, and nothing else: there is no network.",
    "ServiceAccount": "An identity for what runs in a namespace.",
    "ServicePort": "One port of a service.",
    "ServiceSpec": "What is wanted of a service.",
    "ServiceStatus": "Where a service can be reached.",
    "LoadBalancerIngress": "An address of a load balancer.",
    "LoadBalancerStatus": "The addresses of a load balancer.",
    "PortStatus": "What became of a port of a load balancer.",
    "SessionAffinityConfig": "How clients stay with what they have reached.",
    "ClientIPConfig": "How long a client is known by its address.",
    # coordination, authentication, authorization
    "Lease": "Who may do something, and until when.",
    "LeaseSpec": "Who holds a lease.",
    "LocalSubjectAccessReview": "Asks whether somebody may do something in one namespace.",
    "SelfSubjectAccessReview": "Asks whether the caller may do something.",
    "SelfSubjectReview": "Asks who the caller is.",
    "SelfSubjectRulesReview": "Asks what the caller may do in a namespace.",
    "SubjectAccessReview": "Asks whether somebody may do something.",
    "TokenRequest": "Asks for a token of a service account.",
    "TokenReview": "Asks whose token it is.",
    # admissionregistration
    "MutatingAdmissionPolicy": "Changes to objects that are written, in CEL.",
    "MutatingAdmissionPolicyBinding": "Where a mutating admission policy holds, and with which parameters.",
    "MutatingWebhookConfiguration": "Webhooks that may change or refuse objects that are written.",
    "ValidatingAdmissionPolicy": "Conditions on objects that are written, in CEL.",
    "ValidatingAdmissionPolicyBinding": "Where a validating admission policy holds, and with which parameters.",
    "ValidatingWebhookConfiguration": "Webhooks that may refuse objects that are written.",
    # apiextensions
    "CustomResourceColumnDefinition": "One column of the table that `kubectl get` prints.",
    "CustomResourceConversion": "How objects of one version become objects of another.",
    "CustomResourceDefinition": "A kind of your own: its names, scope, versions and schemas.",
    "CustomResourceDefinitionCondition": "Where a definition stands.",
    "CustomResourceDefinitionNames": "What a resource is called.",
    "CustomResourceDefinitionSpec": "What a resource is to be like.",
    "CustomResourceDefinitionStatus": "What a resource is like.",
    "CustomResourceDefinitionVersion": "One version of a resource.",
    "CustomResourceSubresourceScale": "Where /scale finds its numbers.",
    "CustomResourceSubresourceStatus": "Asks for /status. It has no settings.",
    "CustomResourceSubresources": "Which parts of an object have an endpoint of their own.",
    "CustomResourceValidation": "What the objects of a version look like.",
    "JSON": "Any JSON value.",
    "JSONSchemaProps": "A JSON schema as OpenAPI v3 has it, with the Kubernetes extensions; it has to be structural.",
    "JSONSchemaPropsOrArray": "A schema, or a list of schemas.",
    "JSONSchemaPropsOrBool": "A schema, or a boolean.",
    "JSONSchemaPropsOrStringArray": "A schema, or a list of names.",
    "SelectableField": "A field that field selectors may name.",
    "ServiceReference": "A service in the cluster.",
    "ValidationRule": "A condition on a value, in CEL.",
    "WebhookClientConfig": "How a webhook is reached: by its URL, or by its service.",
    "WebhookConversion": "The webhook that converts.",
    # other packages
    "Info": "Which server this is.",
    "IntOrString": "A number, or a text.",
    "RawExtension": "Any object.",
}
"""By type."""

FIELDS: Final[dict[str, dict[str, str]]] = {
    "DeleteOptions": {
        "dryRun": "`All`: do everything but delete it.",
        "gracePeriodSeconds": "How many seconds may pass before it is gone, for kinds that need some. Not negative.",
        "ignoreStoreReadErrorWithClusterBreakingPotential": "Delete it even if it cannot be read from the storage. "
        "Dangerous: finalizers and preconditions are not looked at.",
        "orphanDependents": "Deprecated, use propagationPolicy. Whether what it owns is left alone.",
        "preconditions": "What has to hold, or else it is not deleted (409).",
        "propagationPolicy": "What becomes of the objects that it owns. Orphan: they stay. Background: they go some "
        "time after it. Foreground: it goes after them.",
    },
    "Preconditions": {
        "resourceVersion": "The resourceVersion that it has to have.",
        "uid": "The uid that it has to have.",
    },
    "ListMeta": {
        "continue": "There is more: give this as the parameter `continue` to go on. Only the server understands it.",
        "remainingItemCount": "How many items are left, where the server knows.",
        "resourceVersion": "The state that the list shows. A watch may begin here.",
        "selfLink": "Deprecated. Never set.",
        "shardInfo": "Which part of the collection this is, if it is not all of it.",
    },
    "ShardInfo": {"selector": "The selector of the part, as it was asked for."},
    "ManagedFieldsEntry": {
        "apiVersion": "The version of the object whose fields are meant.",
        "fieldsType": "The form of the field set: FieldsV1.",
        "fieldsV1": "The fields.",
        "manager": "Who set them.",
        "operation": "How they were set: Apply or Update.",
        "subresource": "The subresource through which they were set, if it was one.",
        "time": "When the set was last changed.",
    },
    "ObjectMeta": {
        "annotations": "Data of tools and libraries, by name. Not for selecting.",
        "creationTimestamp": "When the object came to be. Set by the server.",
        "deletionGracePeriodSeconds": "How many seconds the object had to end, once its deletion was asked for. Set by "
        "the server.",
        "deletionTimestamp": "Set by the server when deletion is asked for. The object goes when it has no finalizers.",
        "finalizers": "Who has still to do something before the object may go. While it is being deleted entries can "
        "only be removed.",
        "generateName": "How the name begins, if the server is to choose it; some random characters follow.",
        "generation": "Counts the changes of what is wanted. Set by the server.",
        "labels": "Names and values to select objects by.",
        "managedFields": "Who set which fields. Kept by the server, and rarely of interest to people.",
        "name": "The name, unique among objects of its kind in a namespace. It cannot be changed.",
        "namespace": "The namespace in which the name is unique; empty for cluster-scoped kinds. It cannot be changed.",
        "ownerReferences": "The objects that this one depends on: it goes when all of them have gone.",
        "resourceVersion": "The state of the object, to see whether it has changed, and to watch it. Give it back as it "
        "was; do not compare it with those of other resources.",
        "selfLink": "Deprecated. Never set.",
        "uid": "Tells this object from others of the same name, before and after. Set by the server.",
    },
    "OwnerReference": {
        "apiVersion": "The owner's group and version.",
        "blockOwnerDeletion": "Whether the owner, if deleted in the foreground, waits for this object.",
        "controller": "Whether this owner manages the object. Only one may.",
        "kind": "The owner's kind.",
        "name": "The owner's name.",
        "uid": "The owner's uid.",
    },
    "Status": {
        "code": "The HTTP status code.",
        "details": "More on it, by reason.",
        "message": "What happened, for people.",
        "metadata": LIST_METADATA,
        "reason": "What happened, for programs.",
        "status": "Success or Failure.",
    },
    "StatusDetails": {
        "causes": "Everything that was found wrong.",
        "group": "The group of what it is about.",
        "kind": "Its kind or resource.",
        "name": "Its name.",
        "retryAfterSeconds": "After how many seconds it is worth another try.",
        "uid": "Its uid.",
    },
    "StatusCause": {
        "field": "The field that it is about, as a path; indexes begin at 0.",
        "message": "What is wrong, for people.",
        "reason": "What is wrong, for programs.",
    },
    "LabelSelector": {
        "matchExpressions": "Conditions.",
        "matchLabels": "Labels, and the values that they must have.",
    },
    "LabelSelectorRequirement": {
        "key": "The label.",
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "For In and NotIn: the values.",
    },
    "Scale": _CONTENTS,
    "ScaleSpec": {"replicas": "How many there should be."},
    "ScaleStatus": {
        "replicas": "How many there are.",
        "selector": "Which they are: a label selector as a query writes it.",
    },
    "ConfigMap": {
        "binaryData": "Files that are not UTF-8, base64-encoded, by name.",
        "data": "Texts by name.",
        "immutable": "If true, nothing but the metadata can be changed any more.",
        "metadata": OBJECT_METADATA,
    },
    "Secret": {
        "data": "The bytes, base64-encoded, by name.",
        "immutable": "If true, nothing but the metadata can be changed any more.",
        "metadata": OBJECT_METADATA,
        "stringData": "For writing only: texts that become data, and win over it.",
        "type": "What sort of secret it is, for programs.",
    },
    "Namespace": _CONTENTS,
    "NamespaceSpec": {"finalizers": "Who has still to do something before the namespace may go."},
    "NamespaceStatus": {
        "conditions": "How far its deletion has come.",
        "phase": "Active or Terminating.",
    },
    "ServiceAccount": {
        "automountServiceAccountToken": "Whether pods get its token.",
        "imagePullSecrets": "What it pulls images with.",
        "metadata": OBJECT_METADATA,
        "secrets": "The secrets that it may use.",
    },
    "Event": {
        "action": "What was done about the object.",
        "count": "How often it happened.",
        "eventTime": "When it happened first.",
        "firstTimestamp": "When it was first noticed.",
        "involvedObject": "What it is about.",
        "lastTimestamp": "When it was last noticed.",
        "message": "What happened, for people.",
        "metadata": OBJECT_METADATA,
        "note": "What happened, for people.",
        "reason": "Why it happened, in one CamelCase word.",
        "regarding": "What it is about.",
        "related": "Another object that has to do with it.",
        "reportingComponent": "Who tells it, such as example.com/controller.",
        "reportingController": "Who tells it, such as example.com/controller.",
        "reportingInstance": "Which instance of it.",
        "series": "The series, if it goes on happening.",
        "source": "Who tells it.",
        "type": "Normal or Warning.",
    },
    "Lease": {"metadata": OBJECT_METADATA, "spec": "Who holds it."},
    "LeaseSpec": {
        "acquireTime": "When it was taken.",
        "holderIdentity": "Who holds it.",
        "leaseDurationSeconds": "How long others wait after the last renewal before they take it.",
        "leaseTransitions": "How often it changed hands.",
        "renewTime": "When its holder last renewed it.",
    },
    "CustomResourceDefinition": _CONTENTS,
    "CustomResourceDefinitionSpec": {
        "conversion": "How objects of one version become objects of another.",
        "group": "The API group. The definition is called PLURAL.GROUP.",
        "names": "What the resource is called.",
        "preserveUnknownFields": "Deprecated: it has to be false.",
        "scope": "Namespaced or Cluster. It cannot be changed.",
        "versions": "The versions; one of them is stored.",
    },
    "CustomResourceDefinitionNames": {
        "categories": "Groups of resources that it belongs to, such as `all`.",
        "kind": "The kind of its objects, in CamelCase and singular.",
        "listKind": "The kind of its lists; KINDList if not given.",
        "plural": "Its name in URLs, in lower case.",
        "shortNames": "Short names for command lines.",
        "singular": "Its singular name, in lower case.",
    },
    "CustomResourceDefinitionVersion": {
        "additionalPrinterColumns": "Columns of `kubectl get`.",
        "deprecated": "Whether those who use it are warned.",
        "deprecationWarning": "What they are warned with.",
        "name": "Such as v1 or v1beta1.",
        "schema": "What its objects look like.",
        "selectableFields": "Fields that field selectors may name, at most 8.",
        "served": "Whether it can be used.",
        "storage": "Whether objects are stored in it. One version is.",
        "subresources": "Its subresources.",
    },
    "CustomResourceColumnDefinition": {
        "description": "What it shows.",
        "format": "The format of its values; `name` marks the object's name.",
        "jsonPath": "Where its value is found in an object.",
        "name": "Its heading.",
        "priority": "0 is always shown, more only with `-o wide`.",
        "type": "integer, number, string, boolean or date.",
    },
    "CustomResourceSubresourceScale": {
        "labelSelectorPath": "Where the selector is found, as a text.",
        "specReplicasPath": "Where the wanted number is found, under .spec.",
        "statusReplicasPath": "Where the actual number is found, under .status.",
    },
    "CustomResourceDefinitionStatus": {
        "acceptedNames": "The names under which it is served.",
        "conditions": "Whether its names are accepted, whether it is served, and so on.",
        "observedGeneration": "The generation that this is about.",
        "storedVersions": "The versions in which objects may be stored.",
    },
    "ValidationRule": {
        "fieldPath": "The field that a failure is about.",
        "message": "What is said if it does not hold.",
        "messageExpression": "The same as a CEL expression that gives a text; it wins over message.",
        "optionalOldSelf": "Whether a transition rule is also judged when there is no old value.",
        "reason": "Why it failed, for programs.",
        "rule": "A CEL expression: `self` is the value, `oldSelf` what it was before.",
    },
}
"""By type and field."""

PARAMETERS: Final = {
    "allowWatchBookmarks": "Send bookmarks: events that only say how far a watch has come.",
    "continue": "Go on with a list that was cut short: what it gave as metadata.continue.",
    "dryRun": "`All`: do everything but store it.",
    "fieldManager": "Who changes the fields, for metadata.managedFields. At most 128 printable characters.",
    "fieldSelector": "Only objects whose fields are like that.",
    "fieldValidation": "What to do about fields that are unknown or given twice. Ignore: drop them. Warn: drop them and "
    "say so (this is the default). Strict: refuse the request.",
    "force": "Take fields from other managers. For apply patches only.",
    "gracePeriodSeconds": FIELDS["DeleteOptions"]["gracePeriodSeconds"],
    "ignoreStoreReadErrorWithClusterBreakingPotential": FIELDS["DeleteOptions"][
        "ignoreStoreReadErrorWithClusterBreakingPotential"
    ],
    "labelSelector": "Only objects whose labels are like that.",
    "limit": "At most so many items; if there are more, metadata.continue leads to them.",
    "namespace": "The namespace.",
    "orphanDependents": FIELDS["DeleteOptions"]["orphanDependents"],
    "pretty": "If `true`, JSON is indented.",
    "propagationPolicy": FIELDS["DeleteOptions"]["propagationPolicy"],
    "resourceVersion": "How new the answer has to be. 0: anything will do. Nothing: the newest.",
    "resourceVersionMatch": "How resourceVersion is meant: NotOlderThan or Exact.",
    "sendInitialEvents": "Begin a watch with everything there is, followed by a bookmark.",
    "shardSelector": "Only this part of the collection.",
    "timeoutSeconds": "End after so many seconds.",
    "watch": "Do not list: send what changes, as it changes.",
}
"""By the parameter's name."""
