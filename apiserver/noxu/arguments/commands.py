"""The commands: what they do, where their arguments are, and examples in their help.

The arguments of a command are added by `add_COMMAND(parser)` of a module of this package. `complete_COMMAND(options)`,
if there is one, converts the options to those of the command, and raises ValueError for invalid combinations. Only the
module of the command that is run is imported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from noxu.arguments import values
from noxu.config import KUBERNETES_VERSION
from noxu.expressions import expression

COMMANDS: Final = {
    "serve": "run the server",
    "run": "run a command with a server of its own",
    "explore": "find what breaks a controller",
    "envtest": "write the programs that envtest starts",
    "validate": "validate objects without a server",
    "explain-write": "show what each stage of a write does to objects",
    "lint": "check that CRDs are structural, and fix them",
    "skeleton": "print the skeletons of schemas, which determine pruning",
    "generate": "print objects that a CRD accepts, or refuses",
    "stubs": "write types of Python for the objects of CRDs",
    "docs": "write reference pages of the kinds that CRDs define",
    "test": "run cases that lie beside manifests, without a server",
    "preview": "show what new CRDs change for stored objects",
    "convert": "convert objects in files to another version, and check conversions",
    "migrate": "rewrite stored objects in their storage version",
    "check": "verify what is stored",
    "copy": "copy stored objects between data directories, files and etcd",
    "snapshot": "take, list and delete snapshots of a running server, or copy stored objects into a file",
    "restore": "make all objects of a running server what they were at a snapshot",
    "export": "write objects as YAML that kubectl applies",
    "tenant": "create, list and delete servers beside a running one, each for a test",
    "user": "make a kubeconfig for another user of a running server",
    "idle": "wait until nothing happens in a running server",
    "fault": "break a running server on purpose",
    "clock": "set and advance the time of objects in a running server",
    "log": "list what was written to a running server, by whom, and why",
    "report": "report what the clients of a running server do badly, and what to change",
    "rbac": "print the least roles for what the clients of a running server have asked",
    "open": "show a recording in a browser, or make one file of it",
    "replay": "send the requests of a recording again, and compare the answers",
    "diff": "compare what a running server had at two moments, or the CRDs in files",
    "blame": "show who wrote each line of an object last",
    "bisect": "find when a condition on an object became true",
    "completion": "print what completes commands and options in a shell",
    "version": "print the version",
    "help": "describe a command",
}


_MODULES: Final = {
    **dict.fromkeys(("serve", "run"), "serve"),
    **dict.fromkeys(("validate", "explain-write", "lint", "skeleton", "test", "generate", "stubs", "docs"), "checks"),
    **dict.fromkeys(("migrate", "check", "copy", "snapshot", "export"), "stored"),
    **dict.fromkeys(("restore", "tenant", "user", "clock", "fault", "log", "idle"), "control"),
    "explore": "explore",
    **dict.fromkeys(("preview", "convert"), "upgrades"),
    **dict.fromkeys(("report", "rbac"), "manners"),
    **dict.fromkeys(("open", "replay"), "recordings"),
    **dict.fromkeys(("diff", "blame", "bisect"), "past"),
    **dict.fromkeys(("envtest", "completion", "version", "help"), "commands"),
}
"""The modules of their arguments."""


WITH_MOMENTS: Final = ("diff", "blame", "bisect")
"""Commands to which -5m is a moment of the past, and no option."""
AGO: Final = expression(r"-[0-9.]+[a-zµ][0-9.a-zµ]*")
RUNS_A_COMMAND: Final = frozenset({"run", "fault", "explore"})
"""Commands that have another one behind `--`, whose words are not theirs."""


class CommandArguments(NamedTuple):
    """The functions of a command's arguments: see this module."""

    add: Callable[[argparse.ArgumentParser], None]
    complete: Callable[[argparse.Namespace], None] | None


def arguments_of(name: str) -> CommandArguments:
    """The arguments of a command."""
    module, suffix = import_module(f"noxu.arguments.{_MODULES[name]}"), name.replace("-", "_")
    return CommandArguments(getattr(module, f"add_{suffix}"), getattr(module, f"complete_{suffix}", None))


