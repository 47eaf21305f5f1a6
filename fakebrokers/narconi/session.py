"""One TCP connection of a client: HTTP requests, or an upgrade and then a publisher or a consumer.

Its states: `http`, then `closed`; or behind a 101 `publishing` or `consuming`, then `closed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Session
from fakebrokers.narconi import frames as f
from fakebrokers.narconi import routes
from fakebrokers.narconi.answers import Answers, closes, refusal_of
from fakebrokers.narconi.broker import Message, NarconiBroker
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.peers import Publisher, QueueConsumer
from fakebrokers.narconi.profile import PROFILES, Profile
from fakebrokers.narconi.routes import Refusal, Route

_PROTOCOLS = ("publish", "consume")
_VERSIONS = ("13", "8")


class NarconiSession(Session):
    """See the module's text."""

    def __init__(
        self,
        broker: NarconiBroker,
        profile: Profile = PROFILES["real"],
        config: Config | None = None,
    ) -> None:
        self.broker = broker
        self.profile = profile
        self.config = config or Config()
        self._answers = Answers(profile, broker.wall)
        self._peer: Publisher | QueueConsumer | None = None
        self._now = 0.0
        self._last_request = 0.0
        self._is_ready = False
        self._handlers: dict[type[Frame], Callable[[Any, Route], f.HttpResponse]] = {
            f.EnsureQueue: self._ensure,
            f.DeleteQueue: self._delete,
            f.HttpPublish: self._publish,
            f.HttpConsume: self._consume,
            f.OtherRequest: self._other,
        }

    # Session

    def opened(self, now: float) -> None:
        self._now = self._last_request = now
        self.state = "http"
        self.broker.attach(self)

    def handle(self, frame: Frame, now: float) -> None:
        self._now = now
        if self.state == "closed":
            return
        if isinstance(frame, f.HttpRequest):
            self._request(frame)
        elif isinstance(frame, Malformed) and (frame.code == "http" or self._peer is None):
            self._end()  # node hangs up on what is no HTTP, without an answer
        elif isinstance(frame, Malformed) and frame.code.startswith("ws-"):
            self.close(int(frame.code[3:]))
        elif isinstance(frame, f.WsPing):
            self.say(f.WsPong(frame.payload))
        elif isinstance(frame, f.WsClose):
            self.close()
        elif isinstance(frame, f.Expectation):
            self.say(f.Continue(100))
        elif self._peer is not None:
            self._peer.handle(frame, now)

    def closed(self, now: float) -> None:
        self._now = now
        self.state = "closed"
        self.broker.detach(self)
        if self._peer is not None:
            self._peer.release(now)

    def next_deadline(self) -> float | None:
        if self.profile.idle_s is None or self.state != "http":
            return None
        return self._last_request + self.profile.idle_s

    def handle_timer(self, now: float) -> None:
        self._now = now
        self._end()

    def unfinished(self, size: int, now: float) -> None:
        self._last_request = now

    def writable(self, now: float) -> None:
        self._now = now
        if isinstance(self._peer, QueueConsumer):
            self._peer.resume(now)

    def refusal(self, frame: Frame, code: int) -> Frame | None:
        refusal = refusal_of(code)
        if isinstance(frame, f.WsUpgrade):
            return self._answers.not_upgraded(frame, refusal, self._now)
        if isinstance(frame, f.HttpPublish):
            return self._answers.error(f.HttpReject, frame, refusal, self._now)
        if isinstance(frame, f.HttpRequest):
            return self._answers.error(f.HttpError, frame, refusal, self._now)
        if isinstance(frame, f.WsPublish):
            return f.WsReject(refusal.message, code, frame.number)
        return f.WsError(refusal.message, code) if isinstance(frame, f.WsAck) else None

    def describe(self) -> dict[str, Any]:
        return {"state": self.state, **(self._peer.describe() if self._peer else {})}

    # Owner, for the peers

    def say(self, frame: Frame) -> None:
        """Send a frame, unless the connection is closing."""
        if self.state != "closed":
            self.link.say(frame)

    def close(self, code: int = 1000) -> None:
        """WebSocket close frame, then the end of the connection."""
        self.say(f.WsClose(code))
        self._end()

    def crash(self) -> None:
        """Where the real process dies: the whole fake does too if that is asked for."""
        if self.config.faithful_crashes:
            self.broker.crash(self._now)
        else:
            self.die(self._now)

    def _end(self) -> None:
        if self.state == "closed":
            return
        self.state = "closed"
        self.link.hang_up()
        if self._peer is not None:
            self._peer.release(self._now)

    # Attached, for the broker

    def backend_lost(self, now: float) -> None:
        """The AMQP connection is gone."""
        self._now = now
        if self._peer is not None and self.state != "closed":
            self._peer.backend_lost()

    def die(self, now: float) -> None:
        """The process is gone: no close frame."""
        self._now = now
        self._end()

    # HTTP

    def _request(self, request: f.HttpRequest) -> None:
        self._last_request = self._now
        if isinstance(request, f.WsUpgrade):
            self._upgrade(request)
            return
        if not self._is_ready:
            self._is_ready = True
            self.link.ready()
        answer = self._answer(request)
        self.say(answer)
        if closes(answer):
            self._end()

    def _answer(self, request: f.HttpRequest) -> f.HttpResponse:
        route = routes.find_route(request.target)
        if route is None:
            text = f"{request.target} does not exist"
            return self._error(request, Refusal(404, "ResourceNotFound", text))
        if isinstance(request, f.OtherRequest) and request.method != "GET":
            return self._other(request, route)
        if request.method == "GET" and not route.messages:
            return self._not_allowed(request, route)
        refusal = self._checked(request, route)
        if refusal is not None:
            return self._error(request, refusal)
        return self._handlers[type(request)](request, route)

    def _checked(self, request: f.HttpRequest, route: Route) -> Refusal | None:
        """The checks of every route, in the server's order."""
        refusal = routes.check(route, self.config)
        if refusal is None and not self.broker.backend_up:
            refusal = routes.BACKEND_DOWN
        if refusal is None and request.too_large and isinstance(request, f.HttpPublish):
            refusal = routes.TOO_LARGE
        if refusal is None and route.messages and route.name not in self.broker.queues:
            refusal = routes.missing_queue(route.name)
        return refusal

    def _error(self, request: f.HttpRequest, refusal: Refusal, allow: str = "") -> f.HttpResponse:
        kind = f.HttpReject if isinstance(request, f.HttpPublish) else f.HttpError
        return self._answers.error(kind, request, refusal, self._now, allow)

    def _not_allowed(self, request: f.HttpRequest, route: Route) -> f.HttpResponse:
        refusal = Refusal(405, "MethodNotAllowedError", f"{request.method} is not allowed")
        return self._error(request, refusal, allow=", ".join(route.methods))

    def _other(self, request: f.OtherRequest, route: Route) -> f.HttpResponse:
        """A method that the path does not allow, or a GET without upgrade."""
        if request.method == "GET":
            return self._error(request, routes.NO_UPGRADE)
        if request.method == "OPTIONS":
            if request.header("origin") and request.header("access-control-request-method"):
                return self._answers.preflight(request, route, self._now)
            if self.profile.document and not route.messages:
                return self._answers.endpoint(request, route, self._now)
        return self._not_allowed(request, route)

    def _ensure(self, request: f.EnsureQueue, route: Route) -> f.HttpResponse:
        self.broker.ensure(route.name)
        return self._answers.done(f.QueueEnsured, request, self._now)

    def _delete(self, request: f.DeleteQueue, route: Route) -> f.HttpResponse:
        self.broker.delete(route.name)
        return self._answers.none(f.QueueDeleted, request, self._now)

    def _publish(self, request: f.HttpPublish, route: Route) -> f.HttpResponse:
        expires = None
        if self.profile.document:
            ttl = route.query.get("ttl")
            expires = self._now + (self.config.max_message_ttl if ttl is None else routes.js_number(ttl))
        message = Message(
            request.body,
            request.header("content-type") or f.DEFAULT_CONTENT_TYPE,
            _stored_headers(request.headers),
            int(self.broker.wall(self._now) * 1000),
            expires=expires,
        )
        self.broker.publish(route.name, message, self._now)
        return self._answers.done(f.HttpConfirm, request, self._now)

    def _consume(self, request: f.HttpConsume, route: Route) -> f.HttpResponse:
        message = self.broker.queues[route.name].take(self._now)
        if message is None:
            return self._answers.none(f.HttpEmpty, request, self._now)
        return self._answers.message(request, message, self._now)

    # upgrade

    def _upgrade(self, request: f.WsUpgrade) -> None:
        route = routes.find_route(request.target)
        refusal = self._upgrade_refusal(request, route)
        if refusal is not None:
            self.say(self._answers.not_upgraded(request, refusal, self._now))
        elif not request.header("sec-websocket-key") or (
            request.header("sec-websocket-version") not in _VERSIONS
        ):
            self.say(self._answers.bad_handshake(request))
        else:
            assert route is not None
            self._accept(request, route)
            return
        self._end()

    def _upgrade_refusal(self, request: f.WsUpgrade, route: Route | None) -> Refusal | None:
        if route is None:
            return Refusal(404, "ResourceNotFound", f"{request.target} does not exist")
        if not route.messages and not self.profile.document:
            return Refusal(405, "MethodNotAllowedError", "GET is not allowed")
        refusal = self._checked(request, route)
        if refusal is None and route.name not in self.broker.queues:
            refusal = routes.missing_queue(route.name)
        if refusal is None and request.header("sec-websocket-protocol") not in _PROTOCOLS:
            text = "Sec-WebSocket-Protocol must be publish or consume."
            refusal = Refusal(400, "InvalidHeader", text)
        return refusal

    def _accept(self, request: f.WsUpgrade, route: Route) -> None:
        protocol = request.header("sec-websocket-protocol") or ""
        self.say(self._answers.upgraded(request, protocol))
        if protocol == "publish":
            confirms = not self.profile.confirm_on_request or "ack" in route.query
            self._peer = Publisher(self, route.name, confirms)
            self.state = self._peer.state
            self.link.ready()
            return
        consumer = QueueConsumer(
            self,
            self.broker.queues[route.name],
            ack="ack" in route.query,
            limit=routes.prefetch(route, self.config, self.profile),
            encoding=route.query.get("encoding"),
        )
        self._peer = consumer
        self.state = consumer.state
        self.link.ready()
        if consumer.limit is None and consumer.ack:
            # RabbitMQ refuses the value and closes the AMQP connection, which all share; this consumer
            # alone is not told (recorded: consume_limit_big, consume_limit_frac)
            self.broker.lose_backend(self._now, spare=self)
        else:
            consumer.start(self._now)


def _stored_headers(headers: f.Headers) -> dict[str, Any]:
    """What is kept of a request's headers: ``x-msg-x-...``, in lower case, repeated ones joined."""
    kept: dict[str, list[str]] = {}
    for name, value in headers:
        key = name.lower()
        if key.startswith("x-msg-x-"):
            kept.setdefault(key, []).append(value)
    return {key: ", ".join(values) for key, values in kept.items()}
