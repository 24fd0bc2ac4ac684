"""Reviews of conversion webhooks: accepted responses, and the errors for others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.registry.conversion import review as conversion_review
from noxu.registry.conversion.review import REVIEWS, ConversionFailed, encode, new_request, version_of
from noxu.webhook.client import CallFailed, WebhookReply, read_review
from tests.rows import rows

UID = "5f2d3c6e-0000-4000-8000-000000000000"
ORIGINAL = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {
        "name": "w",
        "namespace": "attic",
        "uid": "u",
        "labels": {"a": "1"},
        "finalizers": ["example.com/f"],
        "generation": 3,
    },
    "spec": {"hostPort": "a:1"},
}
FROM = "conversion webhook for example.com/v1, Kind=Widget"
NOT_AN_OBJECT = "into Go value of type map[string]interface {}"


def converted(**changes: Any) -> dict[str, Any]:
    """The correctly converted object with other top-level fields; None omits a field."""
    fields = {**ORIGINAL, "apiVersion": "example.com/v2", "spec": {"host": "a", "port": "1"}, **changes}
    return {name: value for name, value in fields.items() if value is not None}


def with_metadata(**changes: Any) -> dict[str, Any]:
    metadata = {**ORIGINAL["metadata"], **changes}  # type: ignore[dict-item]
    return converted(metadata={name: value for name, value in metadata.items() if value != "gone"})


def answer(*objects: Any, top: Any = None, version: str = "v1", **response: Any) -> Any:
    """A review; `top` and the rest replace parts of it, None leaves them out."""
    response = {"uid": UID, "convertedObjects": list(objects), "result": {"status": "Success"}, **response}
    review = {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "ConversionReview",
        "response": {name: value for name, value in response.items() if value is not None},
        **(top or {}),
    }
    return {name: value for name, value in review.items() if value is not None}


def outcome(sent: Any, version: str = "v1", originals: tuple[Any, ...] = (ORIGINAL,)) -> Any:
    """The objects, or the error."""
    body = (sent if isinstance(sent, str) else json.dumps(sent)).encode()
    request = new_request(UID, "example.com/v2", originals)
    try:
        review = read_review(WebhookReply(200, "application/json", body), REVIEWS[version])
        return conversion_review.read(body, review, version, request)
    except CallFailed as failed:
        return f"{FROM} failed: {failed.text}"
    except ConversionFailed as failed:
        return str(failed)


# -- requests --------------------------------------------------------------------------------------------------------


def test_the_review_that_is_sent() -> None:
    sent = json.loads(encode("v1beta1", new_request(UID, "example.com/v2", [ORIGINAL])))
    assert list(sent) == ["kind", "apiVersion", "request", "response"]
    assert sent == {
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "request": {"uid": UID, "desiredAPIVersion": "example.com/v2", "objects": [ORIGINAL]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [(["v1"], "v1"), (["v1beta1", "v1"], "v1beta1"), (["v3", "v1", "v1beta1"], "v1")],
)
def test_the_first_known_version_of_the_review_is_sent(accepted: list[str], sent: str) -> None:
    assert version_of(accepted) == sent


def test_no_known_version_of_the_review() -> None:
    with pytest.raises(ConversionFailed, match=r"^no supported conversion review versions$"):
        version_of(["v2"])


# -- accepted responses -----------------------------------------------------------------------------------------------

METADATA = ORIGINAL["metadata"]
ACCEPTED = [
    ("as it should", answer(converted()), converted()),
    ("other fields", answer(converted(more=1, status={"x": 2})), converted(more=1, status={"x": 2})),
    ("a spec that is a string", answer(converted(spec="text")), converted(spec="text")),
    ("no spec", answer(converted(spec=None)), converted(spec=None)),
    ("other labels", answer(with_metadata(labels={"b": "2"})), with_metadata(labels={"b": "2"})),
    ("no labels", answer(with_metadata(labels="gone")), with_metadata(labels="gone")),
    ("labels of null", answer(with_metadata(labels=None)), with_metadata(labels="gone")),
    ("empty labels", answer(with_metadata(labels={})), with_metadata(labels={})),
    ("annotations", answer(with_metadata(annotations={"x/y": "z"})), with_metadata(annotations={"x/y": "z"})),
    ("no finalizers", answer(with_metadata(finalizers="gone")), converted()),
    ("another generation", answer(with_metadata(generation=99)), converted()),
    ("a resourceVersion", answer(with_metadata(resourceVersion="7")), converted()),
    ("owners", answer(with_metadata(ownerReferences=[5], managedFields="x")), converted()),
    ("a message", answer(converted(), result={"status": "Success", "message": "hm"}), converted()),
    ("an unknown field", answer(converted(), top={"more": 1}), converted()),
]


@rows("sent, found", [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_a_response_is_accepted_and_its_metadata_restored(sent: Any, found: Any) -> None:
    for version in ("v1", "v1beta1"):
        assert outcome({**sent, "apiVersion": f"apiextensions.k8s.io/{version}"}, version) == [found]


def test_objects_are_compared_in_order() -> None:
    second = {**ORIGINAL, "metadata": {**METADATA, "name": "x"}}  # type: ignore[dict-item]
    first_back, second_back = converted(), with_metadata(name="x")
    assert outcome(answer(first_back, second_back), originals=(ORIGINAL, second)) == [first_back, second_back]
    swapped = outcome(answer(second_back, first_back), originals=(ORIGINAL, second))
    assert swapped == f"{FROM} returned invalid object: must have the same name: w != x"


def test_invalid_labels_may_remain() -> None:
    old = {**ORIGINAL, "metadata": {**METADATA, "labels": {"bad key": "v"}}}  # type: ignore[dict-item]
    back = with_metadata(labels={"bad key": "v"})
    assert outcome(answer(back), originals=(old,)) == [back]


# -- refused responses -----------------------------------------------------------------------------------------------------

FAILED = [
    ("no objects", answer(), "returned 0 objects, expected 1"),
    ("objects left out", answer(convertedObjects=None), "returned 0 objects, expected 1"),
    ("two objects", answer(converted(), converted()), "returned 2 objects, expected 1"),
    (
        "objects that are none",
        answer(convertedObjects={}),
        "failed: json: cannot unmarshal object into Go struct field ConversionResponse.response.convertedObjects of "
        "type []runtime.RawExtension",
    ),
    (
        "the version that it had",
        answer(converted(apiVersion="example.com/v1")),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
    ),
    (
        "a version of no group",
        answer(converted(apiVersion="v9")),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received v9)",
    ),
    (
        "no version",
        answer(converted(apiVersion=None)),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received )",
    ),
    (
        "a version that is a number",
        answer(converted(apiVersion=5)),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received )",
    ),
    (
        "another kind",
        answer(converted(kind="Else")),
        "returned invalid object at index 0: invalid kind (expected Widget, received Else)",
    ),
    (
        "another name",
        answer(with_metadata(name="other")),
        "returned invalid object: must have the same name: w != other",
    ),
    ("no name", answer(with_metadata(name=5)), "returned invalid object: must have the same name: w != "),
    ("no metadata", answer(converted(metadata=None)), "returned invalid object: must have the same name: w != "),
    ("metadata of text", answer(converted(metadata="x")), "returned invalid object: must have the same name: w != "),
    (
        "another namespace",
        answer(with_metadata(namespace="cellar")),
        "returned invalid object: must have the same namespace: attic != cellar",
    ),
    ("no uid", answer(with_metadata(uid="gone")), "returned invalid object: must have the same UID: u != "),
    (
        "labels in a list",
        answer(with_metadata(labels=["a"])),
        "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
    ),
    (
        "annotations of a number",
        answer(with_metadata(annotations=1.5)),
        "returned invalid metadata: invalid metadata.annotations of type float64 in converted object",
    ),
    (
        "a label that is a number",
        answer(with_metadata(labels={"a": "1", "n": 5})),
        "returned invalid metadata: metadata.labels[n] must be a string, but is int64 in converted object",
    ),
    (
        "an annotation of null",
        answer(with_metadata(annotations={"n": None})),
        "returned invalid metadata: metadata.annotations[n] must be a string, but is <nil> in converted object",
    ),
    (
        "annotations that are too long",
        answer(with_metadata(annotations={"k": "x" * 300_000})),
        "returned invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes",
    ),
    ("another uid", answer(converted(), uid="wrong"), f'failed: expected response.uid="{UID}", got "wrong"'),
    ("no uid in the answer", answer(converted(), uid=None), f'failed: expected response.uid="{UID}", got ""'),
    (
        "a failure with a message",
        answer(result={"status": "Failure", "message": "no way", "code": 403, "reason": "Forbidden"}),
        "failed: no way",
    ),
    (
        "a failure without a message",
        answer(converted(), result={"status": "Failure"}),
        "failed: response.result.status was 'Failure', not 'Success'",
    ),
    ("no result", answer(converted(), result=None), "failed: response.result.status was '', not 'Success'"),
    (
        "a result of another case",
        answer(converted(), result={"status": "success"}),
        "failed: response.result.status was 'success', not 'Success'",
    ),
    (
        "a result of text",
        answer(converted(), result="ok"),
        "failed: json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status",
    ),
    ("no response", answer(top={"response": None}), "failed: no response provided"),
    (
        "no kind",
        answer(converted(), top={"kind": None, "apiVersion": None}),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    (
        "the review of another version",
        answer(converted(), version="v1beta1"),
        "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    ),
    (
        "something else",
        {"apiVersion": "v1", "kind": "Pod"},
        'failed: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    (
        "null",
        "null",
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    ("nothing", "", "failed: 0-length response with status code: 200 and content type: application/json"),
    (
        "no JSON",
        "{nope",
        "failed: couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key "
        "string",
    ),
]


@rows(("sent", "message"), [row[1:] for row in FAILED], ids=[row[0] for row in FAILED])
def test_an_answer_is_refused(sent: Any, message: str) -> None:
    assert outcome(sent) == f"{FROM} {message}"


@pytest.mark.parametrize("labels", [{"bad key": "v"}, {"a": "b c"}])
def test_labels_must_be_valid(labels: dict[str, str]) -> None:
    bad = next(text for pair in labels.items() for text in pair if " " in text)
    assert outcome(answer(with_metadata(labels=labels))).startswith(
        f'{FROM} returned invalid metadata: metadata.labels: Invalid value: "{bad}": '
    )


def test_several_errors_of_labels_are_one_message() -> None:
    response = outcome(answer(with_metadata(labels={"bad key": "b c"})))
    assert response.startswith(f"{FROM} returned invalid metadata: [metadata.labels: Invalid value: ")
    assert response.count("Invalid value") == 2


NO_OBJECTS = [
    (None, "unexpected end of JSON input"),
    ("text", f"json: cannot unmarshal string {NOT_AN_OBJECT}"),
    (5, f"json: cannot unmarshal number {NOT_AN_OBJECT}"),
    ([1], f"json: cannot unmarshal array {NOT_AN_OBJECT}"),
    ({}, "Object 'Kind' is missing in '{}'"),
]


@pytest.mark.parametrize(("value", "message"), NO_OBJECTS)
def test_the_error_for_a_value_that_is_no_object_has_no_prefix(value: Any, message: str) -> None:
    assert outcome(answer(value)) == message


@pytest.mark.parametrize(
    "text", ['{ "apiVersion":"example.com/v2",\n "kind": "" }', '{"kind":"W","apiVersion":"a/b/c"}']
)
def test_objects_without_a_kind_are_quoted_unchanged(text: str) -> None:
    sent = json.dumps(answer("PLACE")).replace('"PLACE"', f"  {text} ")
    assert outcome(sent) == f"Object 'Kind' is missing in '{text}'"


def test_of_several_objects_the_wrong_object_is_quoted() -> None:
    text = '{"metadata": {}}'
    sent = json.dumps(answer(converted(), "PLACE")).replace('"PLACE"', text)
    assert outcome(sent, originals=(ORIGINAL, ORIGINAL)) == f"Object 'Kind' is missing in '{text}'"


def test_of_equal_keys_the_last_one_counts() -> None:
    sent = json.dumps(answer(converted())).replace('"port": "1"', '"port": "1", "port": "2"')
    assert outcome(sent)[0]["spec"] == {"host": "a", "port": "2"}


LENIENT = [
    ("another uid", answer(converted(), version="v1beta1", uid="wrong")),
    ("no uid", answer(converted(), version="v1beta1", uid=None)),
    ("no kind", answer(converted(), version="v1beta1", top={"kind": None, "apiVersion": None})),
]


@pytest.mark.parametrize("sent", [row[1] for row in LENIENT], ids=[row[0] for row in LENIENT])
def test_v1beta1_checks_neither_uid_nor_kind(sent: Any) -> None:
    assert outcome(sent, "v1beta1") == [converted()]


def test_v1beta1_names_its_own_types() -> None:
    response = "json: cannot unmarshal string into Go struct field ConversionReview.response of type v1beta1.ConversionResponse"
    assert outcome(answer(top={"response": "x"}, version="v1beta1"), "v1beta1") == f"{FROM} failed: {response}"
    assert outcome("{}", "v1beta1") == f"{FROM} failed: no response provided"


def test_a_deep_object_without_a_kind_is_quoted() -> None:
    deep = '{"a":' * 3000 + "1" + "}" * 3000
    sent = json.dumps(answer("PLACE")).replace('"PLACE"', deep)
    assert outcome(sent) == f"Object 'Kind' is missing in '{deep}'"
