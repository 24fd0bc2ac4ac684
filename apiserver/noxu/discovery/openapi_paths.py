"""The paths of a resource and their operations (kube-openapi's builders, given the routes of the API server).

A route is a path, a verb of a served resource and the kinds of its bodies; `PathAction` describes the verb. Parameters
are the fields of its options in meta/v1; those of all operations on a path belong to the path. In v2, parameters that
are equal everywhere are defined once, and referred to.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.discovery import openapi_definitions as definitions
from noxu.discovery import openapi_schemas as schemas
from noxu.discovery.openapi_definitions import DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT
from noxu.discovery.openapi_schemas import V2, V3
from noxu.discovery.openapi_texts import PARAMETERS, RESPONSES
from noxu.go.structs import Scalar, Struct, Wire
from noxu.kinds import meta, scheme
from noxu.registry.resource import BUILT_IN_PATCHES, CUSTOM_PATCHES, Resource
from noxu.values import Object

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

# Bodies of a route that depend on the resource
_KIND: Final = "the kind"
_LIST: Final = "its list"


class PathAction(NamedTuple):
    """A verb as documents describe it.

    `name` is its x-kubernetes-action; `before` and `after` surround the group version in the operationId; `answer` and
    `body` are _KIND, _LIST or the name of a definition; `without` are options that are not parameters. `ending` follows the
    kind in the operationId.
    """

    method: str
    name: str
    before: str
    text: str
    options: tuple[Struct, ...]
    codes: tuple[str, ...]
    answer: str
    body: str = ""
    after: str = ""
    without: frozenset[str] = frozenset()
    ending: str = ""


CUSTOM: Final = {
    "list": PathAction("get", "list", "list", "List", (meta.LIST_OPTIONS,), ("200",), _LIST),
    "create": PathAction("post", "post", "create", "Create", (meta.CREATE_OPTIONS,), ("200", "201", "202"), _KIND, _KIND),
    "deletecollection": PathAction(
        "delete", "deletecollection", "delete", "Delete", (meta.LIST_OPTIONS,), ("200",), STATUS, after="Collection"
    ),
    "get": PathAction("get", "get", "read", "Read", (meta.GET_OPTIONS,), ("200",), _KIND),
    "update": PathAction("put", "put", "replace", "Replace", (meta.UPDATE_OPTIONS,), ("200", "201"), _KIND, _KIND),
    "delete": PathAction(
        "delete", "delete", "delete", "Delete", (meta.DELETE_OPTIONS,), ("200", "202"), STATUS, DELETE_OPTIONS
    ),
    "patch": PathAction("patch", "patch", "patch", "Change", (meta.PATCH_OPTIONS,), ("200",), _KIND, PATCH),
}  # fmt: skip
"""The verbs of custom resources."""

BUILT_IN: Final = CUSTOM | {
    "deletecollection": CUSTOM["deletecollection"]._replace(
        options=(meta.DELETE_OPTIONS, meta.LIST_OPTIONS),
        body=DELETE_OPTIONS,
        without=frozenset({"watch", "allowWatchBookmarks"}),
    ),
    "get": CUSTOM["get"]._replace(options=()),
    "patch": CUSTOM["patch"]._replace(codes=("200", "201")),
    "watchlist": PathAction(
        "get", "watchlist", "watch", "Watch", (meta.LIST_OPTIONS,), ("200",), WATCH_EVENT, ending="List"
    ),
    "watch": PathAction("get", "watch", "watch", "Watch", (meta.LIST_OPTIONS,), ("200",), WATCH_EVENT),
}
"""The verbs of built-in kinds. Only they have paths of watches, which are deprecated."""

_ON_COLLECTIONS: Final = ("list", "create", "deletecollection")
_ON_OBJECTS: Final = ("get", "update", "delete", "patch")
_ON_SUBRESOURCES: Final = ("get", "update", "patch")


class Media(NamedTuple):
    """Media types: of responses, bodies and patches; `stream` are additional ones for responses of lists."""

    gives: tuple[str, ...]
    takes: tuple[str, ...]
    patches: tuple[str, ...]
    stream: tuple[str, ...] = ()


_MEDIA: Final = {
    True: Media((JSON, YAML), (JSON, YAML), CUSTOM_PATCHES),
    False: Media(
        (JSON, YAML, PROTOBUF),
        ("*/*",),
        BUILT_IN_PATCHES,
        (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch"),
    ),
}
"""By whether the resource is custom."""
_CBOR: Final = "application/cbor"


def _media(resource: Resource, *, cbor: bool) -> Media:
    """`cbor`: the feature gate. Upstream does not publish that custom resources have CBOR, too."""
    media = _MEDIA[is_custom(resource)]
    if not cbor or is_custom(resource):
        return media
    patches = (*media.patches, "application/apply-patch+cbor")
    return Media((*media.gives, _CBOR), media.takes, patches, (*media.stream, f"{_CBOR}-seq"))


class Route(NamedTuple):
    """One operation on one path. `subject` is the definition for _KIND, `kind` the operation's group, version and kind."""

    path: str
    action: PathAction
    subject: str
    kind: Object
    subresource: str = ""
    everywhere: bool = False


