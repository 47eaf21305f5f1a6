"""Messages from producers to consumers, as clients see them (docs/protocols/blazingmq.md, 2 to 4 and 9)."""

from __future__ import annotations

import gc
import zlib

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq.codes import UNSET_GUID, Compression, PushFlag, PutFlag
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    ConfigureStream,
    ConfigureStreamResponse,
    Confirm,
    ConfirmMessage,
    Disconnect,
    Push,
    Put,
    Reject,
)
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options
from fakebrokers.blazingmq.profile import REAL, SEED
from fakebrokers.blazingmq.properties import (
    Content,
    Property,
    PropertyType,
    Style,
    read_content,
    write_content,
)
from fakebrokers.blazingmq.schema import StreamParameters
from tests.blazingmq.bench import BROADCAST, CPP, FANOUT, JAVA, Bench, Client, Q, guid, put, subscription


def both(bench: Bench, uri: str = Q) -> Client:
    """A client that reads and writes a queue."""
    return bench.start().open(uri, read=True, write=True)


# ACKs


def test_an_ack_repeats_the_guid_and_comes_before_the_delivery() -> None:
    client = both(Bench())
    client.post(b"hello")
    first, second = client.frames()
    assert first == Ack((AckMessage(0, guid(1)),))
    assert isinstance(second, Push)
    (push,) = second.messages
    assert (push.queue_id, push.guid, push.data, push.flags) == (0, guid(1), b"hello", 0)
    assert read_options(push.options) == (SubscriptionInfo(1),)


def test_without_the_flag_only_a_refusal_is_answered() -> None:
    client = Bench().start().open(write=True)
    client.post(b"x", ack=False)
    assert client.frames() == []
    client.post(b"x", q_id=5, ack=False, number=9)
    assert client.frames() == [Ack((AckMessage(5, guid(9), 5),))]


def test_the_messages_of_one_event_are_answered_in_one() -> None:
    client = both(Bench())
    client.send(Put((put(b"a", number=1), put(b"b", number=2, ack=False), put(b"c", 9, number=3))))
    ack, push = client.frames()
    assert isinstance(ack, Ack)
    assert [(each.guid, each.status, each.queue_id) for each in ack.messages] == [
        (guid(3), 5, 9),
        (guid(1), 0, 0),
    ]
    assert isinstance(push, Push)
    assert [each.data for each in push.messages] == [b"a", b"b"]


def test_clients_that_make_no_guids_get_their_number_back() -> None:
    client = Bench().start(JAVA).open(read=True, write=True)
    numbered = bytes.fromhex("00000102") + bytes(12)
    # the number decides, not the flag
    client.send(Put((replace(put(b"a"), guid=numbered, flags=0), replace(put(b"b"), guid=UNSET_GUID))))
    ack, push = client.frames()
    assert isinstance(ack, Ack)
    assert isinstance(push, Push)
    (answer,) = ack.messages
    assert (answer.correlation_id, answer.status, answer.key) == (0x102, 0, numbered)
    assert answer.guid == push.messages[0].guid != push.messages[1].guid
    client.send(Put((replace(put(b"a", 7), guid=numbered),)))
    assert client.frames() == [Ack((AckMessage(7, UNSET_GUID, 5, 0x102),))]


@pytest.mark.parametrize(
    "message", [put(b"x", 1), replace(put(b"x"), guid=UNSET_GUID)], ids=["unknown queue", "no GUID"]
)
def test_messages_that_are_refused(message: object) -> None:
    client = Bench().start().open(write=True)
    client.send(Put((message,)))  # type: ignore[arg-type]
    assert client.statuses() == [5]


def test_a_reader_may_not_write() -> None:
    bench = Bench()
    client = bench.start().open(read=True)
    client.post(b"x")
    assert client.statuses() == [5]
    assert not bench.broker.queue(Q).messages


def test_after_the_close_messages_are_refused() -> None:
    client = both(Bench())
    client.close(read=True, write=True)
    client.post(b"x")
    assert client.statuses() == [5]


@pytest.mark.parametrize(
    ("domain", "statuses"),
    [
        (Domain(queue_messages=2), [0, 0, 0, 1]),
        (Domain(queue_bytes=10), [0, 0, 0, 2]),
        (Domain(queue_bytes=9), [0, 0, 2]),
        (Domain(domain_messages=2), [0, 0, 0, 1]),
        (Domain(domain_bytes=10), [0, 0, 0, 2]),
        (Domain(queue_bytes=4, domain_messages=1), [0, 2]),  # the queue's limits come first
    ],
)
def test_limits_of_messages_and_bytes(domain: Domain, statuses: list[int]) -> None:
    client = Bench(domains={"d": domain}).start().open("bmq://d/q", write=True)
    for _ in statuses:
        client.post(b"12345")
    assert client.statuses() == statuses


