"""The arguments of `noxu serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import (
    admission,
    audit,
    authentication,
    authorization,
    controllers,
    etcd,
    leader_election,
    log,
    requests,
    shared,
    signing,
    tls,
    values,
)
from noxu.config import DEFAULT_CONTEXT, DEFAULT_DATA, DEFAULT_EVENT_TTL, DEFAULT_HOST, DEFAULT_PORT, Config

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = "Serve the Kubernetes API for your CRDs until Ctrl-C (SIGINT, SIGTERM)."
    _files(command)
    _address(command)
    _data(command)
    _kubeconfig(command)
    tls.add(command)
    _behaviour(command)
    for part in (authentication, authorization, signing, requests, audit, log, etcd, leader_election):
        part.add(command)


def _files(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("files", "They are applied as kubectl apply does it: see docs/cli.md.")
    group.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="CRDs and objects to load at the start: YAML or JSON files, directories, - for stdin",
    )
    group.add_argument(
        "-k",
        dest="kustomizations",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="load what kustomize makes of this directory; needs kustomize or kubectl; can be repeated",
    )
    group.add_argument(
        "--watch", action="store_true", help="apply what changes in the files and kustomizations while the server runs"
    )
    group.add_argument(
        "--keep-going",
        action="store_true",
        help="start without objects that cannot be read or are refused; each is an error in the log",
    )
    group.add_argument(
        "--create-namespace",
        action="store_true",
        help="create the namespaces of the objects that no file makes, as helm does",
    )
    group.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep manifests and valid CRDs in the user's cache"
    )


def _address(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("address")
    group.add_argument(
        "--bind-address",
        "--host",
        dest="host",
        metavar="HOST",
        default=DEFAULT_HOST,
        help="the address to listen on; other addresses than loopback imply TLS and RBAC (default: %(default)s)",
    )
    group.add_argument(
        "--port",
        type=values.port,
        default=DEFAULT_PORT,
        help="the port to listen on; 0 selects a free one (default: %(default)s)",
    )
    group.add_argument(
        "--secure-port", type=values.port, metavar="PORT", help="--port and --tls, as kube-apiserver spells them"
    )
    group.add_argument(
        "--listen",
        action="append",
        default=[],
        type=values.place,
        metavar="PLACE",
        help="a further socket: unix:PATH, a Unix socket to make, or fd:N, one that the process has inherited; can be repeated",
    )
    group.add_argument(
        "--external-hostname",
        default="",
        metavar="NAME",
        help="the name by which clients reach the server: in its certificate and in the kubeconfig",
    )
    group.add_argument(
        "--advertise-address",
        default="",
        type=values.address,
        metavar="ADDRESS",
        help="the address of the server in the endpoints of the Service kubernetes (default: one of this host)",
    )


def _data(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("data")
    storage = group.add_mutually_exclusive_group()
    storage.add_argument("--data", type=Path, metavar="DIR", help=f"the data directory (default: {DEFAULT_DATA})")
    storage.add_argument("--memory", action="store_true", help="keep data in memory only")
    group.add_argument(
        "--durability",
        choices=("full", "normal", "off"),
        default="full",
        help="full: an acknowledged write survives a power failure; normal: it survives a crash of the server; off: so does "
        "it, but a power failure may destroy the file (default: full)",
    )
    group.add_argument(
        "--event-ttl",
        type=values.seconds,
        default=DEFAULT_EVENT_TTL,
        metavar="DURATION",
        help="the time for which Events are retained after their last write; 0 retains them (default: 1h0m0s)",
    )
    group.add_argument(
        "--annotate-invalid",
        action="store_true",
        help="annotate stored objects that are invalid since their CRD was changed",
    )


def _kubeconfig(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("kubeconfig")
    group.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig to write when the server is ready"
    )
    group.add_argument(
        "--merge-kubeconfig",
        action="store_true",
        help="add a context to your own kubeconfig, too, as kubectl finds that; it is removed when the server stops",
    )
    group.add_argument(
        "--context", default="", metavar="NAME", help=f"the context of --merge-kubeconfig (default: {DEFAULT_CONTEXT})"
    )


def _behaviour(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("behaviour", "What the server does by itself.")
    controllers.add(group)
    admission.add(group)
    group.add_argument(
        "--webhook-service",
        action="append",
        default=[],
        type=values.service,
        metavar="NAMESPACE/NAME[:PORT]=HOST:PORT",
        help="the address of webhooks that refer to this service of a cluster; can be repeated",
    )
    group.add_argument(
        "--kinds",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="OpenAPI documents, or directories of them, whose kinds to serve, such as those of metrics.k8s.io; can be repeated",
    )
    shared.feature_gates(group)
    group.add_argument(
        "--exit-with-parent", action="store_true", help="stop when the process that has started this one ends"
    )


def complete(options: argparse.Namespace) -> None:
    """Set `options.config`. Raises ValueError for options that are invalid, by themselves or in combination."""
    shared.set_features(options)
    if options.watch and not options.kustomizations and all(str(path) == "-" for path in options.files):
        raise ValueError("--watch needs files, directories, or -k")
    if options.context and not options.merge_kubeconfig:
        raise ValueError("--context needs --merge-kubeconfig")
    list_of_controllers = controllers.controllers(options)
    options.config = Config(
        host=options.host,
        port=options.port if options.secure_port is None else options.secure_port,
        data=None if options.memory else options.data or DEFAULT_DATA,
        durability=options.durability,
        kubeconfig=options.kubeconfig,
        merged_context=(options.context or DEFAULT_CONTEXT) if options.merge_kubeconfig else "",
        files=tuple(options.files),
        kustomizations=tuple(options.kustomizations),
        keep_going=options.keep_going,
        create_namespaces=options.create_namespace,
        watch=options.watch,
        features=options.features,
        annotate_invalid=options.annotate_invalid,
        webhook_services=tuple(options.webhook_service),
        event_ttl=options.event_ttl,
        profile=options.profile,
        controllers=list_of_controllers,
        leader_election=leader_election.leader_election(options),
        admission_plugins=admission.plugins(options, list_of_controllers),
        kinds=tuple(options.kinds),
        authorization_modes=authorization.modes(options),
        authentication=authentication.authentication(options),
        audit=audit.audit(options),
        log=log.log(options),
        etcd=etcd.etcd(options),
        tls=tls.tls(options),
        external_hostname=options.external_hostname,
        advertise_address=options.advertise_address,
        requests=requests.requests(options),
        listen=tuple(options.listen),
        exit_with_parent=options.exit_with_parent,
        cluster_signing_cert_file=options.cluster_signing_cert_file,
        cluster_signing_key_file=options.cluster_signing_key_file,
    )
