"""Writes docs/api.md, the page about the public names of `noxu`, from their docstrings.

    python -m docs.api_page

A name that `noxu.__all__` has and no section below is an error: every public name is documented.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, get_overloads

import noxu
from noxu import strategies
from noxu.testing import plugin
from noxu.testing.manners import MannersCalls
from noxu.testing.past import PastCalls
from noxu.testing.recordings import ReplayCalls
from noxu.testing.registration import Registration
from noxu.testing.snapshots import SnapshotCalls
from noxu.testing.tenants import TenantCalls
from noxu.testing.verbs import Verbs
from noxu.testing.write_log import WriteLog

PAGE: Final = Path(__file__).with_name("api.md")
SECTIONS: Final = {
    "The handle": ("Noxu",),
    "Users": ("TestUser",),
    "Tenants": ("TestTenant",),
    "Watches and requests": ("Watch", "WatchEvent", "RecordedRequest"),
    "What was written": ("LoggedWrite", "WriteCause"),
    "Manners": ("MannersReport",),
    "The past": ("PastView",),
    "Errors": ("ApiError", "Denied", "LoadError", "StartError", "Stopped", "UnknownKind", "WaitTimeout"),
    "Warnings": ("ApiWarning", "UnknownFieldWarning"),
    "The factory": ("MakeNoxu",),
    "Exploring": ("explore", "ExploreResult", "ExploreFinding"),
    "Arguments of servers": ("Authentication", "Clock"),
}
_HEAD: Final = """# The Python API

What `noxu` names is public: `from noxu import Noxu, ApiError`. The modules below it, and those of `noxu_storage`, are
private and may change. `python -m docs.api_page` writes this page from the docstrings. [testing.md](testing.md) is the
introduction.

Methods whose result is marked with *awaited* block where no event loop runs in the thread, and are awaited in a coroutine:
`noxu.get("widgets", "a")`, `await noxu.get("widgets", "a")`.
"""
_RESULTS: Final = {
    "AwaitableObjects": "list[dict]",
    "AwaitableObject": "dict",
    "AwaitableRequests": "list[RecordedRequest]",
    "AwaitableReport": "MannersReport",
    "AwaitableWrites": "list[LoggedWrite]",
    "AwaitableNoxu": "Noxu",
    "AwaitableText": "str",
    "AwaitableNone": "None",
}
_MADE_BY: Final = {
    "__init__": {"Noxu": "Noxu", "Denied": "Denied", "ApiError": "ApiError"},
    "__call__": {"MakeNoxu": "make_noxu"},
}
"""What a test makes itself: the method that describes its arguments, and the name that is called."""
TYPES: Final = {
    "Object": "`dict[str, Any]`: an object, as JSON",
    "Source": "an `Object`, the path of a file or a directory (`str` or `Path`), or a text with manifests, which has several lines",
    "Patch": "`Object`, a merge patch or a configuration, or `list[Object]`, a JSON patch",
    "PatchType": '`"merge"`, `"json"`, `"strategic"`, `"apply"`',
    "Condition": "a `str`, or a function of an `Object`, which may be async in a coroutine",
    "PastMoment": 'a text such as `"-5m"`, a revision, a `datetime`, a `timedelta` until now, an `Object` (its resourceVersion), or a snapshot',
    "Profile": '`"local"`, `"envtest"`, `"cluster"`',
    "Users": "names, or a dict of names and their groups",
    "TenantBlock": "a context manager, for `with` and `async with`, whose target is a `TestTenant`",
    "Rollback": "a context manager, for `with` and `async with`",
    "SearchStrategy": "of Hypothesis: what `given` takes",
    "BrokenObject": "see [strategies](#strategies-for-hypothesis)",
    "PythonController": 'words of a command, `"package.module:function"`, a function of a module, or a module with handlers of kopf',
    "F": "the decorated function, which the decorator returns",
}
_WIDTH: Final = 110


def page() -> str:
    """The text of the page. Raises ValueError for a public name that is in no section."""
    missing = set(noxu.__all__) - {name for names in SECTIONS.values() for name in names}
    if missing:
        raise ValueError(f"in no section: {', '.join(sorted(missing))}")
    lines = [_HEAD]
    for title, names in SECTIONS.items():
        lines.append(f"## {title}\n")
        for name in names:
            public = getattr(noxu, name)
            lines += _of_class(name, public) if inspect.isclass(public) else _of_function(name, public)
    lines += [*_strategies(), *_types(), *_fixtures(), *_options()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _of_function(name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield _code([_signature(name, function, skipped=0)])
    yield f"{_doc(function)}\n"


def _of_class(name: str, class_: type) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{_doc(class_)}\n"
    for method, shown in _MADE_BY.items():
        if method in vars(class_) and name in shown:
            yield _code([_signature(shown[name], vars(class_)[method])])
            yield f"{_doc(vars(class_)[method])}\n" if vars(class_)[method].__doc__ else ""
    fields = {field: type_ for field, type_ in inspect.get_annotations(class_).items() if not field.startswith("_")}
    if fields:
        rows = (f"| `{field}` | {_cell(_annotation(type_))} |" for field, type_ in fields.items())
        yield "\n".join(["| | |", "|---|---|", *rows]) + "\n"
    for method, function in _methods(class_):
        shown_as = [_signature(method, each) for each in get_overloads(function) or [function]]
        awaited = any(result in str(function.__annotations__.get("return")) for result in _RESULTS)
        yield f"#### {name}.{method}{' *awaited*' if awaited else ''}\n"
        yield _code(shown_as)
        yield f"{_doc(function)}\n"
    for field, getter in vars(class_).items():
        if isinstance(getter, property) and not field.startswith("_") and getter.__doc__:
            yield f"`{name}.{field}`: {_doc(getter)}\n"


def _methods(class_: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods. Those that a user shares with the handle are shown with the handle."""
    for each in (
        (Verbs, class_, SnapshotCalls, TenantCalls, WriteLog, MannersCalls, PastCalls, ReplayCalls, Registration)
        if class_ is noxu.Noxu
        else (class_,)
    ):
        for name, function in vars(each).items():
            if inspect.isfunction(function) and not name.startswith("_") and "In the loop of the" not in _doc(function):
                yield name, function