def test_the_domain_counts_all_its_queues_and_confirms_make_room() -> None:
    bench = Bench(domains={"d": Domain(domain_messages=1)})
    client = both(bench, "bmq://d/one").open("bmq://d/two", 1, write=True)
    posted = client.post(b"x")
    client.post(b"x", 1)
    client.post(b"x", 1)
    assert client.statuses() == [0, 0, 1]
    client.confirm(posted)
    client.post(b"x", 1)
    assert client.statuses() == [0]


def test_a_limit_that_a_domain_is_given_later_counts_for_its_queues_too() -> None:
    bench = Bench(domains={"d": Domain()})
    client = bench.start().open("bmq://d/q", write=True)
    client.post(b"x")
    bench.broker.configure_domain("d", Domain(queue_messages=1))
    client.post(b"x")
    client.post(b"x")
    bench.broker.configure_domain("d", Domain())
    client.post(b"x")
    assert client.statuses() == [0, 0, 1, 0]


def test_a_message_that_comes_again_is_stored_once() -> None:
    bench = Bench(domains={"d": Domain(deduplication_time_ms=1000)})
    client = both(bench, "bmq://d/q")
    posted = client.post(b"x", number=1)
    client.post(b"x", number=1)
    first, _, second = client.frames()
    assert first == second == Ack((AckMessage(0, posted),))
    client.confirm(posted)
    bench.advance(0.9)
    client.post(b"x", number=1)
    assert client.statuses() == [0]
    bench.advance(0.2)
    client.post(b"x", number=1)
    assert client.statuses() == [0]  # GUIDs are forgotten once a queue has been used
    client.post(b"x", number=1)
    assert [type(frame) for frame in client.frames()] == [Ack, Push]


def test_after_the_time_of_deduplication_a_message_is_new() -> None:
    bench = Bench(domains={"d": Domain(deduplication_time_ms=1000)})
    client = both(bench, "bmq://d/q")
    for seconds in (0.5, 0.5, 0.0, 0.0):
        client.confirm(client.post(b"x", number=1))
        bench.advance(seconds)
    assert len(client.pushes()) == 2


def test_guids_of_a_queue_that_is_not_used_are_forgotten_within_five_seconds() -> None:
    bench = Bench(domains={"d": Domain(deduplication_time_ms=1000)})
    client = both(bench, "bmq://d/q")
    for seconds in (4.9, 0.2, 0.0):
        client.confirm(client.post(b"x", number=1))
        bench.advance(seconds)
    assert len(client.pushes()) == 2


def test_a_broadcast_that_comes_twice_in_one_event_is_delivered_once() -> None:
    client = both(Bench(), BROADCAST)
    once = put(b"x", number=1)
    client.send(Put((once, once)))
    assert client.statuses() == [0, 0]
    client.send(Put((once, once)), Put((once,)))
    assert len(client.pushes()) == 2


def test_of_one_guid_in_one_event_one_answer_is_positive() -> None:
    client = Bench().start().open(write=True)
    client.send(Put((put(b"x", number=1), put(b"x", number=2), put(b"x", number=1))))
    assert [each.guid for each in client.only(Ack).messages] == [guid(1), guid(2)]


@pytest.mark.parametrize("time_ms", [0, 1000])
def test_a_message_that_is_still_stored_is_not_stored_twice(time_ms: int) -> None:
    bench = Bench(domains={"d": Domain(deduplication_time_ms=time_ms)})
    client = bench.start().open("bmq://d/q", write=True)
    for _ in range(2):
        client.post(b"x", number=1)
        bench.advance(2)
    queue = bench.broker.queue("bmq://d/q")
    assert (client.statuses(), len(queue.messages), queue.store.bytes) == ([0, 0], 1, 1)
    assert bench.start().open("bmq://d/q", read=True).payloads() == [b"x"]


def test_a_wrong_checksum_is_refused_only_where_it_is_checked() -> None:
    message = replace(put(b"x"), crc=1)
    padded = replace(put(b"hello"), crc=0x5D9A76AD, guid=guid(2))
    for profile, statuses in ((REAL, [0, 0]), (replace(REAL, checks_crc=True), [5, 0])):
        client = Bench(profile).start().open(write=True)
        client.send(Put((message, padded)))
        assert client.statuses() == statuses
    assert client.session.describe()["crcs"] == {"data": 0, "padded": 1, "wrong": 1}


def test_numbers_of_statuses_in_the_document() -> None:
    assert dict(SEED.statuses) == {6: 3, 7: 15}


# delivery


