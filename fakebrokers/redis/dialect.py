"""How the fake Redis server is compared with a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from fakebrokers.core.dialect import MARK, Command, Dialect, Known, Login, Speaker, segments
from fakebrokers.core.frames import Frame
from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.codec import RedisCodec

CLIENTS = 3

_TOKEN = b"<question>"
_CHANNELS = [f"{MARK}{rest}" for rest in ("", "a", "b", "ab", "a.b", "ä", "a b", "[x]", "*")]
_PATTERNS = [
    f"{MARK}{rest}" for rest in ("*", "?", "[ab]", "[^a]", "a*b", "[a-c]?", "\\*", "[b-a]", "[", "**")
]
_PATTERNS += [f"{MARK}{rest}" for rest in ("[a", "[]", "[\\]]", "\\", "a\\", "[^]", "[a-]", "*?*")]
_LISTENING = ("subscribe", "psubscribe", "ssubscribe")

#: Commands with right and wrong arguments, as words.
_OTHERS: tuple[tuple[str, ...], ...] = (
    ("PING",),
    ("PING", "hello"),
    ("PING", "a", "b"),
    ("ECHO",),
    ("ECHO", "hello"),
    ("ECHO", "a", "b"),
    ("SELECT", "0"),
    ("SELECT", "15"),
    ("SELECT", "16"),
    ("SELECT", "-1"),
    ("SELECT", "x"),
    ("SELECT",),
    ("CLIENT",),
    ("CLIENT", "SETNAME", "me"),
    ("CLIENT", "SETNAME", "a b"),
    ("CLIENT", "SETNAME", ""),
    ("CLIENT", "SETNAME"),
    ("CLIENT", "GETNAME"),
    ("CLIENT", "GETNAME", "x"),
    ("CLIENT", "SETINFO", "LIB-NAME", "x"),
    ("CLIENT", "NO-EVICT", "on"),
    ("CLIENT", "NO-EVICT", "maybe"),
    ("CLIENT", "NOPE"),
    ("CLIENT", "KILL", "1.2.3.4:5"),
    ("CLIENT", "KILL", "ID", "x"),
    ("CLIENT", "KILL", "ID", "999999999"),
    ("CLIENT", "KILL", "NOPE", "1"),
    ("PUBSUB",),
    ("PUBSUB", "CHANNELS", f"{MARK}*"),
    ("PUBSUB", "CHANNELS", "a", "b"),
    ("PUBSUB", "NUMSUB"),
    ("PUBSUB", "NUMSUB", f"{MARK}a", f"{MARK}b"),
    ("PUBSUB", "SHARDCHANNELS", f"{MARK}*"),
    ("PUBSUB", "SHARDNUMSUB", f"{MARK}a"),
    ("PUBSUB", "NOPE"),
    ("PUBLISH",),
    ("PUBLISH", f"{MARK}a"),
    ("PUBLISH", "a", "b", "c"),
    ("SUBSCRIBE",),
    ("PSUBSCRIBE",),
    ("SSUBSCRIBE",),
    ("SPUBLISH", "a"),
    ("AUTH",),
    ("AUTH", "x"),
    ("AUTH", "default", "x"),
    ("AUTH", "nobody", "x"),
    ("AUTH", "a", "b", "c"),
    ("HELLO",),
    ("HELLO", "2"),
    ("HELLO", "3"),
    ("HELLO", "4"),
    ("HELLO", "x"),
    ("HELLO", "2", "SETNAME", "you"),
    ("HELLO", "3", "NOPE"),
    ("HELLO", "2", "AUTH", "default"),
    ("HELLO", "2", "AUTH", "nobody", "x"),
    ("RESET",),
    ("RESET", "x"),
    ("QUIT",),
    ("QUIT", "x"),
    ("INFO", "server"),
    ("COMMAND", "COUNT"),
    ("DBSIZE", "x"),
    ("NOPE",),
    ("NOPE", "a", "b"),
    ("nope" * 40, "x" * 200, "y"),
    ("",),
)
_KEYS = [f"{MARK}{rest}" for rest in ("k", "l", "m")]
#: Commands on what is stored; K is a key.
_STORED = [
    *(
        "SET K 1",
        "SET K a",
        "SET K 5 NX GET",
        "SET K v XX",
        "SET K v EX 100",
        "SET K v EX 0",
        "SET K v XX NX",
    ),
    *(
        "GET K",
        "GETDEL K",
        "GETSET K 7",
        "APPEND K xy",
        "STRLEN K",
        "GETRANGE K 0 -2",
        "MGET K K",
        "MSETNX K 1 K 2",
    ),
    *(
        "INCR K",
        "DECR K",
        "INCRBY K 12",
        "DECRBY K x",
        "INCR",
        "SETNX K 3",
        "SETEX K 100 v",
        "GETEX K PERSIST",
    ),
    *("DEL K K", "EXISTS K K K", "TOUCH K", "UNLINK K", "TYPE K", "RENAME K K", "RENAMENX K K", "PERSIST K"),
    *("EXPIRE K 100", "EXPIRE K 50 NX", "EXPIRE K -1", "EXPIRE K x", "TTL K", "EXPIRE K 90 LT"),
    *(
        "LPUSH K a",
        "RPUSH K a b c",
        "LPUSHX K d",
        "RPUSHX K e",
        "LPOP K",
        "RPOP K",
        "LPOP K 2",
        "RPOP K 0",
        "LLEN K",
    ),
    *("LRANGE K 0 -1", "LRANGE K 1 x", "LINDEX K -1", "LSET K 0 z", "LINSERT K BEFORE b y", "LREM K 1 a"),
    *(
        "LTRIM K 0 1",
        "LPOS K a",
        "LPOS K a COUNT 0",
        "LMOVE K K LEFT RIGHT",
        "RPOPLPUSH K K",
        "LMPOP 1 K LEFT",
    ),
    *("EXEC", "EXEC", "DISCARD", "WATCH K", "UNWATCH", "SET K", "LPUSH K"),
]
_RAW: tuple[bytes, ...] = (
    b"\r\n",
    b"  \r\n",
    b"ping\r\n",
    b"PING\n",
    b'ECHO "a b"\r\n',
    b"ECHO 'a\\'b'\r\n",
    b'ECHO "\\x41\\n"\r\n',
    b'ECHO "a\r\n',
    b'ECHO "a"b\r\n',
    b"ECHO a'b'\r\n",
    b'ECHO ""\r\n',
    b"ECHO \\x41\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-5\r\n",
    b"*\r\n",
    b"*x\r\n",
    b"*1 \r\n",
    b"*+1\r\n",
    b"*01\r\n",
    b"*2147483648\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\n",
    b"Host: x\r\n",
    b"$4\r\nPING\r\n",
    b"\x00\r\n",
    b"x" * 100_000,
)


class RedisSpeaker(Speaker):
    """Asks by PING with a word of its own."""

    def __init__(self) -> None:
        self.codec = RedisCodec("client")

    def question(self) -> bytes:
        return resp.command([b"PING", _TOKEN])

    def is_answer(self, frame: Frame) -> bool:
        return isinstance(frame, f.Reply) and frame.value in (_TOKEN, (b"pong", _TOKEN))


class RedisDialect(Dialect):
    """Channels, patterns, shards, what clients say around them, and rubbish.

    Args:
        stores: Whether there are commands on what is stored, too.
    """

    known = (
        Known(
            "(?i)host: |post /",
            "end$",
            "end$",
            "Redis throws away what it has not sent yet when it takes a client for a browser.",
        ),
        Known(
            "x{20}",
            "ERR Protocol error: too big inline request, end$",
            r"^\d: end$",
            "Bytes that a server leaves unread turn its FIN into a reset, which overtakes what it said last.",
        ),
    )

    def __init__(self, *, stores: bool) -> None:
        self._makers = dict(_MAKERS)
        if stores:
            self._makers[_on_what_is_stored] = 40

    def speaker(self, login: Login) -> Speaker:
        return RedisSpeaker()

    def sequence(self, random: Random, login: Login) -> list[Command]:
        commands = []
        if login.password:
            user = [login.user.encode()] if login.user else []
            commands = [_words(n, [b"AUTH", *user, login.password.encode()]) for n in range(CLIENTS)]
        for _ in range(random.randint(4, 25)):
            make = random.choices(list(self._makers), weights=list(self._makers.values()))[0]
            commands.append(make(random, random.randrange(CLIENTS)))
        return segments(random, commands)

    def is_unordered(self, first: Frame, second: Frame) -> bool:
        """Patterns, and the channels of an UNSUBSCRIBE without names, stand in a table of the real server."""
        if isinstance(first, f.Pmessage) and isinstance(second, f.Pmessage):
            return (first.channel, first.payload) == (second.channel, second.payload)
        if isinstance(first, f.Subscribed) and isinstance(second, f.Subscribed):
            return first.action == second.action and first.action not in _LISTENING
        return False

    def brief(self, frame: Frame) -> str:
        match frame:
            case f.Reply(value):
                return _shown(value)
            case f.RedisError(text):
                return f"-{text}"
            case f.Subscribed(action, channel, count):
                # of several at once the order is that of a table, and the counts are those of the order
                return (
                    f"{action} {count if action in _LISTENING else channel is None} {channel or ''}".strip()
                )
            case f.Message(channel, payload) | f.Smessage(channel, payload):
                return f"{type(frame).__name__} {channel} {payload!r}"
            case f.Pmessage(pattern, channel, payload):
                return f"Pmessage {pattern} {channel} {payload!r}"
        return repr(frame)


def _shown(value: Any) -> str:
    """A reply without ids, and without the figures of long texts."""
    match value:
        case bytes():
            text = value.decode("utf-8", "replace")
            return "text of INFO" if text.startswith("# Server") else repr(text)
        case {b"id": _}:
            return "{" + ", ".join([f"{k!r}: {v!r}" for k, v in value.items() if k != b"id"]) + "}"
        case (b"server", *_):
            pairs = dict(zip(value[::2], value[1::2], strict=True))
            return _shown(pairs)
        case tuple() if value and all(isinstance(each, bytes) and MARK for each in value):
            return repr(tuple(sorted(value)))
        case str():
            return f"+{value}"
    return repr(value)


def _words(client: int, words: list[bytes]) -> Command:
    text = " ".join([repr(resp.text(word))[1:-1][:60] or "''" for word in words])
    return Command(client, resp.command(words), text)


def _case(random: Random, verb: str) -> bytes:
    return (verb if random.random() < 0.7 else verb.lower()).encode()


def _listen(random: Random, client: int) -> Command:
    verb, names = random.choice(
        [
            ("SUBSCRIBE", _CHANNELS),
            ("SUBSCRIBE", _CHANNELS),
            ("PSUBSCRIBE", _PATTERNS),
            ("SSUBSCRIBE", _CHANNELS),
        ]
    )
    chosen = [random.choice(names).encode() for _ in range(random.choice([1, 1, 2, 3]))]
    return _words(client, [_case(random, verb), *chosen])


def _unlisten(random: Random, client: int) -> Command:
    verb, names = random.choice(
        [("UNSUBSCRIBE", _CHANNELS), ("PUNSUBSCRIBE", _PATTERNS), ("SUNSUBSCRIBE", _CHANNELS)]
    )
    chosen = [random.choice(names).encode() for _ in range(random.choice([0, 1, 1, 2]))]
    return _words(client, [_case(random, verb), *chosen])


def _publish(random: Random, client: int) -> Command:
    payload = random.choice([b"", b"hello", b"a\r\nb", bytes(range(20)), b"x" * 50])
    verb = random.choice(["PUBLISH", "PUBLISH", "PUBLISH", "SPUBLISH"])
    return _words(client, [_case(random, verb), random.choice(_CHANNELS).encode(), payload])


def _other(random: Random, client: int) -> Command:
    verb, *rest = random.choice(_OTHERS)
    return _words(client, [_case(random, verb), *[word.encode() for word in rest]])


def _on_what_is_stored(random: Random, client: int) -> Command:
    words = random.choice(_STORED).split(" ")
    return _words(client, [(random.choice(_KEYS) if word == "K" else word).encode() for word in words])


def _raw(random: Random, client: int) -> Command:
    data = random.choice(_RAW)
    return Command(client, data, repr(data[:60]))


def _leave(random: Random, client: int) -> Command:
    return Command(client, None, "leaves")


_MAKERS: Mapping[Callable[[Random, int], Command], int] = {
    _listen: 16,
    _unlisten: 8,
    _publish: 22,
    _other: 16,
    _raw: 3,
    _leave: 1,
}

#: With what is stored, and without.
REDIS, CHANNELS = RedisDialect(stores=True), RedisDialect(stores=False)
