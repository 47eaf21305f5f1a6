"""The PZQ fake: a daemon with its three sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Unpack, overload
from weakref import WeakKeyDictionary

from fakebrokers.bodies import Body, body_of
from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Listener
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import HangUp, Session
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.options import Count, Port, Seconds, ServerOptions
from fakebrokers.proxy.server import Proxy
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.codec import MonitorCodec, PzqCodec, ReceiveCodec, SendCodec
from fakebrokers.pzq.frames import Parts
from fakebrokers.pzq.listener import ZmqListener
from fakebrokers.pzq.memory import RECONNECT_MS, MemorySocket, MemoryZmqListener, SocketType
from fakebrokers.pzq.profile import PROFILES, Options
from fakebrokers.pzq.protocol import PROTOCOL, WIRE
from fakebrokers.pzq.session import MonitorSession, ReceiveSession, SendSession
from fakebrokers.pzq.sockets import DealerListener, RouterListener
from fakebrokers.pzq.store import SqliteStore, Store
from fakebrokers.renamed import formerly, warn_of_old
from fakebrokers.server import FakeServer

ROLES = ("receive", "send", "monitor")
#: What one pipe of each socket holds, in messages: receive, send, monitor.
HIGH_WATER_MARKS = (10, 1, 1)


#: How many were made on a loop in memory: each draws keys of its own, as daemons beside each other do.
_made: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def _number_of_another() -> int:
    """How many there are on this loop already; 0 outside of one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return 0
    _made[loop] = _made.get(loop, -1) + 1
    return _made[loop]


class StoredMessage(NamedTuple):
    """A message as a test sees it.

    Attributes:
        key: What consumers know it by.
        body: Its parts.
        in_flight: It was delivered, and neither acknowledged nor expired.
    """

    key: bytes
    body: Parts
    in_flight: bool


class Messages(Sequence[StoredMessage]):
    """What `PZQ.messages` is: to be called. It used to be the list itself, and still acts as one."""

    def __init__(self, read: Callable[[], list[StoredMessage]]) -> None:
        self._read = read

    def __call__(self) -> list[StoredMessage]:
        return self._read()

    def _list(self) -> list[StoredMessage]:
        warn_of_old("PZQ.messages", "PZQ.messages()", depth=3)
        return self._read()

    @overload
    def __getitem__(self, at: int) -> StoredMessage: ...

    @overload
    def __getitem__(self, at: slice) -> list[StoredMessage]: ...

    def __getitem__(self, at: int | slice) -> StoredMessage | list[StoredMessage]:
        return self._list()[at]

    def __len__(self) -> int:
        return len(self._list())

    def __iter__(self) -> Iterator[StoredMessage]:
        return iter(self._list())

    def __eq__(self, other: object) -> bool:
        return self._list() == other

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return repr(self._read())