def test_what_nobody_has_had_comes_in_its_turn_however_late() -> None:
    bench = Bench()
    producer = bench.start().open(write=True)
    for number in range(3):
        producer.post(b"%d" % number)
    consumer = bench.start().open(read=True)
    assert [(each.data, each.out_of_order) for each in consumer.pushes()] == [
        (b"0", False),
        (b"1", False),
        (b"2", False),
    ]


def test_an_app_whose_messages_others_have_had_gets_them_out_of_turn() -> None:
    bench = Bench()
    domain = Domain("fanout", ("foo", "bar"))
    bench.broker.configure_domain("bmq.test.mem.fanout", domain)
    producer = bench.start().open(FANOUT, write=True)
    producer.post(b"0")
    foo = bench.start().open(FANOUT, read=True, app="foo", sub_id=1)
    producer.post(b"1")
    bar = bench.start().open(FANOUT, read=True, app="bar", sub_id=1)
    producer.post(b"2")
    assert [(each.data, each.out_of_order) for each in foo.pushes()] == [
        (b"0", False),
        (b"1", False),
        (b"2", False),
    ]
    assert [(each.data, each.out_of_order) for each in bar.pushes()] == [
        (b"0", True),
        (b"1", True),
        (b"2", False),
    ]


def test_consumers_of_the_same_priority_take_turns() -> None:
    bench = Bench()
    consumers = [bench.start().open(read=True, turns=turns) for turns in (1, 2)]
    producer = bench.start().open(write=True)
    for number in range(6):
        producer.post(b"%d" % number)
    assert [each.payloads() for each in consumers] == [[b"0", b"3"], [b"1", b"2", b"4", b"5"]]


def test_the_turn_goes_round_among_three() -> None:
    bench = Bench()
    consumers = [bench.start().open(read=True) for _ in range(3)]
    producer = bench.start().open(write=True)
    for number in range(6):
        producer.post(b"%d" % number)
    assert [consumer.payloads() for consumer in consumers] == [[b"0", b"3"], [b"1", b"4"], [b"2", b"5"]]


def test_only_the_highest_priority_counts() -> None:
    bench = Bench()
    low, high = bench.start().open(read=True, priority=1), bench.start().open(read=True, priority=2)
    producer = bench.start().open(write=True)
    producer.post(b"a")
    assert (low.payloads(), high.payloads()) == ([], [b"a"])
    low.configure(priority=3, number=2)
    producer.post(b"b")
    assert (low.payloads(), high.payloads()) == ([b"b"], [])
    low.configure(take=0)
    producer.post(b"c")
    assert (low.payloads(), high.payloads()) == ([], [b"c"])


def test_who_is_full_and_wants_a_message_keeps_lower_priorities_waiting() -> None:
    bench = Bench()
    high, low = bench.start().open(read=True, take=None), bench.start().open(read=True, take=None)
    high.configure(text="x > 0", take=1, priority=2)
    low.configure(priority=1)
    producer = bench.start().open(write=True)
    posted = [producer.post(b"", properties={"x": 1}) for _ in range(2)]
    assert ([push.guid for push in high.pushes()], low.pushes()) == (posted[:1], [])
    high.confirm(posted[0])
    assert ([push.guid for push in high.pushes()], low.pushes()) == (posted[1:], [])


def test_the_answer_to_a_configuration_comes_before_deliveries() -> None:
    client = both(Bench())
    client.configure(take=0)
    client.post(b"x")
    client.frames()
    client.send(ConfigureStream(9, 0, StreamParameters("__default", (subscription(2),))))
    assert [type(frame) for frame in client.frames()] == [ConfigureStreamResponse, Push]


def test_a_full_consumer_gets_more_at_eighty_percent() -> None:
    client = both(Bench())
    client.configure(take=10, number=2)
    guids = [client.post(b"%d" % number) for number in range(13)]
    assert len(client.payloads()) == 10
    client.confirm(guids[0])
    assert client.payloads() == []
    client.confirm(guids[1])
    assert client.payloads() == [b"10", b"11"]
    client.confirm(guids[2], guids[3])
    assert client.payloads() == [b"12"]


def test_the_limit_of_bytes_is_soft() -> None:
    client = both(Bench())
    client.configure(number=2, max_bytes=10)
    guids = [client.post(b"1234567") for _ in range(3)]
    assert len(client.pushes()) == 2
    client.confirm(guids[0])
    assert len(client.pushes()) == 1


def test_bytes_have_to_fall_to_eighty_percent_too() -> None:
    client = both(Bench())
    client.configure(take=100, number=2, max_bytes=10)
    guids = [client.post(b"123") for _ in range(5)]
    assert len(client.pushes()) == 4
    client.confirm(guids[0])
    assert client.pushes() == []  # nine bytes are more than eight
    client.confirm(guids[1])
    assert len(client.pushes()) == 1


