"""A misspelt name is an error where it is given: a test must not pass for ever because of one.

`PARAMETERS` has every parameter of the public functions that a text, or several, can be given for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_overloads
from urllib.request import Request, urlopen

import pytest

import noxu as package
from noxu import ApiError, Noxu, UnknownKind
from noxu.process.supervision import NotRunnable
from tests.testing.widgets import DEFINITION, widget

Wrong = Callable[[Noxu], object]


class Checked(NamedTuple):
    """A call with a misspelt name, the text of the error, and its type."""

    call: Wrong
    message: str
    error: type[Exception] = ValueError


class Free(NamedTuple):
    """Any text is right, because …"""

    reason: str


@pytest.fixture(scope="module")
def server() -> Iterator[Noxu]:
    with Noxu(manifests=[DEFINITION], users={"jane": ["readers"]}) as running:
        running.create(widget("a"))
        urlopen(Request(f"{running.url}/api/v1/namespaces", headers={"User-Agent": "operator/v1"})).close()
        yield running


def made(**arguments: Any) -> Wrong:
    return lambda _: Noxu(**arguments)


def hooked(resource: str = "widgets.example.com", **options: Any) -> Wrong:
    return lambda noxu: noxu.mutating(resource, **options)(lambda request: None)


def guarded(resource: str = "widgets.example.com", **options: Any) -> Wrong:
    return lambda noxu: noxu.validating(resource, **options)(lambda request: None)


def explored(config: Any = None, **arguments: Any) -> Wrong:
    """Of a controller that is never started: another argument is wrong."""
    right = {"command": ["true"], "workload": [{"apply": widget("a")}]}
    if "controller" in arguments:
        del right["command"]
    return lambda _: package.explore(config, **{**right, **arguments})


KIND = "no kind 'widgetz' is served; did you mean widgets.example.com?"
NAMESPACE = 'namespace: no "defualt" exists or has existed; did you mean default?'
CLIENT = 'client: no user agent begins with "oprator"; did you mean operator?'
OPERATION = 'operations: "UPDAET" is none of CREATE, UPDATE, DELETE, CONNECT, *; did you mean UPDATE?'
MOMENT = 'there is no moment "soon": it is a revision .*'
NEVER = "there is no widgets.example.com {} at revision .*, nor has there been one"
PATH = Free("a path: a file that does not exist is a LoadError, a directory is made")
OWN = Free("the test's own name for something")
OBJECT = Free("an object that does not exist is a NotFound, and none is what some tests are about")
LOUD = Free("nothing happens in silence: the error of the server is raised")
CONTENT = Free("the content of an object, which the server checks")

PARAMETERS: dict[str, Checked | Free] = {
    "Noxu(directory)": PATH,
    "Noxu(manifests)": PATH,
    "Noxu(latency)": Checked(made(latency="soon"), "soon"),
    "Noxu(stages)": Free("a file, which is read when the server starts"),
    "Noxu(exec)": Checked(made(nodes=1, exec="suceed"), 'exec: "suceed" is not succeed; did you mean succeed?'),
    "Noxu(kinds)": Free("files, which are read when the server starts"),
    "Noxu(record)": Free("a new file, which may have any name"),
    "Noxu(faults)": Free("a file, which is read when the server starts"),
    "Noxu(tracing_config_file)": Free("a file, which is read when the server starts"),
    "Noxu(history)": Checked(made(history="al"), "history: 'al' is no duration, such as 30m, and not all or off; did you mean all?"),
    "Noxu(data)": PATH,
    "Noxu(profile)": Checked(made(profile="envtets"), '"envtets" is not a profile: there are local, cluster, envtest; did you mean envtest?'),
    "Noxu(controllers)": Checked(made(controllers=["namespase"]), '"namespase" is not in the list of known controllers; did you mean namespace?: this server has .*garbage-collector-controller'),
    "Noxu(disable_admission_plugins)": Checked(made(disable_admission_plugins="NamespaceLifecyle"), 'plugin "NamespaceLifecyle" is unknown .*; did you mean NamespaceLifecycle?'),
    "Noxu(enable_admission_plugins)": Checked(made(enable_admission_plugins=["LimitRangr"]), 'plugin "LimitRangr" is unknown .*; did you mean LimitRanger?'),
    "Noxu(gates)": Checked(made(gates={"CBORServing": True}), "unrecognized feature gate: CBORServing .*; did you mean CBORServingAndStorage?"),
    "Noxu(kubernetes)": Checked(made(kubernetes="1.3"), '"1.3" is not a known version of Kubernetes: give one of 1.29, '),
    "Noxu(authorization_modes)": Checked(made(authorization_modes="RBCA"), 'authorization-mode "RBCA" is not a valid mode; did you mean RBAC? (this server has AlwaysAllow, '),
    "Noxu(users)": Checked(made(users={"jane": "system:mastres"}), 'groups: "system:mastres" is no group of Kubernetes; did you mean system:masters?'),
    "Noxu.replay(file)": Checked(lambda noxu: noxu.replay("run.nox"), "run.nox", FileNotFoundError),
    "Noxu.replay(ignore)": Free("a field that is compared because of it makes a difference that is returned"),
    "Noxu.get(what)": Checked(lambda noxu: noxu.get("widgetz", "a"), KIND, UnknownKind),
    "Noxu.get(name)": OBJECT,
    "Noxu.get(namespace)": LOUD,
    "Noxu.list(kind)": Checked(lambda noxu: noxu.list("widgetz"), KIND, UnknownKind),
    "Noxu.list(namespace)": Checked(lambda noxu: noxu.list("widgets", namespace="defualt"), NAMESPACE),
    "Noxu.list(labels)": Checked(lambda noxu: noxu.list("widgets", labels={"app": "a,b"}), "labels: app=a,b would be several conditions"),
    "Noxu.list(fields)": Checked(lambda noxu: noxu.list("widgets", fields="metadata.nmae=a"), "field label not supported: metadata.nmae", package.ApiError),
    "Noxu.create(source)": LOUD,
    "Noxu.create(namespace)": LOUD,
    "Noxu.update(source)": LOUD,
    "Noxu.update(namespace)": LOUD,
    "Noxu.apply(sources)": LOUD,
    "Noxu.snapshot(name)": Free("any name is right: it is given here"),
    "Noxu.restore(snapshot)": Checked(lambda noxu: (noxu.snapshot("base"), noxu.restore("bse")), "there is no snapshot 'bse': there are base; did you mean base?", package.ApiError),
    "Noxu.delete_snapshot(snapshot)": Checked(lambda noxu: noxu.delete_snapshot("bse"), "there is no snapshot 'bse'", package.ApiError),
    "Noxu.patch(what)": Checked(lambda noxu: noxu.patch("widgetz", "a", {}), KIND, UnknownKind),
    "Noxu.patch(name)": OBJECT,
    "Noxu.patch(patch)": CONTENT,
    "Noxu.patch(namespace)": LOUD,
    "Noxu.patch(type)": Checked(lambda noxu: noxu.patch("widgets", "a", {}, type="mergee"), 'type: "mergee" is none of merge, json, strategic, apply; did you mean merge?'),  # type: ignore[call-overload]
    "Noxu.patch(subresource)": Checked(lambda noxu: noxu.patch("widgets", "a", {}, subresource="statsu"), "not found", package.ApiError),
    "Noxu.patch(field_manager)": Free("any client may be a field manager"),
    "Noxu.delete(what)": Checked(lambda noxu: noxu.delete("widgetz", "a"), KIND, UnknownKind),
    "Noxu.delete(name)": OBJECT,
    "Noxu.delete(namespace)": LOUD,
    "Noxu.delete(propagation)": Checked(lambda noxu: noxu.delete("widgets", "a", propagation="Forground"), 'propagation: "Forground" is none of Foreground, Background, Orphan; did you mean Foreground?'),  # type: ignore[call-overload]
    "Noxu.status(what)": Checked(lambda noxu: noxu.status("widgetz", "a", {}), KIND, UnknownKind),
    "Noxu.status(name)": OBJECT,
    "Noxu.status(status)": CONTENT,
    "Noxu.status(namespace)": LOUD,
    "Noxu.scale(what)": Checked(lambda noxu: noxu.scale("widgetz", "a", 1), KIND, UnknownKind),
    "Noxu.scale(name)": OBJECT,
    "Noxu.scale(namespace)": LOUD,
    "Noxu.watch(what)": Checked(lambda noxu: noxu.watch("widgetz"), KIND, UnknownKind),
    "Noxu.watch(name)": OBJECT,
    "Noxu.watch(namespace)": Free("it may be created later; without an event there is a WaitTimeout"),
    "Noxu.watch(labels)": Checked(lambda noxu: noxu.watch("widgets", labels={"app": "a,b"}), "labels: app=a,b would be several conditions"),
    "Noxu.watch(fields)": Checked(lambda noxu: noxu.watch("widgets", fields={"metadata.nmae": "a"}), "field label not supported: metadata.nmae", package.ApiError),
    "Noxu.watch(since)": Checked(lambda noxu: noxu.watch("widgets", since="newest"), 'Invalid value: "newest"', package.ApiError),
    "Noxu.wait(what)": Checked(lambda noxu: noxu.wait("widgetz", "a", "create"), KIND, UnknownKind),
    "Noxu.wait(name)": OBJECT,
    "Noxu.wait(namespace)": Checked(lambda noxu: noxu.wait("widgets", "a", "delete", namespace="defualt"), NAMESPACE),
    "Noxu.wait(condition)": Checked(lambda noxu: noxu.wait("widgets", "a", "!has(self.status.raedy)"), "no Widget has a field 'raedy'; did you mean ready?"),
    "Noxu.wait(labels)": Checked(lambda noxu: noxu.wait("widgets", count=0, labels={"app": "a,b"}), "labels: app=a,b would be several conditions"),
    "Noxu.wait(fields)": Checked(lambda noxu: noxu.wait("widgets", count=0, fields="metadata.nmae=a"), "field label not supported: metadata.nmae", package.ApiError),
    "Noxu.events(what)": Checked(lambda noxu: noxu.events("widgetz", "a"), KIND, UnknownKind),
    "Noxu.events(name)": OBJECT,
    "Noxu.events(namespace)": Checked(lambda noxu: noxu.events(namespace="defualt"), NAMESPACE),
    "Noxu.log(what)": Checked(lambda noxu: noxu.log("widgetz"), KIND, UnknownKind),
    "Noxu.log(name)": Free("an object that may be gone, or may come"),
    "Noxu.log(namespace)": Checked(lambda noxu: noxu.log("widgets", namespace="defualt"), NAMESPACE),
    "Noxu.log(since)": Checked(lambda noxu: noxu.log(since="soon"), "since: 'soon' is no revision, no duration such as 5m", ApiError),
    "Noxu.at(moment)": Checked(lambda noxu: noxu.at("soon").get("widgets", "a"), MOMENT, ApiError),
    "Noxu.diff(since)": Checked(lambda noxu: noxu.diff("soon"), MOMENT, ApiError),
    "Noxu.diff(to)": Checked(lambda noxu: noxu.diff("-0s", "soon"), MOMENT, ApiError),
    "Noxu.diff(what)": Checked(lambda noxu: noxu.diff("-0s", "now", "widgetz"), KIND, ApiError),
    "Noxu.diff(name)": Free("an object that may be gone, or may come"),
    "Noxu.diff(namespace)": Checked(lambda noxu: noxu.diff("-0s", "now", "widgets", namespace="defualt"), NAMESPACE),
    "Noxu.blame(what)": Checked(lambda noxu: noxu.blame("widgetz", "a"), KIND, ApiError),
    "Noxu.blame(name)": Checked(lambda noxu: noxu.blame("widgets", "b"), NEVER.format("default/b"), ApiError),
    "Noxu.blame(namespace)": Checked(lambda noxu: noxu.blame("widgets", "a", namespace="defualt"), NEVER.format("defualt/a"), ApiError),
    "Noxu.blame(at)": Checked(lambda noxu: noxu.blame("widgets", "a", at="soon"), MOMENT, ApiError),
    "Noxu.bisect(what)": Checked(lambda noxu: noxu.bisect("widgetz", "a", "true"), KIND, ApiError),
    "Noxu.bisect(name)": Checked(lambda noxu: noxu.bisect("widgets", "b", "true"), NEVER.format("default/b"), ApiError),
    "Noxu.bisect(namespace)": Checked(lambda noxu: noxu.bisect("widgets", "a", "true", namespace="defualt"), NEVER.format("defualt/a"), ApiError),
    "Noxu.bisect(condition)": Checked(lambda noxu: noxu.bisect("widgets", "a", "self.spec.siez > 3"), "no Widget has a field 'siez'; did you mean size?", ApiError),
    "Noxu.bisect(at)": Checked(lambda noxu: noxu.bisect("widgets", "a", "true", at="soon"), MOMENT, ApiError),
    "Noxu.idle(ignore)": Free("what is misspelt counts, so the wait is longer, and its error says what is busy"),
    "Noxu.faults(plan)": Checked(lambda noxu: noxu.faults([{"match": {"verbs": ["updat"]}, "error": "Conflict"}]).__enter__(), "'updat' is none of get, list, .*; did you mean update?", ApiError),
    "Noxu.tenant(manifests)": PATH,
    "Noxu.tenant(name)": OWN,
    "Noxu.tenant(snapshot)": Checked(lambda noxu: (noxu.snapshot("other"), noxu.tenant(snapshot="ohter").__enter__()), "there is no snapshot 'ohter': there are .*other; did you mean other?", ApiError),
    "Noxu.requests(what)": Checked(lambda noxu: noxu.requests("widgetz"), KIND, UnknownKind),
    "Noxu.requests(name)": OBJECT,
    "Noxu.requests(namespace)": Checked(lambda noxu: noxu.requests("widgets", namespace="defualt"), NAMESPACE),
    "Noxu.requests(verb)": Checked(lambda noxu: noxu.requests(verb="updat"), 'verb: "updat" is none of get, list, .*; did you mean update?'),
    "Noxu.requests(subresource)": Checked(lambda noxu: noxu.requests("widgets", subresource="statsu"), 'subresource: "statsu" is none of scale, status; did you mean status?'),
    "Noxu.requests(user)": Checked(lambda noxu: noxu.requests(user="jnae"), 'user: no user "jnae" is known; did you mean jane?'),
    "Noxu.report(client)": Checked(lambda noxu: noxu.report(client="oprator"), CLIENT),
    "Noxu.report(since)": Checked(lambda noxu: noxu.report(since="soon"), "since: 'soon' is no duration such as 5m", ApiError),
    "Noxu.rbac(client)": Checked(lambda noxu: noxu.rbac(client="oprator"), CLIENT),
    "Noxu.rbac(user)": Checked(lambda noxu: noxu.rbac(user="jnae"), 'user: no user "jnae" is known; did you mean jane?'),
    "Noxu.rbac(since)": Checked(lambda noxu: noxu.rbac(since="soon"), "since: 'soon' is no duration such as 5m", ApiError),
    "Noxu.rbac(name)": OWN,
    "Noxu.rbac(bind)": Free("a user may be one that does not exist yet"),
    "Noxu.user(name)": OWN,
    "Noxu.user(groups)": Checked(lambda noxu: noxu.user("eve", groups=["system:autenticated"]), 'groups: "system:autenticated" is no group of Kubernetes; did you mean system:authenticated?'),
    "Noxu.user(uid)": OWN,
    "Noxu.mutating(resource)": Checked(hooked("widgetz.example.com"), "no resource 'widgetz.example.com' is served; did you mean widgets.example.com?; `later=True`", UnknownKind),
    "Noxu.mutating(operations)": Checked(hooked(operations=["UPDAET"]), OPERATION),
    "Noxu.mutating(version)": Checked(hooked(version="v1aplha1"), 'widgets.example.com: version: "v1aplha1" is none of v1, v1alpha1; did you mean v1alpha1?'),
    "Noxu.mutating(name)": OWN,
    "Noxu.validating(resource)": Checked(guarded("widgets.example.com/statsu"), 'widgets.example.com/statsu: subresource: "statsu" is none of scale, status; did you mean status?'),
    "Noxu.validating(operations)": Checked(guarded(operations=["GET"]), 'operations: "GET" only reads, so it is not admitted; there are CREATE, UPDATE, DELETE, CONNECT'),
    "Noxu.validating(version)": Checked(guarded(version="v2"), 'widgets.example.com: version: "v2" is none of v1, v1alpha1'),
    "Noxu.validating(name)": OWN,
    "Noxu.converting(definition)": Checked(lambda noxu: noxu.converting("widgetz.example.com"), "no definition 'widgetz.example.com' is served; did you mean widgets.example.com?; `later=True`", UnknownKind),
    "Noxu.program(command)": Checked(lambda noxu: noxu.program(["nothing-of-that-name"]).__enter__(), "there is no command nothing-of-that-name in the PATH", NotRunnable),
    "Noxu.program(log)": Free("a file that is made"),
    "Noxu.program(environment)": Free("variables may have any names"),
    "Noxu.program(directory)": Free("a directory, which the system refuses if it is not there"),
    "explore(config)": Checked(explored("explroe.yaml"), "explroe.yaml cannot be read: No such file or directory"),
    "explore(command)": Checked(explored(command=["nothing-of-that-name"]), "controller: there is no command nothing-of-that-name in the PATH"),
    "explore(controller)": Checked(explored(controller="tests.nothing:main"), "controller: there is no module 'tests.nothing' in sys.path"),
    "explore(environment)": Free("variables may have any names"),
    "explore(manifests)": Checked(explored(manifests="crds.yaml"), "manifests: there is no file crds.yaml"),
    "explore(workload)": Checked(explored(workload=[{"aply": "a.yaml"}]), "workload[0]: there is no step 'aply'; did you mean apply?"),
    "explore(invariants)": Checked(explored(invariants=[{"allways": "true"}]), "invariants[0].allways: there is no such field; did you mean always?"),
    "explore(ignore)": Free("a pattern that fits nothing is right: what it is about may be made under a fault only"),
    "explore(classes)": Checked(explored(classes="crahs"), "classes: 'crahs' is none of crash, stale, unobserved, ambiguous, refused, drift, order, workload, spec; did you mean crash?"),
    "explore(plan)": Checked(explored(plan={"class": "crahs"}), "class: 'crahs' is none of crash, stale, unobserved, ambiguous, refused, drift, order, workload, spec; did you mean crash?"),
    "explore(webhooks)": Checked(explored(webhooks={"prot": 9443}), "webhooks.prot: there is no such field; did you mean port?"),
    "explore(budget)": Checked(explored(budget="soon"), "budget: "),
    "explore(quiet)": Checked(explored(quiet="soon"), "quiet: "),
    "explore(directory)": Free("a directory, below which files are looked for"),
    "Denied(message)": OWN,
    "Denied(reason)": Free("a webhook may refuse for any reason"),
    "ApiError(message)": Free("the server makes it"),
    "ApiError(reason)": Free("the server makes it"),
    "ApiError(details)": Free("the server makes it"),
    "ApiError(text)": Free("the server makes it"),
}  # fmt: skip
"""The arguments of `make_noxu` are those of `Noxu`, and a user has the verbs of the handle."""

_TEXT = re.compile(
    r"\bstr\b|Literal|Object|Source|Condition|Patch|Profile|Users|Mapping\[str|PastMoment|Plan|PythonController"
)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of the handle, and those that make what a test makes itself."""
    for name in ("Noxu", "Denied", "ApiError"):
        yield name, vars(getattr(package, name))["__init__"]
    for name, function in inspect.getmembers(Noxu, inspect.isfunction):
        if not name.startswith("_"):
            yield f"Noxu.{name}", function
    yield "explore", package.explore


