"""Field ownership in metadata.managedFields (KEP-555; apimachinery's managedfields, structured-merge-diff's merge).

`update` tracks creates, updates and patches: fields that the write added or changed are owned by its manager only; fields
that it removed have no owner any more. `apply` is server-side apply: the configuration is merged into the live object;
conflicts with other managers are errors, or forced; and fields that the manager applied last time, but not this time, are
removed unless they have another owner.

Objects are plain dicts and are never changed; results share unchanged parts. Times are texts in whole seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from noxu.api import errors
from noxu.api.errors import MAX_REPORTED_ERRORS, ApiError
from noxu.api.meta import MANAGED_FIELDS_ENTRY
from noxu.apply import merging
from noxu.apply.comparison import Comparison, same
from noxu.apply.fieldset import (
    EMPTY,
    FieldSet,
    Path,
    contains,
    covers,
    describe,
    difference,
    intersection,
    paths,
    union,
    united,
)
from noxu.apply.managed_fields import (
    NEVER_OWNED,
    InvalidEntries,
    Manager,
    Managers,
    Owned,
    decode,
    encode,
    entries_of,
    with_entries,
)
from noxu.apply.merging import merge, remove
from noxu.apply.tracker import UNKNOWN, Failed, MissingVersion, ObjectVersions, Tracker, group_version_kind, named
from noxu.apply.typed import Unsure, accept, ensure_named, join_errors, reconcile, to_set, validate
from noxu.go import unstructured
from noxu.values import Json, Object, copy, equal

MAX_UPDATE_MANAGERS: Final = 10  # upstream's DefaultMaxUpdateManagers
ANCIENT_CHANGES: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"


class Valid(NamedTuple):
    """Which objects of a write satisfy the schema of the tracker's version, and have metadata in the form of `meta.coerce`.

    Where the type follows from the schema (`Tracker.implied`), these are not checked against it. Property tests hold
    that the check would find nothing, in metadata and in the rest. `exact`: in two such objects, parts that Python calls
    equal are equal (`Compiled.is_exact`).
    """

    live: bool = False
    new: bool = False
    exact: bool = False


UNKNOWN_VALIDITY: Final = Valid()


# --- updates ---


def update(
    live: Object | None,
    new: Object,
    tracker: Tracker,
    *,
    manager: str,
    now: str,
    valid: Valid = UNKNOWN_VALIDITY,
) -> Object:
    """The new object with managedFields for a create (live is None), an update or a patch by `manager`.

    managedFields in the new object replace the live ones if they can be decoded; `[{}]` and, in objects of built-in kinds,
    `[]` reset them, and then nothing is tracked until the next apply. This never fails: if ownership cannot be determined,
    because an object is not of its type or version, or cannot be converted, the live managedFields are kept.
    """
    managers = _initial_managers(live, new, tracker)
    if live is not None and not managers:
        return with_entries(new, None)
    bare = with_entries(new, None)
    if tracker.custom and not _is_tracked(new, tracker):
        return with_entries(bare, entries_of(live))  # a patch has changed what the object is
    in_written_form = tracker.created if live is None and tracker.created is not None else tracker.written
    tracked = bare if in_written_form is None else in_written_form(bare)
    try:
        if live is None:
            managers = _created(tracked, tracker, managers, manager or UNKNOWN, now, valid)
        else:
            bare_live = with_entries(live, None)
            managers = _updated(bare_live, tracked, tracker, managers, manager or UNKNOWN, now, valid)
    except (Failed, ApiError):
        return with_entries(bare, entries_of(live))
    return with_entries(bare, encode(managers, tracker.recurring, in_order=not tracker.custom))


def _is_tracked(value: Object, tracker: Tracker) -> bool:
    """Whether an object claims to be of the tracker's kind, in one of its versions."""
    api_version = value.get("apiVersion")
    return isinstance(api_version, str) and api_version in tracker.types and value.get("kind") == tracker.kind


