"""Tests of kuttl: directories with numbered files, read and checked (https://kuttl.dev/docs/testing/steps.html).

    install/00-crd.yaml           what step 0 applies, and a TestStep (`delete`, `apply`, `assert`, `error`)
    install/00-assert.yaml        what has to be there then, within 30 s, or the `timeout` of a TestAssert
    install/00-errors.yaml        what must not be there
    install/01-scale/…            the files of a step may be in a directory
    kuttl-test.yaml               a TestSuite: `crdDir`, `manifestDirs`, `namespace`, `timeout`

A directory with a numbered assert or errors file, or a numbered file with one of kuttl's kinds, is a test. The files of a step are
read in the order of their names, other files are ignored, as kuttl does (internal/file/name.go, internal/utils/files). What
needs another program or another cluster cannot be run here, and is refused with its place: commands, scripts, kubeconfigs,
templates, URLs. Collectors are ignored: they print what a failed test leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Final, NamedTuple

from noxu import cel
from noxu.api import selectors
from noxu.api.field import ROOT, child, index
from noxu.api.field import Path as FieldPath
from noxu.cases.case_files import DEEPEST, is_deep
from noxu.expressions import expression
from noxu.features import listed_names, meant
from noxu.manifests import documents
from noxu.manifests.documents import Document
from noxu.values import Json, Object

GROUP: Final = "kuttl.dev"
SUITE: Final = "kuttl-test.yaml"
TIMEOUT: Final = 30.0
"""Seconds for what a step asserts, as in kuttl."""
MAX_NAMESPACE: Final = 63
_NAME: Final = expression(r"(\d+-)?([^-.]+)(-[^.]+)?((?:\.gotmpl)?\.yaml)?")
_NO_LABEL: Final = expression(r"[^a-z0-9]+")


class StepProblem(NamedTuple):
    """Why a test cannot be run: a field of a document, and a sentence."""

    document: Document
    field: FieldPath
    message: str


class DeletedObjects(NamedTuple):
    """An object of a TestStep's `delete`, or without a name all objects of the kind with these labels."""

    value: Object
    document: Document
    field: FieldPath


class SharedConditions(NamedTuple):
    """CEL over several objects: `assertAll`, `assertAny` and `resourceRefs` of a TestAssert."""

    document: Document
    objects: Mapping[str, Object]
    """apiVersion, kind, name, namespace by the name of the variable."""
    every: Sequence[cel.AwaitedCondition] = ()
    some: Sequence[cel.AwaitedCondition] = ()


class KuttlStep(NamedTuple):
    """The files of one number. `timeout` is in seconds."""

    name: str
    applied: Sequence[Document] = ()
    asserted: Sequence[Document] = ()
    errors: Sequence[Document] = ()
    deleted: Sequence[DeletedObjects] = ()
    conditions: SharedConditions | None = None
    timeout: float = TIMEOUT
    first: Document = Document({}, "")
    """What a report names as the step, if no other document is meant."""


class KuttlTest(NamedTuple):
    """One directory. `given` are the documents that its server begins with; with `problems` it cannot be run."""

    directory: Path
    steps: Sequence[KuttlStep] = ()
    given: Sequence[Document] = ()
    namespace: str = ""
    problems: Sequence[StepProblem] = ()
    files: frozenset[Path] = frozenset()
    """The files and directories that it depends on."""

    @property
    def name(self) -> str:
        return self.directory.resolve().name


class _FileName(NamedTuple):
    """`step` is the name that a file gives to its step, "" if it is one of `assert` and `errors`."""

    number: int | None
    kind: str
    step: str
    is_template: bool


