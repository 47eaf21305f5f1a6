"""The Narconi fake: a server process and the RabbitMQ behind it, in one.

with Narconi() as narconi:
    narconi.create_queue("gold", "orders")
    requests.post(narconi.messages_url("gold", "orders"), data=b"hello")
    assert narconi.messages("gold", "orders")[0].payload == b"hello"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from fakebrokers.bodies import Body, body_of
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.tls import Tls, certificate_of
from fakebrokers.errors import UsageError
from fakebrokers.journal.record import State
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.broker import Message, NarconiBroker, Queue
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.profile import PROFILES
from fakebrokers.narconi.protocol import PROTOCOL, WIRE
from fakebrokers.narconi.session import NarconiSession
from fakebrokers.options import ServerOptions, struct_of
from fakebrokers.renamed import formerly
from fakebrokers.server import FakeServer


class Narconi(FakeServer):
    """A Narconi server.

    Args:
        config: Limits and behaviour, as `Config` or as a table of its fields; its port plays no part.
        tls: Listen for TLS too (https and wss, as a gateway in front of Narconi offers them), on a further
            port; `tls_port` and `tls.ca_file` are what a client needs. A name of `Certificate`, such as
            ``expired``: with that one.
        options: Those of `FakeServer`. Profiles: ``real`` (0.1.0 on node 0.10), ``node20``,
            ``0.2.0-pre``, ``seed``.
    """

    protocol = PROTOCOL
    broker: NarconiBroker

    def __init__(
        self,
        *,
        config: Config | Mapping[str, Any] | None = None,
        profile: str = "real",
        tls: bool | str = False,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.config = struct_of(config or {}, Config, "config")
        self._behaviour = find_profile(PROFILES, profile, PROTOCOL.name)
        self._wants_tls = tls and certificate_of(tls)
        self.tls: Tls | None = None
        super().__init__(profile=profile, **options)
        self._restore_timer = self.engine.timers.new(self._restore_backend)

    @classmethod
    def _options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """Keywords for the settings that a real Narconi takes from its environment.

        ``PORT``, ``NARCONI_MAX_MESSAGE_SIZE``, ``NARCONI_MAX_MESSAGE_TTL``, ``NARCONI_DEFAULT_LIMIT``
        and ``NARCONI_AMQP_URI`` (which is not used).
        """
        config = Config.from_environ(environ)
        return {"config": config, **({"port": config.port} if "PORT" in environ else {})}

    def _make_broker(self, clock: Clock) -> NarconiBroker:
        broker = NarconiBroker(clock.wall)
        broker.on_crash = lambda: self._host.close_listeners(self.config.crash_s, "")
        return broker

    def _endpoints(self) -> list[Endpoint]:
        plain = Endpoint(WIRE, self._new_session, self._wanted_port)
        if not self._wants_tls or not self._has_streams:
            return [plain]
        self.tls = Tls(self.host, show=self._wants_tls)
        return [plain, Endpoint(WIRE, self._new_session, 0, self.tls.context)]

    def _stopped(self) -> None:
        """Remove the certificates."""
        if self.tls is not None:
            self.tls.close()

    def _new_session(self, transport: Any) -> tuple[Session, Codec]:
        session = NarconiSession(self.broker, self._behaviour, self.config)
        return session, NarconiCodec(self._behaviour, self.config)

    @property
    def _contents(self) -> dict[str, int]:
        return {"queue": len(self.broker.queues)}

    # addresses

    @property
    def scheme(self) -> str:
        return "http"

    @property
    def urls(self) -> dict[str, str]:
        """``ws``: the same port, for WebSocket clients; ``tls``: where https and wss are."""
        further = {"ws": f"ws{self.url.removeprefix('http')}"}
        if self.tls is not None:
            further["tls"] = f"https://{self.host}:{self.tls_port}"
        return further

    @property
    def tls_port(self) -> int:
        """The port for TLS."""
        if self.tls is None:
            raise UsageError("this fake has no TLS listener: make it with tls=True and start it")
        return self.listeners[1].port

    def queue_url(self, project: str, queue: str) -> str:
        """The URL of a queue, for PUT and DELETE."""
        return f"{self.url}/v2/{project}/queues/{queue}"

    def messages_url(self, project: str, queue: str) -> str:
        """The URL of a queue's messages, for POST and DELETE."""
        return f"{self.queue_url(project, queue)}/messages"

    def websocket_url(self, project: str, queue: str) -> str:
        """The URL of a queue's messages, for upgrades."""
        return f"ws{self.messages_url(project, queue).removeprefix('http')}"

    # queues

    def create_queue(self, project: str, queue: str) -> None:
        """Make a queue if there is none."""
        self.call(self.broker.ensure, f"{project}_{queue}")

    ensure = formerly("ensure", create_queue)

    def delete_queue(self, project: str, queue: str) -> None:
        """Delete a queue, whoever uses it."""
        self.call(lambda: self.broker.delete(f"{project}_{queue}", self.engine.now))

    delete = formerly("delete", delete_queue)

    def publish(
        self,
        project: str,
        queue: str,
        payload: Body,
        *,
        content_type: str = f.DEFAULT_CONTENT_TYPE,
        headers: Mapping[str, Any] | None = None,
        redelivered: bool = False,
    ) -> None:
        """Store a message as another publisher would; larger ones than the limit are fine too.

        Args:
            payload: Bytes, or text, which becomes UTF-8.
        """
        body = body_of(payload)

        def act() -> None:
            timestamp = int(self.clock.wall(self.engine.now) * 1000)
            message = Message(body, content_type, dict(headers or {}), timestamp)
            message.redelivered = redelivered
            self.broker.ensure(f"{project}_{queue}")
            self.broker.publish(f"{project}_{queue}", message, self.engine.now)

        self.call(act)

    put = formerly("put", publish)

    def messages(self, project: str, queue: str) -> list[Message]:
        """What waits in a queue, oldest first; without what consumers have and did not acknowledge."""
        return self.call(lambda: list(self._queue(project, queue).ready))

    def unacked(self, project: str, queue: str) -> int:
        """How many messages consumers have and did not acknowledge."""
        return self.call(lambda: self._queue(project, queue).unacked)

    def _queue(self, project: str, queue: str) -> Queue:
        name = f"{project}_{queue}"
        if name not in self.broker.queues:
            raise UsageError(f"no queue {name!r}; there are: {', '.join(self.broker.queues) or 'none'}")
        return self.broker.queues[name]

    @property
    def queues(self) -> list[str]:
        """All queues, as ``project_queue``."""
        return self.call(lambda: list(self.broker.queues))

    # the backend

    def lose_backend(self, *, down: bool = False) -> None:
        """Break the AMQP connection: WebSocket connections end with an error.

        Args:
            down: Whether it stays down: requests and upgrades get 500 until `restore_backend`.
        """

        def act() -> None:
            self.broker.backend_up = not down
            self.broker.lose_backend(self.engine.now)

        self.call(act)

    def restore_backend(self) -> None:
        """RabbitMQ accepts connections again."""
        self.call(self._restore_backend)

    def _restore_backend(self, now: float = 0.0) -> None:
        self.broker.backend_up = True

    def break_backend(self, down_s: float, fault: str) -> None:
        """What the effect ``break-backend`` does."""
        self.journal.state(self.engine.now, "", State.BACKEND_LOST, f"for {down_s} s", fault)
        self.broker.lose_backend(self.engine.now)
        if down_s:
            self.broker.backend_up = False
            self._restore_timer.set(self.engine.now + down_s)