def _initial_managers(live: Object | None, new: Object, tracker: Tracker) -> Managers:
    """The managers before the write: those in the new object, else those of the live object."""
    if not tracker.subresource:
        sent = entries_of(new)
        if sent in ([], [{}]):
            return {}
        if sent is not None and (managers := _decoded(sent, tracker)):
            return managers
    return _decoded(entries_of(live), tracker)


def _decoded(entries: Json, tracker: Tracker) -> Managers:
    try:
        return decode(entries, tracker.recurring)
    except InvalidEntries:
        return {}


def has_empty_entries(value: Object) -> bool:
    """Whether an object has `managedFields: []`, which resets them."""
    return bool(entries_of(value) == [])


def _created(new: Object, tracker: Tracker, managers: Managers, name: str, now: str, valid: Valid) -> Managers:
    """The managers after a create. Raises Failed or ApiError."""
    if tracker.custom and not managers:
        created = tracker.creator(new, name, now, is_valid=valid.new)
        if created is not None:
            return created
    return _updated(tracker.blank, new, tracker, managers, name, now, UNKNOWN_VALIDITY)


def _type_errors(
    value: Object, tracker: Tracker, *, valid: bool = False, duplicates: bool = False, all_of_it: bool = True
) -> list[str]:
    """The type errors in an object of the resource; the fast path finds most objects free of them. `valid`: see `Valid`."""
    if valid and tracker.implied:
        return []
    if tracker.custom:
        try:
            accept(value, tracker.type)
        except Unsure:
            pass
        else:
            return []
    return validate(value, tracker.type, duplicates=duplicates, all_of_it=all_of_it)


def _updated(
    live: Object,
    new: Object,
    tracker: Tracker,
    managers: Managers,
    name: str,
    now: str,
    valid: Valid,
    *,
    explain: bool = False,
) -> Managers:
    """The managers after an update. Raises Failed or ApiError; `explain`: with the complete message."""
    for role, value, is_valid in (("new", new, valid.new), ("live", live, valid.live)):
        if wrong := _type_errors(value, tracker, valid=is_valid, duplicates=True, all_of_it=explain):
            raise Failed(f"failed to convert {role} object ({named(value)}) to smd typed: {join_errors(wrong)}")
    versions = ObjectVersions(tracker)
    managers = _reconciled(managers, live, versions)
    change = tracker.compared(live, new, tracker.version, exact=valid.exact and valid.live and valid.new)
    me = Manager(name, "Update", tracker.version, tracker.subresource)
    mine = managers.pop(me, None)
    written = change.written
    managers, _ = _released(managers, None, change, written, live, new, versions)
    kept = EMPTY
    if mine is not None:
        kept = difference(difference(mine.fields, change.removed), intersection(written, NEVER_OWNED))
    if written := difference(written, NEVER_OWNED):
        fields = kept if covers(kept, written) else union(written, kept)
        managers[me] = Owned(fields, tracker.version, now)
    elif mine is not None and kept:
        managers[me] = Owned(kept, mine.version, mine.time)
    return _capped(managers)


def _reconciled(managers: Managers, live: Object, versions: ObjectVersions) -> Managers:
    """The managers with their sets adapted to the current types."""
    reconciled: Managers = {}
    for manager, owned in managers.items():
        if owned.version != live.get("apiVersion"):
            try:
                versions.at(live, owned.version)
            except MissingVersion:
                continue
        fields = reconcile(owned.fields, versions.tracker.types[owned.version])
        reconciled[manager] = owned if fields is owned.fields else Owned(fields, owned.version, owned.time)
    return reconciled


