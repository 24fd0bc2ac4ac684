"""The pytest plugin: `noxu` is a server for one test.

    def test_widgets(noxu):
        noxu.apply("crds/", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        subprocess.run(["kubectl", "--kubeconfig", noxu.kubeconfig, "get", "widgets"], check=True)

`noxu_class`, `noxu_module` and `noxu_session` are servers for the tests of a class, a module, the session.
`make_noxu(…)` makes further ones for a test. `@pytest.mark.noxu("crds/", profile="envtest", …)` on a function, a class
or a module has the manifests and the keywords of its servers, as `Noxu` takes them. The options in `OPTIONS` are for
all servers.

The report of a failed test shows the last requests and why writes were refused. A call that a coroutine does not await
fails its test. Every pytest run imports this module, whether it uses a server or not: it imports little.

Modules of this package are imported as they are, in a pytest run, too.

Pytest rewrites the assertions of all modules in the distribution of a plugin, for better messages, and compiles each module
for that when it is first imported. The server has hundreds of modules, and its assertions are for its authors: rewriting
them takes three times as long as the server's start. So a finder stands before pytest's, which imports them as every other
program does, from the bytecode that their installation has compiled.

The plugin installs it when pytest loads it. The few modules that this imports are rewritten.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import pytest

_OURS: Final = ("noxu.", "noxu_storage")


class Finder:
    """A finder of `sys.meta_path`: the standard one, for the modules of this package alone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None


