"""The kinds whose objects `benchmarks.compare` and `benchmarks.gate` send: schema, columns, an object, and what is changed.

`bench` is the kind of `benchmarks.samples`. `certificate` is like a Certificate of cert-manager: 80 nodes of schema with
defaults, enumerations and patterns, and objects of 1.7 KB as sent, 3.4 KB as a GET returns them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from benchmarks.samples import CONDITION, SCHEMA, sample
from noxu.values import Object


class Workload(NamedTuple):
    """A kind of objects.

    `sample` makes the object of a name. Writes change the field at `path`, to the n-th of its `values`.
    """

    schema: Object
    columns: list[Object]
    sample: Callable[[str], Object]
    path: tuple[str, ...]
    values: Callable[[int], Any]

    def merge_patch(self, serial: int) -> Object:
        """`{"spec": {"replicas": 7}}` for 7, if the path is spec, replicas."""
        value = self.values(serial)
        for name in reversed(self.path):
            value = {name: value}
        return value  # type: ignore[no-any-return]

    def json_patch(self, serial: int) -> list[Object]:
        return [{"op": "replace", "path": "/" + "/".join(self.path), "value": self.values(serial)}]

    def change(self, value: Object, serial: int) -> None:
        """Change the field in an object that the caller has made."""
        *parents, name = self.path
        for parent in parents:
            value = value[parent]
        value[name] = self.values(serial)


def _object(properties: Object, *required: str, **more: Any) -> Object:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


def _list(items: Object, **more: Any) -> Object:
    return {"type": "array", "items": items, **more}


def _one_of(*values: str, **more: Any) -> Object:
    return {"type": "string", "enum": list(values), **more}


_TEXT: Final[Object] = {"type": "string"}
_TEXTS: Final = _list(_TEXT)
_BOOLEAN: Final[Object] = {"type": "boolean"}
_TIME: Final[Object] = {"type": "string", "format": "date-time"}
_NAME: Final[Object] = {"type": "string", "minLength": 1, "maxLength": 253}
_DURATION: Final[Object] = {"type": "string", "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"}
_KEY: Final = _object({"name": _NAME, "key": _TEXT}, "name")
_NAMES: Final = _object({"dnsDomains": _TEXTS, "ipRanges": _TEXTS})
_STORES: Final = {
    "jks": _object(
        {"create": _BOOLEAN, "alias": {"type": "string", "minLength": 1, "maxLength": 250}, "passwordSecretRef": _KEY},
        "create",
    ),
    "pkcs12": _object(
        {
            "create": _BOOLEAN,
            "profile": _one_of("LegacyRC2", "LegacyDES", "Modern2023"),
            "passwordSecretRef": _KEY,
        },
        "create",
    ),
}
_PRIVATE_KEY: Final = {
    "algorithm": _one_of("RSA", "ECDSA", "Ed25519", default="RSA"),
    "encoding": _one_of("PKCS1", "PKCS8", default="PKCS1"),
    "rotationPolicy": _one_of("Never", "Always", default="Always"),
    "size": {"type": "integer", "minimum": 0, "maximum": 8192, "default": 2048},
}
_SUBJECT: Final = {
    **dict.fromkeys(("organizations", "countries", "organizationalUnits", "localities", "provinces"), _TEXTS),
    "streetAddresses": _TEXTS,
    "postalCodes": _TEXTS,
    "serialNumber": _TEXT,
}
_SPEC: Final = {
    "commonName": {"type": "string", "maxLength": 64},
    "dnsNames": _list({"type": "string", "maxLength": 253}, maxItems=200),
    "ipAddresses": _TEXTS,
    "uris": _TEXTS,
    "emailAddresses": _TEXTS,
    "otherNames": _list(_object({"oid": _TEXT, "utf8Value": _TEXT})),
    "duration": {**_DURATION, "default": "2160h0m0s"},
    "renewBefore": _DURATION,
    "renewBeforePercentage": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 99},
    "revisionHistoryLimit": {"type": "integer", "format": "int32", "minimum": 1, "default": 1},
    "isCA": {**_BOOLEAN, "default": False},
    "encodeUsagesInRequest": {**_BOOLEAN, "default": True},
    "issuerRef": _object(
        {
            "name": {"type": "string", "minLength": 1},
            "kind": _one_of("Issuer", "ClusterIssuer", default="Issuer"),
            "group": {"type": "string", "default": "certificates.example.com"},
        },
        "name",
    ),
    "secretName": {**_NAME, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
    "secretTemplate": _object(
        {
            "annotations": {"type": "object", "additionalProperties": _TEXT},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
        }
    ),
    "keystores": _object(_STORES),
    "privateKey": _object(_PRIVATE_KEY, default={}),
    "subject": _object(_SUBJECT),
    "usages": _list(_one_of("signing", "digital signature", "key encipherment", "server auth", "client auth", "any")),
    "nameConstraints": _object({"critical": _BOOLEAN, "permitted": _NAMES, "excluded": _NAMES}),
    "additionalOutputFormats": _list(_object({"type": _one_of("DER", "CombinedPEM")}, "type")),
}
_STATUS: Final = {
    "conditions": _list(CONDITION, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    "notBefore": _TIME,
    "notAfter": _TIME,
    "renewalTime": _TIME,
    "lastFailureTime": _TIME,
    "revision": {"type": "integer"},
    "failedIssuanceAttempts": {"type": "integer"},
    "nextPrivateKeySecretName": _TEXT,
}


def _certificate(name: str) -> Object:
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "Certificate",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {
                "app.kubernetes.io/name": "shop",
                "app.kubernetes.io/instance": "shop-production",
                "app.kubernetes.io/managed-by": "Helm",
                "team": "payments",
            },
            "annotations": {
                "meta.helm.sh/release-name": "shop-production",
                "meta.helm.sh/release-namespace": "default",
                "description": "The public certificate of the front end; it is renewed automatically. "
                "Its owners are payments@example.com",
            },
        },
        "spec": {
            "secretName": "shop-production-tls",
            "commonName": "shop.example.com",
            "dnsNames": [f"{each}.shop.example.com" for each in ("www", "api", "eu", "us", "admin", "status")],
            "ipAddresses": ["10.20.30.40", "10.20.30.41"],
            "uris": ["spiffe://cluster.local/ns/default/sa/shop"],
            "emailAddresses": ["payments@example.com"],
            "renewBefore": "360h0m0s",
            "issuerRef": {"name": "production", "kind": "ClusterIssuer"},
            "secretTemplate": {
                "annotations": {
                    "copies.example.com/allowed": "true",
                    "copies.example.com/allowed-namespaces": "staging,production",
                },
                "labels": {"tls": "public", "team": "payments"},
            },
            "keystores": {
                "pkcs12": {
                    "create": True,
                    "profile": "Modern2023",
                    "passwordSecretRef": {"name": "keystore-password", "key": "password"},
                }
            },
            "privateKey": {"algorithm": "ECDSA", "size": 256},
            "subject": {
                "organizations": ["Example Corporation"],
                "countries": ["DE"],
                "organizationalUnits": ["Payments"],
                "localities": ["Berlin"],
                "serialNumber": "1234567890",
            },
            "usages": ["digital signature", "key encipherment", "server auth", "client auth"],
            "nameConstraints": {
                "critical": True,
                "permitted": {"dnsDomains": ["example.com"], "ipRanges": ["10.0.0.0/8"]},
            },
            "additionalOutputFormats": [{"type": "CombinedPEM"}],
        },
    }


def _column(name: str, path: str, kind: str = "string") -> Object:
    return {"name": name, "type": kind, "jsonPath": path}


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "date")
BENCH: Final = Workload(
    SCHEMA,
    [
        _column("Replicas", ".spec.replicas", "integer"),
        _column("Image", ".spec.template.image"),
        _column("Ready", '.status.conditions[?(@.type=="Condition0")].status'),
        _AGE,
    ],
    sample,
    ("spec", "replicas"),
    int,
)
CERTIFICATE: Final = Workload(
    _object({"spec": _object(_SPEC, "issuerRef", "secretName"), "status": _object(_STATUS)}, "spec"),
    [
        _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Secret", ".spec.secretName"),
        {**_column("Issuer", ".spec.issuerRef.name"), "priority": 1},
        _AGE,
    ],
    _certificate,
    ("spec", "subject", "serialNumber"),
    str,
)
WORKLOADS: Final = {"bench": BENCH, "certificate": CERTIFICATE}
