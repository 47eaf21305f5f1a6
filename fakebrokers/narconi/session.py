"""One TCP connection of a client: HTTP requests, or an upgrade and then a publisher or a consumer.

    new -> http -> closed
           http -> publishing -> closed
           http -> consuming -> closed

What a frame sets off in which state stands in `NarconiSession._handlers`; any other frame is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Session
from fakebrokers.narconi import frames as f
from fakebrokers.narconi import routes
from fakebrokers.narconi.answers import Answers, closes, refusal_of
from fakebrokers.narconi.broker import Message, NarconiBroker
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.peers import Handlers, Publisher, QueueConsumer, State
from fakebrokers.narconi.profile import REAL, Profile
from fakebrokers.narconi.routes import Refusal, Route

_PROTOCOLS = ("publish", "consume")
_VERSIONS = ("13", "8")


class NarconiSession(Session):
    """See the module's text."""

    def __init__(self, broker: NarconiBroker, profile: Profile = REAL, config: Config | None = None) -> None:
        self.broker = broker
        self.profile = profile
        self.config = config or Config()
        self.state: State = State.NEW
        self._answers = Answers(profile, broker.wall)
        self._peer: Publisher | QueueConsumer | None = None
        self._is_ready = False
        self._routes: Mapping[type[Frame], Callable[[Any, Route, float], f.HttpResponse]] = {
            f.EnsureQueue: self._ensure,
            f.DeleteQueue: self._delete,
            f.HttpPublish: self._publish,
            f.HttpConsume: self._consume,
            f.OtherRequest: self._other,
        }
        # faults may bring requests after an upgrade and WebSocket frames before it
        common: Handlers = {
            **dict.fromkeys(self._routes, self._request),
            f.WsUpgrade: self._upgrade,
            f.Expectation: self._continue,
            f.WsPing: self._pong,
            f.WsClose: self._close_answer,
        }
        self._handlers: Mapping[State, Handlers] = {
            State.NEW: {},
            State.HTTP: {**common, Malformed: self._no_http},
            State.PUBLISHING: {**common, Malformed: self._malformed, f.WsPublish: self._to_peer},
            State.CONSUMING: {
                **common,
                Malformed: self._malformed,
                f.WsAck: self._to_peer,
                f.WsStop: self._to_peer,
            },
            State.CLOSED: {},
        }

    # Session

    def opened(self, now: float) -> None:
        self._idle_timer = self.link.session_timer(self._is_idle)
        self._note_activity(now)
        self.state = State.HTTP
        self.broker.attach(self)

    def handle(self, frame: Frame, now: float) -> None:
        handler = self._handlers[self.state].get(type(frame))
        if handler is not None:
            handler(frame, now)

    def closed(self, now: float) -> None:
        self.state = State.CLOSED
        self.broker.detach(self)
        if self._peer is not None:
            self._peer.release(now)

    def _note_activity(self, now: float) -> None:
        if self.profile.idle_s is not None:
            self._idle_timer.set(now + self.profile.idle_s)

    def _is_idle(self, now: float) -> None:
        if self.state is State.HTTP:
            self._end(now)

    def unfinished(self, size: int, now: float) -> None:
        self._note_activity(now)

    def writable(self, now: float) -> None:
        if isinstance(self._peer, QueueConsumer):
            self._peer.resume(now)

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        refusal = refusal_of(code)
        if isinstance(frame, f.WsUpgrade):
            return self._answers.not_upgraded(frame, refusal, now)
        if isinstance(frame, f.HttpPublish):
            return self._answers.error(f.HttpReject, frame, refusal, now)
        if isinstance(frame, f.HttpRequest):
            return self._answers.error(f.HttpError, frame, refusal, now)
        if isinstance(frame, f.WsPublish):
            return f.WsReject(refusal.message, code, frame.number)
        return f.WsError(refusal.message, code) if isinstance(frame, f.WsAck) else None

    def describe(self) -> dict[str, Any]:
        return {"state": self.state.value, **(self._peer.describe() if self._peer else {})}

    # Owner, for the peers

    def say(self, frame: Frame) -> None:
        """Send a frame, unless the connection is closing."""
        if self.state is not State.CLOSED:
            self.link.say(frame)

    def close(self, now: float, code: int = 1000) -> None:
        """WebSocket close frame, then the end of the connection."""
        self.say(f.WsClose(code))
        self._end(now)

    def crash(self, now: float) -> None:
        """Where the real process dies: the whole fake does too if that is asked for."""
        if self.config.faithful_crashes:
            self.broker.crash(now)
        else:
            self.die(now)

    def _end(self, now: float) -> None:
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.link.hang_up()
        if self._peer is not None:
            self._peer.release(now)

    # Attached, for the broker

    def backend_lost(self, now: float) -> None:
        """The AMQP connection is gone."""
        if self._peer is not None and self.state is not State.CLOSED:
            self._peer.backend_lost(now)

    def die(self, now: float) -> None:
        """The process is gone: no close frame."""
        self._end(now)

    # WebSocket

    def _to_peer(self, frame: Frame, now: float) -> None:
        handler = None if self._peer is None else self._peer.handlers.get(type(frame))
        if handler is not None:
            handler(frame, now)

    def _malformed(self, frame: Malformed, now: float) -> None:
        if frame.code == "http":
            self._no_http(frame, now)
        elif frame.code.startswith("ws-"):
            self.close(now, int(frame.code[3:]))
        else:
            self._to_peer(frame, now)

    def _pong(self, frame: f.WsPing, now: float) -> None:
        self.say(f.WsPong(frame.payload))

    def _close_answer(self, frame: f.WsClose, now: float) -> None:
        """Every close of the server's carries 1000 (recorded)."""
        self.close(now)

    # HTTP

    def _no_http(self, frame: Malformed, now: float) -> None:
        """Node hangs up on what is no HTTP, without an answer."""
        self._end(now)

    def _continue(self, frame: f.Expectation, now: float) -> None:
        self.say(f.Continue(100))

    def _request(self, request: f.HttpRequest, now: float) -> None:
        self._note_activity(now)
        if not self._is_ready:
            self._is_ready = True
            self.link.ready()
        answer = self._answer(request, now)
        self.say(answer)
        if closes(answer):
            self._end(now)

    def _answer(self, request: f.HttpRequest, now: float) -> f.HttpResponse:
        route = routes.find_route(request.target)
        if route is None:
            text = f"{request.target} does not exist"
            return self._error(request, Refusal(404, "ResourceNotFound", text), now)
        if isinstance(request, f.OtherRequest) and request.method != "GET":
            return self._other(request, route, now)
        if request.method == "GET" and not route.messages:
            return self._not_allowed(request, route, now)
        refusal = self._checked(request, route)
        if refusal is not None:
            return self._error(request, refusal, now)
        return self._routes[type(request)](request, route, now)

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

    def _error(self, request: f.HttpRequest, refusal: Refusal, now: float, allow: str = "") -> f.HttpResponse:
        kind = f.HttpReject if isinstance(request, f.HttpPublish) else f.HttpError
        return self._answers.error(kind, request, refusal, now, allow)

    def _not_allowed(self, request: f.HttpRequest, route: Route, now: float) -> f.HttpResponse:
        refusal = Refusal(405, "MethodNotAllowedError", f"{request.method} is not allowed")
        return self._error(request, refusal, now, allow=", ".join(route.methods))

    def _other(self, request: f.OtherRequest, route: Route, now: float) -> f.HttpResponse:
        """A method that the path does not allow, or a GET without upgrade."""
        if request.method == "GET":
            return self._error(request, routes.NO_UPGRADE, now)
        if request.method == "OPTIONS":
            if request.header("origin") and request.header("access-control-request-method"):
                return self._answers.preflight(request, route, now)
            if self.profile.discovery and not route.messages:
                return self._answers.endpoint(request, route, now)
        return self._not_allowed(request, route, now)

    def _ensure(self, request: f.EnsureQueue, route: Route, now: float) -> f.HttpResponse:
        self.broker.ensure(route.name)
        return self._answers.done(f.QueueEnsured, request, now)

    def _delete(self, request: f.DeleteQueue, route: Route, now: float) -> f.HttpResponse:
        self.broker.delete(route.name, now)
        return self._answers.none(f.QueueDeleted, request, now)

    def _publish(self, request: f.HttpPublish, route: Route, now: float) -> f.HttpResponse:
        expires = None
        if self.profile.expiry:
            ttl = route.query.get("ttl")
            expires = now + (self.config.max_message_ttl if ttl is None else routes.js_number(ttl))
        message = Message(
            request.body,
            request.header("content-type") or f.DEFAULT_CONTENT_TYPE,
            _stored_headers(request.headers),
            int(self.broker.wall(now) * 1000),
            expires=expires,
        )
        self.broker.publish(route.name, message, now)
        return self._answers.done(f.HttpConfirm, request, now)

    def _consume(self, request: f.HttpConsume, route: Route, now: float) -> f.HttpResponse:
        message = self.broker.queues[route.name].take(now)
        if message is None:
            return self._answers.none(f.HttpEmpty, request, now)
        return self._answers.message(request, message, now)

    # upgrade

    def _upgrade(self, request: f.WsUpgrade, now: float) -> None:
        route = routes.find_route(request.target)
        refusal = self._upgrade_refusal(request, route)
        if refusal is not None:
            self.say(self._answers.not_upgraded(request, refusal, now))
        elif not request.header("sec-websocket-key") or (
            request.header("sec-websocket-version") not in _VERSIONS
        ):
            self.say(self._answers.bad_handshake(request))
        else:
            assert route is not None
            self._accept(request, route, now)
            return
        self._end(now)

    def _upgrade_refusal(self, request: f.WsUpgrade, route: Route | None) -> Refusal | None:
        if route is None:
            return Refusal(404, "ResourceNotFound", f"{request.target} does not exist")
        if not route.messages and not self.profile.upgrades_on_queue:
            return Refusal(405, "MethodNotAllowedError", "GET is not allowed")
        refusal = self._checked(request, route)
        if refusal is None and route.name not in self.broker.queues:
            refusal = routes.missing_queue(route.name)
        if refusal is None and request.header("sec-websocket-protocol") not in _PROTOCOLS:
            text = "Sec-WebSocket-Protocol must be publish or consume."
            refusal = Refusal(400, "InvalidHeader", text)
        return refusal

    def _accept(self, request: f.WsUpgrade, route: Route, now: float) -> None:
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
            self.broker.lose_backend(now, untold=self)
        else:
            consumer.start(now)


def _stored_headers(headers: f.Headers) -> dict[str, Any]:
    """What is kept of a request's headers: ``x-msg-x-...``, in lower case, repeated ones joined."""
    kept: dict[str, list[str]] = {}
    for name, value in headers:
        key = name.lower()
        if key.startswith("x-msg-x-"):
            kept.setdefault(key, []).append(value)
    return {key: ", ".join(values) for key, values in kept.items()}