def import_as_installed() -> None:
    """Import the modules of this package without other finders, from now on."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)


import_as_installed()

from typing import NamedTuple  # noqa: E402 - not rewritten

from noxu.features import listed_names, meant  # noqa: E402
from noxu.testing import sources  # noqa: E402
from noxu.testing.sources import Source, names, path_of, several  # noqa: E402

if TYPE_CHECKING:
    from noxu.testing.handle import MakeNoxu, Noxu


def __tracebackhide__(info: Any) -> bool:  # noqa: N807 - pytest's name
    """For pytest, which looks it up in the globals of a frame: see `errors.hidden`."""
    return bool(_late(ERRORS).hidden(info))


HANDLE: Final = "noxu.testing.handle"
CALLS: Final = "noxu.testing.calls"
REPORTS: Final = "noxu.testing.reports"
ERRORS: Final = "noxu.testing.errors"
ISOLATION: Final = "noxu.testing.isolation"
EXPLORATION: Final = "noxu.exploration.results"
MANNERS: Final = "noxu.testing.manners_plugin"
CASES: Final = "noxu.testing.case_items"
RECORDINGS: Final = "noxu.testing.recorded_tests"
COVERAGE: Final = "noxu.testing.coverage_plugin"
_MARKER: Final = (
    "noxu(*manifests, profile='local', controllers=None, gates=None, users=(), tls=False, …): manifests that the test's "
    "Noxu server loads at its start, and further arguments of Noxu"
)
_EXPLORE_MARKER: Final = (
    "noxu_explore(config=None, *, command=None, controller=None, …): what the fixture `explored` explores: the arguments of "
    "noxu.explore; paths are relative to the root directory"
)
_BEFORE: Final = pytest.StashKey[dict[Any, int]]()
"""Of an item: the newest requests before it."""
_REFUSED: Final = pytest.StashKey[str]()
"""Of an item: why it cannot run."""


class Option(NamedTuple):
    """An option for all servers, or for files of cases. In the configuration it is `noxu_NAME`, on the command line `--noxu-NAME`."""

    name: str
    type: Literal["args", "bool", "file", "paths", "string"]
    help: str


OPTIONS: Final = (
    Option("manifests", "paths", "files and directories that every Noxu server loads"),
    Option("profile", "string", "the profile of Noxu servers: local (default) or envtest"),
    Option("controllers", "args", "the controllers of Noxu servers, as in `noxu serve --controllers`"),
    Option("nodes", "string", "simulated nodes of Noxu servers, with the controllers of workloads: pods become ready"),
    Option("stages", "paths", "files with rules of what happens to pods on the simulated nodes of Noxu servers"),
    Option(
        "exec", "string", "what a command in a pod answers for which there is no rule: succeed (default: it is refused)"
    ),
    Option(
        "disable_admission_plugins", "args", "admission plug-ins that no Noxu server runs, such as NamespaceLifecycle"
    ),
    Option("feature_gates", "args", "the feature gates of Noxu servers: GATE=true, GATE=false"),
    Option(
        "kubernetes",
        "string",
        "the version of Kubernetes that Noxu servers answer as; tests run once for each of several",
    ),
    Option("authorization_modes", "args", "who decides what users may do: AlwaysAllow (default), RBAC"),
    Option("tls", "bool", "Noxu servers serve HTTPS"),
    Option("strict", "bool", "Noxu servers refuse unknown fields, where a call does not say otherwise"),
    Option(
        "isolation",
        "string",
        "rollback: what a test changes in noxu_class, noxu_module and noxu_session is undone at its end; server (default): it remains",
    ),
    Option("no_cache", "bool", "Noxu keeps nothing of manifests in the user's cache for later runs"),
    Option("faults", "string", "a plan of faults, a file, with which every Noxu server starts"),
    Option("latency", "string", "by how much every answer of Noxu servers is late, such as 5ms or 5ms..20ms"),
    Option(
        "tracing_config_file", "string", "a TracingConfiguration, a file: where Noxu servers send spans of requests"
    ),
    Option(
        "report",
        "file",
        "report the manners of the clients of all servers: at the end of the run, or to a FILE.html, .json or .txt",
    ),
    Option(
        "manners",
        "args",
        "fail tests whose clients have bad manners: polite, HABIT=NUMBER, HABIT=any (default: no test fails)",
    ),
    Option(
        "tests",
        "paths",
        "files of cases, as for `noxu test`, and directories with files *_test.yaml: each case is a test",
    ),
    Option("record", "string", "a directory in which the recordings of failed tests stay, for noxu replay"),
    Option("html", "string", "a directory in which a page stays for each failed test, with what was asked and written"),
    Option(
        "coverage",
        "bool",
        "report which fields, enum values, defaults and rules of CRDs the writes to all servers, and cases, have shown",
    ),
    Option(
        "coverage_report",
        "args",
        "the reports of coverage: term (default), text:FILE, json:FILE, html:DIR",
    ),
    Option("coverage_fail_under", "string", "fail the run if less is covered, in percent"),
    Option("requests", "string", "the number of requests in the report of a failed test (default: 10; 0: none)"),
)
CASE_SUFFIXES: Final = (".yaml", ".yml")
TERMINAL: Final = "-"
"""Instead of a file."""
REPORTS_OF: Final = (".html", ".json", ".txt")
"""How the names of reports end."""
SHOWN_REQUESTS: Final = 10
ISOLATIONS: Final = ("server", "rollback")
_CONFIGURED: Final = re.compile(r"^[ \t]*\"?(noxu_\w+)\"?[ \t]*[=:]", re.MULTILINE)
_MARKED: Final = {"noxu", "noxu_class", "noxu_module"}
"""The fixtures whose servers a mark is about."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("noxu", "Noxu, the Kubernetes API for tests")
    for option in OPTIONS:
        type_ = "string" if option.type == "file" else option.type
        parser.addini(f"noxu_{option.name}", option.help, type=type_, default=None)
        flag, destination = f"--noxu-{option.name.replace('_', '-')}", f"noxu_{option.name}"
        if option.type == "bool":
            group.addoption(flag, dest=destination, action="store_true", default=None, help=option.help)
        elif option.type == "file":
            group.addoption(
                flag, dest=destination, nargs="?", const=TERMINAL, default=None, metavar="FILE", help=option.help
            )
        elif option.type == "string":
            group.addoption(flag, dest=destination, default=None, help=option.help)
        else:
            group.addoption(flag, dest=destination, action="append", default=None, help=f"{option.help} (repeatable)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", _EXPLORE_MARKER)
    _check_names(config)
    _refuse_missing(_option(config, "manifests") or (), "noxu_manifests", Path())
    _check_options(config)
    sources.uses_cache = not _option(config, "no_cache")
    if _option(config, "isolation") == "rollback":
        config.pluginmanager.register(_late(ISOLATION).Isolation(), "noxu_isolation")
    _judge_manners(config)
    _count_coverage(config)