def parsed(name: str) -> _FileName | None:
    """What the name of a file says; None for a file that kuttl ignores.

    >>> parsed("01-scale-up.yaml")
    _FileName(number=1, kind='apply', step='scale-up', is_template=False)
    >>> parsed("01-assert.yaml").kind, parsed("README.md")
    ('assert', None)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number, first, rest, ending = match.groups()
    kind = first.lower() if first.lower() in ("assert", "errors") else "apply"
    step = "" if kind != "apply" else f"{first}{rest or ''}"
    return _FileName(int(number[:-1]) if number else None, kind, step, ".gotmpl" in (ending or ""))


def found(paths: Iterable[Path]) -> list[Path]:
    """The directories of tests below some directories, and these themselves."""
    listed: list[Path] = []
    for path in paths:
        if path.is_dir():
            files = [file for file in path.rglob("*.yaml") if not _is_hidden(file, path)]
            below = sorted({directory for file in files for directory in (file.parent, file.parent.parent)})
            listed += [each for each in below if (each == path or path in each.parents) and is_test(each)]
    return list(dict.fromkeys(listed))


def _is_hidden(file: Path, above: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(above).parts)


def is_test(directory: Path) -> bool:
    """Whether it has a step that asserts something, or a document of kuttl. The directory of a step is no test of its own."""
    if _has_number(directory) and any(_asserts(directory.parent)):
        return False
    numbered = [file for file, _ in _numbered(directory) if file.suffix == ".yaml" and file.is_file()]
    return any(_asserts(directory)) or any(f"{GROUP}/".encode() in file.read_bytes() for file in numbered)


def _asserts(directory: Path) -> Iterator[Path]:
    """The assert and errors files of a test, also those in the directories of steps."""
    for file, name in _numbered(directory):
        if name.kind != "apply":
            yield file
        elif file.is_dir():
            yield from (below for below in file.iterdir() if (inside := parsed(below.name)) and inside.kind != "apply")


def _has_number(file: Path) -> bool:
    name = parsed(file.name)
    return name is not None and name.number is not None


def first_file(directory: Path) -> Path | None:
    """The first file of a test, which stands for its directory; None if it is none."""
    return next((file for file, _ in _numbered(directory) if file.is_file()), None) if is_test(directory) else None


def _numbered(directory: Path) -> list[tuple[Path, _FileName]]:
    """The files and directories of steps, in the order of their names."""
    named = [(file, parsed(file.name)) for file in sorted(directory.iterdir())]
    return [(file, name) for file, name in named if name is not None and name.number is not None]


def read(directory: Path, given: Iterable[Path] = ()) -> KuttlTest:
    """A test. `given`: CRDs and objects that its server begins with, besides those of its suite."""
    return _TestReading(directory).read(list(given))


class _TestReading:
    """Reads one test, and collects its problems."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._problems: list[StepProblem] = []
        self._files = {directory}

    def read(self, given: Sequence[Path]) -> KuttlTest:
        suite_file = _suite_file(self._directory)
        suite = self._suite(suite_file) if suite_file is not None else Document({}, "")
        above = suite_file.parent if suite_file is not None else self._directory
        directories = [suite.value.get("crdDir"), *_items(suite.value, "manifestDirs")]
        paths = [*given, *(above / str(name) for name in directories if name)]
        self._files |= {*paths}
        timeout = _seconds(suite.value.get("timeout")) or TIMEOUT
        steps = list(self._steps(timeout))
        namespace = str(suite.value.get("namespace") or _namespace(self._directory.resolve().name))
        return KuttlTest(
            self._directory, steps, self._documents(paths), namespace, self._problems, frozenset(self._files)
        )

    def _refuse(self, document: Document, field: FieldPath, message: str) -> None:
        self._problems.append(StepProblem(document, field, message))

    def _documents(self, paths: Iterable[Path]) -> list[Document]:
        read = list(documents.read_paths(paths))
        for document in read:
            if document.error:
                self._refuse(document, ROOT, document.error)
        return [document for document in read if not document.error]

    def _suite(self, file: Path) -> Document:
        self._files.add(file)
        suite = next((each for each in self._of_file(file) if _is_of_kuttl(each, "TestSuite")), None)
        if suite is None:
            return Document({}, str(file))
        self._check(suite, suite.value, _SUITE, ROOT)
        return suite

    def _of_file(self, file: Path) -> list[Document]:
        read = list(documents.read_file(file))
        for document in read:
            if document.error:
                self._refuse(document, ROOT, document.error)
        return [document for document in read if not document.error]

    # -- steps --------------------------------------------------------------------------------------------------------

    def _steps(self, timeout: float) -> Iterator[KuttlStep]:
        by_number: dict[int, list[tuple[Path, _FileName]]] = {}
        for file, name in _numbered(self._directory):
            assert name.number is not None
            inside = [(file, name)]
            if file.is_dir():
                named = [(below, parsed(below.name)) for below in sorted(file.iterdir())]
                inside = [(below, each._replace(number=name.number)) for below, each in named if each is not None]
            by_number.setdefault(name.number, []).extend(inside)
        for number, files in sorted(by_number.items()):
            yield self._step(number, files, timeout)

    def _step(self, number: int, files: Sequence[tuple[Path, _FileName]], timeout: float) -> KuttlStep:
        by_kind: dict[str, list[Document]] = {"apply": [], "assert": [], "errors": []}
        settings: dict[str, Document] = {}
        for file, name in files:
            if name.is_template:
                self._refuse(Document({}, str(file)), ROOT, "templates are not expanded: write it out")
                continue
            inside = self._of_file(file)
            if not self._is_selected(inside):
                continue
            for document in inside:
                kind = document.kind if _is_of_kuttl(document) else ""
                if not kind:
                    self._check_form(document)
                    by_kind[name.kind].append(document)
                elif _PLACES.get(kind) == name.kind and kind not in settings:
                    settings[kind] = document
                elif kind != "TestFile":
                    self._misplaced(document, kind, name.kind)
        return self._composed(number, [name for _, name in files], by_kind, settings, timeout)

    def _check_form(self, document: Document) -> None:
        """What is compared is no deeper than Python's stack, and what identifies it has its form."""
        metadata = document.value.get("metadata", {})
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(document.value.get("apiVersion"), str):
            self._refuse(document, ROOT, "it has no apiVersion")
        if not isinstance(metadata, dict) or not isinstance(labels, dict | NoneType):
            self._refuse(document, "metadata", "it is an object with name, namespace and labels")
        if is_deep(document.value):
            self._refuse(document, ROOT, f"it is nested more than {DEEPEST} deep: name less of the object")

    def _misplaced(self, document: Document, kind: str, place: str) -> None:
        if kind not in _PLACES:
            self._refuse(document, "kind", f"{kind} is none of {listed_names(_PLACES)}{meant(kind, _PLACES)}")
        elif _PLACES[kind] == place:
            self._refuse(document, "kind", f"a step has one {kind}")
        else:
            files = {"apply": "NN-NAME.yaml", "assert": "NN-assert.yaml"}
            self._refuse(document, "kind", f"a {kind} belongs into a file {files[_PLACES[kind]]}")

    def _composed(
        self,
        number: int,
        names: Iterable[_FileName],
        by_kind: Mapping[str, list[Document]],
        settings: Mapping[str, Document],
        timeout: float,
    ) -> KuttlStep:
        step, asserting = settings.get("TestStep"), settings.get("TestAssert")
        title = next((name.step for name in names if name.step), "")
        deleted: list[DeletedObjects] = []
        if step is not None:
            self._check(step, step.value, _STEP, ROOT)
            title = step.name or title
            deleted = list(self._deleted(step))
            for field, kind in (("apply", "apply"), ("assert", "assert"), ("error", "errors")):
                by_kind[kind].extend(self._named(step, field))
        conditions = None
        if asserting is not None:
            self._check(asserting, asserting.value, _ASSERT, ROOT)
            timeout = _seconds(asserting.value.get("timeout")) or timeout
            conditions = self._conditions(asserting)
        all_documents = [*by_kind["assert"], *by_kind["errors"], *by_kind["apply"], *settings.values()]
        return KuttlStep(
            f"{number}-{title}" if title else str(number),
            by_kind["apply"],
            by_kind["assert"],
            by_kind["errors"],
            deleted,
            conditions,
            timeout,
            next(iter(all_documents), Document({}, str(self._directory))),
        )

    def _named(self, step: Document, field: str) -> Iterator[Document]:
        """The documents of the files and directories that a TestStep names. Of a directory, files *.yaml count."""
        for n, name in enumerate(_items(step.value, field)):
            at = index(field, n)
            path = self._directory / str(name)
            if "://" in str(name):
                self._refuse(step, at, f"{name} is not fetched: save it as a file")
                continue
            self._files.add(path)
            files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
            if not path.exists():
                self._refuse(step, at, f"there is no file {path}")
                continue
            for file in files:
                yield from self._of_file(file)

    def _deleted(self, step: Document) -> Iterator[DeletedObjects]:
        for n, wanted in enumerate(_items(step.value, "delete")):
            at = index("delete", n)
            if isinstance(wanted, dict) and isinstance(wanted.get("apiVersion"), str) and wanted.get("kind"):
                yield DeletedObjects(wanted, step, at)
            else:
                self._refuse(step, at, "it is an object with apiVersion, kind, and name or labels")

    def _is_selected(self, inside: Sequence[Document]) -> bool:
        """Whether a file is for this run, which has no labels."""
        for document in inside:
            if _is_of_kuttl(document, "TestFile") and isinstance(
                selector := document.value.get("testRunSelector"), dict
            ):
                try:
                    if not selectors.label_selector(selector).matches({}):
                        return False
                except (ValueError, AttributeError, TypeError) as error:
                    self._refuse(document, "testRunSelector", f"no selector of labels: {error}")
        return True

    def _conditions(self, document: Document) -> SharedConditions | None:
        objects: dict[str, Object] = {}
        for n, each in enumerate(_items(document.value, "resourceRefs")):
            if not isinstance(each, dict) or not all(each.get(name) for name in ("apiVersion", "kind", "name", "ref")):
                self._refuse(document, index("resourceRefs", n), "it has apiVersion, kind, name and ref")
            else:
                objects[each["ref"]] = each
        compiled = {
            field: list(self._compiled(document, field, tuple(objects))) for field in ("assertAll", "assertAny")
        }
        if not any(compiled.values()):
            return None
        return SharedConditions(document, objects, compiled["assertAll"], compiled["assertAny"])

    def _compiled(self, document: Document, field: str, names: tuple[str, ...]) -> Iterator[cel.AwaitedCondition]:
        for n, each in enumerate(_items(document.value, field)):
            text = each.get("celExpr") if isinstance(each, dict) else None
            if not isinstance(text, str):
                self._refuse(document, index(field, n), "it is {celExpr: …}")
                continue
            try:
                yield cel.AwaitedCondition(text, names)
            except ValueError as error:
                self._refuse(document, child(index(field, n), "celExpr"), str(error))

    def _check(self, document: Document, value: Object, table: Mapping[str, _Judge], place: FieldPath) -> None:
        for name, each in value.items():
            if name not in table:
                known = listed_names(table)
                self._refuse(
                    document, child(place, name), f"there is no such field: there are {known}{meant(name, table)}"
                )
            elif each and (said := table[name](each)):
                self._refuse(document, child(place, name), said)


