"""The small commands of Redis that client libraries say around publish and subscribe."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.broker import Channels, RedisBroker
from fakebrokers.redis.client import RedisClient
from fakebrokers.redis.codec import RedisCodec
from fakebrokers.redis.words import STORED, TRANSACTIONS, Glob

Words = Sequence[bytes]
Act = Callable[["Caller", Words], None]

#: How Redis writes numbers.
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,9}")
#: Databases that SELECT knows.
DATABASES = 16
#: Commands of redis-server 7.0.15, as COMMAND COUNT tells; clients show it.
COMMAND_COUNT = 240


class Caller(RedisClient):
    """A client that says commands."""

    def __init__(self, broker: RedisBroker, codec: RedisCodec) -> None:
        super().__init__(codec)
        self.broker = broker

    @abstractmethod
    def answer(self, value: Any) -> None:
        """Say the answer to a command; see `frames.Reply` for the value."""

    @abstractmethod
    def wait(self, timeout_s: float) -> None:
        """Answer when something is stored, or after so many seconds; 0 is for ever."""

    @abstractmethod
    def reset(self) -> None:
        """RESET: as if just connected."""


class Complaint(Exception):
    """An error reply; its text."""


class Command(NamedTuple):
    """A command.

    Attributes:
        least, most: How many arguments it has.
        act: Carries it out; None: says nothing.
        before_login, while_listening: When it may be said.
        needs_data: It is refused while the server loads.
        subcommands: Of which the first argument is one; with their own numbers of arguments.
    """

    least: int
    most: int
    act: Act | None
    before_login: bool = False
    while_listening: bool = False
    needs_data: bool = False
    subcommands: Mapping[str, Command] = {}

    def check(self, frame: f.Command) -> str:
        """Its name as messages have it; `Complaint` where the arguments do not fit."""
        name = frame.verb.lower()
        if not self.least <= len(frame.arguments) <= self.most:
            raise wrong_number(name)
        if not self.subcommands or not frame.arguments:
            return name
        word = resp.text(frame.arguments[0])
        found = self.subcommands.get(word.upper())
        if found is None:
            raise Complaint(f"ERR unknown subcommand '{word}'. Try {name.upper()} HELP.")
        if not found.least <= len(frame.arguments) - 1 <= found.most:
            raise wrong_number(f"{name}|{word.lower()}")
        return f"{name}|{word.lower()}"


def unknown_command(frame: f.Command) -> Complaint:
    """What is said about a command that there is not."""
    words = ""
    for word in frame.arguments:
        if len(words) >= 128:
            break
        words += f"'{resp.text(word)[: 128 - len(words)]}' "
    return Complaint(f"ERR unknown command '{frame.verb[:128]}', with args beginning with: {words}")


def wrong_number(name: str) -> Complaint:
    """What is said about a command with too few or too many arguments."""
    return Complaint(f"ERR wrong number of arguments for '{name}' command")


def _say(value: Any) -> Act:
    return lambda session, words: session.answer(value)


def _ping(session: Caller, words: Words) -> None:
    if session.listening and not session.codec.resp3:
        session.answer((b"pong", words[0] if words else b""))
    else:
        session.answer(words[0] if words else "PONG")


def _echo(session: Caller, words: Words) -> None:
    session.answer(words[0])


def _refuse_browser(session: Caller, words: Words) -> None:
    """Redis takes this for a browser that somebody has sent here, and hangs up."""
    session.end()


def _quit(session: Caller, words: Words) -> None:
    session.answer("OK")
    session.end()


def _reset(session: Caller, words: Words) -> None:
    session.reset()
    session.answer("RESET")


def _select(session: Caller, words: Words) -> None:
    if not _INTEGER.fullmatch(words[0]):
        raise Complaint("ERR value is not an integer or out of range")
    if not 0 <= int(words[0]) < DATABASES:
        raise Complaint("ERR DB index is out of range")
    session.database = int(words[0])
    if session.stored is not None:
        session.stored.select(session.database)
    session.answer("OK")


def _info(session: Caller, words: Words) -> None:
    broker = session.broker
    sections: dict[str, dict[str, Any]] = {
        "server": {
            "redis_version": broker.profile.version,
            "redis_mode": "standalone",
            "os": "fake",
            "arch_bits": 64,
            "tcp_port": broker.port,
            "uptime_in_seconds": int(broker.now - session.opened_at),
        },
        "clients": {"connected_clients": len(broker.sessions)},
        "persistence": {"loading": int(broker.loading)},
        "stats": {
            "total_connections_received": broker.connected,
            "pubsub_channels": len(broker.channels.channels),
            "pubsub_patterns": len(broker.channels.patterns),
        },
        "replication": {"role": "master", "connected_slaves": 0},
        "cluster": {"cluster_enabled": 0},
        "keyspace": {},
    }
    asked = [resp.text(word).lower() for word in words]
    parts = [
        f"# {name.capitalize()}\r\n" + "".join([f"{key}:{value}\r\n" for key, value in lines.items()])
        for name, lines in sections.items()
        if not asked or name in asked or {"all", "default", "everything"} & {*asked}
    ]
    session.answer("\r\n".join(parts).encode())


def _client_line(client: RedisClient, now: float) -> str:
    return (
        f"id={client.number} addr={client.link.address} name={resp.text(client.name)}"
        f" age={int(now - client.opened_at)} idle=0 flags={'P' if client.listening else 'N'}"
        f" db={client.database} sub={len(client.channels)} psub={len(client.patterns)}"
        f" ssub={len(client.shards)} multi=-1"
        f" cmd={client.last_command} user=default redir=-1 resp={3 if client.codec.resp3 else 2}\n"
    )


def _client_list(session: Caller, words: Words) -> None:
    broker = session.broker
    session.answer(resp.raw("".join([_client_line(each, broker.now) for each in broker.sessions.values()])))


def _client_info(session: Caller, words: Words) -> None:
    session.answer(resp.raw(_client_line(session, session.broker.now)))


def _id(session: Caller, words: Words) -> None:
    session.answer(session.number)


def _get_name(session: Caller, words: Words) -> None:
    session.answer(session.name or None)


def _set_name(session: Caller, words: Words) -> None:
    if any(not 0x21 <= letter <= 0x7E for letter in words[1]):
        raise Complaint("ERR Client names cannot contain spaces, newlines or special characters.")
    session.name = words[1]
    session.answer("OK")


def _no_evict(session: Caller, words: Words) -> None:
    if words[1].lower() not in (b"on", b"off"):
        raise Complaint("ERR syntax error")
    session.answer("OK")


def _kill(session: Caller, words: Words) -> None:
    """By address, or by ID and ADDR; the client itself is left alone unless SKIPME says no."""
    if len(words) == 2:
        found = [
            each for each in session.broker.sessions.values() if each.link.address == resp.text(words[1])
        ]
        if not found:
            raise Complaint("ERR No such client")
        session.answer("OK")
    else:
        found = _wanted(session, dict(zip(words[1::2], words[2::2], strict=False)))
        session.answer(len(found))
    for each in found:
        each.end()


def _wanted(session: Caller, filters: Mapping[bytes, bytes]) -> list[RedisClient]:
    asked = {name.upper(): resp.text(value) for name, value in filters.items()}
    if set(asked) - {b"ID", b"ADDR", b"SKIPME"}:
        raise Complaint("ERR syntax error")
    if not asked.get(b"ID", "1").isdigit():
        raise Complaint("ERR client-id should be greater than 0")
    left_alone = asked.get(b"SKIPME", "yes").lower() == "yes"
    return [
        each
        for each in session.broker.sessions.values()
        if asked.get(b"ID", str(each.number)) == str(each.number)
        and asked.get(b"ADDR", each.link.address) == each.link.address
        and not (left_alone and each is session)
    ]


def _channels(session: Caller, words: Words) -> None:
    _list_channels(session, session.broker.channels, words)


def _shard_channels(session: Caller, words: Words) -> None:
    _list_channels(session, session.broker.shards, words)


def _list_channels(session: Caller, channels: Channels, words: Words) -> None:
    if len(words) > 2:
        word = resp.text(words[0])
        raise Complaint(f"ERR unknown subcommand or wrong number of arguments for '{word}'. Try PUBSUB HELP.")
    glob = Glob(words[1] if len(words) > 1 else b"*")
    found = [name for name in map(resp.raw, channels.channels) if glob.fits(name)]
    session.answer(tuple(found))


def _numsub(session: Caller, words: Words) -> None:
    _count_listeners(session, session.broker.channels, words)


def _shard_numsub(session: Caller, words: Words) -> None:
    _count_listeners(session, session.broker.shards, words)


def _count_listeners(session: Caller, registry: Channels, words: Words) -> None:
    channels = registry.channels
    pairs = [(word, len(channels.get(resp.text(word), ()))) for word in words[1:]]
    session.answer(tuple([part for pair in pairs for part in pair]))


def _numpat(session: Caller, words: Words) -> None:
    session.answer(len({each.pattern for each in session.broker.channels.patterns}))


_MANY = 1_000_000

_CLIENT: Mapping[str, Command] = {
    "ID": Command(0, 0, _id),
    "GETNAME": Command(0, 0, _get_name),
    "SETNAME": Command(1, 1, _set_name),
    "LIST": Command(0, _MANY, _client_list),
    "INFO": Command(0, 0, _client_info),
    "NO-EVICT": Command(1, 1, _no_evict),
    "KILL": Command(1, _MANY, _kill),
}
_PUBSUB: Mapping[str, Command] = {
    "SHARDCHANNELS": Command(0, _MANY, _shard_channels),
    "SHARDNUMSUB": Command(0, _MANY, _shard_numsub),
    "CHANNELS": Command(0, _MANY, _channels),
    "NUMSUB": Command(0, _MANY, _numsub),
    "NUMPAT": Command(0, 0, _numpat),
}
_COMMAND: Mapping[str, Command] = {
    "COUNT": Command(0, 0, _say(COMMAND_COUNT)),
    "DOCS": Command(0, _MANY, _say({})),
    "INFO": Command(0, _MANY, _say(())),
}


def _family(subcommands: Mapping[str, Command], alone: Act | None = None) -> Command:
    """Commands whose first argument says which; `alone` is what there is without one."""

    def act(session: Caller, words: Words) -> None:
        chosen = subcommands[resp.text(words[0]).upper()].act if words else alone
        assert chosen is not None
        chosen(session, words)

    return Command(0 if alone else 1, _MANY, act, subcommands=subcommands)


COMMANDS: Mapping[str, Command] = {
    "POST": Command(0, _MANY, _refuse_browser, before_login=True, while_listening=True),
    "HOST:": Command(0, _MANY, _refuse_browser, before_login=True, while_listening=True),
    "PING": Command(0, 1, _ping, while_listening=True, needs_data=True),
    "ECHO": Command(1, 1, _echo),
    "QUIT": Command(0, _MANY, _quit, before_login=True, while_listening=True),
    "RESET": Command(0, 0, _reset, before_login=True, while_listening=True),
    "SELECT": Command(1, 1, _select),
    "INFO": Command(0, _MANY, _info),
    "CLIENT": _family(_CLIENT),
    "PUBSUB": _family(_PUBSUB),
    "COMMAND": _family(_COMMAND, _say(())),
    "CONFIG": Command(1, _MANY, _say(())),
    "FLUSHDB": Command(0, 1, _say("OK"), needs_data=True),
    "FLUSHALL": Command(0, 1, _say("OK"), needs_data=True),
    "DBSIZE": Command(0, 0, _say(0), needs_data=True),
    "GET": Command(1, 1, _say(None), needs_data=True),  # nothing is ever stored, unless there is a store
    # these three have frames of their own; here are commands with a wrong number of arguments
    "PUBLISH": Command(2, 2, None),
    "SUBSCRIBE": Command(1, _MANY, None),
    "PSUBSCRIBE": Command(1, _MANY, None),
    "SPUBLISH": Command(2, 2, None),
    "SSUBSCRIBE": Command(1, _MANY, None),
}


# what is stored


def _carry_out(session: Caller, verb: str, words: Words) -> None:
    """Let the store carry out a command, and answer now or when there is something."""
    broker = session.broker
    assert broker.store is not None
    client = session.stored
    if client is None:
        client = session.stored = broker.store.client(session.database)
    value = client.carry_out([resp.raw(verb), *words], resp3=session.codec.resp3)
    if value is resp.WAITS:
        session.wait(client.timeout_s)
        return
    session.answer(value)
    if broker.waiting:
        broker.serve_waiting()


def _scan(session: Caller, words: Words) -> None:
    """All keys at once, so that there is no next page."""
    options = {words[at].upper(): words[at + 1] for at in range(1, len(words) - 1, 2)}
    if len(words) % 2 == 0 or options.keys() - {b"MATCH", b"COUNT"}:
        raise Complaint("ERR syntax error")
    if not words[0].isdigit():
        raise Complaint("ERR invalid cursor")
    assert session.broker.store is not None
    found = session.broker.store.client(session.database)
    keys = found.carry_out([b"KEYS", options.get(b"MATCH", b"*")])
    found.close()
    session.answer((b"0", keys))


def not_queued() -> Complaint:
    """What is said in a transaction about what is no command on what is stored."""
    return Complaint("ERR this fake queues only commands on what is stored in a transaction")


def _refuse(session: Caller, words: Words) -> None:
    raise not_queued()


def _stored(verb: str) -> Command:
    def act(session: Caller, words: Words) -> None:
        _carry_out(session, verb, words)

    return Command(0, _MANY, act, needs_data=verb not in TRANSACTIONS)


_STORED: Mapping[str, Command] = {
    **{verb: _stored(verb) for verb in STORED},
    "SCAN": Command(1, _MANY, _scan, needs_data=True),
}


def find_command(session: Caller, verb: str) -> Command | None:
    """The command of that name, in whatever case; None if there is none."""
    name = verb.upper()
    if session.broker.store is None:
        return COMMANDS.get(name)
    found = _STORED.get(name) or COMMANDS.get(name)
    if (
        found is None
        or name in STORED | {"QUIT", "RESET"}
        or session.stored is None
        or not session.stored.queues
    ):
        return found
    return found._replace(act=_refuse)
