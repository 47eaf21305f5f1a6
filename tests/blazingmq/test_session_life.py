"""From the connection's beginning to its end: negotiation, heartbeats, disconnect, shutdown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codes import Category, ClientType, Encoding, Language
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.frames import (
    AdminCommand,
    AdminCommandResponse,
    AuthenticationRequest,
    AuthenticationResponse,
    BrokerResponse,
    ClientIdentity,
    CloseQueue,
    CloseQueueResponse,
    Disconnect,
    DisconnectResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    OpenQueueResponse,
    OtherEvent,
    Put,
    Reject,
    StatusResponse,
)
from fakebrokers.blazingmq.profile import PLAIN, REAL, SEED
from fakebrokers.blazingmq.session_base import has_feature
from fakebrokers.blazingmq.states import STATES, State
from fakebrokers.core.frames import Frame
from tests.blazingmq.bench import ADMIN, CPP, FANOUT, JAVA, Bench, Client, Q, parameters, put


def test_every_state_has_a_row_and_every_state_ends() -> None:
    assert set(STATES) == set(State)
    for state in State:
        passed = []
        while state not in passed:
            passed.append(state)
            state = STATES[state].next
        assert passed[-1] is State.ENDED


def test_a_connection_goes_through_the_table() -> None:
    client = Bench().connect()
    states = [client.session.state]
    for frame in (CPP, Disconnect(1)):
        assert STATES[states[-1]].due is type(frame)
        client.send(frame)
        states.append(client.session.state)
    assert states == [State.CONNECTED, *[STATES[state].next for state in states[:-1]]]


@pytest.mark.parametrize(
    ("features", "encoding"),
    [
        (CPP.features, Encoding.BER),
        (JAVA.features, Encoding.JSON),
        ("", Encoding.BER),
        ("MPS:MESSAGE_PROPERTIES_EX", Encoding.BER),
        ("PROTOCOL_ENCODING:XML", Encoding.BER),
        ("A:B;PROTOCOL_ENCODING:JSON,BER", Encoding.BER),
    ],
)
def test_the_encoding_is_chosen_by_the_first_frame(features: str, encoding: Encoding) -> None:
    client = Bench().connect()
    client.send(replace(CPP, features=features))
    (data,) = client.sent
    assert data[6] >> 5 == encoding
    assert client.only(BrokerResponse).result.category == Category.E_SUCCESS
    assert client.is_ready


def test_what_the_broker_says_of_itself() -> None:
    client = Bench(PLAIN).connect()
    client.send(CPP)
    response = client.only(BrokerResponse)
    assert response.broker_identity.features == (
        "PROTOCOL_ENCODING:BER,JSON;HA:GRACEFUL_SHUTDOWN,GRACEFUL_SHUTDOWN_V2,BROADCAST_TO_PROXIES"
    )
    assert (response.heartbeat_interval_ms, response.max_missed_heartbeats) == (3000, 10)
    assert client.session.silence_limit_s == 33.0
    assert has_feature(REAL.features, "SUBSCRIPTIONS:CONFIGURE_STREAM")
    assert not has_feature(REAL.features, "SUBSCRIPTIONS:CONFIGURE")


def test_a_broker_without_a_limit_of_missed_heartbeats() -> None:
    client = Bench(replace(REAL, max_missed_heartbeats=0)).start()
    assert client.session.silence_limit_s == math.inf


@pytest.mark.parametrize(
    ("mechanisms", "sent"), [(("ANONYMOUS",), "ANONYMOUS"), (("BASIC",), "BASIC"), (None, "PLAIN")]
)
def test_credentials_are_taken_as_they_are(mechanisms: tuple[str, ...] | None, sent: str) -> None:
    client = Bench(replace(REAL, mechanisms=mechanisms)).connect()
    client.send(AuthenticationRequest(sent, b"secret"))
    assert client.only(AuthenticationResponse).category == Category.E_SUCCESS
    client.negotiate()


def test_a_broker_without_authenticators_takes_no_credentials() -> None:
    client = Bench().connect()
    client.send(AuthenticationRequest("BASIC", b"secret"))
    status = client.only(AuthenticationResponse).status
    assert (status.category, status.code) == (Category.E_REFUSED, -2)
    assert "'BASIC' not supported" in status.message
    assert client.ended


@pytest.mark.parametrize(
    "frame",
    [HeartbeatRequest(), Disconnect(1), Put((put(b"x"),)), OtherEvent(40), b"\0\0\0\x0c\x41\2\0\0xxx\1"],
)
def test_anything_else_before_the_identity_ends_the_connection(frame: Frame | bytes) -> None:
    client = Bench().connect()
    client.send(frame)
    assert client.ended
    assert client.frames() == []


def test_an_old_sdk_is_told_so_and_may_go_on() -> None:
    client = Bench().connect()
    client.send(replace(CPP, sdk_version=10_499))
    response = client.only(BrokerResponse)
    assert (response.result.category, response.result.code) == (Category.E_NOT_SUPPORTED, -1)
    assert "(minimum supported version: 10500, client version: 10499)" in response.result.message
    assert response.is_deprecated_sdk


@pytest.mark.parametrize(
    ("language", "version", "deprecated"),
    [(1, 10_500, True), (1, 10_900, False), (2, 2, False), (0, 0, False)],
)
def test_which_sdks_are_deprecated(language: int, version: int, deprecated: bool) -> None:
    client = Bench().connect()
    client.send(replace(CPP, sdk_version=version, sdk_language=Language(language)))
    response = client.only(BrokerResponse)
    assert (response.result.category, response.is_deprecated_sdk) == (Category.E_SUCCESS, deprecated)


def test_a_client_of_no_type_is_not_answered() -> None:
    client = Bench().connect()
    client.send(replace(CPP, client_type=ClientType.E_UNKNOWN))
    assert client.ended
    assert client.frames() == []


def test_a_client_that_says_nothing_is_cut_off() -> None:
    bench = Bench()
    silent, client = bench.connect(), bench.start()
    bench.advance(179)
    assert not silent.ended
    bench.advance(1)
    assert silent.ended
    assert not client.ended


# heartbeats: docs/protocols/blazingmq.md, 8


def test_a_request_is_answered_at_once_also_behind_a_disconnect() -> None:
    client = Bench().start()
    client.send(HeartbeatRequest())
    assert client.frames() == [HeartbeatResponse()]
    client.send(Disconnect(1), HeartbeatRequest())
    assert client.frames() == [DisconnectResponse(1), HeartbeatResponse()]


def test_by_default_nobody_is_asked() -> None:
    bench = Bench()
    client = bench.start()
    bench.advance(1000)
    assert client.frames() == []
    assert not client.ended


def test_a_silent_client_is_asked_and_cut_off_after_one_interval_more_than_the_limit() -> None:
    bench = Bench(replace(REAL, watches_clients=True, heartbeat_interval_ms=1000, max_missed_heartbeats=3))
    client = bench.start().open(write=True)
    bench.advance(1)
    assert client.frames() == []
    for _ in range(3):
        bench.advance(1)
        assert client.frames() == [HeartbeatRequest()]
    bench.advance(0.9)
    assert not client.ended
    bench.advance(0.1)
    assert client.ended


def test_a_client_that_has_said_nothing_since_its_identity_has_three_minutes_more() -> None:
    bench = Bench(replace(REAL, watches_clients=True, heartbeat_interval_ms=1000, max_missed_heartbeats=3))
    client = bench.start()
    bench.advance(183)
    assert client.frames() == [HeartbeatRequest()] * 183
    assert not client.ended
    bench.advance(1)
    assert client.ended


def test_any_event_counts_as_a_sign_of_life() -> None:
    bench = Bench(replace(REAL, watches_clients=True, heartbeat_interval_ms=1000, max_missed_heartbeats=1))
    client = bench.start()
    for frame in (HeartbeatResponse(), Reject(), OtherEvent(40), HeartbeatResponse()):
        bench.advance(0.5)
        client.send(frame)
        bench.advance(0.5)
    assert client.frames() == []
    bench.advance(1)
    assert client.frames() == [HeartbeatRequest()]
    client.send(HeartbeatResponse())
    bench.advance(1)
    assert client.frames() == []
    bench.advance(2)
    assert client.ended


def test_a_sign_of_life_starts_the_count_anew() -> None:
    bench = Bench(replace(REAL, watches_clients=True, heartbeat_interval_ms=1000, max_missed_heartbeats=2))
    client = bench.start().open(write=True)
    bench.advance(1)
    for _ in range(3):
        bench.advance(2)
        assert client.frames() == [HeartbeatRequest()] * 2
        client.send(HeartbeatResponse())
        bench.advance(1)
    bench.advance(3)
    assert client.ended


def test_in_the_document_all_clients_are_asked_at_every_interval() -> None:
    bench = Bench(SEED)
    client = bench.start()
    for _ in range(5):
        bench.advance(1)
        client.send(HeartbeatResponse())
    bench.advance(1)
    assert client.frames() == [HeartbeatRequest()] * 2


# the end


def test_behind_a_disconnect_nothing_is_looked_at() -> None:
    client = Bench().start().open(write=True)
    client.send(Disconnect(5))
    client.send(Disconnect(6), OpenQueue(7, parameters(write=True)), Put((put(b"x"),)))
    assert client.frames() == [DisconnectResponse(5)]
    assert not client.ended


def test_requests_without_a_number_are_ignored() -> None:
    client = Bench().start()
    client.send(
        OpenQueue(None, parameters(write=True)), OpenQueue(-1, parameters(write=True)), Disconnect(None)
    )
    client.send(b"\0\0\0\x0c\x41\2\0\0xxx\1", OtherEvent(40, b"x"), DisconnectResponse(3), CPP)
    assert client.frames() == []
    client.send(OpenQueue(0, parameters(write=True)))
    assert client.only(OpenQueueResponse).r_id == 0


def test_an_impossible_header_ends_the_connection() -> None:
    client = Bench().start()
    client.send(bytes(8))
    assert client.ended


def test_a_malformed_put_is_dropped() -> None:
    client = Bench().start().open(write=True)
    client.send(b"\0\0\0\x0c\x42\2\0\0\0\0\0\1")
    assert client.frames() == []
    client.post(b"x")
    assert client.statuses() == [0]


def commands(admin: Client) -> Callable[[str], str]:
    """What an operator's commands print."""

    def carry_out(command: str) -> str:
        answer = admin.ask(AdminCommand, command)
        assert isinstance(answer, AdminCommandResponse)
        return answer.text

    return carry_out


