"""The frame table: complete, and right about directions, roles and answers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from fakebrokers.core.frames import Malformed, Role
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.frames import FRAMES, RESPONSE_BIT, StreamFrame, answer

ONE_WAY = {2, 3, 4, 8, 10, 16, 20, 23}
FROM_SERVER = {3, 4, 8, 16, 26}
FROM_BOTH = {20, 22, 23}


def leaves(kind: type) -> Iterator[type]:
    children = kind.__subclasses__()
    for child in children:
        yield from leaves(child)
    if not children:
        yield kind


KINDS = sorted(leaves(StreamFrame), key=lambda kind: (kind.KEY & 0x7FFF, kind.KEY))


def test_table_holds_every_frame_class_once() -> None:
    assert set(FRAMES) == {*KINDS, Malformed}
    assert len({kind.KEY for kind in KINDS}) == len(KINDS)


def test_all_31_commands_with_their_answers() -> None:
    answered = set(range(1, 32)) - ONE_WAY
    assert {kind.KEY for kind in KINDS} == set(range(1, 32)) | {key | RESPONSE_BIT for key in answered}


def test_answers_are_named_after_their_questions() -> None:
    names = {kind.KEY: kind.__name__ for kind in KINDS}
    for key, name in names.items():
        if key & RESPONSE_BIT:
            assert name == names[key ^ RESPONSE_BIT] + "Response"


@pytest.mark.parametrize("kind", KINDS)
def test_sender(kind: type[StreamFrame]) -> None:
    command, is_answer = kind.KEY & 0x7FFF, kind.KEY & RESPONSE_BIT
    if command in FROM_BOTH:
        assert kind.SENDER == "both"
    else:
        assert ("server" if (command in FROM_SERVER) != bool(is_answer) else "client") == kind.SENDER


@pytest.mark.parametrize("kind", KINDS)
def test_spec_names_attributes_that_exist(kind: type[StreamFrame]) -> None:
    spec = FRAMES[kind]
    for name in filter(None, (spec.key, spec.status, *spec.secret, *spec.bulk)):
        assert hasattr(kind, name)
    if "correlation_id" in kind.__struct_fields__:
        assert spec.key == "correlation_id"
    if "code" in kind.__struct_fields__:
        assert spec.status == "code"


def test_roles_of_the_frames_that_faults_are_about() -> None:
    roles = {
        f.Publish: Role.PUBLISH,
        f.PublishConfirm: Role.CONFIRM,
        f.PublishError: Role.REJECT,
        f.Deliver: Role.DELIVER,
        f.StoreOffset: Role.ACK,
        f.Credit: Role.FLOW,
        f.CreditResponse: Role.FLOW,
        f.Heartbeat: Role.HEARTBEAT,
        f.DeclarePublisher: Role.OPEN,
        f.Subscribe: Role.OPEN,
        f.Unsubscribe: Role.SHUT,
        f.Create: Role.REQUEST,
        f.CreateResponse: Role.RESPONSE,
        f.OpenResponse: Role.HANDSHAKE,
        f.CloseResponse: Role.CLOSE,
        f.MetadataUpdate: Role.EVENT,
    }
    assert {kind: FRAMES[kind].role for kind in roles} == roles


def test_credentials_are_secret() -> None:
    assert FRAMES[f.SaslAuthenticate].secret == ("data",)


def test_batches_have_items() -> None:
    batches = {kind for kind, spec in FRAMES.items() if spec.items}
    assert batches == {f.Publish, f.PublishConfirm, f.PublishError, f.Deliver}


def test_answer_echoes_the_correlation_id() -> None:
    assert answer(f.Delete(7, "s"), 2) == f.DeleteResponse(7, 2)
    assert answer(f.QueryOffset(7, "r", "s"), 19) == f.QueryOffsetResponse(7, 19, 0)
    assert answer(f.Open(7, "/"), 12) == f.OpenResponse(7, 12, None)
    assert answer(f.ConsumerUpdate(7, 1, 1), 1) == f.ConsumerUpdateResponse(7, 1, 0, None)


@pytest.mark.parametrize(
    "frame", [f.Metadata(7, ("s",)), f.Credit(1, 1), f.Heartbeat(), f.DeleteResponse(7, 1), f.Tune(0, 0)]
)
def test_some_frames_have_no_plain_answer(frame: StreamFrame) -> None:
    assert answer(frame, 2) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, f.Request)])
def test_every_request_but_metadata_can_be_refused(kind: type[f.Request]) -> None:
    required = {"correlation_id": 7}
    fields = msgspec.structs.fields(kind)
    request = kind(**{field.name: required.get(field.name) for field in fields})
    refusal = answer(request, 16)
    assert (refusal is None) == (kind is f.Metadata)
    if refusal:
        assert (refusal.correlation_id, refusal.code) == (7, 16)


def test_frames_can_be_written_as_data() -> None:
    """Fault plans inject and rewrite frames given as JSON."""
    plan = {
        "correlation_id": 1,
        "subscription_id": 2,
        "stream": "s",
        "offset_type": 4,
        "offset": 9,
        "credit": 3,
    }
    assert msgspec.convert(plan, f.Subscribe) == f.Subscribe(1, 2, "s", 4, 9, 3)
    for kind in KINDS:
        msgspec.json.schema(kind)


def test_frames_are_values() -> None:
    assert f.Credit(1, 2) == f.Credit(1, 2)
    with pytest.raises(AttributeError):
        f.Credit(1, 2).credit = 3  # type: ignore[misc]