def is_custom(resource: Resource) -> bool:
    return resource.is_custom


def kind_name(resource: Resource) -> str:
    """The name of the definition of a resource's objects."""
    if is_custom(resource):
        return schemas.name_of(resource)
    struct = scheme.struct_of(resource.api_version, resource.kind)
    assert struct is not None, resource.kind
    return definitions.name_of(struct)


def list_name(resource: Resource) -> str:
    """The name of the definition of its lists."""
    if is_custom(resource):
        return schemas.name_of(resource, list_=True)
    struct = scheme.struct_of(resource.api_version, resource.list_kind)
    assert struct is not None, resource.list_kind
    return definitions.name_of(struct)


# -- routes -----------------------------------------------------------------------------------------------------------


def routes(resource: Resource) -> Iterator[Route]:
    """All operations on a resource."""
    actions = CUSTOM if is_custom(resource) else BUILT_IN
    subject = kind_name(resource)
    kind = definitions.group_version_kind(resource.group, resource.version, resource.kind)
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    everywhere = f"{root}/{resource.plural}"
    collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    if resource.namespaced and "list" in resource.verbs:
        yield Route(everywhere, actions["list"], subject, kind, everywhere=True)
    for verbs, path in ((_ON_COLLECTIONS, collection), (_ON_OBJECTS, f"{collection}/{{name}}")):
        for verb in verbs:
            if verb in resource.verbs:
                yield Route(path, actions[verb], subject, kind)
    if "watchlist" in actions and "watch" in resource.verbs:
        watched = collection.replace(root, f"{root}/watch", 1)
        if resource.namespaced:
            yield Route(f"{root}/watch/{resource.plural}", actions["watchlist"], subject, kind, everywhere=True)
        yield Route(watched, actions["watchlist"], subject, kind)
        yield Route(f"{watched}/{{name}}", actions["watch"], subject, kind)
    for part in _subresources(resource, subject, kind):
        for verb in part.verbs:
            yield Route(f"{collection}/{{name}}/{part.name}", actions[verb], part.subject, part.kind, part.name)


class _Subresource(NamedTuple):
    name: str
    verbs: tuple[str, ...]
    subject: str
    kind: Object


def _subresources(resource: Resource, subject: str, kind: Object) -> Iterator[_Subresource]:
    """`subject` and `kind` are the resource's; some subresources have their own."""
    built_in = None if is_custom(resource) else resource.table
    if built_in is None:
        for name, its_subject in (("status", subject), ("scale", definitions.SCALE)):
            if name in resource.subresources:
                yield _Subresource(name, _ON_SUBRESOURCES, its_subject, kind)
        return
    for subresource in built_in.subresources:
        if subresource.connect:
            continue
        verbs = tuple(verb for verb in BUILT_IN if verb in subresource.verbs)
        if subresource.body is None:
            yield _Subresource(subresource.name, verbs, subject, kind)
        else:
            its_kind = definitions.group_version_kind(
                subresource.body_group, subresource.body_version, subresource.body.name
            )
            yield _Subresource(subresource.name, verbs, definitions.name_of(subresource.body), its_kind)


def referred(resource: Resource) -> set[str]:
    """The definitions of the bodies of a resource's routes."""
    return {
        _definition(resource, route, name)
        for route in routes(resource)
        for name in (route.action.answer, route.action.body)
        if name
    }


def _definition(resource: Resource, route: Route, name: str) -> str:
    if name == _LIST:
        return list_name(resource)
    return route.subject if name == _KIND else name


# -- names ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def camel_case(text: str, *, upper: bool) -> str:
    """The letters, digits and underscores of a text, capitalized after other characters: `a.b-c` is `aBC`."""
    out = []
    for at, char in enumerate(text):
        if char.isalpha() or char == "_" or (at and char.isdigit()):
            out.append(char.upper() if upper else char)
            upper = False
        else:
            upper = True
    return "".join(out)


def _group(resource: Resource) -> str:
    return resource.group.removesuffix(".k8s.io") or "core"


