"""The handshake, logging in again, heartbeats and the end (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

import msgspec
import pytest

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    Create,
    Heartbeat,
    Open,
    OpenResponse,
    PeerProperties,
    PeerPropertiesResponse,
    Request,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
    Tune,
)
from fakebrokers.rabbitmq_stream.profile import V3_10, V4_0, V4_3, Profile
from tests.rabbitmq_stream.bench import (
    EOF,
    HANDSHAKE,
    PLAIN,
    Bench,
    times,
)


def test_a_whole_handshake() -> None:
    client = Bench().connect()
    for _, frame in HANDSHAKE:
        client.send(frame)
    kinds = [type(frame) for frame in client.frames()]
    assert kinds == [
        PeerPropertiesResponse,
        SaslHandshakeResponse,
        SaslAuthenticateResponse,
        Tune,
        OpenResponse,
    ]
    assert client.is_ready
    assert client.session.describe()["client_properties"] == {"product": "bench"}


@pytest.mark.parametrize("state", [state for state, _ in HANDSHAKE])
def test_each_step_of_the_handshake_has_ten_seconds(state: str) -> None:
    bench = Bench()
    client = bench.connect()
    for before, frame in HANDSHAKE:
        bench.advance(9.0)
        if before == state:
            break
        client.send(frame)
    assert not client.ended
    client.sent.clear()
    bench.advance(20.0)
    start = 9.0 * [one for one, _ in HANDSHAKE].index(state)
    assert client.sent == [(start + 10.0, EOF)]


def test_an_open_connection_has_no_limit() -> None:
    bench = Bench()
    client = bench.open(heartbeat=0)
    bench.advance(1000.0)
    assert client.sent == []


@pytest.mark.parametrize(
    ("state", "frame"),
    [
        ("connected", SaslAuthenticate(1, "PLAIN", PLAIN)),
        ("authenticating", PeerProperties(1, {})),
        ("tuning", SaslAuthenticate(1, "PLAIN", PLAIN)),
        ("tuned", SaslHandshake(1)),
        ("connected", SaslHandshake(1)),
        ("introduced", SaslAuthenticate(1, "PLAIN", PLAIN)),
    ],
)
def test_a_step_out_of_order_is_answered_and_then_the_connection_ends(state: str, frame: Request) -> None:
    client = Bench().connect().handshake(state)
    client.send(frame)
    assert client.ended
    (answer,) = client.frames()  # after a login no Tune either
    assert answer.correlation_id == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("state", "frame"),
    [
        ("connected", Open(1, "/")),
        ("connected", Tune(0, 0)),
        ("introduced", Open(1, "/")),
        ("tuned", Create(1, "s", {})),
        ("connected", Close(1, 1, "bye")),
        ("tuning", Close(1, 1, "bye")),
        ("introduced", b"\0\0\0\2\0\1"),
    ],
)
def test_other_frames_end_an_unfinished_handshake_at_once(state: str, frame: Frame | bytes) -> None:
    client = Bench().connect().handshake(state)
    client.send(frame)
    assert [sent.data for sent in client.sent] == [EOF]


REPEATED = [
    ("introduced", PeerProperties(1, {})),
    ("authenticating", SaslHandshake(1)),
    ("tuned", Tune(0, 0)),
]


@pytest.mark.parametrize(("state", "frame"), REPEATED)
def test_a_step_may_be_taken_twice(state: str, frame: Frame) -> None:
    client = Bench().connect().handshake(state)
    client.send(frame)
    assert client.session.state == state
    assert len(client.frames()) == (state != "tuned")
    client.handshake()


@pytest.mark.parametrize(("state", "frame"), REPEATED)
@pytest.mark.parametrize("profile", [V4_0, V3_10])
def test_older_servers_do_not_take_a_step_twice(profile: Profile, state: str, frame: Frame) -> None:
    client = Bench(profile).connect().handshake(state)
    client.send(frame)
    assert client.ended


@pytest.mark.parametrize("profile", [V4_3, V4_0, V3_10])
def test_the_clients_tune_may_be_left_out(profile: Profile) -> None:
    client = Bench(profile).connect().handshake("tuning")
    client.send(Open(1, "/"), Create(2, "s", {}))
    assert [frame.code for frame in client.frames()] == [1, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("profile", [V4_3, V4_0, V3_10])
def test_only_the_last_handshake_frame_of_a_segment_has_to_be_due(profile: Profile) -> None:
    client = Bench(profile).connect()
    frames = (SaslHandshake(1), PeerProperties(2, {}))
    client.send_bytes(b"".join(map(client.codec.encode, frames)))
    assert [type(frame) for frame in client.frames()] == [SaslHandshakeResponse, PeerPropertiesResponse]
    assert client.session.state == "introduced"
    client.handshake()


@pytest.mark.parametrize("behind", [SaslHandshake(2), Heartbeat(), Create(3, "s", {})])
def test_what_a_segment_holds_behind_a_step_counts_too(behind: Frame) -> None:
    client = Bench().connect()
    client.send_bytes(b"".join(map(client.codec.encode, (PeerProperties(1, {}), behind))))
    assert client.ended is not isinstance(behind, Heartbeat)
    assert isinstance(client.frames()[0], PeerPropertiesResponse)


@pytest.mark.parametrize("profile", [V4_3, V4_0, V3_10])
def test_a_heartbeat_in_the_segment_of_open_harms_nobody(profile: Profile) -> None:
    client = Bench(profile).connect().handshake("tuned")
    client.send_bytes(b"".join(map(client.codec.encode, (Open(1, "/"), Heartbeat()))))
    assert client.only(OpenResponse).code == 1
    assert client.is_ready and not client.ended


def test_commands_in_the_segment_of_open_end_the_connection() -> None:
    client = Bench().connect().handshake("tuned")
    client.send_bytes(b"".join(map(client.codec.encode, (Open(1, "/"), Create(2, "s", {})))))
    assert client.ended
    assert client.only(OpenResponse).code == 1


def test_a_frame_behind_the_first_may_have_arrived_in_part() -> None:
    client = Bench().connect()
    first, second = (client.codec.encode(frame) for frame in (PeerProperties(1, {}), SaslHandshake(2)))
    client.send_bytes(first + second[:5])
    client.send_bytes(second[5:])
    assert [type(frame) for frame in client.frames()] == [PeerPropertiesResponse, SaslHandshakeResponse]
    assert not client.ended


@pytest.mark.parametrize("profile", [V4_0, V3_10])
def test_older_servers_do_not_take_a_handshake_in_parts(profile: object) -> None:
    client = Bench(profile).connect()  # type: ignore[arg-type]
    client.send_bytes(b"\0\0\0")
    assert client.ended


@pytest.mark.parametrize(("profile", "ended"), [(V4_3, False), (V4_0, True), (V3_10, True)])
def test_a_heartbeat_before_the_login(profile: object, ended: bool) -> None:
    client = Bench(profile).connect()  # type: ignore[arg-type]
    client.send(Heartbeat())
    assert client.ended is ended


def test_nothing_is_read_while_a_refusal_is_held_back() -> None:
    bench = Bench(V4_3.with_delays())
    client = bench.connect().handshake("authenticating")
    client.send(SaslAuthenticate(3, "PLAIN", b"\0guest\0wrong"))
    client.send(SaslAuthenticate(4, "PLAIN", PLAIN))
    bench.advance(2.9)
    assert client.sent == []
    bench.advance(0.2)
    assert times(client) == [3.0, 3.0]
    assert client.only(SaslAuthenticateResponse) == SaslAuthenticateResponse(3, 8)


def test_refusals_come_at_once_unless_delays_are_wanted() -> None:
    client = Bench().connect().handshake("authenticating")
    client.send(SaslAuthenticate(3, "PLAIN", b"\0guest\0wrong"))
    assert client.only(SaslAuthenticateResponse).code == Code.AUTHENTICATION_FAILURE
    assert client.ended


@pytest.mark.parametrize(
    ("mechanism", "data", "code"),
    [
        ("PLAIN", b"\0guest\0guest", 1),
        ("PLAIN", b"guest\0guest\0guest", 9),
        ("PLAIN", b"\0nobody\0guest", 8),
        ("PLAIN", b"guest", 9),
        ("PLAIN", b"\0gu\xff\0x", 8),
        ("PLAIN", None, 9),
        ("ANONYMOUS", None, 1),
        ("AMQPLAIN", b"\5LOGINS\0\0\0\5guest\10PASSWORDS\0\0\0\5guest", 1),
        ("AMQPLAIN", b"\5LOGINS\0\0\0\5guest\10PASSWORDS\0\0\0\5wrong", 8),
        ("AMQPLAIN", b"\5LOGINS\0\0\0\5guest", 9),
        ("AMQPLAIN", b"\5LOGINI\0\0\0\5", 9),
        ("AMQPLAIN", None, 9),
        ("EXTERNAL", None, 7),
    ],
)
def test_mechanisms(mechanism: str, data: bytes | None, code: int) -> None:
    client = Bench().connect().handshake("authenticating")
    client.send(SaslAuthenticate(3, mechanism, data))
    answer = client.frames()[0]
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.code == code
    assert client.ended is (code != 1)


@pytest.mark.parametrize(
    ("peer", "code"),
    [("10.0.0.7:1000", 11), ("[2001:db8::1]:1", 11), ("[::1]:1000", 1), ("127.0.0.9:1", 1), ("memory", 1)],
)
def test_guest_may_only_come_from_the_same_machine(peer: str, code: int) -> None:
    client = Bench().connect(address=peer).handshake("authenticating")
    client.send(SaslAuthenticate(3, "PLAIN", PLAIN))
    answer = client.frames()[0]
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.code == code


def test_connection_limits_count_open_connections() -> None:
    bench = Bench()
    bench.broker.access.users["guest"].max_connections = 1
    first = bench.open()
    second = bench.connect().handshake("tuned")
    second.send(Open(4, "/"))
    assert second.only(OpenResponse) == OpenResponse(4, Code.VIRTUAL_HOST_ACCESS_FAILURE)
    assert second.ended
    first.leave()
    bench.open()


@pytest.mark.parametrize(("wanted", "agreed"), [(0, 1_048_576), (1024, 1024), (2**31, 1_048_576)])
def test_the_smaller_frame_size_counts_and_0_is_no_limit(wanted: int, agreed: int) -> None:
    client = Bench().open(frame_max=wanted)
    assert client.session.describe()["frame_max"] == agreed
    assert client.codec.max_frame == agreed


def test_no_limit_on_both_sides_is_no_limit() -> None:
    client = Bench(msgspec.structs.replace(V4_3, frame_max=0)).open(frame_max=0)
    assert client.codec.max_frame == 0