def test_an_admin_may_only_command() -> None:
    bench = Bench()
    admin = bench.connect()
    admin.send(ADMIN)
    assert admin.only(BrokerResponse).max_missed_heartbeats == 0
    admin.send(OpenQueue(1, parameters(write=True)), Put((put(b"x"),)), Disconnect(2))
    assert admin.frames() == []
    assert commands(admin)("HELP")
    client = bench.start()
    client.send(AdminCommand(9, "HELP"))
    assert client.frames() == []


def test_an_operator_sees_and_purges_queues() -> None:
    bench = Bench()
    client = bench.start().open(write=True)
    for number in range(3):
        client.post(b"%d" % number)
    carry_out = commands(bench.start(ADMIN))
    name = "bmq.test.mem.priority"

    def document(command: str) -> Any:
        return json.loads(carry_out(f"ENCODING JSON_COMPACT {command}"))

    infos = document(f"DOMAINS DOMAIN {name} INFOS")["domainInfo"]
    assert infos["capacityMeter"]["numMessages"] == 3
    assert infos["queueUris"] == [Q]
    assert json.loads(infos["configJson"])["mode"] == {"priority": {}}
    (cluster,) = document("CLUSTERS LIST")["clusterList"]["clusters"]
    assert len(cluster["nodes"]) == 1
    status = document("CLUSTERS CLUSTER local STATUS")["clusterStatus"]
    assert [each["numMessages"] for each in status["queuesInfo"]["storages"]] == [3]
    state = document(f"DOMAINS DOMAIN {name} QUEUE q INTERNALS")["queueInternals"]["state"]
    assert state["storage"]["virtualStorages"][0]["numMessages"] == 3
    assert state["capacityMeter"]["parent"]["numMessages"] == 3
    stats = json.loads(document("STAT SHOW")["stats"])
    assert stats["domainQueues"]["domains"][name][Q]["values"]["queue_content_msgs"] == 3
    ((purged,),) = [document(f"DOMAINS DOMAIN {name} QUEUE q PURGE *")["purgedQueues"]["queues"]]
    assert (purged["queue"]["numMessagesPurged"], purged["queue"]["numBytesPurged"]) == (3, 3)
    assert carry_out(f"DOMAINS DOMAIN {name} PURGE").startswith(
        "Purged 0 message(s) for a total of 0  B from 1"
    )
    assert json.loads(carry_out("BROKERCONFIG DUMP"))["brokerVersion"] == 999_999
    assert carry_out("CLUSTERS CLUSTER local FORCE_GC_QUEUES") == "SUCCESS"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("DANGER", 'Invalid command. Send "HELP" for list of commands. Invalid command word: DANGER'),
        ("", "Empty input"),
        ("ENCODING JSON HELP", "but the following was given: JSON"),
        ("DOMAINS DOMAIN bmq.test.mem.fanout QUEUE q PURGE APPID *", "The extra words are: *"),
        ("DOMAINS DOMAIN nope INFOS", "Domain 'nope' doesn't exist"),
        ("DOMAINS RECONFIGURE nope", "Domain 'nope' doesn't exist"),
        ("CLUSTERS CLUSTER nope STATUS", "cluster 'nope' not found !"),
        ("DOMAINS DOMAIN bmq.test.mem.fanout QUEUE x INTERNALS", "Queue 'x' was not found on domain"),
        ("DOMAINS DOMAIN bmq.test.mem.fanout QUEUE x PURGE *", "Queue was not found in a storage"),
        ("DOMAINS DOMAIN bmq.test.mem.fanout QUEUE q PURGE nope", "Specified appId 'nope' not found"),
    ],
)
def test_commands_that_make_no_sense(command: str, text: str) -> None:
    bench = Bench()
    bench.start().open(FANOUT, write=True)
    assert text in commands(bench.start(ADMIN))(command)


