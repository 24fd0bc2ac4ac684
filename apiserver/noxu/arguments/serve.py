"""The arguments of `noxu serve`; those about security, controllers and etcd have modules of their own."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from noxu.arguments import controllers, etcd, security, values
from noxu.config import (
    COMPACT_EVERY,
    DEFAULT_CONTEXT,
    DEFAULT_DATA,
    DEFAULT_EVENT_TTL,
    DEFAULT_HOST,
    DEFAULT_PORT,
    EXEC_ANSWERS,
    MAX_IN_FLIGHT,
    MAX_MUTATING_IN_FLIGHT,
    MAX_TENANTS,
    MIN_REQUEST_TIMEOUT,
    REQUEST_TIMEOUT,
    Config,
    LogConfig,
    Requests,
)
from noxu.controllers import manager
from noxu.expressions import expression
from noxu.process.listeners import parse as parse_place
from noxu.process.program import ProgramRun
from noxu.security import cors

ALWAYS: Final = -1


def add_serve(command: argparse.ArgumentParser) -> None:
    command.description = "Serve the Kubernetes API for your CRDs until Ctrl-C (SIGINT, SIGTERM)."
    _options(command, DEFAULT_PORT, f"{DEFAULT_DATA}")


def _options(command: argparse.ArgumentParser, port: int, data: str) -> None:
    """Add all options. `port` is the default, `data` says what the default is."""
    _files(command)
    _address(command, port)
    _data(command, data)
    _kubeconfig(command)
    security.add_tls(command)
    _behaviour(command)
    _time(command)
    _workloads(command)
    _faults(command)
    _manners(command)
    security.add_authentication(command)
    security.add_authorization(command)
    security.add_signing(command)
    _requests(command)
    security.add_audit(command)
    _log(command)
    etcd.add_etcd(command)
    controllers.add_leader_election(command)


def _files(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("files", "They are applied as kubectl apply does it: see docs/cli.md.")
    group.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="CRDs and objects to load at the start: YAML or JSON files, directories, - for stdin",
    )
    values.repeated(
        group,
        "-k",
        "DIR",
        "load what kustomize makes of this directory; needs kustomize or kubectl",
        parse=Path,
        dest="kustomizations",
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


def _address(command: argparse.ArgumentParser, port: int) -> None:
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
        default=port,
        help="the port to listen on; 0 selects a free one (default: %(default)s)",
    )
    group.add_argument(
        "--secure-port", type=values.port, metavar="PORT", help="--port and --tls, as kube-apiserver spells them"
    )
    values.repeated(
        group,
        "--listen",
        "PLACE",
        "a further socket: unix:PATH, a Unix socket to make, or fd:N, one that the process has inherited",
        parse=_place,
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


def _data(command: argparse.ArgumentParser, default: str) -> None:
    group = command.add_argument_group("data")
    storage = group.add_mutually_exclusive_group()
    storage.add_argument("--data", type=Path, metavar="DIR", help=f"the data directory (default: {default})")
    storage.add_argument("--memory", action="store_true", help="keep data in memory only")
    group.add_argument(
        "--from",
        dest="initial",
        type=Path,
        metavar="FILE",
        help="begin with the objects of a file of noxu snapshot, in memory or in a new data directory; the file is only read",
    )
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
        "--history",
        type=values.history,
        default=COMPACT_EVERY,
        metavar="DURATION",
        help="the time for which older states and who wrote them are kept: a duration, all, or off, which keeps who wrote nothing "
        "(default: 5m0s)",
    )
    group.add_argument(
        "--annotate-invalid",
        action="store_true",
        help="annotate stored objects that are invalid since their CRD was changed",
    )


def _time(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("time", "The time that objects have: see docs/control.md.")
    group.add_argument(
        "--clock",
        default="",
        metavar="MODE",
        help="frozen, frozen=TIME, offset=1h, offset=-1h, speed=60; `noxu clock` sets it while the server runs (default: real)",
    )
    group.add_argument(
        "--deterministic",
        type=values.count,
        metavar="SEED",
        help="uids, generated names and times repeat from run to run: a second passes with each write",
    )


def _workloads(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "workloads", "Simulated nodes: pods become ready, and nothing runs. See docs/workloads.md."
    )
    group.add_argument(
        "--nodes",
        type=values.nodes,
        metavar="NUMBER",
        help="nodes to simulate, and the controllers of workloads to run; 0: these, without a node (default: neither)",
    )
    values.repeated(
        group, "--stages", "FILE", "rules of what happens to pods and other objects, instead of the usual ones"
    )
    group.add_argument(
        "--exec",
        choices=EXEC_ANSWERS[1:],
        default="",
        help="what a command in a pod answers for which there is no rule (default: it is refused)",
    )


def _faults(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("faults", "Break it on purpose: see docs/faults.md.")
    group.add_argument("--faults", type=Path, metavar="FILE", help="a plan of faults to start with")
    values.repeated(group, "--preset", "NAME", "the faults of a class of bugs, such as conflicts")
    group.add_argument(
        "--fault-seed",
        type=int,
        metavar="NUMBER",
        help="what their chance depends on (default: that of the plan, or 0)",
    )
    group.add_argument(
        "--latency", default="", metavar="DURATION", help="let every answer be late, such as 5ms or 5ms..20ms"
    )


def _manners(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("manners", "What clients do badly: see docs/manners.md.")
    group.add_argument(
        "--record-requests",
        action="store_true",
        help="record what clients ask from the start, for noxu report and noxu rbac; else from their first use",
    )
    group.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write all requests, answers, events and writes to this file, for noxu replay: see docs/record-and-replay.md",
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
    controllers.add_controllers(group)
    controllers.add_plugins(group)
    values.repeated(
        group,
        "--webhook-service",
        "NAMESPACE/NAME[:PORT]=HOST:PORT",
        "the address of webhooks that refer to this service of a cluster",
        parse=values.service,
    )
    values.repeated(
        group,
        "--kinds",
        "FILE",
        "OpenAPI documents, or directories of them, whose kinds to serve, such as those of metrics.k8s.io",
        parse=Path,
    )
    group.add_argument(
        "--max-tenants",
        type=values.count,
        default=MAX_TENANTS,
        metavar="N",
        help="the number of tenants that the server may have: see docs/tenants.md (default: %(default)s)",
    )
    group.add_argument(
        "--tenant-ports",
        type=values.ports,
        metavar="FIRST-LAST",
        help="the ports of tenants, for a container that publishes some (default: any that is free)",
    )
    values.feature_gates(group)
    values.kubernetes(group, several=False)
    group.add_argument(
        "--exit-with-parent", action="store_true", help="stop when the process that has started this one ends"
    )


def add_run(command: argparse.ArgumentParser) -> None:
    _options(command, 0, "none, in memory")
    command.description = (
        "Run a command with a server of its own, in memory and on a free port, which ends with it. The command has the "
        "variables KUBECONFIG and NOXU_URL; its exit status is that of noxu run. The options are those of noxu serve."
    )
    command.add_argument_group("server").add_argument(
        "--server",
        default="",
        metavar="SERVER",
        help="the URL or the kubeconfig of a running server: the command has a tenant of it",
    )
    group = command.add_argument_group(
        "program under test",
        "With one of these, the command has a process group of its own, of which nothing outlives it.",
    )
    group.add_argument(
        "--kill-after",
        type=_kill_after,
        metavar="WHEN",
        help="kill the command (SIGKILL) once: a duration after its start, such as 5s, or after a write that it has committed and "
        "before the answer: '3 writes'",
    )
    group.add_argument(
        "--restart",
        nargs="?",
        type=values.count,
        const=ALWAYS,
        metavar="N",
        help="start the command again when it has ended or was killed: always, or with --restart=N at most N times",
    )
    group.add_argument(
        "--log-file",
        type=Path,
        metavar="FILE",
        help="append the output of the command, and a line for each start, kill and exit",
    )


_WRITES: Final = expression(r"(?P<number>[1-9][0-9]{0,8}) ?writes?")


def _kill_after(text: str) -> float | int:
    """Seconds (float), or a number of writes (int)."""
    if match := _WRITES.fullmatch(text):
        return int(match["number"])
    with contextlib.suppress(argparse.ArgumentTypeError):
        if duration := values.seconds(text):
            return duration
    raise values.refused("must be a duration, such as 5s, or a number of writes, such as '3 writes'")


def _program(options: argparse.Namespace) -> ProgramRun | None:
    """How the command runs, if it is a program under test."""
    if (options.kill_after, options.restart, options.log_file) == (None, None, None):
        return None
    seconds = options.kill_after if isinstance(options.kill_after, float) else 0.0
    return ProgramRun(seconds, None if options.restart == ALWAYS else options.restart or 0, options.log_file)


def _killing_rules(options: argparse.Namespace) -> tuple[Mapping[str, Any], ...]:
    """The fault that kills the command after so many writes."""
    if not isinstance(options.kill_after, int):
        return ()
    match = {"verbs": ["write"]}
    return ({"name": "kill-after", "match": match, "nth": options.kill_after, "process": {"kill": "after"}},)


def complete_run(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    if not options.passed_on:
        raise ValueError("a command is missing; it stands after --, as in: noxu run config/crd -- pytest")
    options.memory = options.data is None
    options.program = _program(options)
    if options.server and isinstance(options.kill_after, int):
        raise ValueError("--kill-after: writes are counted by a server of the command, and not for --server")
    if options.server:
        _check_tenant(options)
    complete_serve(options)
    level = logging.DEBUG if options.verbose else logging.WARNING
    options.config = replace(
        options.config,
        log=replace(options.config.log, level=level),
        stop_within=0.0,  # when the command has ended, no client waits for an answer
        fault_rules=_killing_rules(options),
    )


_OF_TENANTS: Final = frozenset(
    {
        "kill_after",
        "restart",
        "log_file",
        "program",
        "passed_on",
        "server",
        "files",
        "kustomizations",
        "keep_going",
        "no_cache",
        "kubeconfig",
        "verbose",
        "quiet",
        "memory",
    }
)
"""The options that `noxu run --server` takes."""


def _check_tenant(options: argparse.Namespace) -> None:
    """Raises ValueError for options of a server, of which a tenant has none of its own."""
    command = argparse.ArgumentParser()
    add_run(command)
    for name, default in vars(command.parse_args([])).items():
        if name not in _OF_TENANTS and getattr(options, name) != default:
            raise ValueError(f"--{name.replace('_', '-')} is an option of the server, which --server names")


def complete_serve(options: argparse.Namespace) -> None:
    """Set `options.config`. Raises ValueError for options that are invalid, by themselves or in combination."""
    values.set_features(options)
    if options.watch and not options.kustomizations and all(str(path) == "-" for path in options.files):
        raise ValueError("--watch needs files, directories, or -k")
    if options.context and not options.merge_kubeconfig:
        raise ValueError("--context needs --merge-kubeconfig")
    if options.clock and options.deterministic is not None:
        raise ValueError("--deterministic has a clock of its own: leave --clock out")
    if options.deterministic is not None and not options.memory:
        raise ValueError("--deterministic needs --memory: objects that exist already would be younger than new ones")
    manager.check_workloads(options.nodes, stages=bool(options.stages), exec=options.exec, option="--")
    if options.initial is not None and options.etcd_servers:
        raise ValueError("--from is for --memory and for a new data directory: noxu copy takes a file into etcd")
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
        features=options.features[options.kubernetes[0]],
        annotate_invalid=options.annotate_invalid,
        webhook_services=tuple(options.webhook_service),
        event_ttl=options.event_ttl,
        history=options.history,
        initial=options.initial,
        profile=options.profile,
        controllers=list_of_controllers,
        leader_election=controllers.leader_election(options),
        admission_plugins=controllers.plugins(options, list_of_controllers),
        kinds=tuple(options.kinds),
        authorization_modes=security.authorization_modes(options),
        authentication=security.authentication(options),
        audit=security.audit(options),
        log=_own_log(options),
        tracing_config_file=options.tracing_config_file,
        etcd=etcd.etcd(options),
        tls=security.tls(options),
        external_hostname=options.external_hostname,
        advertise_address=options.advertise_address,
        requests=_request_limits(options),
        listen=tuple(options.listen),
        max_tenants=options.max_tenants,
        tenant_ports=options.tenant_ports,
        exit_with_parent=options.exit_with_parent,
        cluster_signing_cert_file=options.cluster_signing_cert_file,
        cluster_signing_key_file=options.cluster_signing_key_file,
        clock=options.clock,
        faults=options.faults,
        latency=options.latency,
        presets=tuple(options.preset),
        fault_seed=options.fault_seed,
        record_requests=options.record_requests,
        record=options.record,
        deterministic=options.deterministic,
        nodes=options.nodes,
        stages=tuple(Path(path) for path in options.stages),
        exec=options.exec,
    )


# -- requests ----------------------------------------------------------------------------------------------------------


def _requests(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("requests", "Limits on requests. The options are kube-apiserver's.")
    group.add_argument(
        "--request-timeout",
        type=_timeout,
        default=REQUEST_TIMEOUT,
        metavar="DURATION",
        help="the time for a request that is not a watch (default: 1m0s)",
    )
    group.add_argument(
        "--min-request-timeout",
        type=values.count,
        default=MIN_REQUEST_TIMEOUT,
        metavar="SECONDS",
        help="a watch without a timeout lasts one to two times as long (default: %(default)s)",
    )
    for option, number, what in (
        ("--max-requests-inflight", MAX_IN_FLIGHT, "that only read"),
        ("--max-mutating-requests-inflight", MAX_MUTATING_IN_FLIGHT, "of other kinds"),
    ):
        group.add_argument(
            option,
            type=values.count,
            default=number,
            metavar="N",
            help=f"the number of requests {what} that are handled at the same time, beyond which they are refused, except those "
            "of system:masters; 0: no limit (default: %(default)s)",
        )
    values.repeated(
        group,
        "--cors-allowed-origins",
        "REGEXP,...",
        "the origins of web pages that may use the server, such as ^https://dashboard\\.example\\.com$",
        parse=_origins,
    )


def _request_limits(options: argparse.Namespace) -> Requests:
    return Requests(
        timeout=options.request_timeout,
        min_timeout=options.min_request_timeout,
        max_in_flight=options.max_requests_inflight,
        max_mutating_in_flight=options.max_mutating_requests_inflight,
        cors_allowed_origins=values.items(options.cors_allowed_origins),
    )


def _timeout(text: str) -> float:
    """A duration in Go's syntax, in seconds, that is not 0: every request would be too late."""
    duration = values.seconds(text)
    if not duration:
        raise values.refused("must be a positive duration, such as 30s or 5m")
    return duration


