"""ServiceAccount: every pod runs as an account that exists, and gets its token (plugin/pkg/admission/serviceaccount)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.rules import PluginRules, find
from noxu.api.meta import generate_name
from noxu.values import Object

DEFAULT: Final = "default"
_ATTEMPTS: Final = 10  # to find the default account, which a controller creates
INTERVAL: Final = 0.15  # seconds between them
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME_PREFIX: Final = "kube-api-access-"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})  # Go's strconv.ParseBool
_LISTS: Final = (("initContainers", "init container"), ("containers", "container"))


async def _complete(request: Attributes) -> None:
    """Set the default account, add the volume with the token, and the account's secrets for images."""
    pod = request.draft.new
    if request.operation != "CREATE" or request.subresource or _is_mirror(pod):
        return
    spec = pod["spec"]
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
    account = await _account(request, spec["serviceAccountName"])
    automount = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if automount is not False:
        _mount_token(spec, generate_name(_VOLUME_PREFIX, request.draft.environment.identifiers.new_suffix()))
    if not spec.get("imagePullSecrets") and (secrets := account.get("imagePullSecrets")):
        spec["imagePullSecrets"] = [dict(secret) for secret in secrets]


def _mount_token(spec: Object, name: str) -> None:
    """Mount the token in every container that mounts nothing at its path."""
    volumes = spec.get("volumes") or []
    own = next((volume["name"] for volume in volumes if volume["name"].startswith(_VOLUME_PREFIX)), None)
    mount = {"name": own or name, "readOnly": True, "mountPath": _MOUNT_PATH}
    containers = [container for list_name, _ in _LISTS for container in spec.get(list_name) or ()]
    lacking = [
        container
        for container in containers
        if all(mounted.get("mountPath") != _MOUNT_PATH for mounted in container.get("volumeMounts") or ())
    ]
    for container in lacking:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), dict(mount)]
    if lacking and own is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Object:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


async def _validate(request: Attributes) -> None:
    pod = request.draft.new
    if request.operation == "UPDATE" and request.subresource == "ephemeralcontainers":
        account = await _account(request, pod["spec"].get("serviceAccountName", ""))
        if _enforces(account):
            _check_environment(request, account, "ephemeralContainers", "ephemeral container")
        return
    if request.operation != "CREATE" or request.subresource:
        return
    if _is_mirror(pod):
        _validate_mirror(request, pod["spec"])
        return
    if not (name := pod["spec"].get("serviceAccountName")):
        raise refusal(request, f"no service account specified for pod {request.namespace}/{request.name}")
    account = await _account(request, name)
    if _enforces(account):
        _check_secrets(request, account)


def _is_mirror(pod: Object) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def _validate_mirror(request: Attributes, spec: Object) -> None:
    """A pod that a kubelet made of a file must not refer to objects of the server."""
    if spec.get("serviceAccountName"):
        raise refusal(request, "a mirror pod may not reference service accounts")
    volumes = spec.get("volumes") or ()
    sources = [source for volume in volumes for source in (volume.get("projected") or {}).get("sources") or ()]
    if (
        any("secret" in volume for volume in (*volumes, *sources))
        or spec.get("imagePullSecrets")
        or any(_environment(spec))
    ):
        raise refusal(request, "a mirror pod may not reference secrets")
    if any("serviceAccountToken" in source for source in sources):
        raise refusal(request, "a mirror pod may not use ServiceAccountToken volume projections")


def _environment(spec: Object) -> Iterator[tuple[str, str, str]]:
    """The secrets in the environment of containers: (container, variable, secret). For envFrom the variable is ""."""
    lists = (spec.get(name) or () for name in ("initContainers", "containers", "ephemeralContainers"))
    for container in (container for variables in lists for container in variables):
        for variable in container.get("env") or ():
            if reference := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                yield container["name"], variable["name"], reference.get("name", "")
        for source in container.get("envFrom") or ():
            if reference := source.get("secretRef"):
                yield container["name"], "", reference.get("name", "")


async def _account(request: Attributes, name: str) -> Object:
    """The account of a pod. The default one may be about to be created. Raises ApiError."""
    for attempt in range(_ATTEMPTS if name == DEFAULT else 1):
        if attempt:
            await asyncio.sleep(INTERVAL)
        account = await find(request, "", "serviceaccounts", name, request.namespace)
        if account is not None:
            return account
    why = f'serviceaccount "{name}" not found'
    raise refusal(request, f"error looking up service account {request.namespace}/{name}: {why}")


# -- accounts that restrict which secrets their pods refer to ---------------------------------------------------------


def _enforces(account: Object) -> bool:
    return (account["metadata"].get("annotations") or {}).get(_ENFORCE_SECRETS) in _TRUE


def _check_secrets(request: Attributes, account: Object) -> None:
    """Refuse a pod that refers to secrets which its account does not list."""
    spec, name = request.draft.new["spec"], account["metadata"]["name"]
    secrets = {secret.get("name") for secret in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        used = (volume.get("secret") or {}).get("secretName")
        if used is not None and used not in secrets:
            why = f'volume with secret.secretName="{used}" is not allowed because service account {name} does not reference that secret'
            raise refusal(request, why)
    for list_name, what in _LISTS:
        _check_environment(request, account, list_name, what)
    pull_secrets = {secret.get("name") for secret in account.get("imagePullSecrets") or ()}
    for place, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in pull_secrets:
            where = f'imagePullSecrets[{place}].name="{secret.get("name", "")}"'
            why = f"{where} is not allowed because service account {name} does not reference that imagePullSecret"
            raise refusal(request, why)


def _check_environment(request: Attributes, account: Object, list_name: str, what: str) -> None:
    secrets = {secret.get("name") for secret in account.get("secrets") or ()}
    containers = request.draft.new["spec"].get(list_name) or []
    for container, variable, secret in _environment({list_name: containers}):
        if variable and secret not in secrets:
            where = f'{what} {container} with envVar {variable} referencing secret.secretName="{secret}"'
            by = f"service account {account['metadata']['name']}"
            raise refusal(request, f"{where} is not allowed because {by} does not reference that secret")


RULES: Final = PluginRules(mutate=_complete, validate=_validate)