def test_a_shutdown_waits_for_what_is_unconfirmed() -> None:
    """On any connection; it looks every second."""
    bench = Bench()
    client, idle = bench.start().open(read=True, write=True), bench.start()
    guid = client.post(b"x")
    client.frames()
    bench.broker.shut_down(bench.broker.nodes[0], 20.0, bench.now)
    client.post(b"y")
    assert client.statuses() == [0]
    client.send(OpenQueue(50, parameters(q_id=3, write=True)), OpenQueue(51, parameters("no name")))
    client.send(CloseQueue(52, parameters(), True))
    assert client.frames() == []
    assert not isinstance(client.configure(number=2), StatusResponse)
    assert client.frames() == []
    bench.advance(1.5)
    client.confirm(guid)
    bench.advance(0.4)
    assert (client.ended, idle.ended) == (False, False)
    bench.advance(0.1)
    assert (client.ended, idle.ended) == (True, True)


def test_a_shutdown_waits_for_nobody_who_has_nothing() -> None:
    bench = Bench()
    client, other = bench.start().open(write=True), bench.start().open(read=True)
    client.post(b"x")
    other.frames()
    other.disconnect()
    bench.broker.shut_down(bench.broker.nodes[0], 20.0, bench.now)
    assert client.ended


def test_a_broker_that_goes_down_takes_no_connections() -> None:
    bench = Bench()
    bench.broker.shut_down(bench.broker.nodes[0], 5.0, bench.now)
    assert bench.connect().ended
    bench.broker.start_node(bench.broker.nodes[0])
    bench.start().open(write=True)


