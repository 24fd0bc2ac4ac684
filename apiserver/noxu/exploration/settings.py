"""What to explore: `explore.yaml`, or the arguments of the command, read and checked.

    manifests: [config/crd, config/rbac]    # what every run begins with
    kinds: [CronJob.v1beta1.batch]          # older versions of built-in kinds; OpenAPI documents of other kinds
    nodes: 2                                # simulated; none: no controllers of workloads
    stages: [stages.yaml]                   # files of docs/stages.md: what happens to pods and other objects
    exec: succeed                           # what a command in a pod answers; none: it is refused; or rules:
    # exec: [{pods: "db-*", command: [psql, -c, "*"], stdout: "1", code: 0}, …]
    controller:
      command: [./bin/manager, --leader-elect=false]    # several controllers: a list of these
      environment: {KUBE_CONFIG: $KUBECONFIG}
      directory: .
      inCluster: true                       # it reads the well-known files of a pod
      hosts: {a-client.default.svc.cluster.local: 127.0.0.1}    # where it finds what it connects to
    beside: {command: [python3, stub.py]}   # what it connects to, new for each run; several: a list
    webhooks: true                          # it serves them: {port: 9443, certDir: $TMPDIR/k8s-webhook-server/serving-certs}
    workload: [{apply: sample.yaml}, …]     # see steps.py
    invariants:                             # CEL over objects('plural'), when a run is idle or at every revision
      - {always: "…", message: "…"}
    ignore: ["*.status.lastReconcile", "configmaps/leader*"]
    resync: 30s                             # after so long the controller looks at everything by itself
    budget: 10m
    jobs: 2

Paths are relative to the file. What is misspelt is refused, with its place.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from noxu.arguments.explore import CLASSES
from noxu.config import ServiceName
from noxu.control.arguments import duration
from noxu.exploration import invariants, older_kinds, steps
from noxu.exploration.invariants import Invariant
from noxu.exploration.steps import WorkloadStep
from noxu.features import meant
from noxu.testing.sources import Source, path_of
from noxu.values import Json, Object
from noxu.workloads.kubelet.commands import CommandResult, CommandRule
from noxu.workloads.stages import own
from noxu.workloads.stages.fields import DocumentFaults, DocumentFields

BUDGET: Final = 600.0  # seconds
QUIET: Final = 0.3  # seconds without a request, after which a controller is idle
SPEC: Final = "spec"
START_WITHIN: Final = 30.0  # seconds for the first request of a controller


class SettingsError(ValueError):
    """The message names the place, and says what is right."""


@dataclass(frozen=True, slots=True)
class ControllerCommand:
    """A program under test. `environment` is what it gets besides PATH and KUBECONFIG. $NAME in both is replaced."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    in_cluster: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Addresses by the names that the program resolves, besides those of /etc/hosts."""

    @property
    def has_mounts(self) -> bool:
        """Whether it sees files that are not those of this machine."""
        return self.in_cluster or bool(self.hosts)


class WebhookServer(NamedTuple):
    """The controller's own one. `directory`: where it looks for tls.crt and tls.key; "": in $TMPDIR, as controller-runtime does.

    `services` are those that the manifests name; the certificate and its key are for them.
    """

    port: int = 9443
    directory: str = ""
    services: tuple[ServiceName, ...] = ()
    certificate: bytes = b""
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Exploration:
    """`budget` and `quiet` are in seconds. `classes`: those of plans to run; (): all."""

    controllers: tuple[ControllerCommand, ...]
    workload: tuple[WorkloadStep, ...]
    manifests: tuple[Source, ...] = ()
    kinds: tuple[Path | str, ...] = ()
    """OpenAPI documents, as `noxu serve --kinds` has them, and names of older versions of built-in kinds."""
    nodes: int | None = None
    answers: tuple[CommandRule, ...] = ()
    """What commands in simulated pods answer; a command without a rule is refused."""
    stages: tuple[Path, ...] = ()
    """Files of stages, as `noxu serve --stages` has them."""
    beside: tuple[ControllerCommand, ...] = ()
    """Programs that begin and end with each run, and are no controllers: what these connect to."""
    invariants: tuple[Invariant, ...] = ()
    ignore: tuple[str, ...] = ()
    budget: float = BUDGET
    jobs: int = 0
    """Runs at a time; 0: as many as keep the processors busy."""
    quiet: float = QUIET
    resync: float = 0.0
    """After so many seconds the controller looks at everything by itself; 0: what it does not see at once, it does not see."""
    sleeps: float = 0.0
    """So many seconds in a run are programs waited for that are known to sleep until a moment of their own, to try again then."""
    start_within: float = START_WITHIN
    webhooks: WebhookServer | None = None
    mutate: bool = False
    classes: tuple[str, ...] = ()
    clean_runs: int = 2

    @property
    def classes_to_run(self) -> tuple[str, ...]:
        """Fields are changed on request only: that takes a run for each of them."""
        chosen = self.classes or tuple(name for name in CLASSES if name != SPEC)
        return (*chosen, SPEC) if self.mutate and SPEC not in chosen else chosen

    def with_command(self, command: Sequence[str]) -> Exploration:
        """The same for another program; its environment stays."""
        first = self.controllers[0] if self.controllers else ControllerCommand(())
        return replace(self, controllers=(replace(first, command=tuple(command)),))


