"""`noxu.explore(…)`: an exploration as a call, for tests and scripts, and what it has found.

    found = noxu.explore("explore.yaml", command=["./bin/manager"])
    found.save("findings/")
    found.assert_nothing()

It is `noxu explore` without its output; see docs/explore.md.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from noxu.api.errors import ApiError
from noxu.config import StartError
from noxu.exploration import exploring, learning, plans, python_programs, recording, report, runs, settings
from noxu.exploration.attempts import Confirmed
from noxu.exploration.exploring import Explored
from noxu.exploration.learning import UnusableController
from noxu.exploration.python_programs import PythonController
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.settings import ControllerCommand, Exploration, SettingsError
from noxu.process.supervision import NotRunnable
from noxu.testing.errors import hidden
from noxu.testing.sources import Source, names, several
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.exploration.plans import RunPlan

__tracebackhide__ = hidden
_PLAN: Final = "explore-{}.yaml"
_RECORDING: Final = "explore-{}.noxu"


@dataclass(frozen=True, slots=True, eq=False)
class ExploreFinding:
    """A bug: `sentence` says what has happened, `text` shows the evidence. `plan`, of the class `plan_class`, shows it again."""

    sentence: str
    plan_class: str
    plan: Object = field(repr=False)
    text: str = field(repr=False)
    _confirmed: Confirmed = field(repr=False)
    _clean: recording.RunRecording = field(repr=False)

    @property
    def recording(self) -> bytes:
        """The content of its file: each write of the run, with what the controller had been shown before, and a run without the plan."""
        return recording.to_bytes(_file(self._confirmed, self._clean))

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write its plan and its recording into a directory, under names that are free. Returns the two paths."""
        return saved(Path(directory), self._confirmed, self._clean)