def _released(
    managers: Managers,
    me: Manager | None,
    change: Comparison,
    written: FieldSet,
    live: Object,
    new: Object,
    versions: ObjectVersions,
) -> tuple[Managers, Managers]:
    """(the managers without the fields that this write changes, the changed fields by former owner).

    Removed fields are dropped from the managers, but are no conflicts. `written` is `change.written`, which the caller has.
    """
    changes = {versions.tracker.version: (change, written)}
    left: Managers = {}
    taken: Managers = {}
    for manager, owned in managers.items():
        if manager == me:
            if owned.fields:
                left[manager] = owned
            continue
        if owned.version not in changes:
            try:
                there = _change_at(owned.version, live, new, versions)
            except MissingVersion:
                continue
            changes[owned.version] = there, there.written
        there, written = changes[owned.version]
        if conflict := intersection(owned.fields, written):
            taken[manager] = Owned(conflict, owned.version)
        fields = difference(difference(owned.fields, conflict), there.removed)
        if fields:
            left[manager] = owned if fields is owned.fields else Owned(fields, owned.version, owned.time)
    return left, taken


def _change_at(version: str, live: Object, new: Object, versions: ObjectVersions) -> Comparison:
    try:
        before = versions.at(live, version)
    except (Failed, ApiError) as error:
        raise Failed(f"failed to convert old object: {error}") from None
    try:
        after = versions.at(new, version)
    except (Failed, ApiError) as error:
        raise Failed(f"failed to convert new object: {error}") from None
    return versions.tracker.compared(before, after, version)