def _count_coverage(config: pytest.Config) -> None:
    """Raises UsageError for reports and numbers that are none."""
    if not _option(config, "coverage"):
        given = [name for name in ("coverage_report", "coverage_fail_under") if config.getoption(f"noxu_{name}")]
        if given:
            raise pytest.UsageError(f"--noxu-{given[0].replace('_', '-')} needs --noxu-coverage")
        return
    module = _late(COVERAGE)
    try:
        wanted = module.wanted(_option(config, "coverage_report"), _option(config, "coverage_fail_under"), config)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(module.CoveragePlugin(*wanted), "noxu_coverage")


def _judge_manners(config: pytest.Config) -> None:
    """Raises UsageError for thresholds that are none."""
    file, words = _option(config, "report"), _option(config, "manners")
    if not file and not words:
        return
    # `pytest --noxu-report test_a.py` means the test, which must not be overwritten
    if file and file != TERMINAL and Path(file).suffix not in REPORTS_OF:
        listed = f"none of {', '.join(REPORTS_OF)}"
        raise pytest.UsageError(f"noxu_report: {file} is {listed}; before other arguments, write --noxu-report=-")
    module = _late(MANNERS)
    try:
        limits = module.thresholds(words) if words else None
    except ValueError as error:
        raise pytest.UsageError(f"noxu_manners: {error}") from None
    config.pluginmanager.register(module.Manners(file or None, limits), "noxu_manners")


def _check_names(config: pytest.Config) -> None:
    """Raises UsageError for a misspelt option in the configuration; on the command line pytest does so itself."""
    text = config.inipath.read_text("utf-8", "replace") if config.inipath is not None else ""
    configured = [*_CONFIGURED.findall(text), *_CONFIGURED.findall("\n".join(config.getoption("override_ini") or ()))]
    accepted = [f"noxu_{option.name}" for option in OPTIONS]
    for name in configured:
        if name not in accepted:
            raise pytest.UsageError(f"{name} is no option: there are {listed_names(accepted)}{meant(name, accepted)}")


def _check_options(config: pytest.Config) -> None:
    """Raises UsageError for options with invalid values."""
    requests = str(_option(config, "requests") or 0)
    if not requests.isdecimal():
        raise pytest.UsageError(f"noxu_requests: {requests} is no number of requests")
    isolation = _option(config, "isolation") or ISOLATIONS[0]
    if isolation not in ISOLATIONS:
        raise pytest.UsageError(
            f"noxu_isolation: {isolation} is neither of {' and '.join(ISOLATIONS)}{meant(isolation, ISOLATIONS)}"
        )
    nodes = _option(config, "nodes")
    if nodes and not nodes.isdecimal():
        raise pytest.UsageError(f"noxu_nodes: {nodes} is no number of nodes")
    _refuse_missing(_option(config, "stages") or (), "noxu_stages", Path())
    _refuse_missing(_option(config, "tests") or (), "noxu_tests", Path())
    for gate in _option(config, "feature_gates") or ():
        if gate.partition("=")[2].lower() not in ("true", "false"):
            raise pytest.UsageError(f"noxu_feature_gates: {gate}: write GATE=true or GATE=false")
    values = {name: value for name in _CHECKED if (value := _option(config, name))}
    if values:
        try:
            for version in _versions_of_option(config) or [""]:
                versioned = {"kubernetes": version} if version else {}
                _late(HANDLE).Noxu(**_arguments(config) | {"manifests": ()} | versioned)
        except ValueError as error:
            raise pytest.UsageError(f"{', '.join(f'noxu_{name}' for name in values)}: {error}") from None


_CHECKED: Final = (
    "profile", "controllers", "nodes", "stages", "exec", "disable_admission_plugins", "feature_gates", "authorization_modes",
    "latency",
    "kubernetes",
)  # fmt: skip
"""Options that a server checks, which is imported only if there is one."""


@pytest.hookimpl(trylast=True)  # after tests were deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("noxu"):
            try:
                _refuse_missing(_sources(mark), f"{item.nodeid}: @pytest.mark.noxu", config.rootpath)
            except pytest.UsageError as error:
                if not hasattr(config, "workerinput"):
                    raise
                item.stash[_REFUSED] = str(error)  # a worker of xdist cannot report it here: the test fails