def test_a_limit_of_nothing_delivers_nothing() -> None:
    client = both(Bench())
    client.configure(number=2, max_bytes=0)
    client.post(b"x")
    assert client.payloads() == []
    client.configure(number=2, max_bytes=1)
    assert client.payloads() == [b"x"]


def test_while_one_is_full_the_other_gets_all() -> None:
    bench = Bench()
    one, other = bench.start().open(read=True, take=1), bench.start().open(read=True)
    producer = bench.start().open(write=True)
    for number in range(4):
        producer.post(b"%d" % number)
    assert (one.payloads(), other.payloads()) == ([b"0"], [b"1", b"2", b"3"])


def test_confirmed_messages_are_gone_and_unknown_confirms_are_ignored() -> None:
    bench = Bench()
    client = both(bench)
    posted = client.post(b"x")
    client.frames()
    client.confirm(guid(99))
    client.confirm(posted, sub_id=1)
    client.send(Confirm((ConfirmMessage(7, posted),)), Reject((ConfirmMessage(0, posted),)))
    assert len(bench.broker.queue(Q).messages) == 1
    client.confirm(posted, posted)
    assert not bench.broker.queue(Q).messages
    assert client.frames() == []


# what a broker reads


def test_old_properties_are_stored_inflated() -> None:
    client = both(Bench())
    properties = {"a": Property(PropertyType.INT32, 1)}
    content = Content(b"x" * 2000, properties)
    packed = write_content(content, Style.OLD, Compression.ZLIB)
    message = put(packed, number=1)
    client.send(Put((replace(message, flags=3, compression=Compression.ZLIB),)))
    (push,) = client.pushes()
    assert (push.compression, push.data) == (0, write_content(content, Style.OLD, Compression.NONE))
    assert client.bench.broker.queue(Q).store.bytes == len(push.data)


@pytest.mark.parametrize(
    "change",
    [
        {"compression": 2},
        {"schema_id": 3},  # and no flag
        {"flags": PutFlag.ACK_REQUESTED | PutFlag.MESSAGE_PROPERTIES, "compression": 1},  # no zlib stream
    ],
)
def test_what_cannot_be_read_is_dropped_with_what_comes_after_it(change: dict[str, int]) -> None:
    client = both(Bench())
    first, second, third = [put(b"%d" % number, number=number) for number in (1, 2, 3)]
    client.send(Put((first, replace(second, **change), third)))
    client.send(Put((put(b"4", number=4),)))
    frames = client.frames()
    statuses = [each.status for frame in frames if isinstance(frame, Ack) for each in frame.messages]
    pushed = [each.data for frame in frames if isinstance(frame, Push) for each in frame.messages]
    assert (statuses, pushed) == ([0, 0], [b"1", b"4"])


def test_a_broadcast_is_acknowledged_whoever_posts() -> None:
    bench = Bench()
    client = bench.start().open(BROADCAST, read=True)
    client.post(b"x")
    client.post(b"y", ack=False)
    assert client.statuses() == [0]


# schemas of properties


def test_schemas_of_several_producers_have_numbers_of_their_own() -> None:
    """What a producer calls 1 is not what another one calls so; each consumer hears of each once."""
    bench = Bench()
    consumers = [bench.start().open(read=True)]
    one, other = bench.start().open(write=True), bench.start().open(write=True)

    def post(producer: Client, number: int, schema_id: int) -> None:
        message = put(b"x", number=number, properties={"a": 1})
        producer.send(Put((replace(message, schema_id=schema_id),)))

    for number, (producer, schema_id) in enumerate([(one, 3), (other, 3), (one, 2), (other, 2), (one, 5)]):
        post(producer, number, schema_id)
    assert [push.schema_id for push in consumers[0].pushes()] == [3, 5, 2, 4, 7]
    consumers.append(bench.start().open(read=True, priority=1))
    post(other, 10, 2)
    post(other, 11, 2)
    post(one, 12, 3)  # its names are others from here on
    post(one, 13, 2)
    post(other, 14, 1)
    assert [push.schema_id for push in consumers[1].pushes()] == [5, 4, 3, 2, 1]
    consumers[1].leave()
    assert [push.schema_id for push in consumers[0].pushes()] == [4, 4, 3, 2, 1]


def test_a_queue_counts_the_schema_of_a_message_that_it_refuses() -> None:
    client = Bench().start().open(read=True)
    refused, taken = (put(b"x", number=number, properties={name: 1}) for number, name in enumerate("ab"))
    client.send(Put((replace(refused, schema_id=3),)))
    client.open(write=True)
    client.send(Put((replace(taken, schema_id=5),)))
    assert [push.schema_id for push in client.pushes()] == [5]


# redelivery