def texts() -> set[str]:
    """The parameters that take a text, or several."""
    found = set()
    for name, function in functions():
        for each in get_overloads(function) or [function]:
            for parameter in inspect.signature(each).parameters.values():
                if parameter.name != "self" and _TEXT.search(str(parameter.annotation)):
                    found.add(f"{name}({parameter.name})")
    return found


def test_every_parameter_that_takes_a_text_is_in_the_table() -> None:
    assert sorted(texts()) == sorted(PARAMETERS)


CHECKED = {name: row for name, row in PARAMETERS.items() if isinstance(row, Checked)}


@pytest.mark.parametrize("row", CHECKED.values(), ids=CHECKED.keys())
def test_a_misspelt_name_is_an_error(row: Checked, server: Noxu) -> None:
    pattern = row.message if ".*" in row.message else re.escape(row.message)
    with pytest.raises(row.error, match=pattern.replace("?", r"\?") if ".*" in row.message else pattern):
        row.call(server)


def test_other_names_that_are_never_found(server: Noxu) -> None:
    for call, message in (
        (hooked("widgets"), "did you mean widgets.example.com"),  # the core group has no widgets
        (hooked("Widget.example.com"), "did you mean widgets.example.com"),
        (hooked("/status"), "names no resource"),
        (hooked("widgets.example.com/"), "names no resource"),
        (hooked(operations=[]), "without one the function is never called"),
        (hooked(operations=["CONNECT"]), "operations: widgets.example.com has no CONNECT; it has CREATE, DELETE, UPDATE"),
        (hooked("widgets.example.com/status", operations=["CREATE"]), "has no CREATE; it has UPDATE"),
        (hooked("pods/exec"), "has no CREATE and no UPDATE; it has CONNECT"),
        (lambda noxu: noxu.fault(resource="widgetz", error="Conflict").__enter__(), KIND),
        (lambda noxu: noxu.fault(resource="widgets", error="Conflcit").__enter__(), "did you mean Conflict"),
        (lambda noxu: noxu.requests(code=4009), "no code of HTTP"),
        (lambda noxu: noxu.wait([], "Ready"), "no object in the list"),
        (lambda noxu: noxu.wait("pods", "a", "self.status.fase == 'Running'"), "no Pod has a field 'fase'; did you mean phase"),
    ):  # fmt: skip
        with pytest.raises((ValueError, LookupError, ApiError), match=re.escape(message)):
            call(server)
    for call in (
        lambda noxu: noxu.requests(code="409"),
        lambda noxu: noxu.list("widgets", labels={"app": None}),
        lambda noxu: noxu.list("widgets", labels=["app=a"]),
        lambda noxu: noxu.validating(lambda request: None),
        lambda noxu: noxu.wait("widgets", "a", 3),
    ):
        with pytest.raises(TypeError):
            call(server)


