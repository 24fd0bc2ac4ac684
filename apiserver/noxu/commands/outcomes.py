"""The results of writing objects, and what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.commands import findings, inputs
from noxu.commands.findings import Checked, Finding, Verb
from noxu.features import Features
from noxu.manifests.documents import Document
from noxu.schema.narrowing import Narrowing
from noxu.values import Json, Object


class Rules(NamedTuple):
    """How objects are written. `strict`: refuse unknown fields. `ignore_unknown`: skip objects of kinds that are not served."""

    strict: bool = False
    features: Features = Features()
    ignore_unknown: bool = False


class Outcome(NamedTuple):
    """The result for one object. `error` is the error with which a server refuses it.

    `meant` are the paths of unknown fields, with advice about the fields that were probably meant. `update`: the command of
    kubectl with which the object updates one that exists. `more`: with unknown or repeated fields, the error for which the
    object would be refused without them. `narrowings`: of a CRD that updates another one.
    """

    document: Document
    namespace: str
    result: findings.Result
    error: ApiError | None = None
    warnings: Sequence[str] = ()
    certain: Sequence[Finding] = ()
    """The findings of an object that was not written."""
    meant: Mapping[str, str] = {}
    update: Verb = ""
    more: ApiError | None = None
    narrowings: Sequence[Narrowing] = ()

    @property
    def checked(self) -> Checked:
        if self.result == "unreadable":
            return Checked(self.document, "", self.result, self.certain)
        refusals = [each for each in (self.error, self.more) if each is not None]
        errors = [finding for each in refusals for finding in findings.of_status(self.document, each.status)]
        warnings = findings.of_warnings(self.document, self.warnings)
        title = inputs.title(self.document, self.namespace)
        found = [*self.certain, *errors, *warnings, *findings.of_upgrade(self.document, self.narrowings, errors)]
        if self.meant:
            found = [each._replace(advice=each.advice or self.meant.get(each.field, "")) for each in found]
        return Checked(self.document, title, self.result, found, self.update)


def as_json(outcome: Outcome) -> Object:
    """An outcome without its document."""
    return {
        "namespace": outcome.namespace,
        "result": outcome.result,
        "error": _error_as_json(outcome.error),
        "more": _error_as_json(outcome.more),
        "warnings": list(outcome.warnings),
        "meant": dict(outcome.meant),
        "update": outcome.update,
        "narrowings": list(map(list, outcome.narrowings)),
    }


def from_json(document: Document, value: Json) -> Outcome:
    """What `as_json` has written. Raises LookupError, TypeError for anything else."""
    error, more = (None if each is None else ApiError(*each) for each in (value["error"], value["more"]))
    narrowings = [Narrowing(*each) for each in value["narrowings"]]
    namespace, result, warnings, meant, update = (value[name] for name in _KEPT)
    return Outcome(
        document, namespace, result, error, warnings, meant=meant, update=update, more=more, narrowings=narrowings
    )


def _error_as_json(error: ApiError | None) -> Json:
    return None if error is None else [error.code, error.message, error.reason, error.details]


_KEPT: Final = ("namespace", "result", "warnings", "meant", "update")