def test_a_shutdown_waits_until_its_time_is_up() -> None:
    bench = Bench()
    client = bench.start().open(read=True, write=True)
    client.post(b"x")
    bench.broker.shut_down(bench.broker.nodes[0], 5.5, bench.now)
    bench.advance(5.4)
    assert not client.ended
    bench.advance(0.1)
    assert client.ended


def test_nodes_share_their_queues() -> None:
    first, second = Node("one"), Node("two")
    bench = Bench(nodes=[first, second])
    producer, consumer = bench.start(node=first).open(write=True), bench.start(node=second).open(read=True)
    producer.post(b"x")
    assert consumer.payloads() == [b"x"]
    bench.broker.stop_node(second)
    assert (producer.ended, consumer.ended) == (False, True)
    consumer.session.closed(bench.now)
    assert bench.connect(second).ended
    assert bench.start(node=first).open(read=True).payloads() == [b"x"]
    bench.broker.start_node(second)
    bench.start(node=second)


def test_what_an_inspector_sees() -> None:
    client = Bench().start(JAVA).open(read=True, write=True)
    client.send(Put((replace(put(b"x"), crc=1),)))
    seen = client.session.describe()
    assert (seen["state"], seen["encoding"], seen["crcs"]) == (
        "running",
        "JSON",
        {"data": 0, "padded": 0, "wrong": 1},
    )
    assert seen["queues"] == {
        0: {"uri": Q, "reads": 1, "writes": 1, "unconfirmed": 1, "apps": {"__default": [1]}}
    }