def test_names_with_asterisks_and_parts_are_right(server: Noxu) -> None:
    for resource, options in (
        ("*.*", {}),
        ("*.*/*", {"operations": "*"}),
        ("*.example.com", {"operations": ["CREATE", "DELETE"]}),
        ("widgets.example.com/*", {"operations": "UPDATE"}),
        ("widgets.example.com", {"version": "v1alpha1"}),
        ("pods", {}),
        ("configmaps.", {"operations": ["DELETE"]}),
        ("pods/exec", {"operations": ["CONNECT"]}),
        ("pods/binding", {"operations": ["CREATE"]}),
        ("bindings", {}),
    ):
        server.mutating(resource, **options)
    accounts = [f"system:serviceaccount:default:operator-{letter}" for letter in "ab"]
    server.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator-a"}})
    assert server.requests(user=accounts[0], verb="deletecollection") == []
    with pytest.raises(ValueError, match=f"did you mean {accounts[0]}"):
        server.requests(user=accounts[1])
    assert server.requests("pods", subresource="exec") == []
    assert server.wait("widgets", "a", "!has(self.status)")


def test_a_namespace_that_was_deleted_is_known(server: Noxu) -> None:
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    server.delete("namespaces", "team")
    server.wait("namespaces", "team", "delete")
    assert server.list("widgets", namespace="team") == []