@pytest.mark.parametrize("how", ["close", "leave", "disconnect"])
def test_unconfirmed_messages_come_again_in_front_and_in_order(how: str) -> None:
    bench = Bench()
    first = bench.start().open(read=True, take=3)
    producer = bench.start().open(write=True)
    guids = [producer.post(b"%d" % number) for number in range(5)]
    assert first.payloads() == [b"0", b"1", b"2"]
    first.confirm(guids[1])
    if how == "close":
        first.configure(take=0)
        first.close(read=True)
    elif how == "leave":
        first.leave()
    else:
        first.disconnect()
    second = bench.start().open(read=True)
    assert [(push.data, push.flags) for push in second.pushes()] == [
        (b"0", PushFlag.OUT_OF_ORDER),
        (b"2", PushFlag.OUT_OF_ORDER),
        (b"3", PushFlag.OUT_OF_ORDER),
        (b"4", 0),
    ]


def test_a_consumer_that_is_lost_hands_over_to_those_who_are_there() -> None:
    bench = Bench()
    one, other = bench.start().open(read=True), bench.start().open(read=True)
    producer = bench.start().open(write=True)
    for number in range(4):
        producer.post(b"%d" % number)
    assert (one.payloads(), other.payloads()) == ([b"0", b"2"], [b"1", b"3"])
    one.leave()
    assert other.payloads() == [b"0", b"2"]


def test_a_suspended_consumer_keeps_what_it_has() -> None:
    bench = Bench()
    client = both(bench)
    posted = client.post(b"x")
    client.frames()
    client.configure(take=0)
    client.post(b"y")
    assert client.payloads() == []
    client.configure(number=2)
    assert client.payloads() == [b"y"]
    client.confirm(posted)
    assert len(bench.broker.queue(Q).messages) == 1


def test_after_the_answer_to_a_close_nothing_comes() -> None:
    client = both(Bench())
    client.post(b"x")
    client.frames()
    client.close(read=True, write=True)
    assert client.frames() == []


def test_a_message_that_several_clients_are_lost_with_is_dropped() -> None:
    bench = Bench(replace(REAL, push_option=PushOption.INFOS), {"d": Domain(max_delivery_attempts=2)})
    producer = bench.start().open("bmq://d/q", write=True)
    producer.post(b"poison")
    attempts = []
    for _ in range(2):
        client = bench.start().open("bmq://d/q", read=True)
        (push,) = client.pushes()
        attempts.append(read_options(push.options)[0].attempts)
        client.leave()
    assert attempts == [2, 0x41]
    assert bench.start().open("bmq://d/q", read=True).pushes() == []
    assert not bench.broker.queue("bmq://d/q").messages


def test_messages_that_clients_are_lost_with_are_held_back() -> None:
    """As recorded: five consumers that vanish after 4 s, each message delivered three times."""
    bench = Bench(domains={"d": Domain(max_delivery_attempts=3)})
    producer = bench.start().open("bmq://d/q", write=True)
    for number in range(3):
        producer.post(b"x%d" % number)
    seen = []
    for _ in range(5):
        client = bench.start().open("bmq://d/q", read=True)
        at_once = client.payloads()
        bench.advance(2.9)
        assert client.payloads() == []
        bench.advance(0.1)
        seen.append((at_once, client.payloads()))
        bench.advance(1.0)
        client.leave()
    assert seen == [
        ([b"x0", b"x1", b"x2"], []),
        ([b"x0"], [b"x1"]),
        ([b"x2"], [b"x0"]),
        ([b"x1"], [b"x2"]),
        ([], []),
    ]


@pytest.mark.parametrize(("attempts", "delay"), [(6, 0.0), (5, 1.0), (4, 1.0), (3, 3.0)])
def test_the_fewer_attempts_remain_the_longer_a_message_is_held_back(attempts: int, delay: float) -> None:
    bench = Bench(domains={"d": Domain(max_delivery_attempts=attempts)})
    producer = bench.start().open("bmq://d/q", write=True)
    posted = [producer.post(b"%d" % number) for number in range(2)]
    bench.start().open("bmq://d/q", read=True).leave()
    client = bench.start().open("bmq://d/q", read=True)
    came = [client.payloads()]
    for _ in range(4):
        bench.advance(1.0)
        came.append(client.payloads())
    wanted = [[b"0"], [], [], [], []]
    wanted[int(delay)] = [*wanted[int(delay)], b"1"]
    assert came == wanted
    client.confirm(*posted)
    assert not bench.broker.queue("bmq://d/q").messages


def test_who_confirms_the_last_one_gets_the_next_at_once() -> None:
    bench = Bench(domains={"d": Domain(max_delivery_attempts=3)})
    producer = bench.start().open("bmq://d/q", write=True)
    posted = [producer.post(b"%d" % number) for number in range(3)]
    bench.start().open("bmq://d/q", read=True).leave()
    client = bench.start().open("bmq://d/q", read=True)
    assert client.payloads() == [b"0"]
    client.confirm(posted[2])  # not the one that it waits for
    assert client.payloads() == []
    client.confirm(posted[0])
    assert client.payloads() == [b"1"]


