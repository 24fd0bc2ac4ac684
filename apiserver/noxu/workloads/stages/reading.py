"""The files of `--stages`: documents of YAML, each of which is a Stage of kwok or has Noxu's own Stages.

Everything that is wrong with a file is said, with the number of the document and the path in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from noxu.config import StartError
from noxu.go import yaml
from noxu.values import Json
from noxu.workloads.kubelet.commands import CommandRule
from noxu.workloads.stages import kwok, own
from noxu.workloads.stages.fields import DocumentFaults
from noxu.workloads.stages.stage import POD_KINDS, Stage

_SEPARATOR: Final = re.compile(rb"^---(?:[ \t].*)?$", re.MULTILINE)
MAX_SHOWN: Final = 20
"""Faults that a message has; the others are counted."""


class Stages(NamedTuple):
    """What all files say together."""

    stages: Sequence[Stage] = ()
    commands: Sequence[CommandRule] = ()

    @property
    def replace_pods(self) -> bool:
        """Whether pods have no other life."""
        return any(stage.replaces and stage.target in POD_KINDS for stage in self.stages)

    @property
    def of_pods(self) -> list[Stage]:
        return [stage for stage in self.stages if stage.target in POD_KINDS]


def read_files(paths: Iterable[Path]) -> Stages:
    """Raises StartError."""
    stages: list[Stage] = []
    commands: list[CommandRule] = []
    for path in paths:
        try:
            body = path.read_bytes()
        except OSError as error:
            raise StartError(f"--stages {path} cannot be read: {error.strerror or error}") from None
        faults = DocumentFaults()
        found = read(body, faults)
        if faults:
            more = [f"and {len(faults) - MAX_SHOWN} more"] if len(faults) > MAX_SHOWN else []
            raise StartError(f"--stages {path}: " + "\n  ".join([*faults[:MAX_SHOWN], *more]))
        stages += found.stages
        commands += found.commands
    return Stages(stages, commands)


def read(body: bytes, faults: DocumentFaults) -> Stages:
    """What a file says, which is of no use if there are faults."""
    stages: list[Stage] = []
    commands: list[CommandRule] = []
    texts = [text for text in _SEPARATOR.split(body) if text.strip()]
    for number, text in enumerate(texts, 1):
        wrong = DocumentFaults()
        for value in _documents(text, wrong):
            kind = (value.get("apiVersion"), value.get("kind"))
            if kind == (kwok.VERSION, "Stage"):
                stages.append(kwok.read(value, wrong))
            elif kind == (own.VERSION, own.KIND):
                more, rules = own.read(value, wrong)
                stages += more
                commands += rules
            else:
                known = f"{own.VERSION} {own.KIND}, or {kwok.VERSION} Stage"
                wrong.add("kind", f"{kind[0]} {kind[1]} is not understood: a document is {known}")
        faults += [f"document {number}: {fault}" if len(texts) > 1 else fault for fault in wrong]
    if not stages and not commands and not faults:
        faults.append("it has no stages")
    return Stages(stages, commands)


def _documents(text: bytes, faults: DocumentFaults) -> Iterator[dict[str, Json]]:
    try:
        document = yaml.read(text)
    except ValueError as error:
        faults.append(str(error))
        return
    faults += document.duplicates
    value = document.value
    if value is None:
        return
    if not isinstance(value, dict):
        faults.append("a document is an object")
        return
    if value.get("kind") == "List":
        yield from (each for each in value.get("items") or () if isinstance(each, dict))
        return
    yield value
