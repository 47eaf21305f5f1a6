"""The fake Redis, as tests see it.

with Redis() as fake:
    client = redis.Redis(port=fake.port)
    client.rpush("orders", "tea")
    assert fake.messages("orders") == [b"tea"]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from fakebrokers.bodies import Body, body_of
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.tls import Tls, certificate_of
from fakebrokers.errors import UsageError
from fakebrokers.extras import needs
from fakebrokers.options import ServerOptions
from fakebrokers.redis import resp
from fakebrokers.redis.broker import RedisBroker
from fakebrokers.redis.codec import RedisCodec
from fakebrokers.redis.profile import PROFILES
from fakebrokers.redis.protocol import PROTOCOL, WIRE
from fakebrokers.redis.session import RedisSession
from fakebrokers.server import FakeServer


class Redis(FakeServer):
    """A Redis server (needs the extra ``redis``).

    Args:
        profile: ``real`` or ``7.0``.
        user, password: What clients have to show; a password alone is that of the user ``default``.
        tls: Listen for TLS too, on a further port; `tls_port` and `tls.ca_file` are what a client needs. A
            name of `Certificate`, such as ``expired``: with that one.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: RedisBroker

    def __init__(
        self,
        *,
        profile: str = "real",
        user: str = "",
        password: str = "",
        tls: bool | str = False,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._profile = find_profile(PROFILES, profile, PROTOCOL.name)
        self._login = (user, password)
        self._wants_tls = tls and certificate_of(tls)
        self.tls: Tls | None = None
        super().__init__(profile=profile, **options)

    def _make_broker(self, clock: Clock) -> RedisBroker:
        with needs("redis", "a fake Redis"):
            from fakebrokers.redis.store import Store

        store = Store(lambda: clock.wall(self.engine.now), self._profile.version)
        return RedisBroker(self._profile, *self._login, store)

    def _endpoints(self) -> list[Endpoint]:
        plain = Endpoint(WIRE, self._new_session, self._wanted_port)
        if not self._wants_tls or not self._has_streams:
            return [plain]
        self.tls = Tls(self.host, show=self._wants_tls)
        return [plain, Endpoint(WIRE, self._new_session, 0, self.tls.context)]

    def _new_session(self, transport: Any) -> tuple[Session, Codec]:
        codec = RedisCodec()
        return RedisSession(self.broker, codec), codec

    def _bound(self) -> None:
        self.broker.host, self.broker.port = self.host, self.port

    def _stopped(self) -> None:
        """Remove the certificates."""
        if self.tls is not None:
            self.tls.close()

    @property
    def _contents(self) -> dict[str, int]:
        return {"key": len(self.keys)} if self.runs else {}

    @property
    def urls(self) -> dict[str, str]:
        """``tls``: where clients with TLS connect."""
        return {} if self.tls is None else {"tls": f"rediss://{self.host}:{self.tls_port}"}

    @property
    def tls_port(self) -> int:
        """The port for TLS."""
        if self.tls is None:
            raise UsageError("this fake has no TLS listener: make it with tls=True and start it")
        return self.listeners[1].port

    # what tests do; keys are those of database 0

    def publish(self, channel: str, payload: Body) -> int:
        """A message without a publishing client; returns how many subscriptions got it.

        Args:
            payload: Bytes, or text, which becomes UTF-8.
        """
        body = body_of(payload)
        return self.call(lambda: self.broker.route(None, channel, body))

    @property
    def subscriptions(self) -> list[str]:
        """The channels and patterns with listeners, one for each listener."""
        return self.call(lambda: sorted(each.pattern for each in self.broker.subscriptions))

    @property
    def keys(self) -> list[str]:
        """All keys."""
        return [resp.text(key) for key in self._carry_out(b"KEYS", b"*")]

    def value(self, key: str) -> bytes | None:
        """A string that is stored; None if there is none."""
        found: bytes | None = self._carry_out(b"GET", resp.raw(key))
        return found

    def store(self, key: str, value: Body, *, expires_s: float | None = None) -> None:
        """Store a string, for so many seconds or for ever."""
        options = [] if expires_s is None else [b"PX", b"%d" % round(expires_s * 1000)]
        self._carry_out(b"SET", resp.raw(key), body_of(value), *options)

    def push(self, key: str, *values: Body) -> int:
        """Append to a list, as RPUSH does; returns how long it is then, or was before a client took it."""
        count: int = self._carry_out(b"RPUSH", resp.raw(key), *map(body_of, values))
        return count

    def delete(self, key: str, *, fault: str = "") -> None:
        """A key is no more, whatever it holds."""
        if self._carry_out(b"DEL", resp.raw(key)):
            self.journal.state(self.engine.now, "", "deleted", key, fault)

    def messages(self, key: str) -> Sequence[bytes]:
        """What is in a list, the head first."""
        return list(self._carry_out(b"LRANGE", resp.raw(key), b"0", b"-1"))

    def _carry_out(self, *words: bytes) -> Any:
        def act() -> Any:
            broker = self.broker
            assert broker.store is not None
            broker.now = self.engine.now
            client = broker.store.client()
            found = client.carry_out(words)
            client.close()
            broker.serve_waiting()
            return found

        found = self.call(act)
        if isinstance(found, resp.Failure):
            raise UsageError(str(found))
        return found
