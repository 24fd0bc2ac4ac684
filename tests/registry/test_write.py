"""The driver of writes: which stages run, in which order, and what restarts, ends or offloads them."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from noxu.api.errors import ApiError
from noxu.registry import persistence
from noxu.registry.draft import OPERATIONS, SUCCESS, Act, Action, DeleteOptions, Draft, Options, Outcome, Stage
from noxu.registry.explain import SUPERSEDED
from noxu.registry.offload import LOOP_LIMIT
from noxu.registry.trace import Trace
from noxu.registry.write import GENERATE_NAME_ATTEMPTS, WRITE_STAGES
from noxu.registry.write.store import DRY_RUN, REMOVED, UNCHANGED
from noxu.values import Object
from tests.registry.world import APPLY_PATCH, GROUP, MERGE_PATCH, NOW, Hooks, World, error_of, widget

APISERVER: Final = Path(__file__).parents[2] / "apiserver" / "noxu"
APPLIED: Final = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
SCALE: Final = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}}
REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class Request(NamedTuple):
    """A valid request of an action, to the Widget a."""

    value: Object | bytes = b""
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed


REQUESTS: Final[dict[Action, Request]] = {
    Action.CREATE: Request(widget("new", size=2)),
    Action.REPLACE: Request(widget(size=2), {"name": "a"}),
    Action.PATCH: Request({"spec": {"size": 2}}, {"name": "a", "media_type": MERGE_PATCH}),
    Action.APPLY: Request({**APPLIED, "spec": {"size": 2}}, {"name": "a", "media_type": APPLY_PATCH}),
    Action.REPLACE_SCALE: Request(SCALE, {"name": "a", "subresource": "scale"}),
    Action.PATCH_SCALE: Request(
        {"spec": {"replicas": 3}}, {"name": "a", "subresource": "scale", "media_type": MERGE_PATCH}
    ),
    Action.APPLY_SCALE: Request(SCALE, {"name": "a", "subresource": "scale", "media_type": APPLY_PATCH}),
    Action.DELETE: Request(fields={"name": "a"}),
    Action.REVIEW: Request(REVIEW),
    Action.ACT: Request({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}}),
    Action.CONNECT: Request({"container": "c"}, {"name": "a", "subresource": "exec"}),
}
QUESTIONS: Final = (Action.REVIEW, Action.ACT, Action.CONNECT)
"""The actions that write nothing themselves."""
DRY: Final[dict[str, Any]] = {
    "options": Options(dry_run=True, field_manager="test", force=True),
    "delete_options": DeleteOptions(dry_run=True),
}
every_action = pytest.mark.parametrize("action", list(Action), ids=lambda action: action.name)


async def send(world: World, action: Action, **fields: Any) -> Object:
    """Send the request of an action while the Widget a exists; the answer."""
    resource = world.widgets
    if action is Action.REVIEW:
        resource = world.resource("selfsubjectreviews", "authentication.k8s.io")
    if action is Action.CONNECT:
        resource = world.resource("pods")
    if action is Action.ACT:
        resource = world.resource("bindings", "")
        world.environment = replace(world.environment, action={"Binding": Act(lambda draft: None, act)}.__getitem__)
    if action is Action.CONNECT:
        resource = world.resource("pods", "").bodies["exec"]
    request = REQUESTS[action]
    value = request.value
    if action is Action.REPLACE:  # an update needs the resourceVersion
        assert isinstance(value, dict)
        version = (await world.stored())["metadata"]["resourceVersion"]
        value = {**value, "metadata": {**value["metadata"], "resourceVersion": version}}
    options = Options(field_manager="test", force=True)
    written = await world.write(action, value, resource=resource, **{"options": options, **request.fields, **fields})
    return world.value_of(written, resource)


async def act(draft: Draft) -> Object:
    return dict(SUCCESS)


async def answer_reviews(draft: Draft) -> Object:
    return {"userInfo": {}}


class Ran(NamedTuple):
    """A stage that ran, in this thread of the process."""

    stage: str
    thread: str


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    """The stages that the driver runs, with or without a trace."""
    found: list[Ran] = []

    def recorded(stage: Stage) -> Stage:
        @wraps(stage)
        def run(draft: Draft) -> Any:
            found.append(Ran(stage.__name__, threading.current_thread().name))
            return stage(draft)

        return run

    for action, stages in list(WRITE_STAGES.items()):
        monkeypatch.setitem(WRITE_STAGES, action, tuple(map(recorded, stages)))
    return found


def names_of(action: Action) -> list[str]:
    return [stage.__name__ for stage in WRITE_STAGES[action]]


def stages_of(ran: list[Ran]) -> list[str]:
    return [step.stage for step in ran]


# -- the order of stages ----------------------------------------------------------------------------------------------


def test_every_action_has_stages_and_an_operation() -> None:
    assert list(WRITE_STAGES) == list(OPERATIONS) == list(Action)


@every_action
async def test_a_traced_write_runs_the_stages_of_its_action(world: World, action: Action) -> None:
    world.use(reviewer=answer_reviews)
    await world.create()
    trace: Trace = []
    await send(world, action, trace=trace)
    assert [step.stage for step in trace] == names_of(action)


@every_action
async def test_an_untraced_write_runs_the_stages_of_its_action(world: World, action: Action, ran: list[Ran]) -> None:
    world.use(reviewer=answer_reviews)
    await world.create()
    ran.clear()
    await send(world, action)
    assert stages_of(ran) == names_of(action)


async def test_the_keys_of_created_objects_share_their_collection_and_namespace(world: World) -> None:
    for name in ("x", "y"):
        await world.create(widget(name))
    x, y = [(await world.entry(name)).key for name in ("x", "y")]
    assert x.collection is y.collection
    assert x.partition is y.partition


@every_action
async def test_a_large_write_runs_the_same_stages_in_a_thread(world: World, action: Action, ran: list[Ran]) -> None:
    world.use(reviewer=answer_reviews)
    await world.create()
    ran.clear()
    await send(world, action, weight=LOOP_LIMIT + 1)
    assert stages_of(ran) == names_of(action)
    assert {step.thread.partition("_")[0] for step in ran} == {"noxu-offload"}


@every_action
async def test_the_trace_makes_no_difference(world: World, action: Action) -> None:
    world.use(reviewer=answer_reviews)
    await world.create()
    assert without_uid(await send(world, action, **DRY)) == without_uid(await send(world, action, trace=[], **DRY))


def without_uid(value: Object) -> Object:
    return {**value, "metadata": {**value.get("metadata", {}), "uid": ""}}


async def test_a_small_write_runs_in_the_event_loop(world: World, ran: list[Ran]) -> None:
    await world.create()
    assert {step.thread for step in ran} == {threading.current_thread().name}


async def test_a_write_becomes_a_large_one_when_it_finds_a_large_object(world: World, ran: list[Ran]) -> None:
    await world.create(widget(color="x" * LOOP_LIMIT))
    ran.clear()
    await world.patch({"spec": {"size": 2}})
    threads = {step.stage: step.thread for step in ran}
    assert threads["find"] == threading.current_thread().name
    assert {threads[name].partition("_")[0] for name in names_of(Action.PATCH)[2:]} == {"noxu-offload"}


def modules_that_import_stages() -> Iterator[str]:
    """The files of the server that import a stage, or the module of the stages."""
    names = {stage.__name__ for stages in WRITE_STAGES.values() for stage in stages}
    modules = {"arrive", "decide", "scale", "store"}
    rooms = {f"noxu.registry.write.{module}" for module in modules}
    for file in sorted(APISERVER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            imported = {alias.name for alias in node.names}
            if (node.module in rooms and imported & names) or (
                node.module == "noxu.registry.write" and imported & modules
            ):
                yield str(file.relative_to(APISERVER))


@pytest.mark.slow
def test_only_one_module_can_define_an_order_of_stages() -> None:
    """Admission is followed by stages of the first phase again, so `decide` calls two of them."""
    assert set(modules_that_import_stages()) == {"registry/write/__init__.py", "registry/write/decide.py"}
    of_decide = {
        node.func.id
        for node in ast.walk(ast.parse((APISERVER / "registry/write/decide.py").read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert of_decide & {stage.__name__ for stages in WRITE_STAGES.values() for stage in stages} == {
        "default",
        "read_body",
        "drop_duplicate_owners",
    }


# -- refusals ---------------------------------------------------------------------------------------------------------


class Refusal(NamedTuple):
    action: Action
    value: Object
    fields: dict[str, Any]
    last: str
    message: str


def refuse(draft: Draft) -> None:
    raise ApiError(403, "no", "Forbidden")


STRICT: Final = Options(field_validation="Strict")
REFUSALS: Final[dict[str, Refusal]] = {
    "a body that is no object": Refusal(Action.CREATE, {"kind": 1}, {}, "read_body", "cannot unmarshal"),
    "unknown fields": Refusal(
        Action.CREATE, widget(sizee=1), {"options": STRICT}, "refuse_unknown", 'unknown field "spec.sizee"'
    ),
    "another namespace": Refusal(
        Action.CREATE, widget(metadata={"namespace": "other"}), {}, "check_url", "the namespace of the provided object"
    ),
    "no such object": Refusal(Action.PATCH, {}, {"name": "b", "media_type": MERGE_PATCH}, "find", '"b" not found'),
    "an old resourceVersion": Refusal(
        Action.REPLACE,
        widget(metadata={"resourceVersion": "1"}),
        {"name": "a"},
        "check_resource_version",
        "has been modified",
    ),
    "an invalid value": Refusal(Action.CREATE, widget("b", size=-1), {}, "validate", "greater than or equal to 0"),
    "a name that exists": Refusal(Action.CREATE, widget(), {}, "persist", '"a" already exists'),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_write_ends_at_the_stage_that_refuses_it(
    world: World, refusal: Refusal, ran: list[Ran]
) -> None:
    await world.create()
    before = world.store.revision
    for trace in (None, trace_of := []):
        ran.clear()
        message = await error_of(world.write(refusal.action, refusal.value, trace=trace, **refusal.fields))
        assert refusal.message in message
        assert stages_of(ran)[-1] == refusal.last
        assert stages_of(ran) == names_of(refusal.action)[: len(ran)]
    assert trace_of[-1].stage == refusal.last
    assert any(refusal.message in note.message for note in trace_of[-1].notes)
    assert world.store.revision == before


@pytest.mark.parametrize(("hooks", "last"), [(Hooks(refuse), "mutate"), (Hooks(None, refuse), "admit")])
async def test_a_write_that_admission_refuses_is_not_stored(
    world: World, hooks: Hooks, last: str, ran: list[Ran]
) -> None:
    world.use(admission=hooks)
    assert await error_of(world.create()) == "no"
    assert stages_of(ran)[-1] == last
    assert not await world.exists()


async def test_an_internal_write_passes_no_admission(world: World) -> None:
    world.use(admission=Hooks(refuse, refuse))
    await world.create(internal=True)
    assert await world.exists()


# -- races ------------------------------------------------------------------------------------------------------------


def racing(world: World, changes: list[Callable[[Object], None]]) -> Hooks:
    """Before each of the first writes is stored, another writer makes one of these changes to the Widget a."""

    async def interfere(draft: Draft) -> None:
        if changes:
            await world.interfere(changes.pop(0))

    return Hooks(None, interfere)


def paint(color: str) -> Callable[[Object], None]:
    def change(value: Object) -> None:
        value["spec"]["color"] = color

    return change


@pytest.mark.parametrize(
    "action", [Action.PATCH, Action.APPLY, Action.PATCH_SCALE, Action.APPLY_SCALE], ids=lambda action: action.name
)
@pytest.mark.parametrize("races", [1, 3])
@pytest.mark.parametrize("weight", [0, LOOP_LIMIT + 1])
async def test_a_write_that_another_writer_overtakes_starts_again_with_the_new_object(
    world: World, action: Action, races: int, weight: int, ran: list[Ran]
) -> None:
    await world.create()
    world.use(admission=racing(world, [paint(str(n)) for n in range(races)]))
    ran.clear()
    value = await send(world, action, weight=weight)
    others = names_of(Action.REPLACE)
    attempt = names_of(action)
    until_admission = attempt[: attempt.index("admit") + 1]
    after = attempt[len(until_admission) :]
    lost = [*until_admission, *others, *after[: after.index("persist") + 1]]
    assert stages_of(ran) == lost * races + attempt
    stored = await world.stored()
    assert stored["spec"]["color"] == str(races - 1)
    assert stored["spec"]["size" if action in (Action.PATCH, Action.APPLY) else "replicas"] in (2, 3)
    assert value["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_a_replacement_that_another_writer_overtakes_conflicts(world: World) -> None:
    """Its resourceVersion is the old one."""
    value = await world.create()
    world.use(admission=racing(world, [paint("red")]))
    assert "the object has been modified" in await error_of(world.replace(widget(size=2, metadata=value["metadata"])))
    assert (await world.stored())["spec"] == {"size": 1, "color": "red"}


async def test_the_trace_shows_both_attempts(world: World) -> None:
    await world.create()
    world.use(admission=racing(world, [paint("red")]))
    trace: Trace = []
    await send(world, Action.PATCH, trace=trace)
    attempt = names_of(Action.PATCH)
    lost = attempt[: attempt.index("persist") + 1]
    assert [step.stage for step in trace] == lost + attempt
    assert [note.message for note in trace[len(lost) - 1].notes] == [SUPERSEDED]
    assert trace[-2].notes[0].message.startswith("stored at resourceVersion")


async def test_warnings_of_an_attempt_that_starts_again_are_not_repeated(world: World) -> None:
    await world.create()
    world.use(admission=racing(world, [paint("red")]))
    outcome = Outcome(warnings=["from the request"])
    await world.patch({"spec": {"size": 2, "sizee": 2}}, outcome=outcome)
    assert outcome.warnings == ["from the request", 'unknown field "spec.sizee"']


async def test_a_delete_that_another_writer_overtakes_deletes_the_new_object(world: World, ran: list[Ran]) -> None:
    await world.create()
    world.use(admission=racing(world, [paint("red")]))
    written = await world.write(Action.DELETE, name="a")
    assert world.value_of(written)["spec"]["color"] == "red"
    assert not await world.exists()


async def test_a_delete_that_another_delete_overtakes_finds_nothing(world: World) -> None:
    await world.create()

    async def delete(draft: Draft) -> None:
        if await world.exists():
            await world.write(Action.DELETE, name="a", internal=True)

    world.use(admission=Hooks(None, delete))
    assert await error_of(world.write(Action.DELETE, name="a")) == f'widgets.{GROUP} "a" not found'


async def test_an_apply_that_finds_no_object_starts_again_when_another_writer_creates_it(
    world: World, ran: list[Ran]
) -> None:
    async def create(draft: Draft) -> None:
        if not await world.exists():
            await world.create(widget(color="red"), internal=True)

    world.use(admission=Hooks(None, create))
    value = await send(world, Action.APPLY)
    assert value["spec"] == {"size": 2, "color": "red"}
    assert stages_of(ran).count("read_applied") == 2


async def test_restarts_are_counted_and_leave_the_loop_to_others(
    world: World, monkeypatch: pytest.MonkeyPatch, ran: list[Ran]
) -> None:
    """Neither the store in memory nor this admission ever waits, and another writer comes first each time."""
    monkeypatch.setattr(persistence, "MAX_ATTEMPTS", 20)
    await world.create()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def interfere(draft: Draft) -> None:
        await world.interfere(paint(f"{turns}-{len(ran)}"))

    running = asyncio.create_task(others())
    world.use(admission=Hooks(None, interfere))
    ran.clear()
    for action in (Action.PATCH, Action.APPLY, Action.PATCH_SCALE, Action.DELETE):
        before, turns = stages_of(ran).count("find"), 0
        assert "the object has been modified" in await error_of(send(world, action)), action
        assert stages_of(ran).count("find") - before == 2 * 20  # those of the others, too
        assert turns >= 20 - 1
    running.cancel()


async def test_a_write_that_never_gets_its_turn_ends_with_its_request(world: World) -> None:
    """The deadline and the stop of the server cancel its task."""
    await world.create()
    began = asyncio.Event()

    async def interfere(draft: Draft) -> None:
        began.set()
        await world.interfere(paint(draft.environment.identifiers.new_uid()))

    world.use(admission=Hooks(None, interfere))
    writing = asyncio.create_task(send(world, Action.PATCH))
    await began.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


# -- names that admission gives ----------------------------------------------------------------------------------------


def renaming(**metadata: Any) -> Hooks:
    """Mutating admission that sets these fields of metadata."""

    async def rename(draft: Draft) -> None:
        draft.new = {**draft.new, "metadata": {**draft.new["metadata"], **metadata}}
        draft.mutated = True

    return Hooks(rename)


CONFIG_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
NAMESPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}}


@pytest.mark.parametrize("dry_run", [False, True], ids=["stored", "dry run"])
@pytest.mark.parametrize("weight", [0, LOOP_LIMIT + 1], ids=["in the loop", "in a thread"])
@pytest.mark.parametrize(
    ("value", "plural", "actions"),
    [
        (widget("c"), "", [Action.CREATE, Action.APPLY]),
        (CONFIG_MAP, "configmaps", [Action.CREATE, Action.APPLY]),
        (NAMESPACE, "namespaces", [Action.CREATE, Action.APPLY]),
        ({**CONFIG_MAP, "kind": "Secret"}, "secrets", [Action.CREATE, Action.APPLY]),
        ({**CONFIG_MAP, "kind": "Event", "involvedObject": {"namespace": "default"}}, "events", [Action.CREATE, Action.REPLACE]),
    ],
    ids=["a custom resource", "a ConfigMap", "a Namespace", "a Secret", "what a PUT creates"],
)  # fmt: skip
async def test_a_name_that_admission_gives_and_another_object_has_is_refused(
    world: World, value: Object, plural: str, actions: list[Action], weight: int, *, dry_run: bool, ran: list[Ran]
) -> None:
    """Whoever creates: as a POST is. What is found under the requested name is still nothing."""
    resource = world.resource(plural) if plural else world.widgets
    taken = {**value, "metadata": {"name": "other"}}
    await world.create(taken, resource=resource)
    world.use(admission=renaming(name="other"))
    options = Options(dry_run=dry_run, field_manager="test")
    for action in actions:
        ran.clear()
        media_type = APPLY_PATCH if action is Action.APPLY else "application/json"
        name = "" if action is Action.CREATE else "c"
        sent = world.write(
            action, value, resource=resource, name=name, media_type=media_type, options=options, weight=weight
        )
        assert await error_of(sent) == f'{resource.group_resource} "other" already exists', action
        assert stages_of(ran).count("persist") == 1
    assert not await world.exists("c", resource=resource)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"name": "other"}, 'metadata.name: Invalid value: "other": field is immutable'),
        ({"namespace": "other"}, "the namespace of the provided object does not match"),
        ({"uid": "other"}, 'metadata.uid: Invalid value: "other": field is immutable'),
        ({"resourceVersion": "1"}, "the object has been modified"),
        ({"resourceVersion": "x"}, "invalid syntax"),
        ({"creationTimestamp": NOW, "generation": 9}, ""),
        ({"deletionTimestamp": NOW}, "metadata.deletionTimestamp: Invalid value"),
        ({"finalizers": ["example.com/f"]}, ""),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("action", [Action.REPLACE, Action.PATCH, Action.APPLY], ids=lambda action: action.name)
async def test_what_admission_changes_in_an_update_is_answered_once(
    world: World, action: Action, changed: Object, error: str, ran: list[Ran]
) -> None:
    """The object keeps its key, and no attempt is repeated."""
    await world.create()
    world.use(admission=renaming(**changed))
    ran.clear()
    message = await error_of(send(world, action))
    assert error in message
    assert (message == "") == (error == "")
    assert stages_of(ran).count("find") == 1
    stored = await world.stored()
    assert (stored["metadata"]["name"], stored["metadata"]["namespace"]) == ("a", "default")


# -- generated names --------------------------------------------------------------------------------------------------

GENERATED: Final = {**widget(), "metadata": {"generateName": "a-"}}


async def test_a_name_is_generated_again_if_it_is_taken(world: World, ran: list[Ran]) -> None:
    await world.create(widget("a-1"))
    world.use(suffixes=["1", "1", "2"])
    ran.clear()
    value = await world.create(GENERATED)
    assert value["metadata"]["name"] == "a-2"
    attempt = names_of(Action.CREATE)
    assert stages_of(ran) == attempt[:-1] * 2 + attempt


async def test_names_are_generated_a_limited_number_of_times(world: World, ran: list[Ran]) -> None:
    await world.create(widget("a-1"))
    world.use(suffixes=["1"] * GENERATE_NAME_ATTEMPTS + ["2"])
    ran.clear()
    message = await error_of(world.create(GENERATED))
    assert message == (
        f'widgets.{GROUP} "a-1" already exists, the server was not able to generate a unique name for the object'
    )
    assert stages_of(ran).count("persist") == GENERATE_NAME_ATTEMPTS


async def test_a_given_name_is_not_changed(world: World) -> None:
    await world.create()
    value = {**widget(), "metadata": {"name": "a", "generateName": "b-"}}
    assert '"a" already exists' in await error_of(world.create(value))


# -- writes without a change of the store -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [action for action in Action if action not in (Action.CREATE, Action.DELETE, *QUESTIONS)],
    ids=lambda action: action.name,
)
async def test_a_write_that_changes_nothing_writes_nothing(world: World, action: Action) -> None:
    await world.create()
    value = await send(world, action)
    before = world.store.revision
    trace: Trace = []
    assert await send(world, action, trace=trace) == value
    assert [note.message for step in trace if step.stage == "persist" for note in step.notes] == [UNCHANGED]
    assert world.store.revision == before


@every_action
async def test_a_dry_run_writes_nothing(world: World, action: Action) -> None:
    world.use(reviewer=answer_reviews)
    old = await world.create()
    before = world.store.revision
    trace: Trace = []
    value = await send(world, action, trace=trace, **DRY)
    assert [step.stage for step in trace] == names_of(action)
    assert world.store.revision == before
    assert await world.stored() == old
    if action in (Action.REPLACE, Action.PATCH, Action.APPLY):
        assert value["spec"]["size"] == 2
    if action is Action.CREATE:
        assert "resourceVersion" not in value["metadata"]
    if action not in (Action.DELETE, *QUESTIONS):
        assert [note.message for step in trace if step.stage == "persist" for note in step.notes] == [DRY_RUN]


async def test_a_dry_run_finds_that_a_name_exists(world: World) -> None:
    await world.create()
    assert '"a" already exists' in await error_of(world.create(options=Options(dry_run=True)))


async def test_an_update_that_removes_the_last_finalizer_of_a_deleted_object_deletes_it(world: World) -> None:
    await world.create(widget(metadata={"finalizers": ["example.com/f"]}))
    await world.write(Action.DELETE, name="a")
    assert await world.exists()
    trace: Trace = []
    value = await world.patch({"metadata": {"finalizers": None}}, trace=trace)
    assert [note.message for step in trace for note in step.notes] == [REMOVED]
    assert value["metadata"]["resourceVersion"] == str(world.store.revision - 1)
    assert not await world.exists()


# -- the end of a write -----------------------------------------------------------------------------------------------


class Follower:
    def __init__(self) -> None:
        self.names: list[str] = []

    async def settled(self, name: str, /) -> None:
        self.names.append(name)


@pytest.mark.parametrize(
    ("action", "fields", "waited"),
    [
        (Action.CREATE, {}, ["new"]),
        (Action.PATCH, {}, ["a"]),
        (Action.DELETE, {}, ["a"]),
        (Action.CREATE, {"options": Options(dry_run=True)}, []),
    ],
    ids=["create", "patch", "delete", "dry run"],
)
async def test_a_write_waits_for_the_controller_of_its_collection(
    world: World, action: Action, fields: Any, waited: list[str]
) -> None:
    await world.create()
    follower = Follower()
    world.use(followers={world.widgets.collection: follower})
    await send(world, action, **fields)
    assert follower.names == waited


async def test_an_object_can_be_read_when_its_write_is_answered(world: World) -> None:
    value = await world.create()
    assert world.cache.revision == int(value["metadata"]["resourceVersion"])
    assert await world.stored() == value
