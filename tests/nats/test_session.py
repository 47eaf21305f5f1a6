"""What the NATS server answers; every line was measured with nats-server 2.9.10."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers import NATS
from fakebrokers.core.subscriptions import REMEMBERED
from tests import bench
from tests.bench import Client
from tests.marked import PASSWORD, shown_in

CONNECT = b'CONNECT {"verbose":false,"pedantic":false}\r\n'
LOUD = b'CONNECT {"verbose":true,"pedantic":true,"headers":true,"no_responders":true}\r\n'
QUIET = b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n'
END = b"<end>"


class Bench(bench.Bench):
    def __init__(self, **options: Any) -> None:
        super().__init__(NATS(**options))


def talk(*segments: bytes, **options: object) -> bytes:
    client = open_client(Bench(**options))  # type: ignore[arg-type]
    heard = client.say(*segments)
    client.bench.check()
    return heard + (END if client.ended else b"")


def open_client(bench: Bench, connect: bytes = b"") -> Client:
    client = bench.connect()
    assert client.take().startswith(b"INFO {")
    client.say(connect)
    return client


INVALID = b"-ERR 'Invalid Publish Subject'\r\n"
UNKNOWN = b"-ERR 'Unknown Protocol Operation'\r\n" + END
HI = b"2\r\nhi\r\n"
X = b" 1\r\nx\r\n"

MEASURED = {
    "unknown command": (CONNECT + b"FOO bar\r\n", UNKNOWN),
    "cut command": (CONNECT + b"PI\r\n", UNKNOWN),
    "http": (b"GET / HTTP/1.1\r\n\r\n", UNKNOWN),
    "empty line": (CONNECT + b"\r\nPING\r\n", UNKNOWN),
    "bad JSON": (b"CONNECT {bad\r\n", END),
    "CONNECT without options": (b"CONNECT\r\n", END),
    "CONNECT of a number": (b"CONNECT 5\r\n", END),
    "CONNECT with a wrong type": (b'CONNECT {"verbose":"x"}\r\n', END),
    **{
        f"CONNECT with {name} of a wrong type": (f'CONNECT {{"{name}":{value}}}\r\nPING\r\n'.encode(), END)
        for name, value in (("lang", 5), ("version", 5), ("pedantic", 5), ("headers", 5), ("protocol", '"x"'))
    },
    "CONNECT with unknown options": (b'CONNECT {"zzz":1,"verbose":true}\r\nPING\r\n', b"+OK\r\nPONG\r\n"),
    "CONNECT with null": (b'CONNECT {"verbose":null,"name":null}\r\nPING\r\n', b"+OK\r\nPONG\r\n"),
    "CONNECT twice": (CONNECT + CONNECT + b"PING\r\n", b"PONG\r\n"),
    "protocol 2": (b'CONNECT {"protocol":2}\r\n', b"-ERR 'invalid client protocol'\r\n" + END),
    "no responders without headers": (
        b'CONNECT {"no_responders":true,"headers":false}\r\n',
        b"-ERR 'no responders requires headers support'\r\n" + END,
    ),
    "before CONNECT it is verbose": (b"PING\r\nPUB a" + X, b"PONG\r\n+OK\r\n"),
    "SUB without anything": (CONNECT + b"SUB\r\n", UNKNOWN),
    "SUB with one word": (CONNECT + b"SUB foo\r\n", END),
    "SUB with four words": (CONNECT + b"SUB foo a b c\r\n", END),
    "SUB of bad subjects": (
        CONNECT + b"SUB foo..bar 1\r\nSUB .foo 1\r\nSUB foo. 2\r\nSUB foo.>.x 3\r\nPING\r\n",
        b"-ERR 'Invalid Subject'\r\n" * 4 + b"PONG\r\n",
    ),
    "SUB of a bad subject gets no OK": (
        LOUD + b"SUB foo..bar 1\r\nPING\r\n",
        b"+OK\r\n-ERR 'Invalid Subject'\r\nPONG\r\n",
    ),
    "a star inside a token is none": (
        QUIET + b"SUB foo.b* 1\r\nPUB foo.b* " + HI + b"PUB foo.bx" + X + b"PING\r\n",
        b"MSG foo.b* 1 2\r\nhi\r\nPONG\r\n",
    ),
    "PUB to wildcards": (
        CONNECT + b"SUB foo.* 1\r\nPUB foo.* " + HI + b"PUB foo.> " + HI + b"PUB foo..x " + HI + b"PING\r\n",
        b"MSG foo.* 1 2\r\nhi\r\nMSG foo.> 1 2\r\nhi\r\nPONG\r\n",
    ),
    "PUB to wildcards, pedantic": (
        LOUD + b"SUB foo.* 1\r\nPUB foo.* " + HI + b"PING\r\n",
        b"+OK\r\n+OK\r\n-ERR 'Invalid Publish Subject'\r\n+OK\r\nMSG foo.* 1 2\r\nhi\r\nPONG\r\n",
    ),
    "PUB of a bad size": (CONNECT + b"PUB foo x\r\nhi\r\n", END),
    "PUB of a negative size": (CONNECT + b"PUB foo -1\r\nhi\r\n", END),
    "PUB without anything": (CONNECT + b"PUB\r\n", UNKNOWN),
    "PUB with one word": (CONNECT + b"PUB foo\r\n", END),
    "PUB with four words": (CONNECT + b"PUB foo a 2 2\r\nhi\r\n", END),
    "PUB above the limit": (CONNECT + b"PUB foo 1048577\r\n", b"-ERR 'Maximum Payload Violation'\r\n" + END),
    "PUB with more than it says": (CONNECT + b"PUB foo 2\r\nhixx\r\n", UNKNOWN),
    "PUB with another end": (CONNECT + b"PUB foo 2\r\nhi\rx\r\n", UNKNOWN),
    "UNSUB of nothing": (CONNECT + b"UNSUB 99\r\nPING\r\n", b"PONG\r\n"),
    "UNSUB without anything": (CONNECT + b"UNSUB\r\n", UNKNOWN),
    "UNSUB after a word": (CONNECT + b"SUB a 1\r\nUNSUB 1 x\r\nPUB a" + X + b"PING\r\n", b"PONG\r\n"),
    "UNSUB after two": (
        CONNECT + b"SUB a 1\r\nUNSUB 1 2\r\n" + b"PUB a 1\r\nx\r\n" * 3 + b"PING\r\n",
        b"MSG a 1 1\r\nx\r\n" * 2 + b"PONG\r\n",
    ),
    "UNSUB after two that have come": (
        CONNECT + b"SUB a 1\r\n" + b"PUB a 1\r\nx\r\n" * 2 + b"UNSUB 1 2\r\nPUB a" + X + b"PING\r\n",
        b"MSG a 1 1\r\nx\r\n" * 2 + b"PONG\r\n",
    ),
    "anything may follow PING": (CONNECT + b"PINGX y\r\nPONG z\r\n", b"PONG\r\n"),
    "a wrong letter, before the line ends": (CONNECT + b"PIX", UNKNOWN),
    "a long line that is no command": (CONNECT + b"x" * 5000 + b"\r\n", UNKNOWN),
    "a blank in front": (CONNECT + b" PING\r\n", UNKNOWN),
    "nothing after -ERR": (CONNECT + b"-ERR\r\n", UNKNOWN),
    "pedantic before CONNECT": (b"PUB a.*" + X, b"-ERR 'Invalid Publish Subject'\r\n+OK\r\n"),
    "what a second CONNECT does not say stays": (
        b'CONNECT {"verbose":false,"headers":true}\r\nCONNECT {"pedantic":false}\r\n'
        b"SUB a 1\r\nHPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        b"HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
    ),
    "an empty token is heard by nobody": (
        CONNECT + b"SUB a.*.b 1\r\nSUB a.> 2\r\nPUB a..b" + X + b"PUB a." + X + b"PING\r\n",
        b"PONG\r\n",
    ),
    "a known sid with a bad subject": (LOUD + b"SUB a 1\r\nSUB a..b 1\r\n", b"+OK\r\n" * 3),
    "a second SUB with the same sid": (
        CONNECT + b"SUB a 1\r\nSUB b 1\r\nPUB a 1\r\nx\r\nPUB b 1\r\ny\r\nPING\r\n",
        b"MSG a 1 1\r\nx\r\nPONG\r\n",
    ),
    "verbose": (
        LOUD + b"PING\r\nSUB a 1\r\nPUB a 1\r\nx\r\nUNSUB 1\r\nPONG\r\n",
        b"+OK\r\nPONG\r\n+OK\r\n+OK\r\nMSG a 1 1\r\nx\r\n+OK\r\n",
    ),
    "nobody answers": (
        QUIET + b"SUB in.* 1\r\nPUB a in.1 1\r\nx\r\nPING\r\n",
        b"HMSG in.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nPONG\r\n",
    ),
    "headers": (
        QUIET + b"SUB a 1\r\nHPUB a 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\nPING\r\n",
        b"HMSG a 1 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\nPONG\r\n",
    ),
    "headers that the client cannot have": (CONNECT + b"HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPING\r\n", END),
    "headers larger than all": (QUIET + b"HPUB a 15 14\r\nNATS/1.0\r\n\r\nhi\r\n", END),
    "HPUB with one word": (QUIET + b"HPUB a\r\n", END),
    "small letters": (CONNECT + b"sub a 1\r\npub a 1\r\nx\r\nping\r\n", b"MSG a 1 1\r\nx\r\nPONG\r\n"),
    "more blanks": (
        CONNECT + b"SUB  a \t 1  \r\nPUB   a   1 \r\nx\r\nPING  \r\n",
        b"MSG a 1 1\r\nx\r\nPONG\r\n",
    ),
    "lines without CR": (CONNECT + b"SUB a 1\nPUB a 1\r\nx\r\nPING\n", b"MSG a 1 1\r\nx\r\nPONG\r\n"),
    "a long line": (
        CONNECT + b"SUB " + b"a" * 5000 + b" 1\r\n",
        b"-ERR 'maximum control line exceeded'\r\n" + END,
    ),
    "+OK of a client": (CONNECT + b"+OK\r\nPING\r\n", b"PONG\r\n"),
    "-ERR of a client": (CONNECT + b"-ERR 'x'\r\nPING\r\n", END),
    "INFO of a client": (CONNECT + b"INFO {}\r\nPING\r\n", b"PONG\r\n"),
    "MSG of a client": (CONNECT + b"MSG a 1 1\r\nx\r\nPING\r\n", UNKNOWN),
    "no echo": (
        b'CONNECT {"echo":false}\r\nSUB a 1\r\nPUB a 1\r\nx\r\nPING\r\n',
        b"+OK\r\n+OK\r\n+OK\r\nPONG\r\n",
    ),
    "one wildcard at both ends": (
        CONNECT + b"SUB *.b 1\r\nSUB > 2\r\nPUB a.b 1\r\nx\r\nPUB a" + X,
        b"MSG a.b 2 1\r\nx\r\nMSG a.b 1 1\r\nx\r\nMSG a 2 1\r\nx\r\n",
    ),
}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_answers(name: str) -> None:
    said, expected = MEASURED[name]
    assert talk(said) == expected


@pytest.mark.parametrize("name", MEASURED)
def test_the_answers_do_not_depend_on_segments(name: str) -> None:
    """But for how often it complains of a subject, see `IN_SEGMENTS`."""
    said, expected = MEASURED[name]
    assert talk(*[said[at : at + 1] for at in range(len(said))]) == expected.replace(INVALID, INVALID * 2)


PEDANTIC = b'CONNECT {"verbose":true,"pedantic":true,"headers":%b}\r\n'

#: What nats-server 2.9.10 answered to a pedantic client, by segment: it looks at a line at once, and a second
#: time when the payload is not there yet.
IN_SEGMENTS: list[tuple[list[bytes], list[bytes]]] = [
    ([b"PUB a..b 2\r\nxx\r\n"], [INVALID + b"+OK\r\n"]),
    ([b"PUB a..b 2\r\n", b"xx\r\n"], [INVALID * 2, b"+OK\r\n"]),
    ([b"PUB a..b 2\r\nxx\r", b"\n"], [INVALID * 2, b"+OK\r\n"]),
    ([b"PUB a..b 0\r\n", b"\r\n"], [INVALID * 2, b"+OK\r\n"]),
    ([b"PUB a..b 2\r", b"\nxx\r\n"], [b"", INVALID + b"+OK\r\n"]),
    ([b"PUB a..b", b" 2\r\nx", b"x\r\n"], [b"", INVALID * 2, b"+OK\r\n"]),
    ([b"PUB a..b 2\r\n", b"x", b"x", b"\r", b"\n"], [INVALID * 2, b"", b"", b"", b"+OK\r\n"]),
    ([b"PUB a..b 2\r\nxxx\r\n"], [INVALID + UNKNOWN]),
    ([b"PUB a..b 2\r\nx", b"xx\r\n"], [INVALID * 2, UNKNOWN]),
    (
        [b"PUB a..b 2\r\nxx\r\nPUB c..d 2\r\nx", b"x\r\n"],
        [INVALID + b"+OK\r\n" + INVALID * 2, b"+OK\r\n"],
    ),
    ([b"PUB a..b 2\r\nx", b"x\r\nPUB a..b" + X], [INVALID * 2, b"+OK\r\n" + INVALID + b"+OK\r\n"]),
    ([b"PUB a..b 9999999\r\nxx\r\n"], [b"-ERR 'Maximum Payload Violation'\r\n" + END]),
    ([b"HPUB a..b 12 14\r\nNATS", b"/1.0\r\n\r\nxx\r\n"], [INVALID * 2, b"+OK\r\n"]),
    ([b"PUB a.b 2\r\nx", b"x\r\n"], [b"", b"+OK\r\n"]),
]


@pytest.mark.parametrize(("said", "expected"), IN_SEGMENTS)
def test_a_pedantic_server_complains_of_a_line_before_its_payload(
    said: list[bytes], expected: list[bytes]
) -> None:
    bench = Bench()
    client = open_client(bench, PEDANTIC % b"true")
    client.take()
    heard = [client.say(segment) for segment in said]
    heard[-1] += END if client.ended else b""
    bench.check()
    assert heard == expected


@pytest.mark.parametrize("said", [b"HPUB a 12 14\r\n", b"HPUB a..b 12 14\r\nNATS", b"HPUB a 1 2\r\nxxx\r\n"])
def test_who_cannot_have_headers_is_cut_off_before_they_come(said: bytes) -> None:
    client = open_client(Bench(), PEDANTIC % b"false")
    client.take()
    assert (client.say(said), bool(client.ended)) == (b"", True)


def test_who_has_to_log_in_hears_of_no_subjects() -> None:
    assert talk(b"PUB a..b 2\r\nx", token="t") == b""


def test_info_has_what_clients_read() -> None:
    bench = Bench()
    text = bench.connect().take()
    assert text.startswith(b'INFO {"server_id":"N')
    assert text.endswith(b'"headers":true,"max_payload":1048576,"client_id":1,"client_ip":"127.0.0.1"} \r\n')


def test_topics_that_are_remembered_do_not_grow_without_end() -> None:
    bench = Bench()
    client = open_client(bench, CONNECT)
    client.say(b"SUB a.1 1\r\n")
    subjects = bench.fake.broker.subscriptions
    for number in range(REMEMBERED + 10):
        subjects.match(f"a.{number}")
    assert 0 < subjects.remembered <= REMEMBERED
    assert client.say(b"PUB a.1" + X) == b"MSG a.1 1 1\r\nx\r\n"


def test_each_queue_group_gets_one_copy_and_its_members_take_turns() -> None:
    bench = Bench()
    client = open_client(bench, CONNECT)
    client.say(b"SUB a q 1\r\nSUB a q 2\r\nSUB a 3\r\nSUB a p 4\r\n")
    first, second = client.say(b"PUB a" + X), client.say(b"PUB a" + X)
    assert first == b"MSG a 3 1\r\nx\r\nMSG a 1 1\r\nx\r\nMSG a 4 1\r\nx\r\n"
    assert second == first.replace(b"MSG a 1 ", b"MSG a 2 ")


def test_after_a_reset_the_first_member_is_next_again() -> None:
    bench = Bench()
    client = open_client(bench, CONNECT)
    client.say(b"SUB a q 1\r\nSUB a q 2\r\n")
    assert client.say(b"PUB a" + X) == b"MSG a 1 1\r\nx\r\n"
    bench.fake.broker.reset()
    assert client.say(b"PUB a" + X) == b"MSG a 1 1\r\nx\r\n"


def test_a_queue_group_is_one_even_where_its_members_have_other_patterns() -> None:
    assert talk(CONNECT + b"SUB a.* q 1\r\nSUB a.> q 2\r\nPUB a.b" + X).count(b"MSG") == 1


def test_a_member_without_echo_leaves_its_turn_to_another() -> None:
    bench = Bench()
    mute = open_client(bench, b'CONNECT {"verbose":false,"echo":false}\r\n')
    other = open_client(bench, CONNECT)
    mute.say(b"SUB a q 1\r\n")
    other.say(b"SUB a q 7\r\n")
    mute.say(b"PUB a 1\r\nx\r\n" * 2)
    assert other.take() == b"MSG a 7 1\r\nx\r\n" * 2


def test_what_a_client_listened_to_ends_with_it() -> None:
    bench = Bench()
    gone, other = open_client(bench, CONNECT), open_client(bench, QUIET)
    gone.say(b"SUB a.b.* 1\r\nSUB a q 1x\r\n")
    assert len(bench.fake.broker.subscriptions) == 2
    gone.leave()
    assert len(bench.fake.broker.subscriptions) == 0
    assert other.say(b"SUB r 1\r\nPUB a.b.c r" + X) == b"HMSG r 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"


VIOLATION = b"-ERR 'Authorization Violation'\r\n" + END


@pytest.mark.parametrize(
    ("credentials", "answer"),
    [
        (b'"user":"u","pass":"%b"' % PASSWORD.encode(), b"PONG\r\n"),
        (b'"user":"u","pass":"x"', VIOLATION),
        (b'"user":"u"', VIOLATION),
        (b'"auth_token":"u"', VIOLATION),
    ],
)
def test_users_log_in(credentials: bytes, answer: bytes) -> None:
    connect = b'CONNECT {"verbose":false,%b}\r\n' % credentials
    assert talk(connect + b"PING\r\n", user="u", password=PASSWORD) == answer


@pytest.mark.parametrize(("token", "answer"), [(b"tok", b"PONG\r\n"), (b"x", VIOLATION)])
def test_tokens(token: bytes, answer: bytes) -> None:
    connect = b'CONNECT {"verbose":false,"auth_token":"%b"}\r\n' % token
    assert talk(connect + b"PING\r\n", token="tok") == answer


def test_who_has_to_log_in_says_that_first() -> None:
    for said in (b"PING\r\n", b"SUB a 1\r\n", b"FOO\r\n", CONNECT):
        assert talk(said, token="t") == VIOLATION


def test_who_does_not_log_in_in_time_is_cut_off() -> None:
    bench = Bench(token="t")
    client = bench.connect()
    assert b'"auth_required":true' in client.take()
    bench.advance(1.9)
    assert client.take() == b""
    bench.advance(0.2)
    assert client.take() == b"-ERR 'Authentication Timeout'\r\n"
    assert client.ended


def test_a_client_that_answers_no_ping_is_stale() -> None:
    bench = Bench(switches={"ping_interval_s": 1.0})
    client = open_client(bench, CONNECT)
    bench.advance(1.0)
    assert client.take() == b"PING\r\n"
    bench.advance(1.0)
    assert client.take() == b"PING\r\n"
    bench.advance(1.0)
    assert client.take() == b"-ERR 'Stale Connection'\r\n"
    assert client.ended


def test_a_client_that_answers_is_asked_again() -> None:
    bench = Bench()
    client = open_client(bench, CONNECT)
    bench.advance(2.0)
    assert client.take() == b"PING\r\n"
    client.say(b"PONG\r\n")
    bench.advance(119.0)
    assert client.take() == b""
    bench.advance(2.0)
    assert client.take() == b"PING\r\n"


def test_a_client_is_asked_a_whole_interval_after_it_was_heard() -> None:
    bench = Bench(switches={"ping_interval_s": 10.0})
    client = open_client(bench, CONNECT)
    bench.advance(2.0)
    client.say(b"PONG\r\n")
    assert client.take() == b""
    bench.advance(3.0)
    client.say(b"SUB a 1\r\n")  # heard at 5 s
    client.take()
    bench.advance(9.9)
    assert client.take() == b""
    bench.advance(0.2)
    assert client.take() == b"PING\r\n"


def test_credentials_stay_out_of_the_journal() -> None:
    bench, password = Bench(user="u", password=PASSWORD), PASSWORD.encode()
    open_client(bench, b'CONNECT {"user":"u","pass":"%b"}\r\n' % password)
    open_client(bench, b'CONNECT {"user":"u","pass":"%b"\r\n' % password)
    assert not shown_in(str(bench.fake.journal.records()))
    assert password not in b"".join(
        [getattr(record.frame, "data", b"") for record in bench.fake.journal.records()]
    )
