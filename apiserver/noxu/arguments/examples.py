"""Examples in the help of every command: the line, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
        ("noxu snapshot --etcd-servers http://127.0.0.1:2379 backup.db", "of what is in etcd"),
        ("noxu snapshot --data .noxu backup.db", "of a data directory that no server uses"),
    ),
    "export": (
        ("noxu export --kubeconfig .noxu/kubeconfig > objects.yaml", "everything that a running server has"),
        ("noxu export --data .noxu --to deploy", "of a data directory that no server uses, a file for each object"),
        ("noxu export --kubeconfig .noxu/kubeconfig -n attic -l app=web widgets", "some of it"),
    ),
    "completion": (
        ("source <(noxu completion bash)", "bash: in this shell, or as a line of ~/.bashrc"),
        ("source <(noxu completion zsh)", "zsh: in this shell, or as a line of ~/.zshrc after compinit"),
        ("noxu completion fish > ~/.config/fish/completions/noxu.fish", "fish"),
    ),
    "version": (("noxu version --output json", "for programs"),),
    "help": (("noxu help serve", "the same as noxu serve --help"),),
}


def text(command: str) -> str:
    """The examples of a command, for its help."""
    lines = "\n".join(f"  {line}\n      {what}" for line, what in EXAMPLES[command])
    return f"examples:\n{lines}"
