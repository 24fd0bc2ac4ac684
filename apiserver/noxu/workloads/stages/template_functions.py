"""The functions of templates: those of Go, of sprig as far as stages use them, and those of kwok.

The functions of sprig that read the environment, the network or chance are not there: a stage does the same in each run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from noxu.config import KUBERNETES_VERSION
from noxu.go import yaml_writer
from noxu.go.time import format_time
from noxu.workloads.nodes import CONDITIONS
from noxu.workloads.stages.templates import Function, go_text, is_true

_CONDITIONS: Final = (
    *CONDITIONS,
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)


def _equal(first: Any, *others: Any) -> bool:
    return any(type(first) is type(other) and first == other for other in others)


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if value is None:
            return None
        value = value.get(key) if isinstance(value, dict) else value[key]
    return value


def _quoted(value: Any) -> str:
    """kwok's Quote: a text in JSON; anything else is one when it is written."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False)


def _yaml(value: Any, indent: int = 0) -> str:
    text = _as_yaml(value)
    return "\n" + "".join(f"{'  ' * indent}{line}\n" for line in text.splitlines()) if indent else text


def _as_yaml(value: Any) -> str:
    return yaml_writer.write(value).decode()


def _formatted(form: str, *values: Any) -> str:
    """fmt.Sprintf with %s, %v, %d, %q, %t and %%."""
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not rest:
            return f"%!{match[1]}(MISSING)"
        value = rest.pop(0)
        return _quoted(go_text(value)) if match[1] == "q" else go_text(value)

    return re.sub(r"%([svdqt%])", one, form)


def _dictionary(*pairs: Any) -> dict[str, Any]:
    return {str(key): value for key, value in zip(pairs[::2], [*pairs[1::2], *([""] * (len(pairs) % 2))], strict=True)}


def _whole(value: Any) -> int:
    return int(float(value)) if value not in (None, "") else 0


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _indented(spaces: int, text: str) -> str:
    return "\n".join(f"{' ' * spaces}{line}" for line in text.split("\n"))


PURE: Final[Mapping[str, Function]] = {
    # text/template
    "not": lambda value: not is_true(value),
    "eq": _equal,
    "ne": lambda left, right: not _equal(left, right),
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "index": _index,
    "len": len,
    "print": lambda *values: "".join(map(go_text, values)),
    "printf": _formatted,
    "slice": lambda value, start=0, end=None: value[start:end],
    # sprig
    "default": lambda otherwise, value=None: value if is_true(value) else otherwise,
    "empty": lambda value: not is_true(value),
    "coalesce": lambda *values: next((value for value in values if is_true(value)), None),
    "ternary": lambda yes, no, value: yes if is_true(value) else no,
    "dict": _dictionary,
    "list": lambda *values: list(values),
    "get": lambda value, key: value.get(key, ""),
    "hasKey": lambda value, key: key in value,
    "keys": sorted,
    "first": lambda value: value[0] if value else None,
    "last": lambda value: value[-1] if value else None,
    "has": lambda item, value: item in (value or ()),
    "append": lambda value, item: [*(value or ()), item],
    "until": lambda number: list(range(number)),
    "join": lambda between, value: between.join(map(go_text, value)),
    "quote": lambda *values: " ".join(_quoted(go_text(value)) for value in values if value is not None),
    "squote": lambda *values: " ".join(f"'{go_text(value)}'" for value in values if value is not None),
    "toString": go_text,
    "toJson": _json,
    "upper": lambda text: text.upper(),
    "lower": lambda text: text.lower(),
    "trim": lambda text: text.strip(),
    "trimPrefix": lambda prefix, text: text.removeprefix(prefix),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length] if length >= 0 else text[length:],
    "contains": lambda part, text: part in text,
    "hasPrefix": lambda prefix, text: text.startswith(prefix),
    "hasSuffix": lambda suffix, text: text.endswith(suffix),
    "replace": lambda old, new, text: text.replace(old, new),
    "indent": _indented,
    "nindent": lambda spaces, text: "\n" + _indented(spaces, text),
    "int": _whole,
    "int64": _whole,
    "add": lambda *values: sum(map(_whole, values)),
    "add1": lambda value: _whole(value) + 1,
    "sub": lambda left, right: _whole(left) - _whole(right),
    "mul": lambda left, right: _whole(left) * _whole(right),
    "div": lambda left, right: int(_whole(left) / _whole(right)),
    "mod": lambda left, right: _whole(left) % _whole(right),
    "max": lambda *values: max(map(_whole, values)),
    "min": lambda *values: min(map(_whole, values)),
    "b64enc": lambda text: base64.b64encode(text.encode()).decode(),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    # kwok
    "Quote": _quoted,
    "YAML": _yaml,
    "Version": lambda: f"v{KUBERNETES_VERSION}",
    "NodeConditions": lambda: [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, status, reason, message in _CONDITIONS
    ],
}
OF_PLACE: Final = (
    "Now", "StartTime", "NodeIP", "NodeName", "NodePort", "PodIP", "NodeIPWith", "NodeIPsWith", "PodIPWith", "PodIPsWith"
)  # fmt: skip
"""Those that depend on when and where a template is rendered: see stages.controller."""
NAMES: Final = frozenset((*PURE, *OF_PLACE))


def at(now: datetime, started: datetime, places: Mapping[str, Function]) -> dict[str, Function]:
    """All functions at a time. `places` are those about addresses."""
    return {**PURE, "Now": lambda: format_time(now), "StartTime": lambda: format_time(started), **places}
