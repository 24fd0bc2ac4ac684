"""What runs are judged by: findings, and what the clean runs say. The rules are in `judging`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from noxu.exploration.masks import Mask, States
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import RecordedChange, RunRecording
from noxu.exploration.shapes import Shape

TRANSIENT: Final = (
    "pods", "replicasets.apps", "endpoints", "endpointslices.discovery.k8s.io", "controllerrevisions.apps", "nodes",
    "persistentvolumes",
)  # fmt: skip
"""What controllers of the cluster make and remove as they go."""


class RunFinding(NamedTuple):
    """`subject`: the shape or the step that it is about. `revisions`: of the writes that prove it. `details`: lines below the sentence.

    `step`: with which the burst of the write began that proves it; 0: it is about a state.
    """

    kind: str
    subject: str
    sentence: str
    revisions: tuple[int, ...] = ()
    details: tuple[str, ...] = ()
    step: int = 0

    @property
    def signature(self) -> tuple[str, str]:
        """Two runs that have it show the same bug."""
        return self.kind, self.subject


MADE: Final = "made"
"""In the place of an effect: a creation by any client."""


class CleanRuns(NamedTuple):
    """What the clean runs say: how often the controller created and deleted each shape, at most; and the end."""

    mask: Mask
    ends: Sequence[States]
    """After each step of the workload, the start first."""
    created: Mapping[Shape, int]
    deleted: Mapping[Shape, int]
    steps: Mapping[str, float]
    """The titles of steps, with the longest time."""
    habits: frozenset[str] = frozenset()
    """Bad habits that the controller has anyhow."""
    settled: Sequence[int] = ()
    """The numbers of the steps after which the controller is done."""
    in_bursts: Mapping[tuple[str, Shape, int], int] = {}
    """How often it created or deleted each shape in the burst that began with a step, and how often anyone made one, at most."""
    conflicts: int = 0
    """How often another write was faster than one of it, at most."""


def author_of(change: RecordedChange) -> str:
    """Who has made a change, as a sentence says it."""
    return "the controller" if change.is_of_controller else change.author


def own_steps(plan: RunPlan) -> range:
    """The numbers of the steps that a plan adds to the workload, among those of a recording; 0 is the start."""
    if not plan.steps:
        return range(0)
    [extra] = plan.steps
    after = int(extra["after"])
    return range(after + 1, after + 1 + len(extra["steps"]))


def is_done(plan: RunPlan, recording: RunRecording) -> bool:
    """Whether what a plan adds was accepted. A server or a webhook may refuse it, which is no fault of the controller."""
    return not any(step.failure for n, step in enumerate(recording.steps) if n in own_steps(plan))
