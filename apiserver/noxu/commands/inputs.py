"""The documents that a command checks, as its options select them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from noxu.commands.findings import Checked, finding, unreadable
from noxu.manifests.documents import CRD, STDIN, Document, Split, contents_of, log, read_paths, split
from noxu.manifests.wording import plain

EMPTY: Final = "contains no object; --allow-empty allows that"
_POLICIES: Final = "admissionregistration.k8s.io/"


def read(options: argparse.Namespace, split: Split = split) -> list[Document]:
    """The documents of all paths. What cannot be read, or has no document, is a document with an error."""
    documents: list[Document] = []
    for path in options.files:
        found = list(read_paths([path], partial(contents_of, split=split), options.command))
        if not found and not options.allow_empty:
            found = [Document({}, "stdin" if str(path) == STDIN else str(path), 0, error=EMPTY)]
        documents += found
    return documents


def former(paths: Iterable[Path], split: Split = split) -> list[Document]:
    """The documents of `--old` that can be read. The others are named in warnings: a branch may be the first to have them."""
    found = []
    for document in read_paths(paths, partial(contents_of, split=split)):
        if document.error:
            said = "; ".join(each.text for each in plain(document.error))
            log.warning("--old: nothing is compared with %s: %s", document.place(), said)
        else:
            found.append(document)
    return found


def decided(options: argparse.Namespace, document: Document) -> Checked | None:
    """The result that is certain before a document is checked: it is unreadable, or of a kind to skip or to reject."""
    if document.error:
        return Checked(document, "", "unreadable", unreadable(document))
    names = kind_names(document)
    if names & options.reject:
        why = f"the kind {document.kind} is rejected, as --reject says"
        found = finding(document, "error", "rejected-kind", why, "kind")
        return Checked(document, title(document), "refused", [found])
    return Checked(document, title(document), "skipped") if names & options.skip else None


def nothing(options: argparse.Namespace, why: str) -> Checked:
    """The result if the documents have nothing to check."""
    document = Document({}, ", ".join(map(str, options.files)), 0, error=f"{why}; --allow-empty allows that")
    return Checked(document, "", "unreadable", unreadable(document))


def kind_names(document: Document) -> frozenset[str]:
    """The names by which options select the kind of a document: alone, and with its version."""
    return frozenset((document.kind, f"{document.value.get('apiVersion')}/{document.kind}"))


def title(document: Document, namespace: str | None = None) -> str:
    """`Widget attic/large`. `namespace` is the one in which the object is written (default: the one it names)."""
    namespace = document.namespace if namespace is None else namespace
    name = f"{namespace}/{document.name}" if namespace and document.name else document.name
    return f"{document.kind} {name}".rstrip()


Name = tuple[str, str, str, str]


def name_of(document: Document) -> Name:
    """What distinguishes objects: group, kind, namespace and name."""
    group = str(document.value.get("apiVersion") or "").rpartition("/")[0]
    namespace = "" if document.namespace == "default" else document.namespace
    return group, document.kind, namespace, document.name


def rounds(documents: Iterable[Document]) -> list[list[Document]]:
    """The documents in rounds, so that objects of one name are in the same round only if they are in the same file.

    A file is in the first round in which no other file has an object of the same name:

        a.yaml: A, B    b.yaml: C    c.yaml: B, D    →    [a.yaml, b.yaml], [c.yaml]
    """
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(document.file, []).append(document)
    found: list[list[Document]] = []
    taken: list[set[Name]] = []
    for members in files.values():
        names = {name_of(document) for document in members if document.name}
        n = next((n for n, others in enumerate(taken) if not others & names), len(found))
        if n == len(found):
            found.append([])
            taken.append(set())
        found[n] += members
        taken[n] |= names
    return found


def shared_with(members: Iterable[Document], documents: Iterable[Document]) -> list[Document]:
    """The CRDs and policies of other rounds that a round needs: of each name the first, unless the round has it."""
    names = {name_of(document) for document in members}
    shared = []
    for document in documents:
        is_shared = document.kind == CRD or str(document.value.get("apiVersion")).startswith(_POLICIES)
        if is_shared and name_of(document) not in names:
            names.add(name_of(document))
            shared.append(document)
    return shared