def operation_id(resource: Resource, route: Route) -> str:
    """`listExampleComV1NamespacedWidget`."""
    scope = "Namespaced" if resource.namespaced and not route.everywhere else ""
    suffix = "ForAllNamespaces" if route.everywhere else ""
    noun = camel_case(
        f"{route.action.after}{scope}{resource.kind}{route.subresource.title()}{route.action.ending}{suffix}",
        upper=True,
    )
    version = camel_case(_group(resource), upper=True) + camel_case(resource.version, upper=True)
    return route.action.before + version + noun


def _tag(resource: Resource) -> str:
    return f"{camel_case(_group(resource), upper=False)}_{camel_case(resource.version, upper=False)}"


def _text(resource: Resource, route: Route) -> str:
    of = f"the {route.subresource} of " if route.subresource else ""
    many = route.action.name in ("list", "deletecollection", "watchlist")
    return f"{route.action.text} {of}{'objects' if many else 'an object'} of kind {resource.kind}."


# -- parameters -------------------------------------------------------------------------------------------------------

_PARAMETER_TYPES: Final = {Wire.BOOL: "boolean", Wire.INT32: "integer", Wire.INT64: "integer"}


class Parameter(NamedTuple):
    """`place` is path or query."""

    name: str
    place: str
    type: str
    text: str


def _parameters(resource: Resource, route: Route) -> dict[str, Parameter]:
    """The parameters of a route, by name."""
    parameters = [Parameter("pretty", "query", "string", PARAMETERS["pretty"])]
    if "{namespace}" in route.path:
        parameters.append(Parameter("namespace", "path", "string", PARAMETERS["namespace"]))
    if "{name}" in route.path:
        parameters.append(Parameter("name", "path", "string", f"The name of the {resource.kind}."))
    for struct in route.action.options:
        parameters += (
            parameter for parameter in option_parameters(struct) if parameter.name not in route.action.without
        )
    return {parameter.name: parameter for parameter in parameters}


@cache
def option_parameters(struct: Struct) -> tuple[Parameter, ...]:
    """The query parameters for one of meta/v1's options; lists are repeated parameters."""
    return tuple(
        Parameter(name, "query", _PARAMETER_TYPES.get(wire, "string"), PARAMETERS[name])
        for name, field in struct.fields.items()
        if field.inline != "TypeMeta" and not isinstance(field.type, Struct)
        for wire in [field.type.wire if isinstance(field.type, Scalar) else Wire.STRING]
    )


def _by_path(resource: Resource) -> dict[str, list[Route]]:
    by_path: dict[str, list[Route]] = {}
    for route in routes(resource):
        by_path.setdefault(route.path, []).append(route)
    return by_path


def _split(resource: Resource, on_path: list[Route]) -> tuple[list[Parameter], list[list[Parameter]]]:
    """(the common parameters of all operations on a path, the additional ones of each), both sorted by name."""
    by_route = [_parameters(resource, route) for route in on_path]
    common = set.intersection(*(set(parameters) for parameters in by_route))
    own = [[parameters[name] for name in sorted(parameters.keys() - common)] for parameters in by_route]
    return [by_route[-1][name] for name in sorted(common)], own


def _path_items(
    resource: Resource,
    operation: Callable[[Resource, Route, list[Parameter], Media], Object],
    parameter: Callable[[Parameter], Object],
    media: Media,
) -> dict[str, Object]:
    items: dict[str, Object] = {}
    for path, on_path in _by_path(resource).items():
        common, own = _split(resource, on_path)
        item: Object = {
            route.action.method: operation(resource, route, parameters, media)
            for route, parameters in zip(on_path, own, strict=True)
        }
        items[path] = item | {"parameters": [parameter(shared) for shared in common]}
    return items


# -- v3 ---------------------------------------------------------------------------------------------------------------


def v3(resource: Resource, *, cbor: bool = False) -> dict[str, Object]:
    """The path items of a resource, by path. `cbor`: the feature gate CBORServingAndStorage."""
    return _path_items(resource, _operation_v3, _parameter_v3, _media(resource, cbor=cbor))


def _operation_v3(resource: Resource, route: Route, parameters: list[Parameter], media: Media) -> Object:
    action = route.action
    operation: Object = {
        "tags": [_tag(resource)],
        "description": _text(resource, route),
        "operationId": operation_id(resource, route),
    }
    if parameters:
        operation["parameters"] = [_parameter_v3(parameter) for parameter in parameters]
    if action.body:
        takes = media.patches if action.method == "patch" else media.takes
        body: Object = {"content": _content(takes, _definition(resource, route, action.body))}
        if action.body != DELETE_OPTIONS:
            body["required"] = True
        operation["requestBody"] = body
    gives = media.gives + (media.stream if action.answer in (_LIST, WATCH_EVENT) else ())
    content = _content(gives, _definition(resource, route, action.answer))
    operation["responses"] = {code: {"description": RESPONSES[code], "content": content} for code in action.codes}
    operation["responses"]["401"] = {"description": RESPONSES["401"]}
    return operation | _operation_extensions(route)