# -- what is defined later


def test_what_is_announced_may_be_defined_later() -> None:
    with Noxu() as noxu:
        noxu.mutating("widgets.example.com", later=True)(lambda request: {**request["object"], "spec": {"size": 5}})
        noxu.converting("widgets.example.com", later=True)(lambda value, version: None)
        noxu.apply(DEFINITION)
        assert noxu.create(widget("a"))["spec"] == {"size": 5}
        noxu.delete("customresourcedefinitions", "widgets.example.com")


ANNOUNCED: list[tuple[str, Wrong]] = [
    ("validating widgetz.example.com, guard", lambda noxu: noxu.validating("widgetz.example.com", name="guard", later=True)(print)),
    ("mutating widgets.example.com/statsu, print", lambda noxu: noxu.mutating("widgets.example.com/statsu", later=True)(print)),
    ("converting widgetz.example.com", lambda noxu: noxu.converting("widgetz.example.com", later=True)(print)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "register"), ANNOUNCED, ids=[row[0] for row in ANNOUNCED])
def test_what_is_never_defined_is_an_error_at_the_end(text: str, register: Wrong) -> None:
    with (
        pytest.raises(UnknownKind, match=f"never called: no such resource was served until the end: {text}"),
        Noxu(manifests=[DEFINITION], profile="envtest") as noxu,
    ):
        register(noxu)


def test_an_error_of_the_test_comes_first() -> None:
    def fail(noxu: Noxu) -> None:
        noxu.validating("widgetz.example.com", later=True)(print)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Noxu(profile="envtest") as noxu:
        fail(noxu)


def test_the_plugin_reports_what_was_never_called(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope=function\n")
    pytester.makepyfile(
        """
def test_it(noxu):
    noxu.validating("widgetz.example.com", later=True)(print)
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *UnknownKind: never called: *: validating widgetz.example.com, print"])
