"""The C++ SDK, unpatched, against the fake on real sockets (docs/protocols/blazingmq.md, 7 to 11)."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fakebrokers.blazingmq import faults as f
from fakebrokers.blazingmq.codes import Category, Encoding
from fakebrokers.blazingmq.faults_control import ExtraElement, OtherEncoding, WithoutElement
from fakebrokers.blazingmq.faults_messages import HeaderWords
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.core.frames import Role
from fakebrokers.faults import drop, fault
from tests.blazingmq.bench import BROADCAST, FANOUT, Q
from tests.blazingmq.sdk import finish, let_go_on, need_sdk, run, run_program, start, told
from tests.eventually import PATIENCE_S, eventually

need_sdk()


@pytest.fixture
def broker() -> Iterator[BlazingMQ]:
    with BlazingMQ() as server:
        yield server


@pytest.mark.parametrize("profile", ["real", "plain", "seed"])
@pytest.mark.parametrize("compression", ["NONE", "ZLIB"])
def test_a_life(profile: str, compression: str) -> None:
    with BlazingMQ(profile=profile) as broker:
        done = run(
            broker,
            """
            client.open(Q, read=True, write=True, options=QueueOptions(max_unconfirmed_messages=4))
            types = {"c": PropertyType.CHAR, "s": PropertyType.SHORT, "i": PropertyType.INT32}
            every = {"b": True, "c": b"\\7", "s": -300, "i": 70000, "l": 1 << 40, "t": "text", "y": b"\\0\\1"}
            client.session.post(Q, b"typed", every, types, lambda ack: client.acks.append(ack.status.name))
            for number in range(20):
                client.post(Q, b"%d" % number, ack=number % 2 == 0, number=number)
            client.post(Q, b"x" * 5000)
            client.post(Q, b"y" * 5000, a="b")
            client.wait(acks=13, messages=23)
            client.session.configure_queue(Q, QueueOptions(consumer_priority=3))
            client.close(Q)
            client.stop()
            data = [len(data) for _, data, _ in client.messages]
            tell(acks=client.acks, data=data, first=client.messages[0][2], last=client.messages[-1][2])
            """,
            f"client = Client(message_compression_algorithm=CompressionAlgorithmType.{compression})",
        )
        assert done.told["acks"] == ["SUCCESS"] * 13
        assert done.told["data"] == [5, *[1] * 10, *[2] * 10, 5000, 5000]
        assert done.told["first"] == {
            **{"b": True, "s": -300, "i": 70000, "l": 1 << 40, "t": "text"},
            **{"c": repr(b"\7"), "y": repr(b"\0\1")},
        }
        assert done.told["last"] == {"a": "b"}
        assert broker.messages(Q) == []
        configures = "configureStream" if profile != "plain" else "configureQueueStream"
        assert broker.wait_for(kind=configures, count=3)
        assert broker.wait_for(kind="disconnectResponse")


@pytest.mark.parametrize(("profile", "least"), [("real", 1024), ("plain", 1024 - 16)])
def test_it_compresses_from_1024_bytes_on(profile: str, least: int) -> None:
    """In the new style those of the payload count, in the old style the 16 of its property, too."""
    with BlazingMQ(profile=profile) as broker:
        run(
            broker,
            f"""
            client.open(Q, write=True)
            for size in ({least - 1}, {least}):
                client.post(Q, b"x" * size, k="v")
            client.wait(acks=2)
            client.stop()
            """,
            "client = Client(message_compression_algorithm=CompressionAlgorithmType.ZLIB)",
        )
        plain, packed = (record.size for record in broker.wait_for(kind="PUT", count=2))
        assert plain > least > 200 > packed


def test_it_sends_again_what_was_not_answered_and_the_broker_stores_it_once(broker: BlazingMQ) -> None:
    broker.faults.add(drop(role="confirm", connection="c1"))
    program = start(
        broker,
        """
        client.open(Q, read=True, write=True)
        for number in range(3):
            client.post(Q, b"%d" % number)
        client.wait(messages=3)
        tell(waiting=client.acks)
        client.wait(acks=3, event="StateRestored")
        client.close(Q)
        client.stop()
        tell(acks=client.acks, events=client.events, messages=[data for _, data, _ in client.messages])
        """,
    )
    assert told(program) == {"waiting": []}
    broker.wait_for(kind="CONFIRM", count=3)
    broker.kill("c1")
    done = finish(program)
    assert done.told["acks"] == ["SUCCESS"] * 3
    assert set(done.told["events"]) >= {"ConnectionLost", "Reconnected", "QueueReopened", "StateRestored"}
    assert len(done.told["messages"]) == 3
    (again,) = broker.wait_for(kind="PUT", connection="c2")
    assert len(again.keys) == 3


def test_it_finds_a_broker_again_that_was_down(broker: BlazingMQ) -> None:
    program = start(
        broker,
        """
        client.open(Q, read=True, write=True)
        client.post(Q, b"before")
        client.wait(acks=1, messages=1)
        tell(ready=True)
        client.wait(event="ConnectionLost")
        client.post(Q, b"while it was down")
        tell(posted=True)
        client.wait(acks=2, messages=2)
        tell(acks=client.acks)
        """,
    )
    told(program)
    broker.crash(keep_state=True)
    told(program)
    broker.restart()
    assert finish(program).told == {"acks": ["SUCCESS", "SUCCESS"]}


def test_fanout_and_priorities(broker: BlazingMQ) -> None:
    done = run(
        broker,
        """
        low, high = Client(), Client()
        client.open(FANOUT, write=True)
        client.open(FANOUT + "?id=foo", read=True)
        client.open(FANOUT + "?id=bar", read=True)
        low.open(Q, read=True, options=QueueOptions(consumer_priority=1))
        high.open(Q, read=True, options=QueueOptions(consumer_priority=2))
        client.open(Q, write=True)
        client.post(FANOUT, b"to each app")
        client.post(Q, b"to the first")
        client.wait(acks=2, messages=2)
        high.wait(messages=1)
        high.close(Q)
        client.post(Q, b"to the second")
        low.wait(messages=1)
        client.close(FANOUT + "?id=foo")
        client.post(FANOUT, b"to one app")
        client.wait(messages=3)
        tell(
            fanout=[(uri, data) for uri, data, _ in client.messages],
            low=[data for _, data, _ in low.messages],
            high=[data for _, data, _ in high.messages],
        )
        for each in (low, high, client):
            each.stop()
        """,
    )
    assert done.told["fanout"] == [
        [f"{FANOUT}?id=foo", repr(b"to each app")],
        [f"{FANOUT}?id=bar", repr(b"to each app")],
        [f"{FANOUT}?id=bar", repr(b"to one app")],
    ]
    assert (done.told["low"], done.told["high"]) == ([repr(b"to the second")], [repr(b"to the first")])
    broker.wait_for(kind="closed", count=3)
    assert [message.waiting for message in broker.messages(FANOUT)] == [{"baz"}, {"foo", "baz"}]


def test_broadcast(broker: BlazingMQ) -> None:
    done = run(
        broker,
        """
        other = Client()
        for each in (client, other):
            each.open(BROADCAST, read=True, write=each is client)
        client.post(BROADCAST, b"x")
        client.wait(acks=1, messages=1)
        other.wait(messages=1)
        for each in (client, other):
            each.close(BROADCAST)
            each.stop()
        """,
    )
    assert done.code == 0
    assert broker.messages(BROADCAST) == []
    assert not broker.journal.select(kind="CONFIRM")


def test_unconfirmed_messages_come_again(broker: BlazingMQ) -> None:
    done = run(
        broker,
        """
        client.open(Q, read=True, write=True)
        client.post(Q, b"x")
        client.wait(messages=1)
        client.close(Q)
        client.open(Q, read=True)
        client.wait(messages=2)
        client.handles[1].confirm()
        client.stop()
        """,
        "client = Client(confirm=False)",
    )
    assert done.code == 0
    assert broker.messages(Q) == []


def test_a_stop_with_messages_that_were_not_answered(broker: BlazingMQ) -> None:
    broker.faults.add(drop(role="confirm"))
    program = start(
        broker,
        """
        client.open(Q, write=True)
        for number in range(3):
            client.post(Q, b"x")
        tell(posted=True)
        go_on()
        client.stop()
        tell(acks=client.acks)
        """,
    )
    assert told(program) == {"posted": True}
    eventually(lambda: len(broker.messages(Q)) == 3)
    let_go_on(program)
    assert finish(program).told == {"acks": ["UNKNOWN"] * 3}
    assert len(broker.messages(Q)) == 3


def test_an_unhealthy_host_suspends_its_queues(broker: BlazingMQ) -> None:
    done = run(
        broker,
        """
        client.open(Q, read=True, write=True, options=QueueOptions(suspends_on_bad_host_health=True))
        monitor.set_unhealthy()
        client.wait(event="QueueSuspended")
        monitor.set_healthy()
        client.wait(event="HostHealthRestored")
        client.post(Q, b"x")
        client.wait(acks=1, messages=1)
        client.stop()
        tell(events=client.events)
        """,
        "monitor = BasicHealthMonitor(); client = Client(host_health_monitor=monitor)",
    )
    assert {"HostUnhealthy", "QueueSuspended", "QueueResumed"} <= set(done.told["events"])


def test_statuses_and_refusals() -> None:
    with BlazingMQ(domains={"small": {"queue_messages": 1}}) as broker:
        broker.faults.add(f.refuse_put(6, connection="c1", nth=4))
        broker.faults.add(f.refuse_open(Category.E_NOT_SUPPORTED, nth=2))
        done = run(
            broker,
            """
            client.open("bmq://small/q", write=True)
            for count in (1, 2, 3, 4):
                client.post("bmq://small/q", b"x")
                client.wait(acks=count)
            errors = []
            for uri in (Q, "bmq://nowhere/q", FANOUT):
                try:
                    client.open(uri, read=True)
                except blazingmq.Error as error:
                    errors.append(str(error))
            client.stop()
            tell(acks=client.acks, errors=errors)
            """,
        )
    assert done.told["acks"] == ["SUCCESS", "SUCCESS", "LIMIT_MESSAGES", "STORAGE_FAILURE"]
    assert ["NOT_SUPPORTED" in done.told["errors"][0], "UNKNOWN" in done.told["errors"][1]] == [True, True]
    assert "appId" in done.told["errors"][2]


def test_heartbeats_are_answered() -> None:
    with BlazingMQ(heartbeats=True, heartbeat_s=0.03) as broker:
        program = start(broker, "tell(ready=True)\ngo_on()\nclient.stop()")
        told(program)
        assert broker.wait_for(kind="HEARTBEAT_RSP", role=Role.HEARTBEAT, count=5)
        let_go_on(program)
        assert finish(program).code == 0


def test_a_shutdown_in_order_loses_nothing(broker: BlazingMQ) -> None:
    program = start(
        broker,
        """
        client.open(Q, read=True, write=True)
        client.post(Q, b"x")
        client.wait(acks=1, messages=1)
        tell(ready=True)
        go_on()
        client.handles[0].confirm()
        client.wait(event="ConnectionLost")
        tell(lost=True)
        client.wait(event="StateRestored")
        client.stop()
        """,
        "client = Client(confirm=False)",
    )
    told(program)
    broker.shut_down(timeout_s=PATIENCE_S)
    let_go_on(program)
    told(program)
    broker.start_node(1)
    assert finish(program).code == 0
    assert broker.messages(Q) == []


@pytest.mark.parametrize(
    "effects",
    [
        (ExtraElement(), "brokerResponse"),
        (ExtraElement(), "openQueueResponse"),
        (ExtraElement(), "configureStreamResponse"),
        (WithoutElement(element="brokerIdentity.userAgent"), "brokerResponse"),
        (WithoutElement(element="heartbeatIntervalMs"), "brokerResponse"),
        (WithoutElement(element="deduplicationTimeMs"), "openQueueResponse"),
        (OtherEncoding(encoding="JSON"), "brokerResponse"),
        (HeaderWords(more=2), "PUSH"),
    ],
    ids=lambda effects: f"{type(effects[0]).__name__} {effects[1]}",
)
def test_newer_and_older_brokers(broker: BlazingMQ, effects: tuple[object, str]) -> None:
    effect, kind = effects
    broker.faults.add(fault(effect, kind=kind))  # type: ignore[arg-type]
    done = run(
        broker,
        """
        client.open(Q, read=True, write=True)
        client.post(Q, b"x")
        client.wait(acks=1, messages=1)
        client.close(Q)
        client.stop()
        """,
    )
    assert done.code == 0


@pytest.mark.parametrize(
    ("what", "end"),
    [
        (f.duplicate_ack(), signal.SIGABRT),
        (f.unknown_ack(), signal.SIGABRT),
        (fault(f.OtherQueue(queue_id=9), role="confirm"), signal.SIGSEGV),
        (fault(f.OtherQueue(queue_id=9), role="deliver"), signal.SIGSEGV),
        (fault(f.OtherSubscription(numbers=(99,)), role="deliver"), signal.SIGSEGV),
    ],
    ids=["duplicate ACK", "unknown ACK", "ACK of another queue", "PUSH to another queue", "PUSH to nobody"],
)
def test_where_version_1_2_2_of_the_wheel_crashes(
    broker: BlazingMQ, what: object, end: signal.Signals
) -> None:
    """Not a wish, but known (docs/protocols/blazingmq.md, 11): such a run must be judged as a crash."""
    broker.faults.add(what)  # type: ignore[arg-type]
    done = finish(
        start(
            broker,
            """
            client.open(Q, read=True, write=True)
            client.post(Q, b"x")
            client.wait(acks=99)
            """,
        )
    )
    assert done.code == -end


def test_reversed_and_mixed_answers(broker: BlazingMQ) -> None:
    broker.faults.add(f.mixed_acks(0, 1))
    done = run(
        broker,
        """
        client.open(Q, write=True)
        for _ in range(6):
            client.post(Q, b"x")
        client.wait(acks=6)
        client.stop()
        tell(acks=sorted(client.acks))
        """,
    )
    assert done.told["acks"] == ["LIMIT_MESSAGES"] * 3 + ["SUCCESS"] * 3


def test_it_negotiates_in_ber(broker: BlazingMQ) -> None:
    program = start(broker, "tell(ready=True)\ngo_on()\nclient.stop()")
    told(program)
    (seen,) = broker.connections
    assert (seen["encoding"], seen["sdk_version"]) == (Encoding.BER.name, 999_999)
    let_go_on(program)
    assert finish(program).code == 0


# the programs that the SDK's documentation describes


@pytest.mark.parametrize("program", ["producer.py", "producer_with_acks.py"])
def test_documented_producers_and_consumer(broker: BlazingMQ, program: str) -> None:
    consumer = run_program(broker, "consumer.py", Q, "2")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "ready\n"
    out, errors = run_program(broker, program, Q, "hello", "world").communicate(timeout=PATIENCE_S)
    assert out.splitlines() == ([] if program == "producer.py" else ["hello: SUCCESS", "world: SUCCESS"]), (
        errors
    )
    printed, errors = consumer.communicate(timeout=PATIENCE_S)
    assert (consumer.returncode, printed.splitlines()) == (0, ["hello {}", "world {}"]), errors
    assert broker.messages(Q) == []


def test_documented_programs_with_properties(broker: BlazingMQ) -> None:
    producer = run_program(broker, "producer_with_acks.py", Q, "--properties", "hello", "world")
    out, errors = producer.communicate(timeout=PATIENCE_S)
    assert out.splitlines() == ["hello: SUCCESS", "world: SUCCESS"], errors
    printed, errors = run_program(broker, "consumer.py", Q, "2").communicate(timeout=PATIENCE_S)
    # messages may come before openQueue returns
    assert [line for line in printed.splitlines() if line != "ready"] == [
        "hello {'last': False, 'number': 0, 'word': 'hello'}",
        "world {'last': True, 'number': 1, 'word': 'world'}",
    ], errors
