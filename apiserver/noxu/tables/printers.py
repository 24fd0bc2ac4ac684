"""Tables of the built-in kinds, as `kubectl get` shows them (upstream's pkg/printers/internalversion).

The columns of a kind are data (`kinds/data/columns.json`); `cells` makes functions of them. Columns of priority 1 are for
`-o wide`. Some kinds have the columns of upstream's kinds without a printer: name and creation time. Definitions of custom
resources have a printer in apiextensions, whose `rows` are null without objects.

An event of events.k8s.io is shown as the event of core/v1 that it is stored as, an autoscaler of v1 as one of v2. Of the storage classes that are marked as
default a list shows only the newest as such: that is the one which counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from noxu.kinds import autoscalers, events, facts
from noxu.tables.cells import cell
from noxu.tables.descriptions import description
from noxu.tables.duration import Age
from noxu.tables.table import Cells, Columns, definition
from noxu.values import Json, Object, nested_field

_DEFINITION: Final = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_CONVERSIONS: Final = {
    "autoscaling/v1/HorizontalPodAutoscaler": autoscalers.to_v2,
    "events.k8s.io/v1/Event": events.to_core,
}
"""By the name of a kind that is shown as another version of itself."""


@cache
def built_in_columns(api_version: str, kind: str) -> Columns:
    """The table of a built-in kind."""
    data = _data()
    name = f"{api_version}/{kind}"
    shown = data["as"].get(name, name)
    given = data["kinds"].get(shown) or data["defaultColumns"]
    functions = [cell(column["value"], column["type"]) for column in given]
    functions += [cell(extra) for extra in data["extraCells"].get(shown, ())]
    adopt = _CONVERSIONS[name] if shown != name else None

    def cells(value: Object) -> list[Json | Age]:
        seen = value if adopt is None else adopt(value)
        return [function(seen) for function in functions]

    group = api_version.rpartition("/")[0] or "core"
    return Columns(
        [_definition(kind, column) for column in given],
        cells,
        no_rows=None if name == _DEFINITION or given is data["defaultColumns"] else [],
        go_type=f"*{group.partition('.')[0]}.{kind}",
        conditions=_row_conditions(data["rowConditions"].get(shown)),
        cells_of_list=_default_class_marked(cells) if _marks_default(given) else None,
    )


@cache
def scale_columns() -> Columns:
    """The table of a built-in kind's /scale."""
    given = _data()["others"]["autoscaling/v1/Scale"]
    functions = [cell(column["value"], column["type"]) for column in given]
    return Columns(
        [_definition("Scale", column) for column in given],
        lambda value: [function(value) for function in functions],
        go_type="*autoscaling.Scale",
    )


@cache
def _data() -> Object:
    found: Object = facts.read("columns.json")
    return found


def _definition(kind: str, column: Object) -> Object:
    text = description(kind, column["name"])
    return definition(column["name"], column["type"], text, form=column.get("format", ""), priority=column["priority"])


# -- row conditions ---------------------------------------------------------------------------------------------------

_MESSAGES: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _row_conditions(given: list[Object] | None) -> Callable[[Object], list[Json]] | None:
    """The conditions of an object's row: pods that are done have the condition Completed."""
    if given is None:
        return None
    rules = [
        (
            rule["when"],
            {name: rule[name] for name in ("type", "status", "reason")} | {"message": _MESSAGES[rule["reason"]]},
        )
        for rule in given
    ]

    def conditions(value: Object) -> list[Json]:
        return [
            condition
            for when, condition in rules
            if all(nested_field(value, path) == expected for path, expected in when.items())
        ]

    return conditions


# -- the default storage class ----------------------------------------------------------------------------------------

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _marks_default(given: list[Object]) -> bool:
    return any(column["value"].get("when", {}).get("defaultStorageClassOfList") for column in given)


def _default_class_marked(cells: Cells) -> Callable[[Iterable[Object]], Cells]:
    """The cells of a list's rows, of which that of the default class is marked."""

    def of_list(items: Iterable[Object]) -> Cells:
        metadata = [item["metadata"] for item in items]
        candidates = [each for each in metadata if _is_default(each)]
        newest = max((each.get("creationTimestamp") or "" for each in candidates), default="")
        names = (each["name"] for each in candidates if (each.get("creationTimestamp") or "") == newest)
        marked = min(names, default=None)

        def shown(value: Object) -> list[Json | Age]:
            name, *rest = cells(value)
            return [f"{name} (default)" if name == marked else name, *rest]

        return shown

    return of_list


def _is_default(metadata: Object) -> bool:
    annotations = metadata.get("annotations") or {}
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)