def test_whoever_comes_anew_need_not_wait() -> None:
    bench = Bench(domains={"d": Domain(max_delivery_attempts=3)})
    producer = bench.start().open("bmq://d/q", write=True)
    for number in range(3):
        producer.post(b"%d" % number)
    bench.start().open("bmq://d/q", read=True).leave()
    client = bench.start().open("bmq://d/q", read=True, priority=1)
    assert client.payloads() == [b"0"]
    other = bench.start().open("bmq://d/q", read=True, priority=1)
    assert client.payloads() + other.payloads() == [b"1", b"2"]


def test_clients_that_say_that_they_go_are_not_counted_as_lost() -> None:
    bench = Bench(domains={"d": Domain(max_delivery_attempts=1)})
    bench.start().open("bmq://d/q", write=True).post(b"x")
    for _ in range(3):
        client = bench.start().open("bmq://d/q", read=True)
        assert client.payloads() == [b"x"]
        client.disconnect()
    node_stops = bench.start().open("bmq://d/q", read=True)
    bench.broker.stop_node(bench.broker.nodes[0])
    node_stops.session.closed(bench.now)
    bench.broker.start_node(bench.broker.nodes[0])
    assert bench.start().open("bmq://d/q", read=True).payloads() == [b"x"]


def test_an_operator_has_everything_delivered_again() -> None:
    bench = Bench()
    client = both(bench)
    posted = [client.post(b"%d" % number) for number in range(3)]
    client.confirm(posted[0])
    client.frames()
    bench.broker.queue(Q).redeliver()
    bench.broker.flush()
    assert [(push.data, push.out_of_order) for push in client.pushes()] == [(b"1", True), (b"2", True)]


def test_what_was_taken_back_counts_no_more_against_the_limits() -> None:
    bench = Bench()
    client = both(bench)
    client.configure(take=100, number=2, max_bytes=10)
    for _ in range(3):
        client.post(b"12345")
    assert len(client.pushes()) == 2
    queue = bench.broker.queue(Q)
    for _ in range(2):
        queue.redeliver()
        bench.broker.flush()
        assert len(client.pushes()) == 2


def test_what_is_purged_is_not_held_on_to() -> None:
    bench = Bench()
    wanted = bench.start().open(read=True, take=None)
    wanted.configure(text="x == 1", take=1)
    producer = bench.start().open(write=True)
    for x in (1, 1, 2):
        producer.post(b"data", properties={"x": x})
    queue = bench.broker.queue(Q)
    held = list(queue.messages.values())
    assert queue.purge() == 3
    wanted.close(read=True)
    gc.collect()
    assert [one for one in gc.get_referrers(*held) if not isinstance(one, tuple)] == [held]  # of this call


def test_ages_are_counted_in_whole_seconds() -> None:
    """Of the clock: what came at 0.9 s and what came at 0.1 s are of the same age at 2.0 s."""
    bench = Bench(domains={"d": Domain(message_ttl_s=1)})
    producer = bench.start().open("bmq://d/q", write=True)
    for data in (b"a", b"b"):
        bench.advance(0.1 if data == b"a" else 0.8)
        producer.post(data)
    bench.advance(1.05)  # 1.95
    assert bench.start().open("bmq://d/q", read=True, take=1).payloads() == [b"a"]
    bench.advance(0.1)  # 2.05
    assert bench.start().open("bmq://d/q", read=True).payloads() == []


def test_old_messages_go_when_the_queue_is_used_or_within_five_seconds() -> None:
    bench = Bench(domains={"d": Domain(message_ttl_s=1)})
    producer = bench.start().open("bmq://d/q", write=True)
    queue = bench.broker.queue("bmq://d/q")
    producer.post(b"a")
    bench.advance(4)
    assert len(queue.messages) == 1
    producer.post(b"b")
    assert [each.data for each in queue.messages.values()] == [b"b"]
    bench.advance(1)  # 5.0: b is not old enough
    assert len(queue.messages) == 1
    bench.advance(4.9)
    assert len(queue.messages) == 1
    bench.advance(0.1)
    assert not queue.messages


def test_of_what_cannot_be_used_nothing_is_answered() -> None:
    """A message without data ends the event, as one that cannot be read does."""
    client = Bench().start().open(write=True)
    client.send(Put((put(b"1", number=1), put(b"", number=2), put(b"3", number=3))))
    assert client.statuses() == [0]
    client.post(b"4", number=4)
    assert client.statuses() == [0]


# fanout and broadcast


