"""What is stored: strings and lists, kept by fakeredis, on the clock of the fake.

fakeredis knows the commands; it gets no bytes, and no time but ours. Only commands are let through that go
by that time and take no longer than what they are given.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fakeredis import FakeServer
from fakeredis._commands import SUPPORTED_COMMANDS
from fakeredis._core import Database
from fakeredis._helpers import NoResponse, SimpleError, SimpleString
from fakeredis._socket import FakeSocket

from fakebrokers.redis import resp
from fakebrokers.redis.frames import Command
from fakebrokers.redis.resp import WAITS
from fakebrokers.redis.words import STORED, Glob

_LOG = logging.getLogger("fakebrokers.redis")

#: Those that answer with an array, so that nothing is an array as well.
_OF_ARRAYS = frozenset([b"BLPOP", b"BRPOP", b"BLMPOP", b"LMPOP", b"EXEC"])
#: What fakeredis does not know, and another command that does the same here.
_SAME = {b"TOUCH": b"EXISTS"}
_NEGATIVE = re.compile(rb"-[0-9.]+")
_EXPIRE = re.compile(r"ERR invalid expire time in (\w+)\Z")
_WITH_COUNT = frozenset([b"LPOP", b"RPOP"])


class _Waiting(NamedTuple):
    """How to try again; what comes of it becomes the answer by `shape`."""

    attempt: Callable[[bool], Any]
    shape: Callable[[Any], Any] | None


class _Database(Database):
    """Keys of one database; `time` is the fake's."""

    def __init__(self, lock: Any, wall: Callable[[], float]) -> None:
        self._wall = wall
        super().__init__(lock)

    @property
    def time(self) -> float:
        return self._wall()

    @time.setter
    def time(self, value: float) -> None:
        """fakeredis sets it before each command."""


class Store:
    """All that is stored.

    Args:
        wall: Seconds since 1970 now.
    """

    def __init__(self, wall: Callable[[], float], version: str) -> None:
        self._wall = wall
        self._version = version
        self.clear()

    def clear(self) -> None:
        """Forget everything; clients that were there have to be made anew."""
        self.server = FakeServer(version=tuple(map(int, self._version.split("."))))
        lock = self.server.lock
        self.server.dbs = defaultdict(lambda: _Database(lock, self._wall))

    def problem_with(self, frame: Command) -> str:
        """What is wrong with the number of a command's arguments; "" if nothing is."""
        verb = frame.verb.upper()
        if verb not in STORED:
            return ""
        raw = resp.raw(verb)
        try:
            SUPPORTED_COMMANDS[_SAME.get(raw, raw).decode().lower()].check_arity(
                list(frame.arguments), self.server.version
            )
        except SimpleError:
            return f"ERR wrong number of arguments for '{verb.lower()}' command"
        return ""

    def client(self, database: int = 0) -> Client:
        """Somebody who carries out commands."""
        return Client(self.server, database)


class Client(FakeSocket):
    """One client's view of the store: its database, its transaction, and what it waits for."""

    def __init__(self, server: FakeServer, database: int) -> None:
        self._resp3 = False
        self._said: Any = None
        self._waiting: _Waiting | None = None
        self._verb, self._words = b"", [b""]
        super().__init__(server, database, client_class=object)

    @property
    def queues(self) -> bool:
        """Whether it is in a transaction, whose commands wait for EXEC."""
        return self._transaction is not None

    @property
    def _resp_version(self) -> int:
        return 3 if self._resp3 else 2

    def select(self, database: int) -> None:
        """Go to another database."""
        self._db_num, self._db = database, self._server.dbs[database]

    def carry_out(self, words: Sequence[bytes], *, resp3: bool = False) -> Any:
        """The value of a command, as `resp.write` takes it; `WAITS` if it has to wait."""
        self._resp3, self._said, self._waiting = resp3, None, None
        self._words = [words[0].upper(), *words[1:]]
        self._verb = self._words[0]
        if self._verb == b"KEYS" and len(words) == 2 and not self.queues:
            glob = Glob(words[1])
            return tuple(key for key in self._db if glob.fits(key))
        if self._verb == b"TTL" and len(words) == 2 and not self.queues:
            left = self.carry_out([b"PTTL", words[1]], resp3=resp3)
            return (left + 500) // 1000 if left >= 0 else left  # fakeredis does not round
        try:
            self._process_command(_in_words_of_fakeredis(self._words))
        except Exception:  # of fakeredis: nothing that a client says may be an error of the test
            _LOG.warning("fakeredis could not carry out %r", self._verb, exc_info=True)
            return resp.Failure("ERR internal error")
        if self._waiting is not None:
            return WAITS
        return self._shaped(self._said, len(words))

    def try_again(self) -> Any:
        """What a command that waits has come to; `WAITS` if to nothing yet."""
        assert self._waiting is not None
        attempt, shape = self._waiting
        with self._server.lock:
            try:
                found = attempt(False)
            except SimpleError as error:
                found = error
        if found is None:
            return WAITS
        return self._decode_result(found if shape is None else shape(found))

    def given_up(self) -> Any:
        """What is answered when the time is over."""
        return resp.NULL_ARRAY

    def _shaped(self, value: Any, words: int) -> Any:
        is_array = self._verb in _OF_ARRAYS or (self._verb in _WITH_COUNT and words > 2)
        return resp.NULL_ARRAY if value is None and is_array else value

    def put_response(self, msg: Any) -> None:
        """Called by fakeredis with the answer."""
        self._said = msg

    def _decode_result(self, result: Any) -> Any:
        """Called by fakeredis to turn its values into those of the wire."""
        match result:
            case SimpleString():
                return result.value.decode()
            case SimpleError():
                return resp.Failure(self._in_words_of_redis(result.value))
            case list() | tuple():
                return tuple(map(self._decode_result, result))
            case str():
                return result.encode()
        return result

    def _in_words_of_redis(self, text: str) -> str:
        """What redis-server 7.0.15 says where fakeredis has other words."""
        if text == "ERR timeout is negative" and not _NEGATIVE.fullmatch(self._timeout_word):
            return "ERR timeout is not a float or out of range"
        if text.startswith("ERR NX and XX") and not {b"NX", b"XX"} & {*map(bytes.upper, self._words)}:
            return "ERR GT and LT options at the same time are not compatible"
        text = _EXPIRE.sub(r"ERR invalid expire time in '\1' command", text)
        return text if text.partition(" ")[0].isupper() and not text.startswith("RANK") else f"ERR {text}"

    @property
    def _timeout_word(self) -> bytes:
        return self._words[1] if self._verb == b"BLMPOP" else self._words[-1]

    def spoil(self) -> None:
        """What was said in a transaction is no command: EXEC will fail."""
        if self.queues:
            self._transaction_failed = True

    def _blocking(
        self,
        timeout: float | None,
        func: Callable[[bool], Any],
        shape: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Called by fakeredis to wait: the session does, without a thread."""
        found = func(True)
        if found is not None or self._in_transaction:
            return found if shape is None else shape(found)
        self.timeout_s = float(timeout or 0.0)
        self._waiting = _Waiting(func, shape)
        return NoResponse()


def _in_words_of_fakeredis(words: list[bytes]) -> list[bytes]:
    """A command by another one that does the same, where fakeredis does not know it or cuts its time."""
    match words:
        case [b"SETEX" | b"PSETEX" as verb, key, time, value] if time.isdigit() and int(time[:12]) > 0:
            return [b"SET", key, value, b"EX" if verb == b"SETEX" else b"PX", time]
    return [_SAME.get(words[0], words[0]), *words[1:]]
