"""Findings of several releases of Kubernetes, as one list: a finding that only some of them have names these.

    1.29, 1.30: spec.…rule: Invalid value: …: undeclared reference to 'cidr'   (`cidr` is for rules since Kubernetes 1.31)

A finding of all releases is listed as it is. The advice about a function, kind or field of a later release is given for one
release, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from noxu import releases
from noxu.commands.findings import Checked, Finding, Result
from noxu.expressions import expression
from noxu.kinds.scheme import field_since
from noxu.releases import kinds, libraries

_UNDECLARED: Final = expression(r"undeclared reference to '([^']+)'")
_NO_MATCHES: Final = expression(r'no matches for kind "([^"]+)" in version "([^"]+)"')
_RESULTS: Final[tuple[Result, ...]] = ("unreadable", "refused", "valid", "skipped")
"""From the one that counts most: an object that one release refuses is refused."""


def merged(by_release: Mapping[int, Iterable[Finding]]) -> list[Finding]:
    """The findings of each release, the releases in their order; each finding once, where it first occurs."""
    having: dict[Finding, list[int]] = {}
    for release, listed in by_release.items():
        for finding in map(advised, listed):
            having.setdefault(finding, []).append(release)
    return [_of_some(finding, found, len(by_release)) for finding, found in having.items()]


def merged_documents(by_release: Mapping[int, Sequence[Checked]]) -> list[Checked]:
    """The same documents as each release judges them, with the findings and the result of all."""
    return [
        judgements[-1]._replace(
            result=min((judged.result for judged in judgements), key=_RESULTS.index),
            findings=merged(dict(zip(by_release, map(_with_fields_advised, judgements), strict=True))),
        )
        for judgements in zip(*by_release.values(), strict=True)
    ]


_UNKNOWN_FIELD: Final = "unknown field"


def _with_fields_advised(judged: Checked) -> list[Finding]:
    """The findings about a document, with the release that brought a field of a built-in kind which is unknown before."""
    api_version, kind = (str(judged.document.value.get(name, "")) for name in ("apiVersion", "kind"))
    found = []
    for finding in judged.findings:
        unknown = finding.message == _UNKNOWN_FIELD
        brought = field_since(api_version, kind, str(finding.field)) if unknown else None
        advice = f"Kubernetes has this field since {releases.named(brought)}." if brought else finding.advice
        found.append(finding._replace(advice=advice))
    return found


def advised(finding: Finding) -> Finding:
    """The finding, with the release that brought a function or a kind which is unknown before."""
    if finding.advice:
        return finding
    if (unknown := _NO_MATCHES.search(finding.message)) and (brought := kinds.since(unknown[2], unknown[1])):
        return finding._replace(advice=f"Kubernetes has this kind in {unknown[2]} since {releases.named(brought)}.")
    later = {name: since for name in _UNDECLARED.findall(finding.message) if (since := libraries.since(name))}
    advice = "; ".join(
        f"`{name}` is for rules since Kubernetes {releases.named(since)}" for name, since in later.items()
    )
    return finding._replace(advice=advice)


def _of_some(finding: Finding, found: Sequence[int], number: int) -> Finding:
    """A finding that names the releases that have it, unless all have it."""
    if len(found) == number:
        return finding
    return finding._replace(releases=tuple(found))
