"""The small commands of Redis that client libraries say around publish and subscribe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fakebrokers.moleculer.redis import frames as f
from fakebrokers.moleculer.redis import resp
from fakebrokers.moleculer.redis.bus import VERSION, Channels
from fakebrokers.moleculer.redis.words import Glob

if TYPE_CHECKING:
    from fakebrokers.moleculer.redis.session import RedisSession

Words = Sequence[bytes]
Act = Callable[["RedisSession", Words], None]

#: How Redis writes numbers.
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,9}")
#: Databases that SELECT knows.
DATABASES = 16
#: Commands of redis-server 7.0.15, as COMMAND COUNT tells; clients show it.
COMMAND_COUNT = 240


class Complaint(Exception):
    """An error reply; its text."""


class Command(NamedTuple):
    """A command.

    Attributes:
        least, most: How many arguments it has.
        act: Carries it out; None: says nothing.
        before_login, while_listening: When it may be said.
        subcommands: Of which the first argument is one; with their own numbers of arguments.
    """

    least: int
    most: int
    act: Act | None
    before_login: bool = False
    while_listening: bool = False
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
    return lambda session, words: session.link.say(f.Reply(value))


def _ping(session: RedisSession, words: Words) -> None:
    if session.listening and not session.codec.resp3:
        session.link.say(f.Reply((b"pong", words[0] if words else b"")))
    else:
        session.link.say(f.Reply(words[0] if words else "PONG"))


def _echo(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply(words[0]))


def _refuse_browser(session: RedisSession, words: Words) -> None:
    """Redis takes this for a browser that somebody has sent here, and hangs up."""
    session.end()


def _quit(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply("OK"))
    session.end()


def _reset(session: RedisSession, words: Words) -> None:
    session.reset()
    session.link.say(f.Reply("RESET"))


def _select(session: RedisSession, words: Words) -> None:
    if not _INTEGER.fullmatch(words[0]):
        raise Complaint("ERR value is not an integer or out of range")
    if not 0 <= int(words[0]) < DATABASES:
        raise Complaint("ERR DB index is out of range")
    session.database = int(words[0])
    session.link.say(f.Reply("OK"))


def _info(session: RedisSession, words: Words) -> None:
    bus = session.bus
    sections: dict[str, dict[str, Any]] = {
        "server": {
            "redis_version": VERSION,
            "redis_mode": "standalone",
            "os": "fake",
            "arch_bits": 64,
            "tcp_port": bus.port,
            "uptime_in_seconds": int(bus.now - session.opened_at),
        },
        "clients": {"connected_clients": len(bus.sessions)},
        "persistence": {"loading": 0},
        "stats": {
            "total_connections_received": bus.connected,
            "pubsub_channels": len(bus.channels.channels),
            "pubsub_patterns": len(bus.channels.patterns),
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
    session.link.say(f.Reply("\r\n".join(parts).encode()))


def _client_line(session: RedisSession) -> str:
    return (
        f"id={session.number} addr={session.link.address} name={resp.text(session.name)}"
        f" age={int(session.bus.now - session.opened_at)} idle=0 flags={'P' if session.listening else 'N'}"
        f" db={session.database} sub={len(session.channels)} psub={len(session.patterns)}"
        f" ssub={len(session.shards)} multi=-1"
        f" cmd={session.last_command} user=default redir=-1 resp={3 if session.codec.resp3 else 2}\n"
    )


def _client_list(session: RedisSession, words: Words) -> None:
    lines = "".join([_client_line(each) for each in session.bus.sessions.values()])
    session.link.say(f.Reply(resp.raw(lines)))


def _client_info(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply(resp.raw(_client_line(session))))


def _id(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply(session.number))


def _get_name(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply(session.name or None))


def _set_name(session: RedisSession, words: Words) -> None:
    if any(not 0x21 <= letter <= 0x7E for letter in words[1]):
        raise Complaint("ERR Client names cannot contain spaces, newlines or special characters.")
    session.name = words[1]
    session.link.say(f.Reply("OK"))


def _no_evict(session: RedisSession, words: Words) -> None:
    if words[1].lower() not in (b"on", b"off"):
        raise Complaint("ERR syntax error")
    session.link.say(f.Reply("OK"))


def _kill(session: RedisSession, words: Words) -> None:
    """By address, or by ID and ADDR; the client itself is left alone unless SKIPME says no."""
    if len(words) == 2:
        found = [each for each in session.bus.sessions.values() if each.link.address == resp.text(words[1])]
        if not found:
            raise Complaint("ERR No such client")
        session.link.say(f.Reply("OK"))
    else:
        found = _wanted(session, dict(zip(words[1::2], words[2::2], strict=False)))
        session.link.say(f.Reply(len(found)))
    for each in found:
        each.end()


def _wanted(session: RedisSession, filters: Mapping[bytes, bytes]) -> list[RedisSession]:
    asked = {name.upper(): resp.text(value) for name, value in filters.items()}
    if set(asked) - {b"ID", b"ADDR", b"SKIPME"}:
        raise Complaint("ERR syntax error")
    if not asked.get(b"ID", "1").isdigit():
        raise Complaint("ERR client-id should be greater than 0")
    left_alone = asked.get(b"SKIPME", "yes").lower() == "yes"
    return [
        each
        for each in session.bus.sessions.values()
        if asked.get(b"ID", str(each.number)) == str(each.number)
        and asked.get(b"ADDR", each.link.address) == each.link.address
        and not (left_alone and each is session)
    ]


def _channels(session: RedisSession, words: Words) -> None:
    _list_channels(session, session.bus.channels, words)


def _shard_channels(session: RedisSession, words: Words) -> None:
    _list_channels(session, session.bus.shards, words)


def _list_channels(session: RedisSession, channels: Channels, words: Words) -> None:
    if len(words) > 2:
        word = resp.text(words[0])
        raise Complaint(f"ERR unknown subcommand or wrong number of arguments for '{word}'. Try PUBSUB HELP.")
    glob = Glob(words[1] if len(words) > 1 else b"*")
    found = [name for name in map(resp.raw, channels.channels) if glob.fits(name)]
    session.link.say(f.Reply(tuple(found)))


def _numsub(session: RedisSession, words: Words) -> None:
    _count_listeners(session, session.bus.channels, words)


def _shard_numsub(session: RedisSession, words: Words) -> None:
    _count_listeners(session, session.bus.shards, words)


def _count_listeners(session: RedisSession, registry: Channels, words: Words) -> None:
    channels = registry.channels
    pairs = [(word, len(channels.get(resp.text(word), ()))) for word in words[1:]]
    session.link.say(f.Reply(tuple([part for pair in pairs for part in pair])))


def _numpat(session: RedisSession, words: Words) -> None:
    session.link.say(f.Reply(len({each.pattern for each in session.bus.channels.patterns})))


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

    def act(session: RedisSession, words: Words) -> None:
        chosen = subcommands[resp.text(words[0]).upper()].act if words else alone
        assert chosen is not None
        chosen(session, words)

    return Command(0 if alone else 1, _MANY, act, subcommands=subcommands)


COMMANDS: Mapping[str, Command] = {
    "POST": Command(0, _MANY, _refuse_browser, before_login=True, while_listening=True),
    "HOST:": Command(0, _MANY, _refuse_browser, before_login=True, while_listening=True),
    "PING": Command(0, 1, _ping, while_listening=True),
    "ECHO": Command(1, 1, _echo),
    "QUIT": Command(0, _MANY, _quit, before_login=True, while_listening=True),
    "RESET": Command(0, 0, _reset, before_login=True, while_listening=True),
    "SELECT": Command(1, 1, _select),
    "INFO": Command(0, _MANY, _info),
    "CLIENT": _family(_CLIENT),
    "PUBSUB": _family(_PUBSUB),
    "COMMAND": _family(_COMMAND, _say(())),
    "CONFIG": Command(1, _MANY, _say(())),
    "FLUSHDB": Command(0, 1, _say("OK")),
    "FLUSHALL": Command(0, 1, _say("OK")),
    "DBSIZE": Command(0, 0, _say(0)),
    "GET": Command(1, 1, _say(None)),  # nothing is ever stored
    # these three have frames of their own; here are commands with a wrong number of arguments
    "PUBLISH": Command(2, 2, None),
    "SUBSCRIBE": Command(1, _MANY, None),
    "PSUBSCRIBE": Command(1, _MANY, None),
    "SPUBLISH": Command(2, 2, None),
    "SSUBSCRIBE": Command(1, _MANY, None),
}