def _uses(item: pytest.Item, fixtures: set[str]) -> bool:
    """Whether a test uses one of the fixtures, or may ask for any."""
    own = inspect.signature(item.obj).parameters if isinstance(item, pytest.Function) else ()
    return "request" in own or not fixtures.isdisjoint(getattr(item, "fixturenames", ()))


def _refuse_missing(sources: Iterable[Source], place: str, directory: Path) -> None:
    """Raises UsageError for a source that does not exist, or is none."""
    for source in sources:
        try:
            path = path_of(source)
        except TypeError as error:
            raise pytest.UsageError(f"{place}: {error}") from None
        if path is not None and not (directory / path).exists():
            raise pytest.UsageError(f"{place}: {path}: no such file or directory")


def _option(config: pytest.Config, name: str) -> Any:
    """The value on the command line, or else in the configuration; None if it is in neither. Lists are those of both."""
    flag, configured = config.getoption(f"noxu_{name}"), config.getini(f"noxu_{name}")
    if name in ("manifests", "stages", "tests"):
        return [*(configured or ()), *(config.invocation_params.dir / path for path in flag or ())]
    if isinstance(flag, list):
        return [part for text in flag for part in text.split(",") if part]
    if flag is None and isinstance(configured, list):
        return [part for text in configured for part in text.split(",") if part]
    return configured if flag is None else flag


def _arguments(config: pytest.Config) -> dict[str, Any]:
    """The arguments of `Noxu` that the options give."""
    arguments: dict[str, Any] = {
        name: value
        for name in ("profile", "controllers", "authorization_modes", "tls", "strict", "latency", "exec")
        if (value := _option(config, name)) is not None
    }
    if nodes := _option(config, "nodes"):
        arguments["nodes"] = int(nodes)
    if stages := _option(config, "stages"):
        arguments["stages"] = stages
    for name in ("faults", "tracing_config_file"):
        if file := _place(config, name):
            arguments[name] = file
    if gates := _option(config, "feature_gates"):
        pairs = (gate.partition("=") for gate in gates)
        arguments["gates"] = {gate: value.lower() == "true" for gate, _, value in pairs}
    if len(versions := _versions_of_option(config)) == 1:
        arguments["kubernetes"] = versions[0]
    arguments["disable_admission_plugins"] = _option(config, "disable_admission_plugins") or []
    arguments["manifests"] = _option(config, "manifests") or []
    return arguments


def _place(config: pytest.Config, name: str) -> Path | None:
    """The path that an option has."""
    named = _option(config, name)
    return _beginning(config, name) / named if named else None


def _beginning(config: pytest.Config, name: str) -> Path:
    """The directory of a file's path: the working directory on the command line, that of the configuration elsewhere."""
    return config.invocation_params.dir if config.getoption(f"noxu_{name}") else config.rootpath


def _marked(node: Any, config: pytest.Config) -> dict[str, Any]:
    """The arguments of `Noxu` that the options and the marks of a node give; the closest mark counts."""
    arguments = _arguments(config)
    marks = list(node.iter_markers("noxu"))
    disabled = [name for mark in marks for name in names(mark.kwargs.get("disable_admission_plugins", ()))]
    sources = [_below(config.rootpath, source) for mark in marks for source in _sources(mark)]
    manifests = arguments["manifests"] + sources
    disabled += arguments["disable_admission_plugins"]
    for mark in reversed(marks):
        arguments |= mark.kwargs
    return arguments | {"manifests": manifests, "disable_admission_plugins": disabled}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of several versions of Kubernetes once for each, with a server that answers as it."""
    versions = _versions(metafunc.definition, metafunc.config)
    if len(versions) > 1:
        for name in _OF_VERSIONS:
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, versions, indirect=True)


_OF_VERSIONS: Final = ("noxu", "noxu_class", "noxu_module", "noxu_session")


def _versions(node: Any, config: pytest.Config) -> list[str]:
    """The versions of Kubernetes of the closest mark that has some, else of the option."""
    marked = next(
        (mark.kwargs["kubernetes"] for mark in node.iter_markers("noxu") if "kubernetes" in mark.kwargs), None
    )
    if marked is not None:
        return [marked] if isinstance(marked, str) else list(map(str, marked))
    return _versions_of_option(config)


def _versions_of_option(config: pytest.Config) -> list[str]:
    return [version for version in str(_option(config, "kubernetes") or "").split(",") if version]


def _of_version(request: pytest.FixtureRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments for the version of Kubernetes that the test runs with."""
    versions = [request.param] if hasattr(request, "param") else _versions(request.node, request.config)
    return arguments | ({"kubernetes": versions[0]} if versions else {})