def read(path: Path) -> Exploration:
    """Raises SettingsError."""
    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    try:
        return parse(value, path.parent)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def parse(value: Json, directory: Path) -> Exploration:
    """Raises SettingsError."""
    if not isinstance(value, dict):
        raise SettingsError("it is an object with controller, workload, …")
    _check_names(value, _FIELDS, "")
    read_: dict[str, Any] = {}
    for name, given in value.items():
        attribute, reader = _FIELDS[name]
        try:
            read_[attribute] = reader(given, directory)
        except ValueError as error:
            raise SettingsError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    read_.setdefault("controllers", ())
    read_.setdefault("workload", ())
    return Exploration(**read_)


def _check_names(value: Object, known: Mapping[str, object] | Sequence[str], place: str) -> None:
    for name in value:
        if name not in known:
            raise SettingsError(
                f"{place}{name}: there is no such field{meant(str(name), known)}: there are {', '.join(known)}"
            )


_OF_PROGRAM: Final = ("command", "environment", "directory")
_OF_CONTROLLER: Final = (*_OF_PROGRAM, "inCluster", "hosts")


def _controllers(value: Json, directory: Path) -> tuple[ControllerCommand, ...]:
    return _programs(value, directory, "controller", _OF_CONTROLLER)


def _beside(value: Json, directory: Path) -> tuple[ControllerCommand, ...]:
    found = _programs(value, directory, "beside", _OF_PROGRAM)
    if not all(each.command for each in found):
        raise SettingsError("beside: it lacks command, such as [python3, stub.py]")
    return found