def _content(media_types: Iterable[str], name: str) -> Object:
    return {media_type: {"schema": {"$ref": V3 + name}} for media_type in sorted(media_types)}


def _parameter_v3(parameter: Parameter) -> Object:
    required = {"required": True} if parameter.place == "path" else {}
    schema = {"type": parameter.type, "uniqueItems": True}
    return {"name": parameter.name, "in": parameter.place, "description": parameter.text, **required, "schema": schema}


def _operation_extensions(route: Route) -> Object:
    kind = {name: route.kind[name] for name in ("group", "version", "kind")}  # a struct; in definitions it is a map
    return {"x-kubernetes-action": route.action.name, "x-kubernetes-group-version-kind": kind}


# -- v2 ---------------------------------------------------------------------------------------------------------------

_NOT_SHARED: Final = frozenset({"name", "dryRun", "fieldValidation"})
"""The text of a name mentions the kind; old versions of kubectl look for the others in operations."""


def v2(resource: Resource, *, cbor: bool = False) -> dict[str, Object]:
    """The path items of a resource, by path. `cbor`: the feature gate CBORServingAndStorage."""
    return _path_items(resource, _operation_v2, _shared, _media(resource, cbor=cbor))


def _operation_v2(resource: Resource, route: Route, parameters: list[Parameter], media: Media) -> Object:
    action = route.action
    operation: Object = {
        "description": _text(resource, route),
        "consumes": list(media.patches if action.method == "patch" else media.takes),
        "produces": list(media.gives + (media.stream if action.answer in (_LIST, WATCH_EVENT) else ())),
        "schemes": ["https"],
        "tags": [_tag(resource)],
        "operationId": operation_id(resource, route),
    }
    written = [_body_v2(_definition(resource, route, action.body))] if action.body else []
    written += map(_shared, parameters)
    if written:
        operation["parameters"] = written
    schema = {"$ref": V2 + _definition(resource, route, action.answer)}
    operation["responses"] = {code: {"description": RESPONSES[code], "schema": schema} for code in action.codes}
    operation["responses"]["401"] = {"description": RESPONSES["401"]}
    return operation | _operation_extensions(route)


def _parameter_v2(parameter: Parameter) -> Object:
    required = {"required": True} if parameter.place == "path" else {}
    return {
        "uniqueItems": True, "type": parameter.type, "description": parameter.text, "name": parameter.name, "in": parameter.place, **required
    }  # fmt: skip


def _shared(parameter: Parameter) -> Object:
    """A reference if the parameter is shared, else the parameter."""
    name = _shared_names().get(parameter)
    return {"$ref": f"#/parameters/{name}"} if name else _parameter_v2(parameter)


def _body_v2(definition: str) -> Object:
    name = _shared_names().get(definition)
    return {"$ref": f"#/parameters/{name}"} if name else _body(definition)


def _body(definition: str) -> Object:
    required = {} if definition == DELETE_OPTIONS else {"required": True}
    return {"name": "body", "in": "body", **required, "schema": {"$ref": V2 + definition}}


@cache
def _shared_parameters() -> dict[Parameter | str, tuple[str, Object]]:
    """(name, form) of the parameters that are equal on every path, by parameter or by the body's definition."""
    parameters = [
        Parameter("namespace", "path", "string", PARAMETERS["namespace"]),
        Parameter("pretty", "query", "string", PARAMETERS["pretty"]),
    ]
    for action in (*CUSTOM.values(), *BUILT_IN.values()):
        for struct in action.options:
            parameters += option_parameters(struct)
    forms: dict[Parameter | str, Object] = {
        parameter: _parameter_v2(parameter) for parameter in parameters if parameter.name not in _NOT_SHARED
    }
    forms |= {name: _body(name) for name in (DELETE_OPTIONS, PATCH)}
    return {key: (_shared_name(form), form) for key, form in forms.items()}


@cache
def _shared_names() -> dict[Parameter | str, str]:
    return {key: name for key, (name, _) in _shared_parameters().items()}


def shared_parameters() -> dict[str, Object]:
    """The parameters that operations refer to, by name."""
    return dict(sorted(_shared_parameters().values()))


def _shared_name(parameter: Object) -> str:
    """The parameter's name, and a hash that distinguishes it from others of that name."""
    digest = hashlib.sha256(codec.encode(parameter, sort_keys=True)).digest()
    return f"{parameter['name']}-{urlsafe_b64encode(digest[:6]).decode()}"