# -- examples ----------------------------------------------------------------------------------------------------------


EXAMPLES: Final[dict[str, Sequence[tuple[str, str]]]] = {
    "": (
        ("noxu serve", "keep data in .noxu, and print how kubectl finds the server"),
        ("noxu serve --memory config/crd objects/", "with CRDs and objects, and without a trace"),
        ("noxu validate -f config/crd -f objects/", "would a server accept these objects?"),
        ("noxu lint config/crd", "are these CRDs structural?"),
        ("eval $(noxu envtest env)", "for test suites that use envtest"),
        ("noxu help serve", "the options of a command"),
    ),
    "serve": (
        ("noxu serve", "keep data in .noxu"),
        ("noxu serve --memory --port 0 config/crd", "with the CRDs of a project, on a free port"),
        ("noxu serve --watch config/crd config/samples", "apply files again when they change"),
        ("noxu serve --merge-kubeconfig", "as a context of your own kubeconfig: kubectl --context noxu get crds"),
        ("noxu serve -k config/default --keep-going", "what kustomize makes, without objects that are refused"),
        ("helm template chart --include-crds | noxu serve --memory --create-namespace -", "what Helm makes"),
        ("noxu serve --tls --authorization-mode RBAC", "HTTPS, and users with rights of their own"),
        ("noxu serve --profile envtest", "no controllers, as kube-apiserver by itself"),
    ),
    "run": (
        ("noxu run config/crd -- pytest", "with the CRDs of a project"),
        ("noxu run --tls --authorization-mode RBAC -- go test ./...", "with the options of noxu serve"),
        ("noxu run config/crd -- sh", "a shell in which kubectl has a server of its own"),
    ),
    "explore": (
        ("noxu explore explore.yaml -- ./bin/manager", "what to explore stands in the file"),
        ("noxu explore -f config/crd --apply sample.yaml --delete -- ./bin/manager", "the same without a file"),
        ("noxu explore explore.yaml --plan explore-1.yaml -- ./bin/manager", "run the plan of a finding again"),
    ),
    "envtest": (
        ("eval $(noxu envtest env) && go test ./...", "run a suite with Noxu"),
        ("noxu envtest -p path bin/noxu", "write the programs to bin/noxu, and print its path"),
    ),
    "validate": (
        ("noxu validate -f config/crd -f objects/", "CRDs and objects in directories"),
        (
            "helm template chart --include-crds | noxu validate --strict -",
            "what Helm makes; unknown fields are errors",
        ),
        ("noxu validate --stored -f config/crd", "would the objects in .noxu survive a change of their CRDs?"),
    ),
    "explain-write": (
        ("noxu explain-write -f config/crd -f object.yaml", "in memory"),
        ("noxu explain-write --kubeconfig .noxu/kubeconfig -f object.yaml", "a dry run on a server"),
    ),
    "lint": (
        ("noxu lint config/crd", "print violations, and what to do about them"),
        ("noxu lint --fix --in-place config/crd", "fix what is unambiguous"),
    ),
    "skeleton": (("noxu skeleton config/crd/bases/widgets.yaml", "the fields that pruning keeps"),),
    "stubs": (("noxu stubs config/crd -o widgets_types.pyi", "a TypedDict for each kind and version"),),
    "docs": (("noxu docs config/crd -o reference/", "pages in Markdown, and one in HTML"),),
    "generate": (
        ("noxu generate widgets.example.com -f config/crd -n 20", "twenty Widgets"),
        ("noxu generate widgets.example.com -f config/crd --invalid", "one that is refused, and why"),
    ),
    "test": (
        ("noxu test tests/", "all files *_test.yaml"),
        ("noxu test --run shrink tests/widgets_test.yaml", "cases whose names contain a text"),
        ("noxu test --update tests/", "accept what came into stored and converted"),
        ("noxu test --watch .", "again whenever a file changes"),
    ),
    "preview": (
        ("noxu preview -f config/crd --kubeconfig ~/.kube/config", "for the objects of a running server"),
        ("noxu preview -f config/crd --old base/config/crd --old objects/", "for objects in files"),
    ),
    "convert": (
        ("noxu convert -f config/crd -f objects/ --to v2", "as a server shows them at this version"),
        ("noxu convert -f config/crd --round-trips 100", "do conversions lose anything?"),
    ),
    "migrate": (
        ("noxu migrate", "in .noxu, while no server uses it"),
        ("noxu migrate --kubeconfig ~/.kube/config widgets.example.com", "one CRD of a running server"),
    ),
    "check": (
        ("noxu check .noxu", "a data directory"),
        ("noxu check --etcd-servers http://127.0.0.1:2379", "what is in etcd"),
    ),
    "copy": (
        ("noxu copy --from .noxu --to http://127.0.0.1:2379", "from a data directory to etcd"),
        ("noxu copy --from backup.db --to restored", "from a snapshot to a new data directory"),
    ),
    "snapshot": (
        ("noxu snapshot create base", "of the server of your kubeconfig; `noxu restore base` goes back to it"),
        ("noxu snapshot list --server http://127.0.0.1:6440", "of another one"),
        ("noxu snapshot save backup.db", "a backup of a running server, for `noxu serve --from backup.db`"),
        ("noxu snapshot --etcd-servers http://127.0.0.1:2379 backup.db", "of what is in etcd"),
        ("noxu snapshot --data .noxu backup.db", "of a data directory that no server uses"),
    ),
    "restore": (("noxu restore base", "what has changed since `noxu snapshot create base` is undone"),),
    "export": (
        ("noxu export --kubeconfig .noxu/kubeconfig > objects.yaml", "everything that a running server has"),
        ("noxu export --data .noxu --to deploy", "of a data directory that no server uses, a file for each object"),
        ("noxu export --kubeconfig .noxu/kubeconfig -n attic -l app=web widgets", "some of it"),
    ),
    "user": (
        ("noxu user jane --group developers --to jane.kubeconfig", "of the server of your kubeconfig"),
        ("noxu user jane --kubeconfig .noxu/kubeconfig -o json", "with the name, the groups and the URL, too"),
    ),
    "idle": (
        ("kubectl apply -f widget.yaml && noxu idle", "until the operator has done what it does about it"),
        ("noxu idle --quiet 1s --timeout 1m", "with an operator that takes its time"),
    ),
    "fault": (
        ("noxu fault add resource=widgets verbs=update error=Conflict times=3", "the next three updates conflict"),
        ("noxu fault add resource=widgets verbs=create reset=after nth=2", "written, but the client does not learn it"),
        ("noxu fault add --preset slow-api", "a class of bugs"),
        ("noxu fault fired", "which requests were hit"),
        ("noxu fault shrink fired.json -- noxu run --faults {plan} -- pytest", "which of them make a test fail"),
        ("noxu fault clear", "no faults any more"),
    ),
    "tenant": (
        ("noxu tenant create --to kubeconfig", "as the server was started; its kubeconfig"),
        ("noxu tenant create mine --empty -f config/crd --ttl 10m -o json", "with a name, other CRDs, for ten minutes"),
        ("noxu tenant list", "all tenants, and when they end"),
        ("noxu tenant delete mine", "its port and its memory are free afterwards"),
    ),
    "clock": (
        ("noxu clock freeze", "object time stands still"),
        ("noxu clock advance 36h", "everything that is due until then happens now"),
        ("noxu clock speed 60", "an hour passes in a minute"),
        ("noxu clock real", "object time is that of the system again"),
    ),
    "log": (
        ("noxu log", "the newest writes of all kinds"),
        ("noxu log widgets/a -n default --why", "what the writers of an object had been shown before"),
        ("noxu log deploy --since 5m -o json", "for programs"),
        ("noxu log -f", "and go on with what is written from now on"),
    ),
    "report": (
        ("noxu report", "every client of the server of your kubeconfig"),
        ("noxu report --client operator/ -o html > report.html", "a page about one of them"),
        ("noxu report --since 5m -o json", "for programs"),
    ),
    "rbac": (
        ("noxu rbac --client operator/", "of the server of your kubeconfig"),
        ("noxu rbac --bind system:serviceaccount:shop:operator", "with bindings to the account that runs it"),
    ),
    "open": (
        ("noxu open bug.noxu", "in a browser, at the address that it prints"),
        ("noxu open bug.noxu --html bug.html", "as one file, which needs no server"),
        ("noxu open good.noxu bad.noxu", "two side by side: where they part, and how they end"),
    ),
    "replay": (
        ("noxu replay bug.noxu", "against a new server in memory"),
        ("noxu replay bug.noxu --kubeconfig .noxu/kubeconfig", "against a running one"),
    ),
    "diff": (
        ("noxu diff 5m", "everything that has changed in five minutes"),
        ("noxu diff 1042 1057", "between two revisions"),
        ("noxu diff 5m now widgets -n attic", "of one kind, in one namespace"),
        ("noxu diff before-the-upgrade widgets/a", "one object since a snapshot"),
        ("noxu diff base/config/crd config/crd", "CRDs in files: what breaks, with objects that show it"),
    ),
    "blame": (
        ("noxu blame widgets/a", "its lines, with the revision, the time and the writer of each"),
        ("noxu blame deployments/web -n attic --at 5m", "as it was five minutes ago"),
    ),
    "bisect": (
        ("noxu bisect widgets/a 'self.status.size == 3'", "when that became true, and every change since"),
        ("noxu bisect pods/web-0 \"self.status.phase == 'Failed'\" -o json", "for programs"),
    ),
    "completion": (
        ("source <(noxu completion bash)", "bash: in this shell, or as a line of ~/.bashrc"),
        ("source <(noxu completion zsh)", "zsh: in this shell, or as a line of ~/.zshrc after compinit"),
        ("noxu completion fish > ~/.config/fish/completions/noxu.fish", "fish"),
    ),
    "version": (("noxu version --output json", "for programs"),),
    "help": (("noxu help serve", "the same as noxu serve --help"),),
}