class PZQ(FakeServer):
    """A PZQ daemon with its three sockets.

        with PZQ() as pzq:
            producer.connect(pzq.receive_url)
            consumer.connect(pzq.send_url)

    Args:
        port: Of the receive socket; 0 takes free ports for all three. With the usual port, 11131, the
            monitor is at its usual place too.
        send_port: Of the send socket; None: free if `port` is 0, else the one after it.
        monitor: Endpoint of the monitor socket, such as ``ipc:///tmp/pzq-monitor``; None: any free port.
        ack_timeout_s: Seconds until an unacknowledged delivery expires.
        reaper_interval_s: Seconds between two looks for expired ones; 0: each comes again exactly in
            time. None: as the profile has it (real: 2.5, seed: 0).
        inflight_size: Bytes of the in-flight table.
        order: ``strict`` delivers by key; ``skip`` as the real daemon with a backlog.
        high_water_marks: Messages that a pipe of each socket holds (receive, send, monitor). With the
            daemon's own marks a producer that sends many at once misses some acknowledgements, as it
            would with the daemon; 0 for the first one holds them all.
        proxied: Let clients come through a byte proxy (`proxy`), whose faults do to the bytes what those of
            this object cannot: libzmq owns its wires. In memory there are no bytes and no proxy.
        database: A file that keeps the messages; None: they live in memory, and survive `crash` and
            `restart` of this object only.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: PzqBroker
    _old_keywords: ClassVar = {
        "ack_timeout": ("ack_timeout_s", 1e6),
        "reaper_frequency": ("reaper_interval_s", 1e6),
    }

    def __init__(
        self,
        *,
        send_port: Port | None = None,
        monitor: str | None = None,
        ack_timeout_s: Seconds = 5.0,
        reaper_interval_s: Seconds | None = None,
        inflight_size: Count = 31_457_280,
        order: Literal["strict", "skip"] = "strict",
        high_water_marks: tuple[int, int, int] = HIGH_WATER_MARKS,
        proxied: bool = False,
        database: str | Path | None = None,
        profile: str = "real",
        **options: Unpack[ServerOptions],
    ) -> None:
        self._profile = find_profile(PROFILES, profile, PROTOCOL.name)
        self._options = Options(
            ack_timeout=round(ack_timeout_s * 1e6),
            reaper_frequency=None if reaper_interval_s is None else round(reaper_interval_s * 1e6),
            inflight_size=inflight_size,
            order=order,
        )
        self._marks = high_water_marks
        self._database = database
        self._proxied = proxied
        self.proxy: Proxy | None = None  #: if it was asked for, from the start on
        port = options.get("port", 0)
        self._send_port = send_port if send_port is not None else port and port + 1
        usual = "ipc:///tmp/pzq-monitor" if port == self.protocol.port else None
        self._monitor = monitor or usual
        super().__init__(profile=profile, **options)

    def _bound(self) -> None:
        self.proxy = None

    def _started(self) -> None:
        if self._proxied and not self.in_memory:
            self.proxy = Proxy(self.urls, host=self.host, seed=self.faults.plan.seed).start()
            self.proxy._is_companion = True

    def _stopping(self) -> None:
        if self.proxy is not None:
            self.proxy.stop()

    @property
    def _companions(self) -> Mapping[str, FakeServer]:
        return {} if self.proxy is None else {"proxy": self.proxy}

    def check(self, timeout: float = 0.0) -> None:
        if self.proxy is not None:
            self.proxy.check(timeout)
        super().check(timeout)

    def _make_broker(self, clock: Clock) -> PzqBroker:
        store = Store() if self._database is None else SqliteStore(self._database)
        seed = _number_of_another() if self.in_memory else None  # runs on virtual time repeat exactly
        return PzqBroker(self._profile, self._options, store, wall=clock.wall, seed=seed)

    def _new_listeners(self, driver: Driver) -> list[Listener]:
        if self.in_memory:
            return [*self._memory_listeners(driver)]
        host = f"tcp://[{self.host}]" if ":" in self.host else f"tcp://{self.host}"
        receive = RouterListener(
            driver, WIRE, f"{host}:{self._wanted_port}", self._marks[0], self._receive_session
        )
        send = DealerListener(
            driver,
            WIRE,
            f"{host}:{self._send_port}",
            self._marks[1],
            lambda room: SendSession(self.broker, room),
            self._profile.identity,
        )
        monitor = RouterListener(
            driver, WIRE, self._monitor or f"{host}:0", self._marks[2], self._monitor_session
        )
        return [receive, send, monitor]

    def _memory_listeners(self, driver: Driver) -> list[MemoryZmqListener]:
        return [
            MemoryZmqListener(driver, WIRE, self.host, self._receive_session),
            MemoryZmqListener(driver, WIRE, self.host, self._send_session, self._profile.identity),
            MemoryZmqListener(driver, WIRE, self.host, self._monitor_session),
        ]

    def _receive_session(self) -> tuple[Session, PzqCodec]:
        return ReceiveSession(self.broker), ReceiveCodec()

    def _send_session(self) -> tuple[Session, PzqCodec]:
        return SendSession(self.broker), SendCodec()

    def _monitor_session(self) -> tuple[Session, PzqCodec]:
        return MonitorSession(self.broker), MonitorCodec()

    def _closed(self) -> None:
        self.broker.store.close()

    def change_identity(self, identity: bytes) -> None:
        """The send socket comes back with another routing id; its connections end."""

        def act() -> None:
            listener = self.listeners[1]
            assert isinstance(listener, DealerListener | MemoryZmqListener)
            listener.identity = identity
            listener.hang_up(HangUp.FIN)

        self._post(act)

    def connect_memory_socket(
        self,
        role: str,
        kind: SocketType,
        on_message: Callable[[Parts], None],
        reconnect_ms: int = RECONNECT_MS,
    ) -> MemorySocket:
        """Join a client's socket to one of the three without ZeroMQ (``memory=True``).

        Args:
            role: Which of the fake's sockets: ``receive``, ``send`` or ``monitor``.
            kind: Which type the client's is.
            on_message: Gets the parts of each message as that type of socket would give them.
            reconnect_ms: How long after a loss it connects again; -1: never.
        """
        if role not in ROLES:
            raise UsageError(f"there is no socket {role!r}{instead_of(role, ROLES)}")
        listener = self.listeners[ROLES.index(role)] if len(self.listeners) else None
        if not isinstance(listener, MemoryZmqListener):
            raise UsageError("connect_memory_socket needs a fake that was made with memory=True and started")
        return listener.connect(kind, on_message, reconnect_ms)

    @property
    def _contents(self) -> dict[str, int]:
        return {"message": len(self.broker.store)}

    # addresses

    @property
    def scheme(self) -> str:
        return "tcp"

    @property
    def port(self) -> int:
        return super().port if self.proxy is None else self.proxy.port

    @property
    def receive_url(self) -> str:
        """Where producers connect."""
        return self._endpoint(0)

    @property
    def send_url(self) -> str:
        """Where consumers connect."""
        return self._endpoint(1)

    @property
    def monitor_url(self) -> str:
        """Where monitoring clients connect."""
        return self._endpoint(2)

    def _endpoint(self, number: int) -> str:
        if not len(self.listeners):
            return self.url  # raises
        if self.proxy is not None:
            return self.proxy.urls[ROLES[number]]
        listener = self.listeners[number]
        assert isinstance(listener, ZmqListener | MemoryZmqListener)
        return listener.endpoint

    @property
    def urls(self) -> dict[str, str]:
        return {role: self._endpoint(number) for number, role in enumerate(ROLES)}

    @property
    def where(self) -> dict[str, str]:
        return self.urls

    # looking and acting

    @property
    def messages(self) -> Messages:
        """A method: ``messages()`` is what is stored, in the order of delivery.

        Without the parentheses it can be used as that list as well, which is the old way.
        """
        return Messages(lambda: self.call(self._messages))

    def _messages(self) -> list[StoredMessage]:
        in_flight = set(self.broker.in_flight)
        stored = sorted(self.broker.store, key=lambda message: message.place)
        return [StoredMessage(m.key, m.body, m.key in in_flight) for m in stored]

    @property
    def statistics(self) -> dict[str, int]:
        """What the monitor reports, under the names of the profile."""
        numbers = self.call(self.broker.statistics)
        return dict(zip(self._profile.monitor_keys, numbers, strict=True))

    @property
    def lost_acknowledgements(self) -> int:
        """Acknowledgements that a producer's full pipe lost, as with the daemon."""
        receive = self.listeners[0] if len(self.listeners) else None
        return receive.lost_messages if isinstance(receive, RouterListener) else 0

    def expire(self) -> None:
        """Let all deliveries expire at this moment; the messages come again."""
        self.call(lambda: self.broker.expire_now(self.engine.now))

    def publish(self, *body: Body, key: Body | None = None) -> bytes:
        """Store a message of these parts as if a producer had sent it; returns its key.

        Parts are bytes, or text, which becomes UTF-8.

        With a `key` of a message that was acknowledged, it is what a killed daemon does that had not
        yet written the removal down: the message is back. `UsageError` if that key is stored.
        """

        parts = tuple(map(body_of, body))
        id = b"" if key is None else body_of(key)

        def act() -> bytes:
            now = self.engine.now
            if key is not None and self.broker.store.get(id) is not None:
                raise UsageError(f"expected a key that no stored message has, got {id!r}")
            made = self.broker.put(parts, now, id=id, replica=key is not None)
            self.broker.turn(now)
            return made

        return self.call(act)

    put = formerly("put", publish)