def _is_of_kuttl(document: Document, kind: str = "") -> bool:
    group = str(document.value.get("apiVersion")).partition("/")[0]
    return group == GROUP and kind in ("", document.kind)


def _suite_file(directory: Path) -> Path | None:
    """That of the test, or of the next directory above it that has one."""
    above = directory.resolve()
    return next((file for each in (above, *above.parents) if (file := each / SUITE).is_file()), None)


def _namespace(name: str) -> str:
    return f"kuttl-{_NO_LABEL.sub('-', name.lower())}"[:MAX_NAMESPACE].rstrip("-")


def _items(value: Object, field: str) -> list[Json]:
    """Those of a list; [] for what is none, which is refused."""
    items = value.get(field)
    return items if isinstance(items, list) else []


def _seconds(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


# -- the fields, and what this program says about their values ----------------------------------------------------------

_Judge = Callable[[Json], str]
"""Why a value cannot be used, "" if it can."""


def _anything(_: Json) -> str:
    return ""


def _list(value: Json) -> str:
    return "" if isinstance(value, list) else "it is a list"


def _number(value: Json) -> str:
    return "" if _seconds(value) > 0 else "it is a number of seconds"


def _refused(why: str) -> _Judge:
    return lambda _: why


_COMMANDS: Final = _refused(
    "commands and scripts are not run: they would be other programs with other clusters; apply objects, or assert what is there"
)
_CLUSTER: Final = _refused("a test has the server that runs it, and no other cluster")
_EVERY: Final[dict[str, _Judge]] = {"apiVersion": _anything, "kind": _anything, "metadata": _anything}
_STEP: Final[dict[str, _Judge]] = {
    **_EVERY,
    "index": _anything,
    "apply": _list,
    "assert": _list,
    "error": _list,
    "delete": _list,
    "unitTest": _anything,
    "commands": _COMMANDS,
    "kubeconfig": _CLUSTER,
    "kubeconfigLoading": _CLUSTER,
    "context": _CLUSTER,
}
_ASSERT: Final[dict[str, _Judge]] = {
    **_EVERY,
    "timeout": _number,
    "collectors": _anything,
    "commands": _COMMANDS,
    "resourceRefs": _list,
    "assertAny": _list,
    "assertAll": _list,
}
_SUITE: Final[dict[str, _Judge]] = {
    **_EVERY,
    "crdDir": _anything,
    "manifestDirs": _list,
    "namespace": _anything,
    "timeout": _number,
    "commands": _COMMANDS,
    **dict.fromkeys(
        (
            "testDirs", "startControlPlane", "controlPlaneArgs", "attachControlPlaneOutput", "startKIND", "kindConfig",
            "kindContext", "kindNodeCache", "kindContainers", "skipDelete", "skipClusterDelete", "parallel", "artifactsDir",
            "reportFormat", "reportName", "reportGranularity", "suppress", "ignoreFiles", "config",
        ),
        _anything,
    ),
}  # fmt: skip
_PLACES: Final = {"TestStep": "apply", "TestAssert": "assert", "TestFile": ""}
"""The files that have documents of kuttl's kinds."""
