"""A pytest plugin: `--quick` runs the fast tests of every folder, and samples of the slow ones (`./check quick`).

Hypothesis tries few examples then (profile `quick`, see conftest.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

# Tests whose ids begin like this are slow: every n-th of them runs, starting with the first; for 0 none of them. The
# first entry that matches counts.
SLOW: dict[str, int] = {
    "tests/clients/": 40,
    "tests/conformance/test_recordings.py": 40,
    "tests/conformance/": 100,
    "tests/faults/test_bit_rot.py": 10,
    "tests/faults/test_corrupt_objects.py": 5,
    "tests/faults/test_linearizability_checker.py": 10,
    "tests/faults/": 0,
    "tests/hostile/test_paths.py": 30,
    "tests/hostile/test_connections.py": 30,
    "tests/hostile/": 0,
    "tests/packaging/test_wheel.py": 0,
    "tests/packaging/test_test_plugins.py": 4,
    "tests/properties/": 10,
    "tests/storage/": 3,
    # These wait for deadlines, start processes, or process large values.
    "tests/admission/test_webhooks.py": 3,
    "tests/apply/test_fieldset.py::test_sets_may_be_as_deep": 0,
    "tests/apply/test_manager_apply.py::test_an_object_of_the_greatest_depth": 0,
    "tests/apply/test_merging.py::test_depth": 0,
    "tests/cli/test_migrate.py": 6,
    "tests/cli/test_serve.py": 5,
    "tests/go/test_regexp_syntax.py::test_hostile": 0,
    "tests/http/test_webhook_client.py::test_a_call_ends_although": 0,
    "tests/http/test_webhook_client.py::test_endless_answers_do_not_block_the_loop": 0,
    "tests/http/test_kinds_of_built_in_names.py::test_nothing_built_in_changes": 8,
    "tests/http/test_routing.py::test_head_is_no_get": 0,
    "tests/http/test_slow_watchers.py::test_stalled_watches": 0,
    "tests/http/test_watch.py": 4,
    "tests/http/test_watch_machine.py": 0,
    "tests/http/test_watch_options.py::test_what_a_stream_begins_with": 0,
    "tests/http/test_websocket.py::test_stopping_the_server_ends_them": 0,
    "tests/http/test_websocket.py::test_when_the_time_is_up_it_is_closed_in_good_order": 0,
    "tests/registry/conversion/": 3,
    "tests/schema/test_completion.py::test_references_that_multiply_stop": 0,
    "tests/schema/test_listtype.py::test_list_type_validation_stops": 0,
    "tests/schema/test_listtype.py::test_time": 0,
    "tests/schema/test_validation_ratcheting.py::test_time": 0,
    "tests/schema/test_validation.py::test_a_small_value_with_many_errors": 1,
    "tests/testing/test_plugin.py": 4,
    "tests/testing/test_recipes.py": 4,
    "tests/testing/test_types.py::test_mypy": 0,
    # These have hundreds of rows.
    "tests/cel/": 4,
    "tests/go/": 3,
    "tests/schema/test_formats.py": 8,
    "tests/schema/test_patterns.py": 8,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="run the fast tests of every folder, and samples of the slow ones"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        selected = set(select(item.nodeid for item in items))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in selected])
        items[:] = [item for item in items if item.nodeid in selected]


def select(ids: Iterable[str]) -> list[str]:
    """The ids of the tests to run."""
    seen = dict.fromkeys(SLOW, 0)
    selected = []
    for test in ids:
        prefix = next((prefix for prefix in SLOW if test.startswith(prefix)), None)
        if prefix is None:
            selected.append(test)
            continue
        every = SLOW[prefix]
        if every and seen[prefix] % every == 0:
            selected.append(test)
        seen[prefix] += 1
    return selected
