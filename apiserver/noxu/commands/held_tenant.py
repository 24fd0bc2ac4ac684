"""A tenant of a running server for the life of a command: what `noxu run --server` keeps.

The answer that makes the tenant stays open as long as the keeper lives, and so does the tenant. A signal ends the keeper, which
removes the kubeconfig then.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
import threading
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from noxu.commands import calls
from noxu.commands.api_client import ApiClient, RequestError, ServerEndpoint, endpoint_from_kubeconfig
from noxu.commands.run import variables
from noxu.config import Config, StartError
from noxu.files import write_whole
from noxu.manifests import documents, loading, served_files
from noxu.process.limits import sentence
from noxu.process.signals import STOPPING
from noxu.process.supervision import Supervised
from noxu.values import Object


def keep(options: argparse.Namespace, say: Callable[[Object], object], _command: Supervised) -> int:
    """Hold a tenant until SIGTERM, and say which variables the command has. Exit status 1: there is none."""
    try:
        wanted = {"hold": True, "manifests": _manifests(options.config)}
        with (
            contextlib.closing(ApiClient(endpoint_of(options.server))) as client,
            client.held("POST", "/_noxu/tenants", wanted) as tenant,
        ):
            _until_stopped(tenant, options.config.kubeconfig, say)
    except (RequestError, StartError) as error:
        for message in error.args:
            calls.complain(message)
        return 1
    except OSError as error:
        calls.complain(f"the kubeconfig cannot be written: {sentence(error) or error.strerror or error}")
        return 1
    return 0


def endpoint_of(server: str) -> ServerEndpoint:
    """That of a URL, or of the kubeconfig at a path, which may have credentials. Raises RequestError."""
    return ServerEndpoint(server) if "://" in server else endpoint_from_kubeconfig(Path(server))


def _manifests(config: Config) -> list[Object]:
    """The objects of the files and kustomizations. Raises StartError."""
    built = map(documents.build, config.kustomizations)
    read, errors = loading.readable(chain(documents.read_paths(config.files, command="serve"), *built))
    served_files.check_loaded(config, errors)
    return [document.value for document in read]


def _until_stopped(tenant: Object, file: Path | None, say: Callable[[Object], object]) -> None:
    """Keep the kubeconfig of a tenant in a file. Raises OSError."""
    stopped = threading.Event()
    for number in STOPPING:
        signal.signal(number, lambda *_: stopped.set())  # from here on there is a file to remove
    with tempfile.TemporaryDirectory(prefix="noxu-") as directory:
        kubeconfig = file or Path(directory, "kubeconfig")
        write_whole(kubeconfig, tenant["kubeconfig"].encode())
        try:
            say(variables(tenant["url"], kubeconfig.resolve()))
            stopped.wait()
        finally:
            kubeconfig.unlink(missing_ok=True)