def _capped(managers: Managers) -> Managers:
    """The managers with at most ten updaters: the oldest ones of each version are united as `ancient-changes`."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return managers
    first: dict[str, Manager] = {}
    parts: dict[Manager, list[FieldSet]] = {}
    for manager in sorted(updaters, key=lambda manager: (managers[manager].time, manager.identifier)):
        if surplus <= 0:
            break
        version = managers[manager].version
        if version not in first:
            first[version] = manager
            continue
        bucket = Manager(ANCIENT_CHANGES, "Update", version)
        owned = managers.pop(manager)
        there = bucket if bucket in managers else first[version]
        together = parts.pop(there, [managers[there].fields])
        together += parts.pop(manager, [owned.fields])
        parts[bucket] = together
        if there is not bucket:
            del managers[there]
        managers[bucket] = Owned({}, version, owned.time)
        surplus -= 1
    for bucket, together in parts.items():
        owned = managers[bucket]
        managers[bucket] = Owned(united(together), owned.version, owned.time)
    return managers


# --- server-side apply ---


class AppliedObject(NamedTuple):
    """`value`: the object with new managedFields. `changed`: the configuration has changed more than the owners of fields."""

    value: Object
    changed: bool


class _Conflict(NamedTuple):
    manager: Manager
    path: Path


class _Conflicts(Exception):
    def __init__(self, conflicts: list[_Conflict]) -> None:
        super().__init__()
        self.conflicts = conflicts


def apply(
    live: Object | None,
    config: Object,
    tracker: Tracker,
    *,
    manager: str,
    force: bool = False,
    now: str,
    valid: Valid = UNKNOWN_VALIDITY,
) -> AppliedObject:
    """The live object (None to create it) with the configuration applied by `manager`, and new managedFields.

    It shares parts with both, and its sets of fields with other objects. Apart from metadata, it is the live object if
    only ownership changes. Raises ApiError: 409 with a cause for every conflict, 400 for a configuration of another kind
    or with managedFields, 500 without a reason for one that is not of its type.
    """
    live = copy(tracker.blank) if live is None else live
    try:
        managers = decode(entries_of(live), tracker.recurring)
    except InvalidEntries as error:
        raise errors.plain_error(f"failed to decode managed fields: {error}") from None
    live = with_entries(live, None)
    kind = group_version_kind(config)
    if kind != group_version_kind({"apiVersion": tracker.version, "kind": tracker.kind}):
        raise errors.bad_request(f"invalid object type: {kind}")
    try:
        if not managers:
            managers = _before_first_apply(live, tracker, now, valid)
        try:
            new, managers = _applied(live, config, tracker, managers, manager, force=force, now=now, valid=valid)
        except _Conflicts as conflicts:
            _allow_migration(conflicts, live, tracker, manager)
            new, managers = _applied(live, config, tracker, managers, manager, force=True, now=now, valid=valid)
    except Failed as failed:
        raise errors.plain_error(str(failed)) from None
    except _Conflicts as conflicts:
        raise _conflict_error(conflicts.conflicts) from None
    changed = new is not live
    if manager == merging.KUBECTL:
        new = merging.renewed(new, config)
    return AppliedObject(with_entries(new, encode(managers, tracker.recurring, in_order=not tracker.custom)), changed)


def _before_first_apply(live: Object, tracker: Tracker, now: str, valid: Valid) -> Managers:
    """One manager owns all existing fields, so that they can be distinguished from applied ones."""
    try:
        return _updated(tracker.blank, live, tracker, {}, BEFORE_FIRST_APPLY, now, Valid(new=valid.live), explain=True)
    except Failed as failed:
        raise Failed(f"failed to create manager for existing fields: {failed}") from None


def _applied(
    live: Object,
    config: Object,
    tracker: Tracker,
    managers: Managers,
    name: str,
    *,
    force: bool,
    now: str,
    valid: Valid,
) -> tuple[Object, Managers]:
    """(the merged object, the managers). Raises Failed, _Conflicts or ApiError."""
    sent = entries_of(config)
    if type(sent) is list and not any(unstructured.mismatch(MANAGED_FIELDS_ENTRY, entry) for entry in sent):
        raise errors.bad_request("metadata.managedFields must be nil")
    if wrong := _type_errors(config, tracker):
        raise Failed(f"failed to create typed patch object ({named(config)}): {join_errors(wrong)}")
    if wrong := _type_errors(live, tracker, valid=valid.live, duplicates=True):
        raise Failed(f"failed to create typed live object ({named(live)}): {join_errors(wrong)}")
    versions = ObjectVersions(tracker)
    me = Manager(name, "Apply", "", tracker.subresource)
    managers = _reconciled(managers, live, versions)
    last = managers.get(me)
    managers[me] = Owned(tracker.claimed(config), tracker.version, last.time if last else "")
    merged = merge(live, config, tracker.type)
    new = _without_withdrawn(merged, last, managers, me, versions) if last and last.fields else merged
    if new is not merged and (wrong := _type_errors(new, tracker, duplicates=True)):
        raise Failed(
            f"failed to compare objects: {join_errors(wrong)}"
        )  # null items, of which only fields are withdrawn
    change = tracker.compared(live, new, tracker.version)
    unchanged = not any(change) and same(live, new)  # neither the order of lists nor a status is part of the change
    managers, taken = _released(managers, me, change, change.written, live, new, versions)
    if taken and not force:
        raise _Conflicts([_Conflict(manager, path) for manager, owned in taken.items() for path in paths(owned.fields)])
    if me in managers:
        fields = difference(managers.pop(me).fields, NEVER_OWNED)
        if fields:
            managers[me] = Owned(fields, tracker.version, (last.time if last else "") if unchanged else now)
    return (live if unchanged else new), managers


def _conflict_error(conflicts: list[_Conflict]) -> ApiError:
    """409 with a cause for every conflict. Managers come in the order of upstream's identifiers."""
    conflicts = sorted(conflicts, key=lambda item: item.manager.identifier)  # stable: the order of paths is kept
    total, conflicts = len(conflicts), conflicts[:MAX_REPORTED_ERRORS]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": describe(path)}
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {describe(conflicts[0].path)}"
    else:
        lines = []
        for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {describe(conflict.path)}" for conflict in conflicts if conflict.manager == manager]
        if total > len(conflicts):
            lines.append(f"and {total - len(conflicts)} more conflicts")
        message = f"Apply failed with {total} conflicts: " + "\n".join(lines)
    return ApiError(409, message, "Conflict", {"causes": causes})


def _allow_migration(conflicts: _Conflicts, live: Object, tracker: Tracker, manager: str) -> None:
    """kubectl may take over fields that it applied client-side. Raises the remaining conflicts."""
    allowed = None
    if manager == merging.KUBECTL:
        allowed = merging.applied_client_side(live, tracker.version, tracker.type)
    if allowed is None:
        raise conflicts
    left = [conflict for conflict in conflicts.conflicts if not contains(allowed, conflict.path)]
    if left:
        raise _Conflicts(left)


