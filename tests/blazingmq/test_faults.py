"""The faults that exist only here, and the common ones where they meet batches; over sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq import faults as f
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.faults_messages import (
    AckStatuses,
    BadCrc,
    HeaderWords,
    OtherQueue,
    OtherSubscription,
)
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    BrokerResponse,
    ClientIdentity,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    Disconnect,
    DisconnectResponse,
    OpenQueue,
    OpenQueueResponse,
    OtherEvent,
    Push,
    Put,
    StatusResponse,
)
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options
from fakebrokers.blazingmq.protocol import PROTOCOL
from fakebrokers.blazingmq.schema import StreamParameters, elements_of
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.core.frames import Role
from fakebrokers.errors import PlanError
from fakebrokers.faults import drop, duplicate, fault, reorder
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.effects import Inject
from fakebrokers.faults.plan import Fault, load_plan
from tests.blazingmq.bench import CPP, JAVA, Q, guid, parameters, put
from tests.blazingmq.peer import Peer
from tests.eventually import PATIENCE_S


@pytest.fixture
def broker() -> Iterator[BlazingMQ]:
    with BlazingMQ() as server:
        yield server


@pytest.fixture(autouse=True)
def _closed_peers() -> Iterator[None]:
    yield
    Peer.close_all()


def test_an_ack_comes_twice(broker: BlazingMQ) -> None:
    broker.faults.add(f.duplicate_ack(nth=2))
    peer = Peer(broker).open(read=False)
    peer.post(1)
    peer.post(2)
    assert [peer.acks() for _ in range(3)] == [[(guid(1), 0)], [(guid(2), 0)], [(guid(2), 0)]]


def test_one_of_several_answers_is_lost_doubled_or_unknown(broker: BlazingMQ) -> None:
    broker.faults.add(drop(role="confirm", unit="item", nth=2))
    broker.faults.add(duplicate(role="confirm", unit="item", nth=3))
    broker.faults.add(f.unknown_ack(unit="item", nth=4))
    peer = Peer(broker).open(read=False)
    peer.post(1, 2, 3, 4)
    found = [answer for _ in range(4) for answer in peer.acks()]
    assert [status for _, status in found] == [0, 0, 0, 0]
    assert [each for each, _ in found[:3]] == [guid(1), guid(3), guid(3)]
    assert found[3][0] not in [guid(number) for number in range(5)]


def test_unknown_answers_to_clients_that_count(broker: BlazingMQ) -> None:
    broker.faults.add(f.unknown_ack())
    peer = Peer(broker, JAVA).open(read=False)
    peer.send(Put((replace(put(b"x"), guid=bytes.fromhex("00000007") + bytes(12)),)))
    ack = peer.next()
    assert isinstance(ack, Ack)
    assert ack.messages[0].correlation_id not in (0, 7)


def test_several_outcomes_in_one_event(broker: BlazingMQ) -> None:
    broker.faults.add(f.mixed_acks(0, 1, 6))
    peer = Peer(broker).open(read=False)
    peer.post(1, 2)
    peer.post(3, 4)
    assert [status for _, status in peer.acks() + peer.acks()] == [0, 1, 6, 0]
    assert broker.wait_for(role=Role.REJECT, count=2)
    assert broker.wait_for(role=Role.CONFIRM, count=2)


def test_answers_in_another_order(broker: BlazingMQ) -> None:
    broker.faults.add(f.reversed_acks())
    peer = Peer(broker).open(read=False)
    peer.post(1, 2, 3)
    assert [each for each, _ in peer.acks()] == [guid(3), guid(2), guid(1)]
    broker.faults.add(reorder(kind="ACK"))
    peer.post(4)
    peer.post(5)
    assert peer.acks() + peer.acks() == [(guid(5), 0), (guid(4), 0)]


def test_messages_are_refused_and_not_stored(broker: BlazingMQ) -> None:
    broker.faults.add(f.refuse_put(1, first=1))
    peer = Peer(broker).open(read=False)
    peer.post(1, ack=False)
    peer.post(2)
    assert peer.acks() + peer.acks() == [(guid(1), 1), (guid(2), 0)]
    assert [message.guid for message in broker.messages(Q)] == [guid(2)]


@pytest.mark.parametrize("identity", [CPP, JAVA])
def test_requests_are_refused(broker: BlazingMQ, identity: ClientIdentity) -> None:
    broker.faults.add(f.refuse_open(Category.E_TIMEOUT, first=1), f.refuse_configure())
    peer = Peer(broker, identity)
    peer.next()
    peer.send(OpenQueue(1, parameters(read=True)), OpenQueue(2, parameters(read=True)))
    first, second = peer.next(), peer.next()
    assert isinstance(first, StatusResponse)
    assert (first.r_id, first.category) == (1, Category.E_TIMEOUT)
    assert isinstance(second, OpenQueueResponse)
    peer.send(ConfigureStream(3, 0, StreamParameters()))
    answer = peer.next()
    assert isinstance(answer, StatusResponse)
    assert answer.category == Category.E_REFUSED


@pytest.mark.parametrize("identity", [CPP, JAVA])
def test_the_client_is_refused_in_its_own_encoding(broker: BlazingMQ, identity: ClientIdentity) -> None:
    broker.faults.add(f.refuse_negotiation(Category.E_NOT_SUPPORTED))
    peer = Peer(broker, identity)
    event = peer.event()
    assert event[6] >> 5 == peer.codec.encoding
    response = peer.codec.decode(event)
    assert isinstance(response, BrokerResponse)
    assert response.result.category == Category.E_NOT_SUPPORTED


def test_a_late_answer_is_overtaken(broker: BlazingMQ) -> None:
    broker.faults.add(f.late_answer("openQueueResponse", 0.2))
    peer = Peer(broker)
    peer.next()
    peer.send(OpenQueue(1, parameters(read=True)), Disconnect(2))
    assert [type(peer.next()) for _ in range(2)] == [DisconnectResponse, OpenQueueResponse]


@pytest.mark.parametrize("identity", [CPP, JAVA])
def test_elements_are_absent_unknown_or_in_the_other_encoding(
    broker: BlazingMQ, identity: ClientIdentity
) -> None:
    effects = (
        f.WithoutElement(element="brokerIdentity.features"),
        f.WithoutElement(element="brokerIdentity"),
        f.ExtraElement(text="something new"),
        f.OtherEncoding(encoding="JSON"),
    )
    for connection, effect in enumerate(effects, 1):
        broker.faults.add(fault(effect, kind="brokerResponse", connection=f"c{connection}"))
    responses, events = [], []
    for _ in range(5):
        peer = Peer(broker, identity)
        events.append(peer.event())
        response = peer.codec.decode(events[-1])
        assert isinstance(response, BrokerResponse)
        assert response.broker_identity.session_id == (1 if len(responses) == 1 else len(responses) + 1)
        uncounted = replace(response.broker_identity, session_id=1)
        responses.append(replace(response, broker_identity=uncounted))
    plain = responses[4]
    assert responses[0].broker_identity == replace(plain.broker_identity, features="")
    assert responses[1].broker_identity == replace(plain.broker_identity, **_defaults())
    assert responses[2] == responses[3] == plain
    assert b"something new" in events[2]
    assert events[3][6] == 0x20


def _defaults() -> dict[str, object]:
    (identity,) = [each for each in elements_of(BrokerResponse) if each.name == "brokerIdentity"]
    return {each.field: getattr(identity.default, each.field) for each in identity.shape.elements}


def test_headers_are_longer_or_shorter_than_known(broker: BlazingMQ) -> None:
    broker.faults.add(fault(HeaderWords(more=3)))
    peer = Peer(broker).open()
    peer.post(1)
    ack = peer.next()
    assert isinstance(ack, Ack)
    assert (ack.item_words, ack.messages) == (9, (AckMessage(0, guid(1)),))
    (message,) = peer.push().messages
    assert (message.header_words, message.data) == (11, b"1")


def test_deliveries_for_others(broker: BlazingMQ) -> None:
    broker.faults.add(fault(OtherQueue(queue_id=7), role="deliver", nth=1))
    broker.faults.add(fault(OtherSubscription(numbers=(8, 9)), role="deliver", nth=2))
    broker.faults.add(
        fault(OtherSubscription(numbers=(0,), form=PushOption.PACKED, attempts=3), role="deliver", nth=3)
    )
    broker.faults.add(fault(OtherSubscription(numbers=()), role="deliver", nth=4))
    peer = Peer(broker).open()
    found = []
    for number in range(4):
        peer.post(number, ack=False)
        found.append(peer.push().messages)
    assert found[0][0].queue_id == 7
    assert read_options(found[1][0].options) == (SubscriptionInfo(8), SubscriptionInfo(9))
    assert read_options(found[2][0].options) == (SubscriptionInfo(0, 3),)
    assert found[3][0].options == b""


def test_a_storm_of_redeliveries(broker: BlazingMQ) -> None:
    broker.faults.add(f.redelivery_storm(Q, kind="PUT", nth=2))
    peer = Peer(broker).open()
    peer.post(1)
    peer.next()
    assert [message.data for message in peer.push().messages] == [b"1"]
    peer.post(2)
    data = []
    while len(data) < 2:
        frame = peer.next()
        data += [message.data for message in frame.messages] if isinstance(frame, Push) else []
    assert sorted(data) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("effect", "note"), [(f.StopNode(), "at once"), (f.ShutDown(timeout_s=0.0), "in order")]
)
def test_the_broker_goes_down(broker: BlazingMQ, effect: Effect, note: str) -> None:
    broker.faults.add(fault(effect, kind="PUT"))
    peer = Peer(broker).open(read=False)
    peer.post(1)
    with pytest.raises(EOFError):
        while True:
            peer.next()
    assert broker.wait_for(kind="node stopped")[0].note.endswith(note)


def test_answers_and_deliveries_in_one_segment(broker: BlazingMQ) -> None:
    broker.faults.add(f.answer_with_delivery(3, within_s=60, nth=1))
    peer = Peer(broker).open()
    peer.post(1)
    broker.wait_for(kind="PUSH")
    peer.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        peer.socket.recv(1)
    peer.socket.settimeout(PATIENCE_S)
    peer.post(2, ack=False)
    segment = peer.socket.recv(1 << 16)
    assert [type(frame) for frame, _ in BlazingCodec().feed(segment)] == [Ack, Push, Push]


def test_a_bad_checksum_reaches_the_broker() -> None:
    with BlazingMQ(switches={"checks_crc": True}) as broker:
        broker.faults.add(f.bad_crc(nth=1))
        peer = Peer(broker).open(read=False)
        peer.post(1)
        peer.post(2)
        assert peer.acks() + peer.acks() == [(guid(1), 5), (guid(2), 0)]


def test_missed_heartbeats_and_foreign_events() -> None:
    with BlazingMQ(heartbeats=True, heartbeat_s=0.02) as broker:
        broker.faults.add(f.missed_heartbeats())
        broker.faults.add(fault(Inject(hex="0000000c6802000001020304"), kind="openQueueResponse"))
        peer = Peer(broker)
        peer.next()
        peer.send(OpenQueue(1, parameters(write=True)))
        assert isinstance(peer.next(), OpenQueueResponse)
        assert peer.next() == OtherEvent(40, b"\1\2\3\4")
        assert broker.wait_for(kind="HEARTBEAT_REQ", count=2)


def test_a_lost_confirm_keeps_the_message(broker: BlazingMQ) -> None:
    broker.faults.add(drop(role="ack", unit="item", nth=1))
    peer = Peer(broker).open()
    peer.post(1, 2, ack=False)
    peer.next()
    peer.send(Confirm((ConfirmMessage(0, guid(1)), ConfirmMessage(0, guid(2)))))
    broker.wait_for(kind="CONFIRM")
    peer.send(Disconnect(9))
    peer.next()
    assert [message.guid for message in broker.messages(Q)] == [guid(1)]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: fault(AckStatuses(statuses=(16,)), kind="ACK"), "numbers of 0 to 15"),
        (lambda: fault(AckStatuses(statuses=()), kind="ACK"), "numbers of 0 to 15"),
        (lambda: fault(BadCrc(xor=0)), "expected 1..0xFFFFFFFF"),
        (lambda: fault(HeaderWords(more=0)), "expected -1, or 1 to 9"),
        (lambda: fault(OtherSubscription(attempts=256)), "expected 0..255"),
        (lambda: fault(f.WithoutElement(element="a..b")), "names with dots"),
        (lambda: fault(f.ExtraElement(number=31)), "expected 0..30"),
        (lambda: fault(f.StopNode(node=0)), "a node's number from 1"),
        (lambda: fault(f.ShutDown(node=0)), "a node's number from 1"),
        (lambda: fault(f.ShutDown(timeout_s=-1)), "seconds from 0"),
    ],
)
def test_settings_that_make_no_sense(make: object, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        make()  # type: ignore[operator]


def test_a_plan_in_toml() -> None:
    plan = load_plan(
        {
            "faults": [
                {
                    "match": {"direction": "out", "kind": "ACK"},
                    "effect": {"type": "ack-statuses", "statuses": [0, 1]},
                },
                {"match": {"role": "deliver"}, "effect": {"type": "other-subscription", "form": "infos"}},
            ]
        },
        PROTOCOL,
    )
    assert all(isinstance(each, Fault) for each in plan.faults)
    assert plan.faults[0].effects == (AckStatuses(statuses=(0, 1)),)