def _signature(name: str, function: Callable[..., Any], skipped: int = 1) -> str:
    """`get(what: str, name: str, /, *, namespace: str | None = None) -> dict`, in several lines if it is long."""
    signature = inspect.signature(function)
    parts: list[str] = []
    previous: Any = None
    for parameter in list(signature.parameters.values())[skipped:]:
        kind = parameter.kind
        if previous is parameter.POSITIONAL_ONLY and kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        if kind is parameter.KEYWORD_ONLY and previous not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            parts.append("*")
        parts.append(_parameter(parameter))
        previous = kind
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    result = "" if name[0].isupper() else _result(signature.return_annotation)
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    if parameter.kind is parameter.VAR_KEYWORD:
        star = "**"
    text = f"{star}{parameter.name}: {_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    known = isinstance(parameter.default, (bool, int, float, str, tuple, type(None)))
    shown = repr(parameter.default).replace("'", '"') if known and not hasattr(parameter.default, "_fields") else "…"
    return f"{text} = {shown}"


def _annotation(annotation: Any) -> str:
    """The text of an annotation; a NamedTuple has references."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _result(annotation: object) -> str:
    if annotation in (inspect.Signature.empty, "None"):
        return ""
    text = str(annotation)
    for name, shown in _RESULTS.items():
        text = re.sub(rf"\b{name}\b", shown, text)
    return "" if text == "None" else f" -> {text}"


def _code(lines: list[str]) -> str:
    return "\n".join(["```python", *lines, "```", ""])


def _doc(documented: object) -> str:
    return inspect.getdoc(documented) or ""


def _strategies() -> Iterator[str]:
    """The functions of `noxu.strategies`, and what they return and raise."""
    yield "## Strategies for Hypothesis\n"
    yield "`from noxu.strategies import valid, invalid`; [from-schemas.md](from-schemas.md) is the introduction.\n"
    for name in ("valid", "invalid"):
        function = getattr(strategies, name)
        yield f"### {name}\n"
        yield _code([_signature(name, function, skipped=0)])
        yield f"{_doc(function)}\n"
    for name in ("BrokenObject", "CannotGenerate", "UnknownDefinition"):
        yield f"`{name}`: {_doc(getattr(strategies, name))}\n"


def _types() -> Iterator[str]:
    yield "## Types in signatures\n"
    yield "| | |\n|---|---|"
    yield from (f"| `{name}` | {text} |" for name, text in TYPES.items())
    yield ""


def _fixtures() -> Iterator[str]:
    yield "## Fixtures of pytest\n"
    yield "| | |\n|---|---|"
    for name in ("noxu", "noxu_class", "noxu_module", "noxu_session", "make_noxu", "explored"):
        text = " ".join(_doc(getattr(plugin, name)).split())
        yield f"| `{name}` | {text} |"
    yield "\n`@pytest.mark.noxu(*manifests, **arguments)`: what the servers of a test load, and further arguments of `Noxu`.\n"
    yield "`@pytest.mark.noxu_explore(config, **arguments)`: what `explored` explores, as the arguments of `explore`.\n"


def _options() -> Iterator[str]:
    yield "## Options of pytest\n"
    yield "| in the configuration | on the command line | |\n|---|---|---|"
    for option in plugin.OPTIONS:
        flag = f"--noxu-{option.name.replace('_', '-')}"
        yield f"| `noxu_{option.name}` | `{flag}` | {option.help} |"


if __name__ == "__main__":
    PAGE.write_text(page())