def _sources(mark: pytest.Mark) -> tuple[Source, ...]:
    return (*mark.args, *several(mark.kwargs.get("manifests", ())))


def _below(directory: Path, source: Source) -> Source:
    path = path_of(source)
    return source if path is None else directory / path


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The cases of a file, or the test of kuttl of a directory, that `noxu_tests` names."""
    if file_path.suffix not in CASE_SUFFIXES or not (named := _option(parent.config, "tests")):
        return None
    nodes = _option(parent.config, "nodes")
    made = _late(CASES).collector(parent, file_path, list(map(Path, named)), int(nodes) if nodes else None)
    return cast("pytest.Collector | None", made)


# -- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def noxu(request: pytest.FixtureRequest) -> Iterator[Noxu]:
    """A server for this test only: in this process, in memory, on a free port."""
    with _running(request, _of_version(request, _marked(request.node, request.config))) as server:
        yield server


@pytest.fixture(scope="class")
def noxu_class(request: pytest.FixtureRequest) -> Iterator[Noxu]:
    """One server for all tests of the class."""
    with _running(request, _of_version(request, _marked(request.node, request.config))) as server:
        yield server


@pytest.fixture(scope="module")
def noxu_module(request: pytest.FixtureRequest) -> Iterator[Noxu]:
    """One server for all tests of the module."""
    with _running(request, _of_version(request, _marked(request.node, request.config))) as server:
        yield server


@pytest.fixture(scope="session")
def noxu_session(request: pytest.FixtureRequest) -> Iterator[Noxu]:
    """One server for all tests of the session."""
    with _running(request, _of_version(request, _arguments(request.config))) as server:
        yield server


@pytest.fixture
def make_noxu(request: pytest.FixtureRequest) -> Iterator[MakeNoxu]:
    """`make_noxu(manifests=…, gates=…, profile=…, data=…, users=…)`: further servers, until the end of the test.

    The arguments are those of `Noxu`. In a coroutine it is awaited.
    """
    with contextlib.ExitStack() as stack:

        def make(**arguments: Any) -> Noxu:
            configured = _arguments(request.config)
            manifests = [*configured["manifests"], *several(arguments.pop("manifests", ()))]
            named = stack.enter_context(_with_directory(request, {**configured, **arguments, "manifests": manifests}))
            return stack.enter_context(_server(named))

        yield cast("MakeNoxu", _sync_or_awaited(make))


@pytest.fixture
def explored(request: pytest.FixtureRequest) -> Any:
    """What an exploration of a controller has found; `@pytest.mark.noxu_explore("explore.yaml", …)` says of which."""
    mark = request.node.get_closest_marker("noxu_explore")
    if mark is None:
        pytest.fail('explored: of what? @pytest.mark.noxu_explore("explore.yaml", command=[…])', pytrace=False)
    explore = _late(EXPLORATION).explore
    try:
        inspect.signature(explore).bind(*mark.args, **mark.kwargs)
    except TypeError as error:
        accepted = inspect.signature(explore).parameters
        unknown = [meant(name, accepted) for name in mark.kwargs if name not in accepted]
        pytest.fail(f"@pytest.mark.noxu_explore {error}{''.join(unknown)}", pytrace=False)
    try:
        return explore(*mark.args, **{"directory": request.config.rootpath, **mark.kwargs})
    except (*_late(ERRORS).EXPECTED, ValueError) as error:
        pytest.fail(f"noxu does not explore: {error}", pytrace=False)


def _sync_or_awaited(make: Callable[..., Noxu]) -> Callable[..., Any]:
    """A function that starts a server; in a coroutine it is awaited."""

    def call(**arguments: Any) -> Any:
        calls = _late(CALLS)
        if not calls.in_coroutine():
            return make(**arguments)
        return calls.pending("make_noxu", asyncio.to_thread(make, **arguments))

    return call


@contextlib.contextmanager
def _running(request: pytest.FixtureRequest, arguments: Mapping[str, Any]) -> Iterator[Noxu]:
    """A server that runs. The report of one that does not start is its message."""
    with _with_directory(request, arguments) as complete:
        started = _started(complete)
        if isinstance(started, str):
            pytest.fail(started, pytrace=False)
        with started:
            yield started


@contextlib.contextmanager
def _with_directory(request: pytest.FixtureRequest, arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The arguments of a server, whose directory is among those of pytest, which removes them even if a run is killed.

    Its recording is in a file of the node.
    """
    places = {name: _place(request.config, name) for name in ("record", "html")}
    if any(places.values()) and "record" not in arguments:
        with (
            _late(RECORDINGS).recorded(request.node, places["record"], places["html"]) as file,
            _with_directory(request, {**arguments, "record": file}) as complete,
        ):
            yield complete
        return
    if arguments.get("directory") is not None:
        yield arguments
        return
    directory = _Directory(cast("pytest.TempPathFactory", request.getfixturevalue("tmp_path_factory")))
    try:
        yield {**arguments, "directory": directory}
    finally:
        if directory.made is not None:
            with contextlib.suppress(OSError):
                directory.made.rmdir()  # what others have put there stays