def test_each_app_gets_every_message_and_one_client_gets_it_once() -> None:
    bench = Bench()
    both_apps, bar = bench.start(), bench.start().open(FANOUT, 4, read=True, app="bar", sub_id=1)
    for sub_id, app in ((1, "foo"), (2, "bar")):
        both_apps.open(FANOUT, read=True, app=app, sub_id=sub_id)
    producer = bench.start().open(FANOUT, write=True)
    first, second = producer.post(b"1"), producer.post(b"2")
    found = {push.data: [info.number for info in read_options(push.options)] for push in both_apps.pushes()}
    assert found == {b"1": [1], b"2": [1, 2]}
    assert [(push.data, push.queue_id) for push in bar.pushes()] == [(b"1", 4)]
    both_apps.confirm(first, second, sub_id=1)
    both_apps.confirm(second, sub_id=2)
    bar.confirm(first, q_id=4)  # needs the number of the app
    queue = bench.broker.queue(FANOUT)
    assert {message.data: message.waiting for message in queue.messages.values()} == {
        b"1": {"bar", "baz"},
        b"2": {"baz"},
    }
    bar.confirm(first, q_id=4, sub_id=1)
    assert queue.purge("baz") == 2
    assert not queue.messages


def test_an_app_that_the_domain_does_not_list_gets_nothing() -> None:
    bench = Bench(domains={"d": Domain("fanout", ("a",))})
    stranger = bench.start().open("bmq://d/q", read=True, app="b", sub_id=1)
    producer = bench.start().open("bmq://d/q", write=True)
    producer.post(b"1")
    assert stranger.frames() == []
    queue = bench.broker.queue("bmq://d/q")
    assert [message.waiting for message in queue.messages.values()] == [{"a"}]
    stranger.close("bmq://d/q", read=True, app="b", sub_id=1)
    assert list(queue.apps) == ["a"]
    stranger.open("bmq://d/q", read=True, app="b", sub_id=1)
    bench.broker.configure_domain("d", {"mode": "fanout", "app_ids": ("a", "b")})
    producer.post(b"2")
    assert stranger.payloads() == [b"2"]


def test_broadcast_goes_to_all_who_are_there() -> None:
    bench = Bench()
    producer = bench.start().open(BROADCAST, write=True)
    producer.post(b"nobody")
    assert producer.statuses() == [0]
    consumers = [bench.start().open(BROADCAST, read=True, priority=priority) for priority in (2, 2, 1)]
    posted = producer.post(b"all")
    assert [consumer.payloads() for consumer in consumers] == [[b"all"], [b"all"], []]
    consumers[0].confirm(posted)
    consumers[0].leave()
    assert [consumer.payloads() for consumer in consumers[1:]] == [[], []]
    assert not bench.broker.queue(BROADCAST).messages


# subscriptions


def test_messages_go_by_their_properties() -> None:
    bench = Bench()
    big = bench.start().open(read=True, take=None)
    big.configure(number=7, text="amount > 100")
    small = bench.start().open(read=True, take=None)
    small.configure(number=8, text="amount <= 100")
    producer = bench.start().open(write=True)
    for amount in (50, 200, 100):
        producer.post(b"%d" % amount, properties={"amount": amount})
    producer.post(b"plain")
    assert [len(big.pushes()), len(small.pushes())] == [1, 2]
    rest = bench.start().open(read=True, take=5)
    (push,) = rest.pushes()
    assert (push.data, push.out_of_order) == (b"plain", True)


def test_several_subscriptions_of_one_consumer() -> None:
    bench = Bench()
    client = bench.start().open(read=True, write=True, take=None)
    parts = (subscription(1, "x == 1", take=1), subscription(2, "x == 2"), subscription(3, priority=-1))
    client.ask(ConfigureStream, 0, StreamParameters("__default", parts))
    for x in (1, 2, 3, 1, 2, 1):
        client.post(b"%d" % x, properties={"x": x})
    numbers = [read_options(push.options)[0].number for push in client.pushes()]
    # the fourth message finds the first one full, and waits; the sixth goes to the next that wants it
    assert numbers == [1, 2, 3, 2, 3]


def test_groups_of_one_priority_are_asked_in_the_order_of_their_subscriptions() -> None:
    """Who has an expression with a lower priority, and longer, does not bring it forward."""
    bench = Bench()
    bench.start().open(read=True, take=None).configure(number=9, priority=0)
    client = bench.start().open(read=True, write=True, take=None)
    parts = (subscription(1, "exists(x)", priority=1), subscription(2, priority=1))
    client.ask(ConfigureStream, 0, StreamParameters("__default", parts))
    for properties in ({"x": 1}, {}):
        client.post(b"data", properties=properties)
    assert [read_options(push.options)[0].number for push in client.pushes()] == [1, 2]


