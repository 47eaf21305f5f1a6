"""How the fake NATS server is compared with a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import msgspec

from fakebrokers.core.dialect import MARK, Command, Dialect, Known, Login, Speaker, segments
from fakebrokers.core.frames import Frame
from fakebrokers.nats import frames as f
from fakebrokers.nats.codec import MAX_PAYLOAD, NatsCodec

CLIENTS = 3
#: Sids of members of queue groups; which member gets a message is drawn.
MEMBERS = ("q1", "q2")

_SUBJECTS = [f"{MARK}{rest}" for rest in ("", ".a", ".b", ".a.b", ".a.b.c", ".b.a", ".ä", ".$x", ".a-b_c")]
_PATTERNS = [f"{MARK}{rest}" for rest in (".*", ".>", ".*.b", ".a.>", ".a.*", ".*.*", ".*.>", ".a.b.>")]
_ODD = [f"{MARK}{rest}" for rest in ("..a", ".", ".>.x", ".a*", ".>x", ".*x.b", ".**", ".a.>>", ".a..")]
_ODD += [f".{MARK}", f">{MARK}", f"{MARK}.\x01"]
_OPTIONS = ("verbose", "pedantic", "echo", "headers", "no_responders")
_HEADERS = (
    "NATS/1.0\r\n\r\n",
    "NATS/1.0\r\na: b\r\n\r\n",
    "NATS/1.0\r\nA:1\r\na: 2\r\n\r\n",
    "NATS/1.0 100 Idle\r\n\r\n",
    "",
    "NATS/2.0\r\n\r\n",
    "x",
)
#: What is no command, or one with wrong words.
_GARBAGE = (
    "FOO",
    "PINGX",
    "PIN",
    "PING x",
    " PING",
    "ping",
    "",
    " ",
    "SUB",
    "SUB a",
    f"SUB {MARK} a b c",
    f"SUB\t{MARK}.a\t7",
    "UNSUB",
    "UNSUB 1 2 3",
    "UNSUB 1 x",
    "UNSUB 1 -1",
    "UNSUB 99",
    "PUB",
    f"PUB {MARK}",
    f"PUB {MARK} x",
    f"PUB {MARK} -1",
    f"PUB {MARK} 1 2 3",
    f"PUB {MARK} {MAX_PAYLOAD + 1}",
    f"PUB {MARK} 99999999999",
    "HPUB",
    f"HPUB {MARK} 5",
    f"HPUB {MARK} 9 5",
    "CONNECT",
    "CONNECT {",
    "CONNECT []",
    'CONNECT {"verbose":1}',
    'CONNECT {"protocol":2}',
    'CONNECT {"headers":false,"no_responders":true}',
    "+OK",
    "-ERR 'x'",
    "-ERR",
    "INFO {}",
    "INFO",
    "MSG a 1 0",
    "GET / HTTP/1.1",
    "PONG",
    "Pong",
    "x" * 5000,
    "PUB " + "y" * 4090,
)


class NatsSpeaker(Speaker):
    """Asks by PING."""

    def __init__(self) -> None:
        self.codec = NatsCodec("client")

    def question(self) -> bytes:
        return b"PING\r\n"

    def is_answer(self, frame: Frame) -> bool:
        return isinstance(frame, f.Pong)


class NatsDialect(Dialect):
    """Subscriptions, queue groups, requests, options and rubbish."""

    known = (
        Known(
            r"-ERR( 'x')? \+ ",
            "",
            "",
            "The real server carries out what comes in one segment after -ERR, and then disconnects.",
        ),
        Known(
            "(?i)pub",
            "Invalid Publish Subject",
            "Invalid Publish Subject', -ERR 'Invalid Publish Subject",
            "The real server complains twice of a line that its read buffer parts from the payload, and that"
            " has 64 bytes or more, by what came before.",
        ),
        Known(
            r"PUB|FOO|GET|x{20}",
            r"",
            r"^\d: end$",
            "Bytes that a server leaves unread turn its FIN into a reset, which overtakes what it said last.",
        ),
    )

    def speaker(self, login: Login) -> Speaker:
        return NatsSpeaker()

    def sequence(self, random: Random, login: Login) -> list[Command]:
        commands = []
        for client in range(random.randint(1, CLIENTS)):
            if random.random() < 0.9 or login.user:
                commands.append(_connect(random, client, login))
        clients = range(CLIENTS)
        for _ in range(random.randint(4, 25)):
            make = random.choices(list(_MAKERS), weights=list(_MAKERS.values()))[0]
            commands.append(make(random, random.choice(clients)))
        return segments(random, commands)

    def is_drawn(self, frame: Frame) -> bool:
        return isinstance(frame, f.Msg | f.Hmsg) and frame.sid in MEMBERS

    def is_unordered(self, first: Frame, second: Frame) -> bool:
        """The listeners to one message stand in a map of the real server."""
        return _message(first) is not None and _message(first) == _message(second)

    def brief(self, frame: Frame) -> str:
        match frame:
            case f.Info(options):
                return f"INFO {' '.join(sorted(options))}"
            case f.Ping():
                return ""
            case f.Ok():
                return "+OK"
            case f.Err(text):
                return f"-ERR {text!r}"
            case f.Msg(subject, sid, payload, reply) | f.Hmsg(subject, sid, _, payload, reply):
                if sid in MEMBERS:  # whether there are headers depends on the member
                    verb, headers = "(H)MSG", ""
                elif isinstance(frame, f.Hmsg):
                    verb, headers = "HMSG", f" {frame.headers!r}"
                else:
                    verb, headers = "MSG", ""
                who = "q" if sid in MEMBERS else sid
                return f"{verb} {subject} {who} {reply}{headers} {payload[:40]!r}".replace("  ", " ")
        return repr(frame)


def _message(frame: Frame) -> tuple[object, ...] | None:
    match frame:
        case f.Msg(subject, _, payload, reply):
            return (subject, reply, b"", payload)
        case f.Hmsg(subject, _, headers, payload, reply):
            return (subject, reply, headers, payload)
    return None


def _line(client: int, text: str, payload: bytes | None = None) -> Command:
    data = text.encode("utf-8", "surrogateescape") + b"\r\n"
    shown = text if len(text) < 120 else f"{text[:40]}... ({len(text)} bytes)"
    if payload is None:
        return Command(client, data, shown)
    return Command(client, data + payload + b"\r\n", f"{shown} {payload[:60]!r}")


def _connect(random: Random, client: int, login: Login) -> Command:
    options: dict[str, object] = {name: True for name in _OPTIONS if random.random() < 0.3}
    options |= {name: False for name in _OPTIONS if random.random() < 0.3}
    options.setdefault("verbose", False)
    if options.get("no_responders"):
        options["headers"] = True
    if random.random() < 0.5:
        options["protocol"] = random.choice([0, 1])
    if login.user:
        options |= {"user": login.user, "pass": login.password}
    return _line(client, f"CONNECT {msgspec.json.encode(options).decode()}")


def _connect_again(random: Random, client: int) -> Command:
    return _connect(random, client, Login())


def _verb(random: Random, verb: str) -> str:
    return verb if random.random() < 0.9 else random.choice([verb.lower(), verb.title()])


def _subject(random: Random) -> str:
    return random.choices(
        [random.choice(_SUBJECTS), random.choice(_PATTERNS), random.choice(_ODD)], [8, 1, 1]
    )[0]


def _subscribe(random: Random, client: int) -> Command:
    pattern = random.choice(random.choices([_SUBJECTS, _PATTERNS, _ODD], [5, 5, 1])[0])
    space = random.choice([" ", " ", " ", "  ", "\t"])
    words = [_verb(random, "SUB"), pattern, random.choice(["1", "2", "3", "abc"])]
    return _line(client, space.join(words))


def _join_group(random: Random, client: int) -> Command:
    group = random.choice([f"{MARK}g", f"{MARK}h"])
    return _line(client, f"SUB {random.choice(_SUBJECTS + _PATTERNS)} {group} {random.choice(MEMBERS)}")


def _unsubscribe(random: Random, client: int) -> Command:
    if random.random() < 0.2:
        return _line(client, f"UNSUB {random.choice(MEMBERS)}")
    limit = random.choice(["", "", " 1", " 2", " 3", " 0"])
    return _line(client, f"{_verb(random, 'UNSUB')} {random.choice(['1', '2', '3', 'abc'])}{limit}")


def _publish(random: Random, client: int) -> Command:
    payload = random.choice([b"", b"x", b"hello", b"a\r\nb", b"PUB a 1\r\nx", bytes(range(40)), b"\xff" * 9])
    reply = random.choice(["", "", "", f" {random.choice(_SUBJECTS)}"])
    size = len(payload) if random.random() < 0.96 else random.randrange(12)
    return _line(client, f"{_verb(random, 'PUB')} {_subject(random)}{reply} {size}", payload)


def _publish_with_headers(random: Random, client: int) -> Command:
    head, body = random.choice(_HEADERS).encode(), random.choice([b"", b"hello"])
    reply = random.choice(["", "", f" {random.choice(_SUBJECTS)}"])
    words = f"HPUB {_subject(random)}{reply} {len(head)} {len(head) + len(body)}"
    return _line(client, words, head + body)


def _rubbish(random: Random, client: int) -> Command:
    return _line(client, random.choice(_GARBAGE))


def _without_carriage_return(random: Random, client: int) -> Command:
    text = random.choice([f"SUB {MARK}.a 1", "PONG", "UNSUB 1"])
    return Command(client, text.encode() + b"\n", f"{text} (LF only)")


def _leave(random: Random, client: int) -> Command:
    return Command(client, None, "leaves")


_MAKERS: Mapping[Callable[[Random, int], Command], int] = {
    _subscribe: 14,
    _join_group: 6,
    _unsubscribe: 8,
    _publish: 30,
    _publish_with_headers: 6,
    _connect_again: 2,
    _rubbish: 3,
    _without_carriage_return: 1,
    _leave: 1,
}

NATS = NatsDialect()