def _programs(value: Json, directory: Path, name: str, known: Sequence[str]) -> tuple[ControllerCommand, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(
        _program(each, directory, f"{name}[{n}]" if isinstance(value, list) else name, known)
        for n, each in enumerate(values)
    )


def _program(value: Json, directory: Path, place: str, known: Sequence[str]) -> ControllerCommand:
    if not isinstance(value, dict):
        raise SettingsError(f"{place}: it is an object with {', '.join(known)}")
    _check_names(value, known, f"{place}.")
    command = value.get("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise SettingsError(f"{place}.command: it is a list of words, such as [./bin/manager, --verbose]")
    environment = value.get("environment") or {}
    if not isinstance(environment, dict) or not all(isinstance(text, str | int) for text in environment.values()):
        raise SettingsError(f"{place}.environment: it has texts by names")
    in_cluster = value.get("inCluster", False)
    if not isinstance(in_cluster, bool):
        raise SettingsError(f"{place}.inCluster: it is true or false")
    hosts = value.get("hosts") or {}
    if not isinstance(hosts, dict) or not all(_is_address(address) for address in hosts.values()):
        raise SettingsError(f"{place}.hosts: it has addresses by names, such as {{db.default.svc: 127.0.0.1}}")
    place_of = directory / str(value["directory"]) if value.get("directory") else None
    return ControllerCommand(
        tuple(command), {name: str(text) for name, text in environment.items()}, place_of, in_cluster, hosts
    )


def _is_address(value: Json) -> bool:
    try:
        ipaddress.ip_address(str(value))
    except ValueError:
        return False
    return True


def _invariants(value: Json, _directory: Path) -> tuple[Invariant, ...]:
    if not isinstance(value, list):
        raise SettingsError("invariants: it is a list of {always: …, message: …} or {idle: …, message: …}")
    found = []
    for n, each in enumerate(value):
        place = f"invariants[{n}]"
        if not isinstance(each, dict):
            raise SettingsError(f"{place}: it is {{always: …, message: …}} or {{idle: …, message: …}}")
        _check_names(each, ("always", "idle", "message"), f"{place}.")
        named = [name for name in ("always", "idle") if name in each]
        if len(named) != 1:
            raise SettingsError(f"{place}: it has one of always, idle")
        expression = str(each[named[0]])
        try:
            invariants.compiled(expression)
        except ValueError as error:
            raise SettingsError(f"{place}.{named[0]}: {error}") from None
        found.append(Invariant(expression, str(each.get("message") or expression), named[0] == "always"))
    return tuple(found)


def _sources(value: Json, directory: Path) -> tuple[Source, ...]:
    """Paths, objects, and texts with manifests."""
    values = value if isinstance(value, list) else [value]
    found: list[Source] = []
    for each in values:
        try:
            path = path_of(each)
        except TypeError:
            raise ValueError("it is a list of paths, or of objects") from None
        if path is not None and not (directory / path).exists():
            raise ValueError(f"there is no file {directory / path}")
        found.append(each if path is None else directory / path)
    return tuple(found)


def _files(value: Json, directory: Path) -> tuple[Path, ...]:
    paths = tuple(directory / text for text in _texts(value, directory))
    for path in paths:
        if not path.exists():
            raise ValueError(f"there is no file {path}")
    return paths


def _kinds(value: Json, directory: Path) -> tuple[Path | str, ...]:
    names = [text for text in _texts(value, directory) if older_kinds.is_name(text)]
    for name in names:
        older_kinds.document(name)
    return (*names, *_files([text for text in _texts(value, directory) if text not in names], directory))


def _texts(value: Json, _directory: Path) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise ValueError("it is a list of texts")
    return tuple(values)


def _classes(value: Json, directory: Path) -> tuple[str, ...]:
    wanted = _texts(value, directory)
    for name in wanted:
        if name not in CLASSES:
            raise ValueError(f"{name!r} is none of {', '.join(CLASSES)}{meant(name, CLASSES)}")
    return wanted


def _answers(value: Json, _directory: Path) -> tuple[CommandRule, ...]:
    if value == "succeed":
        return (CommandRule("*", (), CommandResult()),)
    if not isinstance(value, list):
        raise ValueError(
            "it is `succeed`, or a list of rules such as {pods: 'db-*', command: [pg_isready], stdout: ok}"
        )
    faults = DocumentFaults()
    rules = tuple(own.command_rule(fields) for fields in DocumentFields({"exec": value}, "", faults).items("exec"))
    if faults:
        raise ValueError(faults[0])
    return rules


def _number(value: Json, _directory: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("it is a number that is not negative")
    return value


def _webhooks(value: Json, _directory: Path) -> WebhookServer | None:
    if isinstance(value, bool):
        return WebhookServer() if value else None
    if not isinstance(value, dict):
        raise ValueError("it is true, or {port: 9443, certDir: $HOME/certificates}")
    _check_names(value, ("port", "certDir"), "webhooks.")
    port = value.get("port", WebhookServer().port)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 1 << 16:
        raise ValueError(f"port: {port!r} is no number of a port")
    directory = str(value.get("certDir", ""))
    if directory and not directory.startswith(("$TMPDIR", "$HOME")):
        raise ValueError("certDir: it begins with $TMPDIR or $HOME, those of the run: nothing else is written")
    return WebhookServer(port, directory)


def _boolean(value: Json, _directory: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is true or false")
    return value


def _seconds(value: Json, _directory: Path) -> float:
    if not isinstance(value, str):
        raise ValueError("it is a duration, such as 10m")
    return duration(value)


_FIELDS: Final[Mapping[str, tuple[str, Any]]] = {
    "manifests": ("manifests", _sources),
    "kinds": ("kinds", _kinds),
    "nodes": ("nodes", _number),
    "exec": ("answers", _answers),
    "stages": ("stages", _files),
    "controller": ("controllers", _controllers),
    "beside": ("beside", _beside),
    "workload": ("workload", lambda value, directory: tuple(steps.parse(value, directory))),
    "invariants": ("invariants", _invariants),
    "ignore": ("ignore", _texts),
    "budget": ("budget", _seconds),
    "jobs": ("jobs", _number),
    "quiet": ("quiet", _seconds),
    "resync": ("resync", _seconds),
    "webhooks": ("webhooks", _webhooks),
    "mutate": ("mutate", _boolean),
    "classes": ("classes", _classes),
}
