"""The PZQ fake: a daemon with its three sockets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import HangUp
from fakebrokers.errors import UsageError
from fakebrokers.proxy.server import Proxy
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.codec import MonitorCodec, ReceiveCodec, SendCodec
from fakebrokers.pzq.frames import FRAMES, Parts
from fakebrokers.pzq.memory import RECONNECT_MS, MemorySocket, SocketType, register, unregister
from fakebrokers.pzq.profile import PROFILES, Options
from fakebrokers.pzq.session import MonitorSession, ReceiveSession, SendSession
from fakebrokers.pzq.sockets import DealerListener, RouterListener
from fakebrokers.pzq.store import SqliteStore, Store
from fakebrokers.server import FakeServer

ROLES = ("receive", "send", "monitor")
#: What one pipe of each socket holds, in messages: receive, send, monitor.
HIGH_WATER_MARKS = (10, 1, 1)


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


class PZQ(FakeServer):
    """A PZQ daemon with its three sockets.

        with PZQ() as pzq:
            producer.connect(pzq.receive_url)
            consumer.connect(pzq.send_url)

    Args:
        port: Of the receive socket; 0 takes free ports for all three. With the usual port, 11131, the
            monitor is at its usual place too.
        send_port: Of the send socket; None: free if `port` is 0, else the one behind it.
        monitor: Endpoint of the monitor socket, such as ``ipc:///tmp/pzq-monitor``; None: any free port.
        ack_timeout: Microseconds until an unacknowledged delivery expires.
        reaper_frequency: Microseconds between two looks for expired ones; 0: each comes again exactly in
            time. None: as the profile has it (real: 2 500 000, seed: 0).
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

    protocol = "pzq"
    scheme = "tcp"
    default_port = 11131
    frames = FRAMES
    stream = False
    broker: PzqBroker
    listeners: list[Any]

    def __init__(
        self,
        *,
        port: int = 0,
        send_port: int | None = None,
        monitor: str | None = None,
        ack_timeout: int = 5_000_000,
        reaper_frequency: int | None = None,
        inflight_size: int = 31_457_280,
        order: Literal["strict", "skip"] = "strict",
        high_water_marks: tuple[int, int, int] = HIGH_WATER_MARKS,
        proxied: bool = False,
        database: str | Path | None = None,
        profile: str = "real",
        **options: Any,
    ) -> None:
        self._profile = find_profile(PROFILES, profile, self.protocol)
        self._options = Options(
            ack_timeout=ack_timeout,
            reaper_frequency=reaper_frequency,
            inflight_size=inflight_size,
            order=order,
        )
        self._marks = high_water_marks
        self._database = database
        self._clients: list[MemorySocket] = []
        self._proxied = proxied
        self.proxy: Proxy | None = None  #: if it was asked for, from the start on
        self._send_port = send_port if send_port is not None else port and port + 1
        usual = "ipc:///tmp/pzq-monitor" if port == self.default_port else None
        self._monitor = monitor or usual
        super().__init__(port=port, profile=profile, **options)

    def start(self) -> Self:
        self.proxy = None
        super().start()
        if self._proxied and not self._memory:
            proxy = Proxy(self.urls, host=self.host, seed=self.faults.plan.seed)
            try:
                self.proxy = proxy.start()
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        if self.proxy is not None:
            self.proxy.stop()
        super().stop()

    def check(self) -> None:
        if self.proxy is not None:
            self.proxy.check()
        super().check()

    def make_broker(self, clock: Clock) -> PzqBroker:
        store = Store() if self._database is None else SqliteStore(self._database)
        return PzqBroker(self._profile, self._options, store, wall=clock.wall)

    def make_listeners(self, driver: Driver) -> list[Any]:
        host = f"tcp://[{self.host}]" if ":" in self.host else f"tcp://{self.host}"
        return [
            RouterListener(
                driver,
                f"{host}:{self._wanted_port}",
                self._marks[0],
                lambda: (ReceiveSession(self.broker), ReceiveCodec()),
            ),
            DealerListener(
                driver,
                f"{host}:{self._send_port}",
                self._marks[1],
                lambda room: SendSession(self.broker, room),
                self._profile.identity,
            ),
            RouterListener(
                driver,
                self._monitor or f"{host}:0",
                self._marks[2],
                lambda: (MonitorSession(self.broker), MonitorCodec()),
            ),
        ]

    def _close(self) -> None:
        if self._memory:
            for endpoint in self.urls.values():
                unregister(endpoint)
        super()._close()
        self.broker.store.close()

    def down(self, restart_s: float | None, fault: str) -> None:
        """The daemon died. What it says in this step, if anything, still leaves."""
        for listener in self.listeners:
            listener.dying = True
        super().down(restart_s, fault)

    def opened(self) -> None:
        """The sockets are there again, and those in memory as well."""
        super().opened()
        for client in self._clients:
            client.reconnect()

    def expire_now(self, fault: str) -> None:
        """All deliveries expire at this moment."""
        self.broker.expire_now(self.engine.now)

    def change_identity(self, identity: str, fault: str) -> None:
        """The send socket comes back with another routing id; its connections end."""

        def act() -> None:
            for listener in self.listeners[1:2]:
                listener.identity = identity.encode()
                listener.hang_up(HangUp.FIN)

        self._post(act)

    # memory

    @property
    def memory_doors(self) -> int:
        """One for each socket."""
        return len(ROLES)

    def bound(self) -> None:
        """Let clients in memory find the three sockets, see `memory.connect`."""
        if self._memory:
            for role, endpoint in self.urls.items():
                register(endpoint, partial(self.connect_memory_socket, role))

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
        if not self._memory or self._driver is None:
            raise UsageError("connect_memory_socket needs a fake that was made with memory=True and started")
        welcome = {
            "receive": lambda: (ReceiveSession(self.broker), ReceiveCodec()),
            "send": lambda: (SendSession(self.broker), SendCodec()),
            "monitor": lambda: (MonitorSession(self.broker), MonitorCodec()),
        }[role]
        identity = self._profile.identity if role == "send" else b""
        client = MemorySocket(
            self._driver, kind, welcome, lambda: not self.gate.shut, on_message, identity, reconnect_ms
        )
        self._clients.append(client)
        return client

    def client_holds(self, connection: str) -> bool | None:
        """Nobody can tell, except in memory: libzmq keeps the TCP connections to itself."""
        return any(client.holds(connection) for client in self._clients) if self._memory else None

    # addresses

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
        if self._memory and self._doors:
            return f"{self.scheme}://{self.host}:{self._doors[number]}"
        if not self.listeners:
            return self.url  # raises
        if self.proxy is not None:
            return self.proxy.urls[ROLES[number]]
        endpoint: str = self.listeners[number].endpoint
        return endpoint

    @property
    def urls(self) -> dict[str, str]:
        return {role: self._endpoint(number) for number, role in enumerate(ROLES)}

    @property
    def where(self) -> dict[str, str]:
        return self.urls

    # looking and acting

    @property
    def messages(self) -> list[StoredMessage]:
        """What is stored, in the order of delivery."""
        return self.call(self._messages)

    def _messages(self) -> list[StoredMessage]:
        in_flight = set(self.broker.in_flight)
        stored = sorted(self.broker.store, key=lambda message: message.place)
        return [StoredMessage(m.key, m.body, m.key in in_flight) for m in stored]

    @property
    def statistics(self) -> dict[str, int]:
        """What the monitor tells, under the names of the profile."""
        numbers = self.call(self.broker.statistics)
        return dict(zip(self._profile.monitor_keys, numbers, strict=True))

    @property
    def lost_acknowledgements(self) -> int:
        """Acknowledgements that a producer's full pipe lost, as with the daemon."""
        listeners: list[RouterListener] = self.listeners[:1]
        return sum(listener.lost_messages for listener in listeners)

    def expire(self) -> None:
        """Let all deliveries expire at this moment; the messages come again."""
        self.call(lambda: self.broker.expire_now(self.engine.now))

    def put(self, *body: bytes, key: bytes | None = None) -> bytes:
        """Store a message as if a producer had sent it; returns its key.

        With a `key` of a message that was acknowledged, it is what a killed daemon does that had not
        yet written the removal down: the message is back. `UsageError` if that key is stored.
        """

        def act() -> bytes:
            now = self.engine.now
            if key is not None and self.broker.store.get(key) is not None:
                raise UsageError(f"expected a key that no stored message has, got {key!r}")
            made = self.broker.put(body, now, id=key or b"", replica=key is not None)
            self.broker.turn(now)
            return made

        return self.call(act)
