"""Templates of an earlier process: the same objects, younger, and nothing is loaded again."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from noxu.config import Config
from noxu.control import kept_templates, templates
from noxu.control.kept_templates import find, keep
from noxu.control.templates import Template, make_of
from noxu.crd import validation
from noxu.http.webhooks import WebhookClient
from noxu.manifests import served_files
from noxu.manifests.manifest_cache import Cache
from tests.control.other_servers import ask, objects
from tests.control.test_templates import CONFIG, MANIFESTS, changes, comparable, made, started

DIGEST = b"digest"
LATER = datetime(2041, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _all_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_templates, "MIN_BYTES", 0)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def remade(cache: Cache, config: Config = CONFIG) -> Template:
    """As in a later process."""
    kept = find(Cache(cache._directory), DIGEST, config, LATER)
    assert kept is not None
    caller = WebhookClient({})
    try:
        return await make_of(kept, config, caller)
    finally:
        await caller.close()


async def test_a_server_has_what_it_would_have_from_the_first_template(cache: Cache) -> None:
    first = await made(parent=await made(""))
    keep(cache, DIGEST, first)
    async with started(first) as one, started(await remade(cache)) as other:
        assert await comparable(one) == await comparable(other)
        for path in ("/apis/example.com/v1", "/openapi/v3/apis/example.com/v1"):
            assert await ask(one, path) == await ask(other, path)
        await changes(other)  # its controllers work, too


async def test_objects_are_as_young_as_the_process_and_have_uids_of_their_own(cache: Cache) -> None:
    first = await made(parent=await made(""))
    keep(cache, DIGEST, first)
    async with started(first) as one, started(await remade(cache)) as other:
        before, after = await objects(one), await objects(other)
        of_server = {" ".join(key) for key in first.own}
        for key in after.keys() - of_server:
            uids = [json.loads(values[key])["metadata"]["uid"] for values in (before, after)]
            assert uids[0] != uids[1]
            assert {*re.findall(r"20\d\d-\d\d-\d\dT[0-9:]+Z", after[key])} <= {"2041-02-03T04:05:06Z"}
        assert len({json.loads(value)["metadata"]["uid"] for value in after.values()}) == len(after)


async def test_nothing_is_loaded_or_validated_again(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, DIGEST, await made())
    for module, name in ((served_files, "load"), (validation, "validate")):
        monkeypatch.setattr(module, name, None)  # a call would fail
    template = await remade(cache)
    assert len(template.plane.served_resources.current.defined) == 3


async def test_what_does_not_match_is_not_found(cache: Cache, tmp_path: Path) -> None:
    keep(cache, DIGEST, await made())
    assert find(cache, DIGEST, CONFIG, LATER) is not None
    assert find(cache, DIGEST, Config(port=1, host="::1"), LATER) is not None  # of no importance
    assert find(cache, b"other", CONFIG, LATER) is None
    assert find(cache, DIGEST, Config(profile="envtest"), LATER) is None
    assert find(Cache(None), DIGEST, CONFIG, LATER) is None
    [file] = files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    assert find(cache, DIGEST, CONFIG, LATER) is None


async def test_small_templates_are_not_kept(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = await made()
    monkeypatch.setattr(kept_templates, "MIN_BYTES", template.base.bytes + 1)
    keep(cache, DIGEST, template)
    assert files(tmp_path) == []


async def test_a_template_that_took_too_long_is_not_kept(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its objects have too many times."""
    template = await made(MANIFESTS)
    monkeypatch.setattr(kept_templates, "_LONGEST", template.periods[0][0] - template.periods[0][1])
    keep(cache, DIGEST, template)
    assert files(tmp_path) == []


def test_the_name_of_a_configuration_is_the_same_in_each_process() -> None:
    plugins = sorted(CONFIG.admission_plugins)
    names = [
        kept_templates._name(templates.shared(Config(admission_plugins=frozenset(order))))
        for order in (plugins, plugins[::-1])
    ]
    assert names[0] == names[1]
    assert plugins[0].encode() in names[0]
