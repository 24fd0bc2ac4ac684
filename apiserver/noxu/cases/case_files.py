"""Files of cases: what is written to a registry, and what should come of it, read and checked.

    apiVersion: noxu.dev/v1
    kind: Test
    given: {crds: [../crds], objects: [fixtures/], policies: [../policies]}    # paths, relative to this file; or objects
    cases:
    - name: size cannot shrink
      old: {…}                           # what is stored already; makes the case an update
      patch: {spec: {size: 1}}           # or `object`, `apply`, `delete: true`
      user: {name: jane, groups: [devs]}
      fieldValidation: Strict            # Warn (the default of the API), Ignore
      convert: v2
      expect: {denied: true, message: size cannot shrink}

Objects are inline, or the path of a file with one object. What is misspelt, or says nothing, is refused with its place: a case
that is never checked would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from noxu import releases
from noxu.api.field import ROOT, child, index
from noxu.api.field import Path as FieldPath
from noxu.features import listed_names, meant
from noxu.manifests import documents
from noxu.manifests.documents import Document
from noxu.releases import NEWEST
from noxu.values import Json, Object

API_VERSION: Final = "noxu.dev/v1"
KIND: Final = "Test"
SUFFIXES: Final = ("_test.yaml", "_test.yml")
"""How the names of files of cases in a directory end."""
GOLDEN: Final = ("stored", "converted")
"""What `--update` writes."""
DEEPEST: Final = 100
"""How deep an expected object may be nested."""
DENIALS: Final = ("denied", "message", "deniedBy")


class CaseProblem(NamedTuple):
    """Why a file or a case cannot be run: the field, and a sentence."""

    field: FieldPath
    message: str


class Case(NamedTuple):
    """One case. `path` is its place in the document, such as `cases[3]`. `written` are its fields as they are in the file.

    `old`, `object` and `apply` are objects; `patch` is a merge patch, or a list of the operations of a JSON patch. `golden`:
    the files of `expect.stored` and `expect.converted` that are paths. `expect` has what these files have in their places,
    None for one that does not exist.
    """

    path: FieldPath
    name: str
    written: Object
    expect: Object
    old: Object | None = None
    object: Object | None = None
    apply: Object | None = None
    golden: Mapping[str, Path] = {}

    def __str__(self) -> str:
        return self.name


class CaseFile(NamedTuple):
    """A file of cases. `given` are the documents of each of its lists. With `problems` it cannot be run."""

    document: Document
    given: Mapping[str, Sequence[Document]] = {}
    cases: Sequence[Case] = ()
    problems: Sequence[CaseProblem] = ()
    files: frozenset[Path] = frozenset()
    """The files and directories that it names."""
    releases: Sequence[int] = (NEWEST,)
    """Those of Kubernetes that its cases are run as."""


def found(paths: Iterable[Path]) -> list[Path]:
    """The files of cases in directories, and the files themselves."""
    listed: list[Path] = []
    for path in paths:
        if path.is_dir():
            listed += sorted(
                file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and not _is_hidden(file, path)
            )
        else:
            listed.append(path)
    return list(dict.fromkeys(listed))


def _is_hidden(file: Path, above: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(above).parts)


def read(path: Path, *, updates: bool = False) -> CaseFile:
    """A file of cases. `updates`: golden files that do not exist will be written."""
    read_documents = list(documents.read_file(path))
    if not read_documents:
        return CaseFile(Document({}, str(path), 0), problems=[CaseProblem(ROOT, "the file is empty")])
    document, *others = read_documents
    if document.error:
        return CaseFile(document, problems=[CaseProblem(ROOT, document.error)])
    if others:
        return CaseFile(others[0], problems=[CaseProblem(ROOT, "a file has one Test: write another file for this one")])
    return _Reading(document, path.parent, updates=updates).read()


class _Reading:
    """Reads one document, and collects its problems."""

    def __init__(self, document: Document, directory: Path, *, updates: bool) -> None:
        self._document, self._directory, self._updates = document, directory, updates
        self._problems: list[CaseProblem] = []
        self._files: set[Path] = set()
        self._releases: Sequence[int] = (NEWEST,)

    def read(self) -> CaseFile:
        value = self._document.value
        if value.get("apiVersion") != API_VERSION or value.get("kind") != KIND:
            why = f"this is {value.get('apiVersion')} {value.get('kind')}: cases are of {API_VERSION} {KIND}"
            return CaseFile(self._document, problems=[CaseProblem("kind", why)])
        for complaint in self._document.strict:
            self._refuse(ROOT, complaint)
        self._names(value, _DOCUMENT, ROOT)
        given = self._given(value.get("given", {}))
        cases = list(self._cases(value.get("cases")))
        return CaseFile(self._document, given, cases, self._problems, frozenset(self._files), self._releases)

    def _refuse(self, field: FieldPath, message: str) -> None:
        self._problems.append(CaseProblem(field, message))

    def _names(self, value: Object, known: Iterable[str], place: FieldPath) -> None:
        for name in value:
            if name not in known:
                said = f"there is no such field: there are {listed_names(known)}{meant(str(name), known)}"
                self._refuse(child(place, str(name)), said)

    # -- given --------------------------------------------------------------------------------------------------------

    def _given(self, given: Json) -> dict[str, list[Document]]:
        if not isinstance(given, dict):
            self._refuse("given", f"it is an object with {listed_names(_GIVEN)}")
            return {}
        self._names(given, _GIVEN, "given")
        self._read_versions(given.get("kubernetes"))
        return {name: list(self._sources(given[name], child("given", name))) for name in _MANIFESTS if name in given}

    def _read_versions(self, wanted: Json) -> None:
        versions = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
        if not versions:
            return
        try:
            self._releases = releases.parse_list(map(str, versions))
        except ValueError as error:
            self._refuse("given.kubernetes", str(error))

    def _sources(self, sources: Json, place: FieldPath) -> Iterator[Document]:
        if not isinstance(sources, list):
            self._refuse(place, "it is a list of paths and objects")
            return
        for n, source in enumerate(sources):
            at = index(place, n)
            if isinstance(source, dict):
                yield Document(source, self._document.file, text=self._document.text, path=at)
            elif isinstance(source, str):
                yield from self._of_path(source, at)
            else:
                self._refuse(at, "it is a path, or an object")

    def _of_path(self, name: str, place: FieldPath) -> Iterator[Document]:
        path = self._directory / name
        self._files.add(path)
        count = 0
        for document in documents.read_paths([path]):
            count += 1
            if document.error:
                self._refuse(place, f"{document.place()}: {document.error}")
            elif document.value.get("apiVersion") != API_VERSION:  # cases may lie beside what they are about
                yield document
        if not count:
            self._refuse(place, f"{path} contains no object")

    # -- cases --------------------------------------------------------------------------------------------------------

    def _cases(self, cases: Json) -> Iterator[Case]:
        if not isinstance(cases, list) or not cases:
            self._refuse("cases", "there are none: it is a list with one case or more")
            return
        names: dict[str, int] = {}
        for n, written in enumerate(cases):
            place = index("cases", n)
            if not isinstance(written, dict):
                self._refuse(place, f"it is an object with {listed_names(_CASE)}")
                continue
            case = self._case(written, place)
            if case is not None:
                if case.name in names:
                    self._refuse(child(place, "name"), f"case {names[case.name] + 1} has the same name")
                names[case.name] = n
                yield case

    def _case(self, written: Object, place: FieldPath) -> Case | None:
        before = len(self._problems)
        self._names(written, _CASE, place)
        self._types(written, _CASE, place)
        if not written.get("name"):
            self._refuse(place, "it has no name: reports name cases, and so does --run")
        writes = [name for name in _WRITES if written.get(name) not in (None, False)]
        if len(writes) != 1:
            self._refuse(place, f"it has to have one of {listed_names(_WRITES)}{_of(writes)}")
        elif writes[0] != "object" and "old" not in written:
            self._refuse(child(place, writes[0]), "it changes `old`, and there is none")
        golden: dict[str, Path] = {}
        expect = written.get("expect")
        if isinstance(expect, dict):
            expect = self._expect(expect, child(place, "expect"), written, golden)
        else:
            self._refuse(place, "it expects nothing: `expect` has what should come of it")
        objects: dict[str, Object | None] = {
            name: self._object(written[name], child(place, name)) for name in _OBJECTS if name in written
        }
        self._same_object(objects, place)
        if len(self._problems) > before:
            return None
        old, new, applied = (objects.get(name) for name in _OBJECTS)
        return Case(place, written["name"], written, expect or {}, old, new, applied, golden)

    def _types(self, value: Object, table: Mapping[str, _Check], place: FieldPath) -> None:
        for name, given in value.items():
            if name in table and (said := table[name](given)):
                self._refuse(child(place, name), said)

    def _object(self, given: Json, place: FieldPath) -> Object | None:
        """The object itself, or that of the file that it names."""
        if not isinstance(given, str):
            value: Object | None = given if isinstance(given, dict) else None
            if value is not None and not (
                isinstance(value.get("kind"), str) and isinstance(value.get("metadata"), dict)
            ):
                self._refuse(place, "it is an object with apiVersion, kind and metadata")
            return value
        path = self._directory / given
        self._files.add(path)
        inside = list(documents.read_file(path))
        if len(inside) != 1 or inside[0].error:
            said = f"{path}: {inside[0].error}" if inside and inside[0].error else f"{path} has not exactly one object"
            self._refuse(place, said)
            return None
        return inside[0].value

    def _same_object(self, objects: Mapping[str, Object | None], place: FieldPath) -> None:
        old = objects.get("old")
        for name in ("object", "apply"):
            other = objects.get(name)
            if old is not None and other is not None and _identity(old) != _identity(other):
                self._refuse(child(place, name), "it has another kind, namespace or name than `old`")

    def _expect(self, expect: Object, place: FieldPath, written: Object, golden: dict[str, Path]) -> Object:
        self._names(expect, _EXPECT, place)
        self._types(expect, _EXPECT, place)
        if not expect:
            self._refuse(place, "it expects nothing: allowed, denied, stored, …")
        if isinstance(expect.get("message"), dict):
            self._message(expect["message"], child(place, "message"))
        denials = [name for name in DENIALS if expect.get(name)]
        others = [name for name in _OF_ALLOWED if expect.get(name) not in (None, False)]
        if denials and others:
            self._refuse(child(place, others[0]), f"a write that is denied has none ({denials[0]})")
        if "delete" in written and (of_objects := [name for name in _OF_OBJECTS if name in expect]):
            self._refuse(child(place, of_objects[0]), "a deletion stores no object: it is allowed or denied")
        for name in ("converted", "roundTrip"):
            if name in expect and "convert" not in written:
                self._refuse(child(place, name), "`convert` is missing in the case: the version to convert to")
        for name in (*GOLDEN, "mutated"):
            if is_deep(expect.get(name)):
                self._refuse(child(place, name), f"it is nested more than {DEEPEST} deep: name less of the object")
        return expect | {name: self._golden(expect[name], name, place, golden) for name in GOLDEN if name in expect}

    def _message(self, message: Object, place: FieldPath) -> None:
        self._names(message, ("regex", "causes"), place)
        if len(message) != 1:
            self._refuse(place, "it is a text, {regex: …} or {causes: [{field: …, reason: …, message: …}]}")
        if "regex" in message:
            try:
                re.compile(str(message["regex"]))
            except re.error as error:
                self._refuse(child(place, "regex"), f"no regular expression: {error}")
        causes = message.get("causes", [])
        for n, cause in enumerate(causes if isinstance(causes, list) else [causes]):
            at = index(child(place, "causes"), n)
            if not isinstance(cause, dict) or not cause:
                self._refuse(at, f"it is an object with {listed_names(CAUSE)}")
            else:
                self._names(cause, CAUSE, at)

    def _golden(self, given: Json, name: str, place: FieldPath, golden: dict[str, Path]) -> Json:
        if not isinstance(given, str):
            return given
        golden[name] = path = self._directory / given
        self._files.add(path)
        if not path.exists():
            if not self._updates:
                self._refuse(child(place, name), f"there is no file {path}: `noxu test --update` writes it")
            return None
        return self._object(given, child(place, name))


def _of(writes: Sequence[str]) -> str:
    return f", and has {' and '.join(writes)}" if writes else ""


def is_deep(value: Json) -> bool:
    """Whether a value is nested more than DEEPEST deep."""
    todo = [(value, 0)]
    while todo:
        each, depth = todo.pop()
        if depth > DEEPEST:
            return True
        below = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        todo += [(item, depth + 1) for item in below]
    return False


def _identity(value: Object) -> tuple[Json, ...]:
    metadata = value.get("metadata") or {}
    group = str(value.get("apiVersion")).rpartition("/")[0]
    return group, value.get("kind"), metadata.get("namespace") or "default", metadata.get("name")


# -- the fields, and what their values have to be ---------------------------------------------------------------------

_Check = Callable[[Json], str]
"""A sentence about a value that is none for its field; "" if it is one."""


def _is(what: str, *types: type) -> _Check:
    def check(value: Json) -> str:
        is_one = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        return "" if is_one else f"it is {what}"

    return check


def _one_of(*names: str) -> _Check:
    return lambda value: "" if value in names else f"{value} is none of {listed_names(names)}{meant(str(value), names)}"


def _texts(value: Json) -> str:
    return "" if isinstance(value, list) and all(isinstance(text, str) for text in value) else "it is a list of texts"


def _true(value: Json) -> str:
    return "" if value is True else "it is true, or left out"


def _user(value: Json) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return "it is an object with name, groups, uid, extra"
    unknown = [name for name in value if name not in _USER]
    if unknown:
        return f"{unknown[0]}: there is no such field: there are {listed_names(_USER)}{meant(str(unknown[0]), _USER)}"
    if not isinstance(value.get("uid", ""), str):
        return "uid: it is a text"
    extra = value.get("extra", {})
    if not isinstance(extra, dict) or any(map(_texts, extra.values())):
        return "extra: it has lists of texts by names"
    return _texts(value.get("groups", [])) and "groups: it is a list of texts"


def _policy(value: Json) -> str:
    is_one = isinstance(value, str) and value.startswith(POLICY) and value != POLICY
    return "" if is_one else f"it is {POLICY}NAME, the policy that denies"


POLICY: Final = "policy/"
CAUSE: Final = ("field", "reason", "message")
_OBJECT: Final = _is("an object, or the path of a file with one", dict, str)
_MANIFESTS: Final = ("crds", "objects", "policies")
_GIVEN: Final = (*_MANIFESTS, "kubernetes")
_DOCUMENT: Final = ("apiVersion", "kind", "metadata", "given", "cases")
_OBJECTS: Final = ("old", "object", "apply")
_WRITES: Final = ("object", "patch", "apply", "delete")
_USER: Final = ("name", "groups", "uid", "extra")
_CASE: Final[dict[str, _Check]] = {
    "name": _is("a text", str),
    "old": _OBJECT,
    "object": _OBJECT,
    "apply": _OBJECT,
    "patch": _is("a merge patch (an object), or the operations of a JSON patch (a list)", dict, list),
    "delete": _true,
    "user": _user,
    "fieldValidation": _one_of("Strict", "Warn", "Ignore"),
    "convert": _is("a version, such as v2", str),
    "expect": _is("an object", dict),
}
_EXPECT: Final[dict[str, _Check]] = {
    "allowed": _true,
    "denied": _true,
    "message": _is("a text, {regex: …} or {causes: […]}", str, dict),
    "deniedBy": _policy,
    "warnings": _texts,
    "stored": _OBJECT,
    "pruned": _texts,
    "defaulted": _texts,
    "mutated": _is("an object", dict),
    "converted": _OBJECT,
    "roundTrip": _is("true or false", bool),
}
_OF_OBJECTS: Final = ("stored", "mutated", "converted", "roundTrip", "pruned", "defaulted")
_OF_ALLOWED: Final = ("allowed", "stored", "mutated", "converted", "roundTrip")
