"""An operator of Databases: each gets a Secret with a password, and a ConfigMap that says where it is.

What a life before this one has created is left as it is.
"""

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import kopf
from kubernetes import client, config


@kopf.on.startup()
def connect(**_: Any) -> None:
    config.load_kube_config()


@kopf.on.create("example.com", "v1", "databases", backoff=0.5)
def create(name: str, namespace: str, body: Any, **_: Any) -> dict[str, str]:
    api = client.CoreV1Api()
    secret = {"metadata": {"name": name}, "stringData": {"password": secrets.token_hex()}}
    settings = {"metadata": {"name": name}, "data": {"host": f"{name}.{namespace}.svc"}}
    kopf.adopt([secret, settings], owner=body)
    with existing_is_right():
        api.create_namespaced_secret(namespace, secret)
    with existing_is_right():
        api.create_namespaced_config_map(namespace, settings)
    return {"secret": name}


@contextlib.contextmanager
def existing_is_right() -> Iterator[None]:
    try:
        yield
    except client.ApiException as error:
        if error.status != 409:
            raise
