"""The arguments of the commands about a running server, which ask it below /_noxu/."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from noxu.arguments import values

CLOCK_ACTIONS: Final = {
    "show": "",
    "real": "",
    "freeze": "[TIME]",
    "offset": "DURATION",
    "speed": "FACTOR",
    "advance": "DURATION",
    "advance-to": "TIME",
}
"""What `noxu clock` does, and the value that it needs; one in brackets may be left out."""

# -- noxu restore ------------------------------------------------------------------------------------------------------


def add_restore(command: argparse.ArgumentParser) -> None:
    command.description = "Make all objects of a running server what they were when a snapshot was taken. Watches stay open, and see what changes."
    command.add_argument("name", metavar="NAME", help="the name of the snapshot, see noxu snapshot list")
    values.control(command, "table")


def complete_restore(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)


# -- noxu user ---------------------------------------------------------------------------------------------------------


def add_user(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print a kubeconfig for another user of a running server: with a token over HTTP, with a client certificate over TLS. "
        "The credentials are valid until the server stops for good."
    )
    command.add_argument("name", metavar="NAME", help="the name of the user")
    command.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group of the user, besides system:authenticated; can be repeated",
    )
    command.add_argument("--uid", default="", help="the uid of the user, which only a token can have")
    command.add_argument(
        "--to", type=Path, metavar="FILE", help="write the kubeconfig to this file, which only its owner can read"
    )
    values.control(command, "kubeconfig")


def complete_user(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)


# -- noxu clock --------------------------------------------------------------------------------------------------------


def add_clock(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show, set and advance the time that objects have in a running server. What becomes due while it is advanced has "
        "happened when the command ends."
    )
    listed = "; ".join(f"{action} {value}".strip() for action, value in CLOCK_ACTIONS.items())
    command.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=tuple(CLOCK_ACTIONS),
        metavar="ACTION",
        help=f"{listed} (default: show)",
    )
    command.add_argument(
        "value",
        nargs="?",
        metavar="VALUE",
        help="a time of RFC 3339, a duration such as 90s, 1h30m or 365d, or a factor",
    )
    values.control(command, "table")


def complete_clock(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
    wanted = CLOCK_ACTIONS[options.action]
    if options.value is not None and not wanted:
        raise ValueError(f"{options.action} takes no value")
    if options.value is None and wanted and not wanted.startswith("["):
        raise ValueError(f"{options.action} needs a {wanted}")
    if options.action == "speed":
        try:
            float(options.value)
        except ValueError:
            raise ValueError(f"{options.value} is not a number, such as 60") from None


# -- noxu log ----------------------------------------------------------------------------------------------------------


def add_log(command: argparse.ArgumentParser) -> None:
    command.description = (
        "List what was written to a running server: when, by whom, and which fields have changed. The oldest write is the "
        "first line. `noxu serve --history` says how long writes are kept."
    )
    command.add_argument(
        "what",
        nargs="?",
        metavar="TYPE[/NAME]",
        help="a kind, by any of its names, or one object (default: everything)",
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="the name of the object, as kubectl has it")
    command.add_argument("-n", "--namespace", default="", help="the namespace of the objects (default: all)")
    command.add_argument(
        "--since",
        default="",
        metavar="WHEN",
        help="later writes only: a revision, a duration until now or a time, such as 1042, 5m, 2030-01-01T00:00:00Z",
    )
    command.add_argument("--limit", type=int, metavar="N", help="the newest N writes (default: 100)")
    command.add_argument(
        "--why",
        action="store_true",
        help="show what the client had been shown since its previous write, the newest first",
    )
    command.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    values.control(command, "table")


def complete_log(options: argparse.Namespace) -> None:
    """Set `options.type` and `options.name`. Raises ValueError."""
    values.check_control(options)
    type_, slash, name = (options.what or "").rpartition("/") if options.name is None else (options.what, "", "")
    if not slash:
        type_, name = options.what or "", options.name or ""
    if slash and not (type_ and name):
        raise ValueError(f"{options.what} is neither TYPE nor TYPE/NAME")
    options.type, options.name = type_, name
    if options.follow and options.output == "yaml":
        raise ValueError("--follow has no output yaml: json has an object in each line")


# -- noxu fault --------------------------------------------------------------------------------------------------------

FAULT_ACTIONS: Final = ("list", "add", "replace", "fired", "clear", "shrink")


def add_fault(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Break a running server on purpose: add rules, see which requests they have hit, clear them. "
        "A rule is FIELD=VALUE words, as in a plan; docs/faults.md has them all."
    )
    command.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=FAULT_ACTIONS,
        metavar="ACTION",
        help="list the rules (default), add some, replace all by a plan, list what was hit (fired), clear all or those named; shrink: "
        "find the few faults with which a command fails",
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="FIELD=VALUE to add a rule; names of rules to clear; the file that `fired -o json` has printed, to shrink",
    )
    command.add_argument(
        "-f",
        dest="file",
        type=Path,
        metavar="FILE",
        help="a plan: YAML with rules, presets, a seed; of shrink: the file to write",
    )
    command.add_argument(
        "--preset", action="append", default=[], metavar="NAME", help="the rules of a class of bugs; can be repeated"
    )
    command.add_argument(
        "--seed", type=int, metavar="NUMBER", help="what chance depends on (default: that of the plan)"
    )
    command.add_argument("--verbose", action="store_true", help="show what the command of shrink prints")
    values.control(command, "table")


def complete_fault(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
    if options.action == "add" and not (options.words or options.file or options.preset):
        raise ValueError("add needs a rule such as error=Conflict, -f FILE or --preset NAME")
    if options.action == "replace" and options.file is None:
        raise ValueError("replace needs -f FILE")
    if options.action != "add" and options.preset:
        raise ValueError("--preset is for add; a plan has `presets`")
    if options.action not in ("add", "replace", "shrink") and options.file is not None:
        raise ValueError("-f is for add, replace and shrink")
    if options.action != "replace" and options.seed is not None:
        raise ValueError("--seed is for replace: chance depends on one seed")
    if options.action == "shrink" and len(options.words) != 1:
        raise ValueError("shrink needs one file, which `noxu fault fired -o json` has printed")
    if (options.action == "shrink") != bool(options.passed_on):
        raise ValueError(
            "a command stands after --: noxu fault shrink fired.json -- noxu run --faults {plan} -- pytest"
        )
    if options.verbose and options.action != "shrink":
        raise ValueError("--verbose is for shrink")
    if options.action not in ("add", "clear", "shrink") and options.words:
        raise ValueError(f"{options.action} takes no words")


# -- noxu tenant -------------------------------------------------------------------------------------------------------

TENANT_ACTIONS: Final = ("list", "create", "get", "delete")
_WITH_KUBECONFIG: Final = ("create", "get")


def add_tenant(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Create, list, show and delete the tenants of a running server: whole servers beside it, each for a test. "
        "See docs/tenants.md."
    )
    command.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=TENANT_ACTIONS,
        help="list them (default), create one, get one with its kubeconfig, delete some",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="the name of a tenant; a new one gets a free one")
    group = command.add_argument_group("a new tenant")
    source = group.add_mutually_exclusive_group()
    source.add_argument("--empty", action="store_true", help="with nothing of what the server itself was started with")
    source.add_argument("--snapshot", default="", metavar="NAME", help="with the objects of a snapshot of the server")
    group.add_argument(
        "-f",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="with the objects of a file or a directory, too; can be repeated",
    )
    group.add_argument("--ttl", default="", metavar="DURATION", help="delete it after this time (default: 1h)")
    command.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="write the kubeconfig to this file, which only its owner can read, and print its path",
    )
    values.control(command, "kubeconfig", by_default="kubeconfig for create and get, table for others")


def complete_tenant(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
    action, number = options.action, len(options.names)
    if (action == "list" and number) or (action == "create" and number > 1):
        raise ValueError(f"{action} takes {'no' if action == 'list' else 'one'} NAME")
    if (action == "get" and number != 1) or (action == "delete" and not number):
        raise ValueError(f"{action} needs a NAME")
    if action != "create":
        given = {"--empty": options.empty, "--snapshot": options.snapshot, "-f": options.files, "--ttl": options.ttl}
        if wrong := [name for name, value in given.items() if value]:
            raise ValueError(f"{wrong[0]} is for create")
    if action not in _WITH_KUBECONFIG and (options.to is not None or options.output == "kubeconfig"):
        raise ValueError(f"{action} shows no kubeconfig: create and get do")
    options.output = options.output or ("kubeconfig" if action in _WITH_KUBECONFIG else "table")


# -- noxu idle ---------------------------------------------------------------------------------------------------------


def add_idle(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Return when a running server is idle: no request is under way, watches have sent everything, controllers have nothing "
        "to do, and no client has asked for anything for a while."
    )
    command.add_argument(
        "--quiet", metavar="DURATION", help="for how long no client asks for anything (default: 100ms)"
    )
    command.add_argument(
        "--timeout", metavar="DURATION", help="after which time to give up, with status 1 (default: 10s)"
    )
    command.add_argument(
        "--ignore", metavar="RESOURCES", help="plurals that do not count, with commas (default: leases,events)"
    )
    values.control(command, "table")


def complete_idle(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