@dataclass(frozen=True, slots=True, eq=False)
class ExploreResult:
    """What an exploration has found. `unstable` are findings that did not show again when their plan was run once more.

    `unusable`: what is wrong without any fault, "" if nothing is; there is no finding then. `runs` is the number of plans that
    were run, `left` of those for which there was no time. `summary` is what the command shows at its end.
    """

    findings: tuple[ExploreFinding, ...]
    unstable: tuple[ExploreFinding, ...] = field(repr=False)
    unusable: str
    runs: int
    left: int
    seconds: float
    summary: str = field(repr=False)

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the plan and the recording of each finding into a directory, under names that are free. Returns the paths."""
        return [path for found in self.findings for path in found.save(directory)]

    def assert_nothing(self) -> None:
        """Raises AssertionError with all findings, or with what is wrong without any fault."""
        if self.unusable:
            raise AssertionError(self.unusable)
        if self.findings:
            raise AssertionError("\n".join(found.text for found in self.findings))


def explore(
    config: str | os.PathLike[str] | Object | None = None,
    *,
    command: Sequence[str | os.PathLike[str]] | None = None,
    controller: PythonController | None = None,
    environment: Mapping[str, str] | None = None,
    manifests: Source | Iterable[Source] = (),
    workload: Iterable[Object] = (),
    nodes: int | None = None,
    invariants: Iterable[Object] = (),
    ignore: str | Iterable[str] = (),
    classes: str | Iterable[str] = (),
    plan: str | os.PathLike[str] | Object | None = None,
    mutate: bool = False,
    webhooks: bool | Object | None = None,
    budget: str = "",
    jobs: int | None = None,
    quiet: str = "",
    directory: str | os.PathLike[str] | None = None,
) -> ExploreResult:
    """Run a controller again and again, each time with one thing that a cluster does sooner or later, and say what went wrong.

    `config` is an `explore.yaml`, or its content; arguments add to it, or replace what it says. `command` is that of the
    controller. `controller` may be a function instead (`"package.module:function"`, or itself), or a module with handlers of
    kopf: these run as processes of this interpreter, so that they can be killed. `environment` is what the controller gets
    besides KUBECONFIG and PATH. `workload` are steps: `[{"apply": "sample.yaml"}, {"delete": {"kind": "Widget", "name": "a"}}]`.
    `classes` are those of plans to run, none: all of them. `plan`: run this one only. `budget` and `quiet` are durations such as
    `"5m"` and `"300ms"`. So many `jobs` run at a time, each in a process; None: as many as keep the processors busy, at most 16. `directory`: where relative paths begin and the controller runs, None: the working directory.

    It blocks for as long as it explores, at most for the budget and for what was found by then, which is run again; a coroutine calls
    it by `asyncio.to_thread`.
    Raises ValueError for arguments that are wrong, and StartError if the controller does not start.
    """
    place = Path() if directory is None else Path(directory)
    given = {
        "manifests": list(several(manifests)), "workload": list(workload), "nodes": nodes,
        "invariants": list(invariants), "ignore": list(names(ignore)), "classes": list(names(classes)),
        "mutate": mutate, "webhooks": webhooks, "budget": budget, "jobs": jobs, "quiet": quiet,
    }  # fmt: skip
    exploration = _with(_read(config, place), {name: value for name, value in given.items() if value}, place)
    exploration = _with_controller(exploration, command, controller, environment or {}, directory)
    if not exploration.workload:
        raise SettingsError("there is no workload: workload=[{'apply': 'sample.yaml'}]")
    chosen = None if plan is None else _plan(plan, place)
    try:
        return _explored(runs.check(exploration), chosen)
    except NotRunnable as error:
        raise SettingsError(f"controller: {error}") from None
    except ApiError as error:
        raise SettingsError(f"plan: {error.message}; is it for these manifests?") from None
    except RunFailed as error:
        raise StartError(str(error)) from None
    finally:
        runs.allow()  # what has ended this exploration is not about later ones


def _read(config: str | os.PathLike[str] | Object | None, place: Path) -> Exploration:
    if config is None:
        return Exploration((), ())
    return settings.parse(config, place) if isinstance(config, dict) else settings.read(place / config)


def _with(exploration: Exploration, given: Object, place: Path) -> Exploration:
    """What is given replaces what is there, except that manifests and steps are added."""
    parsed = settings.parse(given, place)
    changed: dict[str, Any] = {name: getattr(parsed, name) for name in given}
    for name in {"manifests", "workload", "invariants", "ignore"} & changed.keys():
        changed[name] = (*getattr(exploration, name), *changed[name])
    return replace(exploration, **changed)


def _with_controller(
    exploration: Exploration,
    command: Sequence[str | os.PathLike[str]] | None,
    controller: PythonController | None,
    environment: Mapping[str, str],
    directory: str | os.PathLike[str] | None,
) -> Exploration:
    if command is not None and controller is not None:
        raise SettingsError("command and controller: give one of them")
    if isinstance(command, str):
        raise SettingsError(
            f"command: {command!r} is a text; it is a list of words, such as ['./manager', '--verbose']"
        )
    wanted = controller if command is None else command
    first = exploration.controllers[0] if exploration.controllers else ControllerCommand(())
    if wanted is not None:
        words, needed = python_programs.command_of(wanted)
        first = replace(first, command=words, environment={**needed, **first.environment})
    first = replace(first, environment={**first.environment, **environment})
    if first.directory is None and directory is not None:
        first = replace(first, directory=Path(directory))
    exploration = replace(exploration, controllers=(first, *exploration.controllers[1:]))
    if not all(each.command for each in exploration.controllers):
        raise SettingsError("there is no controller: command=['./manager'], or controller='package.module:function'")
    return exploration


def _plan(plan: str | os.PathLike[str] | Object, place: Path) -> RunPlan:
    return plans.parse(plan) if isinstance(plan, dict) else plans.read(place / plan)


def _explored(exploration: Exploration, plan: RunPlan | None) -> ExploreResult:
    outcome, began = Explored(), time.monotonic()
    if plan is not None:
        exploration = replace(exploration, jobs=1)  # no runs at a time, for which each would need a network of its own
    with ThreadPoolExecutor(1) as pool:  # the thread of the caller may have an event loop
        learns = pool.submit(learning.learn, exploration)
        try:
            runs.wait_for([learns])
            outcome.learnt = learnt = learns.result()
        except UnusableController as error:
            text = "\n".join(report.unusable_lines(error.findings, error.recording))
            return ExploreResult((), (), text, 0, 0, time.monotonic() - began, text)
        except BaseException:
            runs.interrupt()
            raise
    chosen = list(learnt.plans) if plan is None else [plan]
    for happening in exploring.explore(exploration, learnt, chosen, until=began + exploration.budget):
        outcome.add(happening)
    outcome.finish(chosen, time.monotonic() - began)
    clean = learnt.recordings[0]
    return ExploreResult(
        tuple(_finding(each, clean) for each in outcome.findings),
        tuple(_finding(each, clean) for each in outcome.unstable),
        "",
        len(outcome.judged),
        len(outcome.left),
        outcome.seconds,
        "\n".join(report.summary_lines(outcome)),
    )


def _finding(confirmed: Confirmed, clean: recording.RunRecording) -> ExploreFinding:
    text = "\n".join(report.finding_lines(confirmed, (), clean))
    return ExploreFinding(
        confirmed.finding.sentence, confirmed.plan.klass, confirmed.plan.value, text, confirmed, clean
    )


def _file(confirmed: Confirmed, clean: recording.RunRecording) -> recording.RunFile:
    finding: Object = {
        "sentence": confirmed.finding.sentence,
        "details": list(confirmed.finding.details),
        "others": [other.sentence for other in confirmed.others],
        "stable": confirmed.is_stable,
    }
    return recording.RunFile(confirmed.plan.value, confirmed.recording, finding, clean)


def saved(directory: Path, confirmed: Confirmed, clean: recording.RunRecording) -> list[Path]:
    """Write the plan and the recording of a finding, under names that are free: no file is overwritten."""
    directory.mkdir(parents=True, exist_ok=True)
    text = f"# {confirmed.finding.sentence}\n{plans.text_of(confirmed.plan)}"
    content = recording.to_bytes(_file(confirmed, clean))
    for number in itertools.count(confirmed.number):
        plan, recorded = (directory / name.format(number) for name in (_PLAN, _RECORDING))
        if recorded.exists():
            continue
        try:
            with plan.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        recorded.write_bytes(content)
        return [plan, recorded]
    raise AssertionError("numbers end")
