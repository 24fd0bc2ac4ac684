"""`noxu fault`: the rules that its words make, what it prints, and what it refuses; `noxu serve --faults`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu import Noxu
from noxu.commands.api_client import RequestError
from noxu.commands.fault import rule_of
from noxu.config import Config, StartError
from noxu.control.fault_routes import Faults
from noxu.process.server import Server
from noxu.values import Object
from tests.rows import rows

Run = Callable[..., Any]


@rows(
    ("words", "rule"),
    [
        ("error=Conflict", {"error": "Conflict"}),
        ("resource=widgets verbs=update,patch error=503 times=3", {"match": {"resource": "widgets", "verbs": ["update", "patch"]}, "error": 503, "times": 3}),
        ("name=a rule_name=r delay=5ms..20ms", {"match": {"name": "a"}, "name": "r", "delay": "5ms..20ms"}),
        ("hang=true probability=0.5 userAgent=x/*", {"match": {"userAgent": "x/*"}, "hang": True, "probability": 0.5}),
        ("subresource= reset=after", {"match": {"subresource": ""}, "reset": "after"}),
    ],
)  # fmt: skip
def test_words_of_a_rule(words: str, rule: Object) -> None:
    assert rule_of(words.split()) == rule


def test_a_word_that_is_no_field() -> None:
    with pytest.raises(RequestError, match="Conflict: write FIELD=VALUE, such as error=Conflict"):
        rule_of(["Conflict"])


def test_rules_are_added_listed_and_cleared(run: Run, noxu: Noxu, here: Path) -> None:
    at = f"--server {noxu.url}"
    added = run(f"fault add resource=cm verbs=get name=x error=Conflict nth=1 {at}")
    assert added.out.splitlines() == [
        "NAME    MATCH                                EFFECT           HIT",
        "error   resource=cm verbs=get name=x nth=1   error=Conflict   0",
    ]
    with pytest.raises(Exception, match="Operation cannot be fulfilled"):
        noxu.get("configmap", "x", namespace="default")
    assert run(f"fault {at} -o json").json["rules"][0]["hit"] == 1
    title, row = run(f"fault fired {at}").out.splitlines()
    assert title.split() == ["TIME", "RULE", "NUMBER", "VERB", "RESOURCE", "NAMESPACE", "OBJECT", "USER", "AGENT"]
    assert row.split()[1:7] == ["error", "1", "get", "configmaps", "default", "x"]
    (here / "plan.yaml").write_text("seed: 7\npresets: [conflicts]\nrules: [{delay: 1ms}]\n")
    assert len(run(f"fault add -f plan.yaml {at}").out.splitlines()) == 3
    replaced = run(f"fault replace -f plan.yaml {at} -o json").json
    assert (replaced["seed"], [rule["name"] for rule in replaced["rules"]]) == (7, ["conflicts", "delay"])
    assert run(f"fault clear delay {at} -o json").json["rules"][0]["name"] == "conflicts"
    assert run(f"fault clear {at} -o json").json["rules"] == []


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("add", 2, "add needs a rule such as error=Conflict, -f FILE or --preset NAME"),
        ("replace", 2, "replace needs -f FILE"),
        ("list -f x", 2, "-f is for add, replace and shrink"),
        ("add error=500 --seed 7", 2, "--seed is for replace"),
        ("fired x", 2, "fired takes no words"),
        ("add eror=500", 1, "rules[0].eror: there is no such field; did you mean error?"),
        ("add -f none.yaml", 1, "none.yaml cannot be read: No such file or directory"),
        ("add --preset conflict", 1, 'there is no preset "conflict"'),
        ("clear x", 1, 'there is no fault "x"; there are none'),
    ],
)
def test_what_it_refuses(run: Run, noxu: Noxu, words: str, status: int, message: str) -> None:
    ran = run(f"fault {words} --server {noxu.url}")
    assert ran.status == status
    assert message in ran.err


# -- at the start -----------------------------------------------------------------------------------------------------


async def test_a_server_begins_with_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("rules: [{match: {verbs: [get]}, error: 500}]\n")
    async with Server(Config(port=0, faults=plan, latency="1ms..2ms")) as server:
        assert [rule.name for rule in server.control.part(Faults).armed.rules] == ["latency", "error"]


@pytest.mark.parametrize(
    ("text", "latency", "message"),
    [
        (None, "", "plan.yaml cannot be read: No such file or directory"),
        ("rules: [{error: 200}]", "", "rules[0].error: the code 200 is not one of an error"),
        ("rule: []", "", 'a plan has no "rule", only seed, presets, rules; did you mean rules?'),
        ("rules: [", "", "the plan cannot be read"),
        ("{}", "fast", "rules[0].delay"),
    ],
)
async def test_a_plan_that_is_refused(tmp_path: Path, text: str | None, latency: str, message: str) -> None:
    plan = tmp_path / "plan.yaml"
    if text is not None:
        plan.write_text(text)
    with pytest.raises(StartError) as error:
        async with Server(Config(port=0, faults=plan, latency=latency)):
            pass
    assert message in str(error.value)


# -- shrinking --------------------------------------------------------------------------------------------------------

FAILS_WITH_TWO = (
    "import os, sys; text = open(os.environ['NOXU_FAULTS']).read(); sys.exit('a-3' in text and 'b-1' in text)"
)


def test_a_run_is_shrunk(run: Run, here: Path) -> None:
    rules = [{"name": name, "probability": 0.5, "error": 500} for name in "ab"]
    fired = [{"rule": name, "number": number} for name in "ab" for number in (1, 2, 3)]
    (here / "fired.json").write_text(json.dumps({"seed": 7, "rules": rules, "fired": fired}))
    program = here / "program.py"
    program.write_text(FAILS_WITH_TWO)
    ran = run(f"fault shrink fired.json -f least.yaml -- {sys.executable} {program}")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.splitlines()[-1].startswith("2 of 6 faults are enough (")
    least = yaml.safe_load((here / "least.yaml").read_text())
    assert (least["seed"], [rule["name"] for rule in least["rules"]]) == (7, ["a-3", "b-1"])


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("shrink -- true", 2, "shrink needs one file, which `noxu fault fired -o json` has printed"),
        ("shrink fired.json", 2, "a command stands after --"),
        ("list --verbose", 2, "--verbose is for shrink"),
        ("shrink none.json -- true", 1, "none.json: No such file or directory"),
        ("shrink other.json -- true", 1, "other.json: it is not what `noxu fault fired -o json` prints"),
        ("shrink fired.json -- true", 1, "the command passes with all 1 faults: there is nothing to shrink"),
        ("shrink fired.json -- false", 1, "the command fails without any fault, too"),
        ("shrink fired.json -- nothing-of-this-name", 127, "nothing-of-this-name"),
    ],
)
def test_what_cannot_be_shrunk(run: Run, here: Path, words: str, status: int, message: str) -> None:
    (here / "other.json").write_text("[]")
    fired = {"rules": [{"name": "a", "error": 500}], "fired": [{"rule": "a", "number": 1}]}
    (here / "fired.json").write_text(json.dumps(fired))
    ran = run(f"fault {words}")
    assert ran.status == status
    assert message in ran.err