def _origins(text: str) -> str:
    try:
        cors.check(values.items([text]))
    except ValueError as error:
        raise values.refused(str(error)) from None
    return text


# -- the log -----------------------------------------------------------------------------------------------------------


def _log(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("log", "The server's own log, on stderr: see docs/logs.md.")
    options.add_argument("--log", choices=("text", "json"), default="text", help="its format (default: %(default)s)")
    options.add_argument("--log-requests", action="store_true", help="write a line for each request")
    options.add_argument(
        "--tracing-config-file",
        type=Path,
        metavar="FILE",
        help="send spans of requests to an OpenTelemetry collector, as this TracingConfiguration says: see docs/tracing.md",
    )
    levels = options.add_mutually_exclusive_group()
    levels.add_argument("--verbose", action="store_true", help="log more, such as why credentials are refused")
    levels.add_argument("--quiet", action="store_true", help="log warnings and errors only")


def _own_log(options: argparse.Namespace) -> LogConfig:
    return LogConfig(options.log, _level_of_log(options), options.log_requests)


def _level_of_log(options: argparse.Namespace) -> int:
    if options.verbose:
        return logging.DEBUG
    return logging.WARNING if options.quiet else logging.INFO


def _place(text: str) -> str:
    try:
        return str(parse_place(text))
    except ValueError as error:
        raise values.refused(str(error)) from None