def _without_withdrawn(
    merged: Object, last: Owned, managers: Managers, me: Manager, versions: ObjectVersions
) -> Object:
    """The merged object without the fields that `me` applied last time, does not apply now, and that no other owns.

    Removing a map key or an item removes everything in it. So all of the last fields are removed, fields of any owner are
    added back, and of the remaining difference only the last fields are removed from the merged object.
    """
    tracker, mine = versions.tracker, managers[me].fields
    if (last.fields == mine or not difference(last.fields, mine)) and all(
        owned.version == tracker.version for owned in (last, *managers.values())
    ):
        return merged
    try:
        merged_there = versions.at(merged, last.version)
    except MissingVersion:
        return merged
    except (Failed, ApiError) as error:
        raise _prune_failure("failed to convert merged object to last applied version", error) from None
    kind = tracker.types[last.version]
    last_named = ensure_named(last.fields, kind)
    pruned = _with_owned(merged_there, _without(merged_there, last_named, versions), last.version, managers, versions)
    try:
        pruned = versions.at(pruned, last.version)
    except MissingVersion:
        return merged_there
    except (Failed, ApiError) as error:
        raise _prune_failure(
            "failed add back dangling items: failed to convert pruned object to last applied version", error
        ) from None
    gone = difference(
        ensure_named(to_set(merged_there, kind), kind),
        ensure_named(to_set(pruned, kind), kind),
    )
    pruned = _without(merged_there, intersection(gone, last_named), versions)
    try:
        return versions.at(pruned, tracker.version)
    except (Failed, ApiError) as error:
        raise _prune_failure("", error) from None


def _with_owned(merged: Object, pruned: Object, first: str, managers: Managers, versions: ObjectVersions) -> Object:
    """The pruned object with owned fields added back: at the version `first`, then at the others."""
    owned: dict[str, FieldSet] = {}
    for owner in managers.values():
        owned[owner.version] = union(owned.get(owner.version, EMPTY), owner.fields)
    for version in sorted(owned, key=lambda version: (version != first, version)):
        what = "merged"
        try:
            merged = versions.at(merged, version)
            what = "pruned"
            pruned = versions.at(pruned, version)
        except MissingVersion:
            continue
        except (Failed, ApiError) as error:
            where = f"failed add back owned items: failed to convert {what} object at version {version}"
            raise _prune_failure(where, error) from None
        kind = versions.tracker.types[version]
        keep = union(ensure_named(to_set(pruned, kind), kind), ensure_named(owned[version], kind))
        pruned = _without(merged, difference(ensure_named(to_set(merged, kind), kind), keep), versions)
    return pruned


def _without(value: Object, fields: FieldSet, versions: ObjectVersions) -> Object:
    """The object, at whichever version it is, without these fields."""
    if not fields:
        return value
    version = value["apiVersion"].removeprefix("/")  # Go takes `/v1` for `v1`
    kept: Object = remove(value, fields, versions.tracker.types[version])
    return kept


def _prune_failure(where: str, error: Exception) -> Failed:
    return Failed(": ".join(text for text in ("failed to prune fields", where, str(error)) if text))


# --- after the pipeline ---


def keep_times(old: Object, new: Object) -> Object:
    """The new object with the old times if nothing else has changed, so that the write is a no-op.

    Upstream's IgnoreManagedFieldsTimestampsTransformer, the last thing before an update is stored.
    """
    before, after = entries_of(old), entries_of(new)
    if not before or not after or len(before) != len(after):
        return new
    if old["metadata"].get("generation") != new["metadata"].get("generation"):
        return new  # more than that has changed
    if all(a.get("time") == b.get("time") for a, b in zip(before, after, strict=True)):
        return new
    if not equal(with_entries(old, None), with_entries(new, None)):
        return new
    if not all(equal({**a, "time": ""}, {**b, "time": ""}) for a, b in zip(before, after, strict=True)):
        return new
    return with_entries(new, before)