class _Directory(os.PathLike[str]):
    """A directory of pytest that is made with the first file in it."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.made: Path | None = None
        self._factory = factory

    def __fspath__(self) -> str:
        if self.made is None:
            self.made = self._factory.mktemp("noxu")
        return str(self.made)


def _started(arguments: Mapping[str, Any]) -> Noxu | str:
    """A server that runs, or why it does not."""
    signature = inspect.signature(_late(HANDLE).Noxu)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        accepted = signature.parameters
        unknown = [meant(name, accepted) for name in arguments if name not in accepted]
        return f"@pytest.mark.noxu {error}{''.join(unknown)}"
    try:
        return _server(arguments).__enter__()
    except (*_late(ERRORS).EXPECTED, ValueError) as error:
        return f"noxu does not start: {error}"


def _server(arguments: Mapping[str, Any]) -> Noxu:
    """A server that is not started yet."""
    _late(CALLS).collect()
    return cast("Noxu", _late(HANDLE).Noxu(**arguments))


# -- reports ----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if message := item.stash.get(_REFUSED, ""):
        pytest.fail(message, pytrace=False)
    if any(mark.name == "noxu" for mark in item.own_markers) and not _uses(item, _MARKED):
        text = f"{item.nodeid}: @pytest.mark.noxu has no effect: it is about {', '.join(sorted(_MARKED))}"
        item.warn(pytest.PytestWarning(f"{text}, and the test uses none of them"))
    if _if_used(HANDLE):
        item.stash[_BEFORE] = _late(REPORTS).marks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _all_awaited(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _all_awaited(item, "teardown"))


def _all_awaited(item: pytest.Item, when: str) -> Generator[None, object, object]:
    """Fail if a call was not awaited until now."""
    try:
        result = yield
    except BaseException:
        if message := _forgotten():
            item.add_report_section(when, "noxu", message)
        raise
    if message := _forgotten():
        pytest.fail(message, pytrace=False)
    return result


def _forgotten() -> str:
    calls = _if_used(CALLS)
    if calls is None or not (pending := calls.forgotten()):
        return ""
    return str(_late(REPORTS).forgotten(pending))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (recordings := _if_used(RECORDINGS)):
        recordings.mark_failed(item)
    if report.failed and call.when != "teardown" and _if_used(HANDLE):
        shown = int(_option(item.config, "requests") or SHOWN_REQUESTS)
        report.sections += _late(REPORTS).sections(item.stash.get(_BEFORE, {}), shown)
    return report


def _late(module: str) -> Any:
    """A module of this package. Every pytest run imports the plugin, but not every one uses a server."""
    return import_module(module)


def _if_used(module: str) -> Any:
    """A module of this package, None if it was not imported: no test has used a server."""
    return sys.modules.get(module)