@pytest.mark.parametrize("category", [Category.E_REFUSED, Category.E_NOT_SUPPORTED])
def test_refusals_that_faults_ask_for(category: Category) -> None:
    client = Bench().start()
    session = client.session

    def refusal(frame: Frame) -> Frame | None:
        return session.refusal(frame, category, 0.0)

    negotiation = refusal(ClientIdentity(1))
    assert isinstance(negotiation, BrokerResponse)
    assert negotiation.result.category == category
    assert refusal(OpenQueue(3, parameters())) == StatusResponse(3, category, category, "refused")
    credentials = refusal(AuthenticationRequest("x"))
    assert isinstance(credentials, AuthenticationResponse)
    assert refusal(CloseQueueResponse(1)) is None
    (ack,) = session.refusal(Put((put(b"x"),)), 2, 0.0).messages  # type: ignore[union-attr]
    assert (ack.status, ack.guid) == (2, put(b"x").guid)


def test_what_an_admin_is_told_of_a_domain() -> None:
    bench = Bench(domains={"bmq.test.mem.priority": Domain(domain_messages=10, domain_bytes=1000)})
    carry_out = commands(bench.start(ADMIN))

    def meter() -> dict[str, object]:
        infos = json.loads(carry_out("ENCODING JSON_COMPACT DOMAINS DOMAIN bmq.test.mem.priority INFOS"))
        found = infos["domainInfo"]["capacityMeter"]
        return {name: found[name] for name in ("numMessages", "messageCapacity", "numBytes", "byteCapacity")}

    assert meter() == {"numMessages": 0, "messageCapacity": 10, "numBytes": 0, "byteCapacity": 1000}
    client = bench.start().open(write=True)
    client.post(b"12345")
    assert meter() == {"numMessages": 1, "messageCapacity": 10, "numBytes": 5, "byteCapacity": 1000}