def test_what_came_back_and_nobody_wants_keeps_the_others_waiting() -> None:
    bench = Bench()
    one, other = bench.start().open(read=True, take=None), bench.start().open(read=True, take=None)
    one.configure(text="x == 1")
    other.configure(text="x == 2")
    producer = bench.start().open(write=True)
    producer.post(b"1", properties={"x": 1})
    one.leave()
    producer.post(b"2", properties={"x": 2})
    other.configure(text="x == 2", number=2)
    assert other.pushes() == []
    other.configure(number=3)
    assert len(other.pushes()) == 2


def test_while_what_came_back_waits_for_room_what_is_new_waits_too() -> None:
    bench = Bench()
    first, one, other = [bench.start().open(read=True, take=None) for _ in range(3)]
    first.configure(text="x == 1")
    one.configure(text="x == 1", take=1, priority=-1)
    other.configure(text="x == 2", take=1)
    producer = bench.start().open(write=True)
    for x in (1, 1, 2):
        producer.post(b"data", properties={"x": x})
    first.leave()
    producer.post(b"data", properties={"x": 2})
    (back,), (held,) = one.pushes(), other.pushes()
    other.confirm(held)
    assert other.pushes() == []
    one.confirm(back)
    assert [one.pushes(), other.pushes()] == [[], []]  # passed over while its group was full: unwanted
    one.configure(number=2, text="x == 1", take=1, priority=-1)
    assert [len(one.pushes()), len(other.pushes())] == [1, 1]


@pytest.mark.parametrize("leaves", [True, False])
def test_after_a_client_is_gone_what_waits_is_tried_twice(leaves: bool) -> None:
    """By then a group of a higher priority has been found full; a close alone tries it once."""
    bench = Bench()
    one, lower, higher = [bench.start().open(read=True, take=None) for _ in range(3)]
    one.configure()
    producer = bench.start().open(write=True)
    producer.post(b"1")
    producer.post(b"2", properties={"x": 2})
    lower.configure(text="x == 2", priority=1)
    higher.configure(max_bytes=0, priority=2)
    if leaves:
        one.disconnect()
    else:
        one.close(read=True)
    assert [len(lower.pushes()), len(higher.pushes())] == [int(leaves), 0]


def test_what_is_no_expression_takes_everything() -> None:
    client = both(Bench())
    client.configure(number=2, text="this is none")
    client.post(b"x")
    assert client.payloads() == [b"x"]


# what differs between clients


def test_new_properties_are_made_old_for_those_who_cannot_read_them() -> None:
    bench = Bench()
    old = bench.start(replace(CPP, features="PROTOCOL_ENCODING:BER")).open(read=True)
    new = bench.start().open(read=True)
    producer = bench.start().open(write=True)
    for number in range(2):
        producer.post(b"payload", number=number + 1, properties={"k": "v", "n": number})
    (for_old,), (for_new,) = old.pushes(), new.pushes()
    assert (for_old.schema_id, for_new.schema_id) == (0, 1)
    for push in (for_old, for_new):
        content = read_content(
            push.data, has_properties=True, schema_id=push.schema_id, compression=push.compression
        )
        assert (content.payload, content.properties["k"].value) == (b"payload", "v")


def test_compressed_payloads_are_forwarded_as_they_are() -> None:
    client = both(Bench())
    packed = zlib.compress(b"x" * 2000)
    client.send(Put((replace(put(packed), compression=Compression.ZLIB),)))
    (push,) = client.pushes()
    assert (push.data, push.compression) == (packed, Compression.ZLIB)


@pytest.mark.parametrize("form", PushOption)
def test_forms_of_the_option(form: PushOption) -> None:
    client = both(Bench(replace(REAL, push_option=form)))
    client.post(b"x")
    (push,) = client.pushes()
    assert read_options(push.options) == (SubscriptionInfo(1),)


def test_a_client_that_does_not_read_gets_nothing_until_it_does() -> None:
    bench = Bench()
    slow, other = bench.start().open(read=True), bench.start().open(read=True)
    producer = bench.start().open(write=True)
    slow.writable = False
    for number in range(3):
        producer.post(b"%d" % number)
    assert (slow.payloads(), other.payloads()) == ([], [b"0", b"1", b"2"])
    other.ask(Disconnect)
    assert slow.payloads() == []
    slow.writable = True
    slow.session.writable(bench.now)
    assert slow.payloads() == [b"0", b"1", b"2"]


def test_a_broadcast_to_a_client_that_does_not_read_waits() -> None:
    bench = Bench()
    client = both(bench, BROADCAST)
    client.writable = False
    client.post(b"x")
    assert client.statuses() == [0]
    client.writable = True
    client.session.writable(bench.now)
    assert client.payloads() == [b"x"]
