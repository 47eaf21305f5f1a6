"""What a real RabbitMQ 4.3.6 answers where the fake once said something else, case by case.

The expected values are the real server's, taken by sending the same commands to both.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.binary import pack_ids, unpack_ids
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Create,
    CreateSuperStream,
    Credit,
    DeclarePublisher,
    Delete,
    DeleteSuperStream,
    Deliver,
    ExchangeCommandVersions,
    Open,
    OpenResponse,
    Partitions,
    PartitionsResponse,
    PeerProperties,
    PublishConfirm,
    PublishError,
    QueryOffset,
    QueryPublisherSequence,
    Route,
    RouteResponse,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    StoreOffset,
    StreamStats,
    StreamStatsResponse,
    SubscribeResponse,
    Tune,
)
from fakebrokers.rabbitmq_stream.profile import V3_10, V4_3, Profile
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions
from tests.rabbitmq_stream.bench import EOF, PLAIN, SAC, Bench, Client, publishing, subscribe, with_stream

SUPER = CreateSuperStream(5, "super", ("super-0", "super-1"), ("0", "1"), {})


def codes(client: Client) -> list[int]:
    """The codes in the answers that came since the last call."""
    return [frame.code for frame in client.frames()]  # type: ignore[attr-defined]


def member(number: int, stream: str = "super-1", super_stream: str | None = "super") -> Frame:
    """A Subscribe as a single active consumer."""
    named = {} if super_stream is None else {"super-stream": super_stream}
    return subscribe(number, stream=stream, properties={**SAC, **named})


# --- declaring ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "again", "code"),
    [
        ({}, {}, 5),
        ({}, {"stream-filter-size-bytes": "16"}, 17),
        ({}, {"stream-max-segment-size-bytes": "500000000"}, 17),
        ({"stream-filter-size-bytes": "16"}, {"stream-filter-size-bytes": "+16"}, 5),
        ({"max-age": "1h"}, {"max-age": "60m"}, 17),
        ({}, {"unknown": "1"}, 5),
    ],
)
def test_naming_a_default_is_another_declaration(
    first: dict[str, str], again: dict[str, str], code: int
) -> None:
    client = Bench().open()
    client.send(Create(1, "s", first), Create(2, "s", again))
    assert codes(client) == [1, code]


@pytest.mark.parametrize(("size", "code"), [("3000000000", 1), ("3000000001", 17)])
def test_a_segment_has_at_most_3_gigabytes(size: str, code: int) -> None:
    client = Bench().open()
    client.send(Create(1, "s", {"stream-max-segment-size-bytes": size}))
    assert codes(client) == [code]


@pytest.mark.parametrize(
    ("partitions", "arguments", "code"),
    [
        (("p",), {"queue-leader-locator": "bad"}, 15),
        (("p",), {"stream-filter-size-bytes": "256"}, 15),
        (("p",), {"stream-max-segment-size-bytes": "3000000001"}, 15),
        ((), {"queue-leader-locator": "bad"}, 1),
        ((), {}, 1),
    ],
)
def test_super_streams_with_bad_arguments_or_without_partitions(
    partitions: tuple[str, ...], arguments: dict[str, str], code: int
) -> None:
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", partitions, ("0",) * len(partitions), arguments))
    assert codes(client) == [code]


def test_a_super_stream_without_partitions_exists() -> None:
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", (), (), {}), CreateSuperStream(2, "super", (), (), {}))
    assert codes(client) == [1, Code.STREAM_ALREADY_EXISTS]


def test_rights_on_super_streams_are_looked_at_after_the_name_and_the_existence() -> None:
    bench = Bench()
    permission = bench.broker.access.users["guest"].permissions["/"]
    permission.read = permission.write = ""
    client = bench.open()
    client.send(DeleteSuperStream(1, "unknown"))
    permission.configure = ""
    client.send(CreateSuperStream(2, "", ("p",), ("0",), {}), DeleteSuperStream(3, "unknown"))
    assert codes(client) == [2, 17, 16]


# --- single active consumers ----------------------------------------------------------------------


def two_clients(bench: Bench) -> tuple[Client, Client]:
    first = with_stream(bench)
    first.send(SUPER)
    first.sent.clear()
    return first, bench.open()


def test_a_partition_keeps_its_index_when_a_lower_one_is_deleted() -> None:
    first, second = two_clients(Bench())
    first.send(Delete(6, "super-0"), member(1))
    first.send(ConsumerUpdateResponse(0, 1, 0, None))
    first.sent.clear()
    second.send(member(1))
    assert first.only(ConsumerUpdate).active == 0
    assert second.only(SubscribeResponse).code == 1


def test_members_of_a_group_name_the_same_partition_or_none() -> None:
    first, second = two_clients(Bench())
    first.send(member(1, super_stream=None))
    second.send(member(1), member(2, super_stream="unknown"))
    assert codes(second) == [17, 1]
    assert list(second.session.describe()["subscriptions"]) == [2]


def test_who_steps_down_is_told_again_when_another_one_joins() -> None:
    bench = Bench()
    first, second = two_clients(bench)
    third = bench.open()
    first.send(member(1))
    first.sent.clear()
    second.send(member(1))
    third.send(member(1))
    assert first.frames() == [ConsumerUpdate(1, 1, 0), ConsumerUpdate(2, 1, 0)]
    first.send(ConsumerUpdateResponse(1, 1, 0, None), ConsumerUpdateResponse(2, 1, 0, None))
    assert second.frames()[1:] == [ConsumerUpdate(0, 1, 1)]
    assert [type(frame) for frame in third.frames()] == [SubscribeResponse]


# --- segments, retention and tracking -------------------------------------------------------------

#: what is done, and the chunk ids of StreamStats behind it: first retained, last
Steps = list[tuple[str, int, tuple[int, int]]]
#: chunk type, chunk id, trailer and data of a tracking chunk
Row = tuple[int, int, str, str]

SEQUENCE_3 = "0002723100000000000000030000000000000004"
ROLLS: dict[str, tuple[dict[str, str], Steps, list[Row]]] = {
    # 8 + 3 * (48 + 104 + 12) = 500 bytes are a full segment
    "trailers count": (
        {"stream-max-segment-size-bytes": "500"},
        [
            ("r1", 100, (0, 0)),
            ("r1", 100, (0, 1)),
            ("r1", 100, (0, 2)),
            ("r1", 100, (0, 4)),
            ("r1", 100, (0, 5)),
            ("r1", 100, (0, 6)),
        ],
        [
            (0, 0, "000272310000000000000001", ""),
            (0, 1, "000272310000000000000002", ""),
            (0, 2, "000272310000000000000003", ""),
            (2, 3, "", "00000014" + SEQUENCE_3),
            (0, 4, "", ""),
            (0, 5, "000272310000000000000005", ""),
            (0, 6, "000272310000000000000006", ""),
            (2, 7, "", "000000140002723100000000000000060000000000000006"),
        ],
    ),
    "an offset closes a segment": (
        {"stream-max-segment-size-bytes": "300"},
        [("", 100, (0, 0)), ("", 100, (0, 1)), ("store", 1, (0, 2)), ("", 50, (0, 3))],
        [(0, 0, "", ""), (0, 1, "", ""), (2, 2, "", "0000000c010263310000000000000001"), (0, 3, "", "")],
    ),
    "offsets in front of sequences": (
        {"stream-max-segment-size-bytes": "300"},
        [
            ("r1", 100, (0, 0)),
            ("r1", 100, (0, 1)),
            ("store", 1, (0, 2)),
            ("r1", 50, (0, 3)),
            ("r1", 50, (0, 4)),
            ("r1", 50, (0, 6)),
        ],
        [
            (0, 0, "000272310000000000000001", ""),
            (0, 1, "000272310000000000000002", ""),
            (2, 2, "", "000000200102633100000000000000010002723100000000000000010000000000000002"),
            (0, 3, "000272310000000000000003", ""),
            (0, 4, "000272310000000000000004", ""),
            (2, 5, "", "000000200102633100000000000000010002723100000000000000050000000000000005"),
            (0, 6, "", ""),
        ],
    ),
    "the message behind a snapshot counts for retention": (
        {"stream-max-segment-size-bytes": "300", "max-length-bytes": "500"},
        [
            ("r1", 25, (0, 0)),
            ("r1", 5, (0, 1)),
            ("r1", 5, (0, 2)),
            ("r1", 105, (0, 3)),
            ("r1", 105, (4, 5)),
            ("r1", 105, (4, 6)),
            ("r1", 105, (7, 8)),
        ],
        [(2, 7, "", "000000140002723100000000000000070000000000000007"), (0, 8, "", "")],
    ),
}


@pytest.mark.parametrize("case", ROLLS)
def test_segments_are_closed_and_dropped(case: str) -> None:
    arguments, steps, expected = ROLLS[case]
    bench = Bench()
    client = bench.open()
    client.send(Create(1, "s", arguments), DeclarePublisher(2, 1, "r1", "s"), DeclarePublisher(3, 2, "", "s"))
    publishing_id = 0
    for what, size, (first, last) in steps:
        if what == "store":
            client.send(StoreOffset("c1", "s", size))
        else:
            publishing_id += 1
            client.send(publish(1 if what else 2, [(publishing_id, b"z" * size)]))
        bench.advance(0.1)
        client.sent.clear()
        client.send(StreamStats(4, "s"))
        assert client.only(StreamStatsResponse).stats == {
            "committed_chunk_id": last,
            "committed_offset": last,
            "first_chunk_id": first,
            "last_chunk_id": last,
        }
    client.send(subscribe(1, credit=100, properties={"chunk_selector": "all"}))
    assert [row(frame) for frame in client.frames() if isinstance(frame, Deliver)] == expected


def row(frame: Deliver) -> Row:
    chunk = frame.chunk
    size = len(chunk.data) if chunk.data_length is None else chunk.data_length
    data, trailer = chunk.data[:size], chunk.data[size:]
    assert len(trailer) == chunk.trailer_length
    return chunk.chunk_type, chunk.first_offset, trailer.hex(), data.hex() if chunk.chunk_type else ""


def test_questions_to_the_writer_close_a_full_segment() -> None:
    bench = Bench()
    client = bench.open()
    client.send(Create(1, "s", {"stream-max-segment-size-bytes": "100"}), DeclarePublisher(2, 1, "r1", "s"))
    for number, question in enumerate((QueryOffset(3, "c", "s"), QueryPublisherSequence(4, "r1", "s"))):
        client.send(publish(1, [(number, b"z" * 100)]))
        assert bench.broker.stream("s").log.last_chunk_id == 2 * number
        client.send(question)
        assert bench.broker.stream("s").log.last_chunk_id == 2 * number + 1


def test_a_reader_goes_on_in_the_segment_that_was_dropped_under_it() -> None:
    bench = Bench()
    client = bench.open()
    client.send(
        Create(1, "s", {"stream-max-segment-size-bytes": "300", "max-length-bytes": "300"}),
        DeclarePublisher(2, 1, "", "s"),
        *[publish(1, [(number, b"z" * 100)]) for number in range(2)],
        subscribe(1, credit=1),
        *[publish(1, [(number, b"z" * 100)]) for number in range(2, 7)],
    )
    assert bench.broker.stream("s").log.first_offset == 6
    client.send(Credit(1, 10))
    assert [one.chunk.first_offset for one in client.frames() if isinstance(one, Deliver)] == [0, 1, 6]


@pytest.mark.parametrize(("value", "bloom_size"), [("", 0), ("a", 16)])
def test_the_empty_filter_value_is_none(value: str, bloom_size: int) -> None:
    bench = Bench()
    client = publishing(bench)
    client.send(publish(1, [(1, b"x")], [value]), subscribe(1, properties={"filter.x": value}))
    (chunk,) = [frame.chunk for frame in client.frames() if isinstance(frame, Deliver)]
    assert chunk.bloom_size == bloom_size
    client.send(subscribe(2, properties={"filter.x": "a" if value == "" else ""}))
    assert not [frame for frame in client.frames() if isinstance(frame, Deliver)]


# --- chunks and segments of TCP -------------------------------------------------------------------


def test_a_long_publish_is_cut_as_a_busy_writer_does() -> None:
    bench = Bench()
    client = publishing(bench, "r")
    client.send(publish(1, [(number, b"x") for number in range(2000)]))
    chunks = list(bench.broker.stream("s").log)
    assert [chunk.records for chunk in chunks] == [32, 64, 128, 256, 512, 1008]
    confirms = [frame.publishing_ids for frame in client.frames() if isinstance(frame, PublishConfirm)]
    assert [len(unpack_ids(ids)) for ids in confirms] == [32, 64, 128, 256, 512, 1008]
    assert unpack_ids(b"".join(confirms)) == tuple(range(2000))
    # each chunk has the sequence that it reaches
    trailers = [bench.broker.stream("s").log.trailer_of(chunk.first_offset) for chunk in chunks]
    assert [int.from_bytes(trailer[-8:], "big") for trailer in trailers] == [31, 95, 223, 479, 991, 1999]


def test_a_publish_of_32_messages_is_one_chunk() -> None:
    bench = Bench()
    client = publishing(bench)
    client.send(publish(1, [(number, b"x") for number in range(32)]))
    assert len(bench.broker.stream("s").log) == 1


def test_the_first_chunk_comes_a_little_after_the_answer_to_subscribe() -> None:
    bench = Bench(first_delivery_delay_s=V4_3.first_delivery_delay_s)
    client = with_stream(bench, messages=2)
    client.send(subscribe(1))
    assert [type(frame) for frame in client.frames()] == [SubscribeResponse]
    bench.advance(V4_3.first_delivery_delay_s)
    assert [type(frame) for frame in client.frames()] == [Deliver, Deliver]
    assert V4_3.first_delivery_delay_s > 0


# --- frames that a server cannot read, or not to their end ------------------------------------------


@pytest.mark.parametrize("key", [0, 32, 99])
def test_naming_a_command_that_the_server_does_not_know_ends_the_connection(key: int) -> None:
    client = Bench().open()
    client.send(ExchangeCommandVersions(7, (CommandVersions(key, 1, 1),)))
    assert [sent.data for sent in client.sent] == [EOF]


def test_publishing_nothing_to_an_unknown_publisher_is_refused() -> None:
    client = Bench().open()
    client.send(publish(9, []))
    assert client.only(PublishError) == PublishError(9, ())


def test_flow_control_believes_the_count_in_a_publish() -> None:
    bench = Bench()
    client = publishing(bench)
    client.send(replace(publish(1, [(1, b"x")]), claimed=2**31))
    assert not client.reading
    assert client.only(PublishConfirm).publishing_ids == pack_ids([1])


@pytest.mark.parametrize(
    ("values", "cut", "stored"),
    [((), 1, 2), ((), 4 + len(b"three"), 2), ((), 17 + 4 + len(b"two"), 1), (("a", "b", "c"), 1, 2)],
)
def test_what_stands_in_front_of_the_damage_is_stored(values: tuple[str, ...], cut: int, stored: int) -> None:
    bench = Bench()
    client = publishing(bench)
    whole = client.codec.encode(publish(1, [(1, b"one"), (2, b"two"), (3, b"three")], values))
    client.send(len(whole[4:-cut]).to_bytes(4, "big") + whole[4:-cut])
    assert [sent.data for sent in client.sent] == [EOF]
    assert [one.body for one in bench.broker.stream("s").messages()] == [b"one", b"two"][:stored]


def answered(key: int, data: str, profile: Profile = V4_3) -> object:
    """What a server does when it is sent an answer: the code in its Close, or the end."""
    client = Bench(profile).open()
    body = (0x8000 | key).to_bytes(2, "big") + b"\0\1" + bytes.fromhex(data)
    client.send(len(body).to_bytes(4, "big") + body)
    frames = client.frames()
    return frames[0].code if frames else client.ended  # type: ignore[attr-defined]


#: command, what stands behind the version, and whether it crashes 4.3.6 and 3.10.8
ANSWERS = [
    (0x00, "000000070001", True, True),  # a code alone, of no command
    (0x01, "000000070001", False, False),
    (0x20, "000000070001", True, True),
    (0x01, "00000007", False, True),  # a shape without a rule
    (0x16, "00000007000100", False, True),
    (0x0F, "00000007000100000000", True, True),  # MetadataResponse
    (0x0F, "000000070000000000000000", False, False),
    (0x11, "000000070001000000010005" + "61", True, True),
    (0x11, "00000007000100000001000161000162", False, False),
    (0x13, "0000000700010161", True, True),
    (0x14, "00000007000178", False, True),
    (0x15, "000000070001000000010005" + "61", True, True),
    (0x19, "000000070001000000010001" + "61", False, False),
    (0x1A, "00000007000100", False, True),
    (0x1A, "0000000700010009", True, True),
    (0x1B, "00000007000100000001006300010001", True, True),
    (0x1C, "000000070001000000010001" + "61", True, True),
    (0x1F, "00000007000100000001", False, True),
]


@pytest.mark.parametrize(("key", "data", "crashes", "_"), ANSWERS)
def test_answers_that_nobody_asked_for(key: int, data: str, crashes: bool, _: bool) -> None:
    assert answered(key, data) == (True if crashes else Code.UNKNOWN_FRAME)


@pytest.mark.parametrize(("key", "data", "_", "crashes"), ANSWERS)
def test_answers_that_nobody_asked_3_10_for(key: int, data: str, _: bool, crashes: bool) -> None:
    assert answered(key, data, V3_10) == (True if crashes else Code.UNKNOWN_FRAME)


@pytest.mark.parametrize(
    "body",
    [
        "00020002" + "01" + "00000001" + "0000000000000001" + "ffff" + "000000",  # Publish 2, cut
        "001f0001" + "00000007" + "000161" + "0001" + "ffffffff",  # ResolveOffsetSpec, a null map
    ],
)
def test_3_10_does_not_look_into_commands_that_it_does_not_know(body: str) -> None:
    client = Bench(V3_10).open()
    client.send((len(body) // 2).to_bytes(4, "big") + bytes.fromhex(body))
    assert client.only(Close).code == Code.UNKNOWN_FRAME


@pytest.mark.parametrize(("profile", "closed"), [(V4_3, [Code.UNKNOWN_FRAME]), (V3_10, [])])
def test_a_frame_of_one_byte(profile: Profile, closed: list[int]) -> None:
    client = Bench(profile).open()
    client.send(b"\0\0\0\1\0")
    assert codes(client) == closed
    assert client.ended is (not closed)


# --- sizes and times --------------------------------------------------------------------------------


@pytest.mark.parametrize(("heartbeat", "ended"), [(4_294_967, False), (16_777_216, True)])
def test_a_heartbeat_interval_has_to_fit_a_timer(heartbeat: int, ended: bool) -> None:
    client = Bench().connect().handshake("tuning")
    client.send(Tune(0, heartbeat))
    assert client.ended is ended


@pytest.mark.parametrize(("profile", "code"), [(V4_3, 17), (V3_10, 1)])
def test_a_long_name_of_a_consumer(profile: Profile, code: int) -> None:
    client = with_stream(Bench(profile))
    client.send(subscribe(1, properties={"name": "n" * 256}))
    assert codes(client) == [code]


@pytest.mark.parametrize(("profile", "ended"), [(V4_3, False), (V3_10, True)])
def test_a_long_reference_of_a_stored_offset(profile: Profile, ended: bool) -> None:
    client = with_stream(Bench(profile))
    client.send(StoreOffset("r" * 256, "s", 1))
    assert client.ended is ended


@pytest.mark.parametrize(
    ("profile", "age", "ended"),
    [
        *[(V3_10, age, True) for age in ("", "-1s", "x")],
        *[(V3_10, age, False) for age in ("1", "0s", "1 fortnight")],
        *[(V4_3, age, False) for age in ("", "-1s", "x")],
    ],
)
def test_an_age_that_does_not_begin_with_a_number(profile: Profile, age: str, ended: bool) -> None:
    client = Bench(profile).connect().handshake()
    client.frames()
    client.send(Create(9, "s", {"max-age": age}))
    assert (codes(client), client.ended) == ([] if ended else [1], ended)


@pytest.mark.parametrize(
    ("exchange", "key", "code", "streams"),
    [
        *[("", "s", 1, ("s",)), ("", "", 1, ()), ("", "nope", 1, ())],
        *[("amq.topic", "s", 1, ()), ("amq.direct", "", 1, ()), ("amq.x", "s", 2, ()), ("s", "s", 2, ())],
    ],
)
def test_exchanges_count_as_super_streams(
    exchange: str, key: str, code: int, streams: tuple[str, ...]
) -> None:
    client = with_stream(Bench(V3_10))
    client.send(Route(9, key, exchange))
    assert client.frames() == [RouteResponse(9, code, streams)]
    bound = ("s",) if exchange == "" else ()
    client.send(Partitions(10, exchange))
    assert client.frames() == [PartitionsResponse(10, code, bound)]


@pytest.mark.parametrize(("profile", "sent"), [(V3_10, [0, 1, 2]), (V4_3, [])])
def test_a_credit_below_0(profile: Profile, sent: list[int]) -> None:
    """3.10.8 sends as long as the credit is not 0; later ones only while it is above a limit."""
    client = with_stream(Bench(profile), messages=3)
    client.send(subscribe(credit=0))
    client.frames()
    client.send(Credit(1, -1))
    assert [frame.first_offset for frame in client.frames() if isinstance(frame, Deliver)] == sent


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        *[("0003000101" + "00000001" + "00" * size, size % 8 > 0) for size in (0, 7, 8, 9, 16)],
        *[("0004000101" + "00000001" + "00" * size, size not in (10, 20)) for size in (0, 9, 10, 20)],
        ("00030001010000", False),  # too short to be one
        ("0010000100060002" + "6162", False),
    ],
)
def test_confirms_from_a_client_are_read_before_they_are_unknown(body: str, ended: bool) -> None:
    """3.10.8 [M for 3]; the rule is the same in all versions."""
    client = Bench().connect().handshake()
    client.frames()
    client.send((len(body) // 2).to_bytes(4, "big") + bytes.fromhex(body))
    assert client.ended is ended
    assert [frame.code for frame in client.frames() if isinstance(frame, Close)] == ([] if ended else [13])


# --- logging in -------------------------------------------------------------------------------------


def test_plain_with_an_authorization_id_is_malformed() -> None:
    client = Bench().connect().handshake("authenticating")
    client.send(SaslAuthenticate(3, "PLAIN", b"guest\0guest\0guest"))
    assert client.only(SaslAuthenticateResponse).code == Code.SASL_ERROR
    assert client.ended


@pytest.mark.parametrize("data", [b"\5LOG", PLAIN, b"\5LOGINS\0\0\0\5guest\1x?"])
def test_data_of_amqplain_that_is_no_table_ends_the_connection(data: bytes) -> None:
    """3.10.8 [M]; the later ones read it in the same way."""
    client = Bench().connect().handshake("authenticating")
    client.frames()
    client.send(SaslAuthenticate(3, "AMQPLAIN", data))
    assert (client.frames(), client.ended) == ([], True)


def test_a_login_in_front_of_everything_is_answered_and_there_is_no_tune() -> None:
    client = Bench().connect()
    client.send(SaslAuthenticate(3, "PLAIN", PLAIN))
    assert client.only(SaslAuthenticateResponse).code == Code.OK
    assert client.ended


def test_open_without_the_clients_tune() -> None:
    client = Bench().connect().handshake("tuning")
    client.send(Open(4, "/"))
    assert client.only(OpenResponse).code == Code.OK


def test_peer_properties_twice() -> None:
    client = Bench().connect()
    client.send(PeerProperties(1, {}), PeerProperties(2, {}))
    assert codes(client) == [1, 1]
    assert not client.ended
