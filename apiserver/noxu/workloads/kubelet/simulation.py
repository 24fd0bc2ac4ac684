"""What persons have asked of simulated pods while a server runs: rules by their names.

A rule goes before the annotation of a pod, and the newest rule that fits counts: it holds for pods that come later, too. With RECOVER
the annotation counts again, which others may have changed meanwhile, and no back-off is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.api.names import is_named_like
from noxu.values import Object
from noxu.workloads.kubelet.behaviours import NORMAL_LIFE, PodBehaviour, parse
from noxu.workloads.pods import SIMULATE

RECOVER: Final = "recover"


class PodRule(NamedTuple):
    """`pods` is the name of a pod, or NAMESPACE/NAME; * stands for any text. `text` is written as in the annotation, or RECOVER."""

    pods: str
    text: str

    def fits(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        return is_named_like(self.pods, metadata.get("namespace", ""), metadata["name"])


class Simulation:
    """That of one server."""

    def __init__(self) -> None:
        self.rules: list[PodRule] = []
        self.selected: Callable[[Object], str] | None = None
        """What rules of faults say about a pod, "": nothing; None: there are none. They go before all others."""

    def add(self, rule: PodRule) -> None:
        """It replaces one for the same pods. Raises ValueError for a text that is not known."""
        if rule.text != RECOVER:
            parse(rule.text)
        self.rules = [*(old for old in self.rules if old.pods != rule.pods), rule]

    def text(self, pod: Object) -> str:
        """What a pod is to do, as it is written; "": nothing else than to come up."""
        if self.selected is not None and (selected := self.selected(pod)):
            return selected
        annotation = str((pod["metadata"].get("annotations") or {}).get(SIMULATE) or "")
        for rule in reversed(self.rules):
            if rule.fits(pod):
                return rule.text if rule.text != RECOVER else ", ".join(filter(None, ("ready", annotation)))
        return annotation

    def behaviour(self, pod: Object) -> PodBehaviour:
        """Raises ValueError for an annotation that is not known."""
        text = self.text(pod)
        return parse(text) if text else NORMAL_LIFE