def examples_of(command: str) -> str:
    """The examples of a command, for its help."""
    lines = "\n".join(f"  {line}\n      {what}" for line, what in EXAMPLES[command])
    return f"examples:\n{lines}"


# -- the arguments of commands that have few ---------------------------------------------------------------------------


def add_envtest(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write the programs etcd, kube-apiserver and kubectl for test suites that use envtest, and print the variable that "
        "names their folder: eval $(noxu envtest env)"
    )
    command.add_argument(
        "--tree",
        action="store_true",
        help="write them to DIR/k8s/VERSION-SYSTEM-MACHINE, where setup-envtest and kube-api-test look for them",
    )
    command.add_argument(
        "--kubernetes-version",
        type=values.kubernetes_version,
        default=KUBERNETES_VERSION,
        metavar="VERSION",
        help="the version in the name of that folder; the API is the same (default: %(default)s)",
    )
    command.add_argument(
        "-p",
        dest="print",
        choices=("env", "path"),
        default="env",
        help="print a command of the shell that sets KUBEBUILDER_ASSETS, or the path of the folder (default: env)",
    )
    command.add_argument(
        "directory",
        nargs="?",
        metavar="DIR",
        help="the folder, which is created (default, and for the word env: one in the user's cache)",
    )


SHELLS: Final = ("bash", "zsh", "fish")


def add_completion(command: argparse.ArgumentParser) -> None:
    command.description = "Print what makes a shell complete the commands, options and values of noxu."
    command.add_argument("shell", choices=SHELLS, help="the shell")


def add_help(command: argparse.ArgumentParser) -> None:
    command.description = "Describe a command and its options, or list all commands."
    command.add_argument("about", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="the command")


def add_version(command: argparse.ArgumentParser) -> None:
    command.description = "Print the versions of Noxu, of the Kubernetes API that it serves, and of Python."
    values.output(command)
