"""One client of the NATS server.

    connecting -> ready -> ended

Everything is as nats-server 2.9.10 answered it (tests/moleculer/nats/test_session.py); before CONNECT it
takes all commands, and is verbose, unless clients have to log in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.moleculer.bus import MAX_PENDING, BusSession
from fakebrokers.moleculer.nats import frames as f
from fakebrokers.moleculer.nats.bus import GO, VERSION, NatsBus
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.packets import Packet
from fakebrokers.moleculer.subscriptions import Subscription
from fakebrokers.moleculer.topics import listener_of

#: The first PING comes this long after the connect (it measures the round trip).
FIRST_PING_S = 2.0

#: What the server says about bytes that are no command, by the code of `Malformed`; it hangs up silently
#: where there is nothing.
_COMPLAINTS = {
    "unknown": "Unknown Protocol Operation",
    "control-line": "maximum control line exceeded",
    "payload": "Maximum Payload Violation",
}

_NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"

#: Types of what CONNECT may say.
_OPTION_TYPES: Mapping[str, type] = {
    "verbose": bool,
    "pedantic": bool,
    "echo": bool,
    "headers": bool,
    "no_responders": bool,
    "protocol": int,
    "name": str,
    "lang": str,
    "version": str,
}


class NatsSession(BusSession):
    """The state machine of one connection."""

    bus: NatsBus
    codec: NatsCodec

    def __init__(self, bus: NatsBus, codec: NatsCodec) -> None:
        super().__init__(bus, codec)
        codec.wrap = self._wrap
        self.state = "connecting"
        self.number = 0  # none yet: a fault may end the connection as it is accepted
        self.echo = True
        self.client: Mapping[str, Any] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.in_msgs = self.out_msgs = self.in_bytes = self.out_bytes = 0
        self.opened_at = self.heard_at = 0.0
        self._verbose = self._pedantic = True  # until CONNECT says otherwise
        self._headers = False
        self._no_responders = False
        self._pending = 0
        self._unanswered = 0
        self._complained_of = ""  # the subject of a message whose payload has not come

    # life

    def opened(self, now: float) -> None:
        bus, options = self.bus, self.bus.options
        bus.connected += 1
        self.number = bus.connected
        bus.sessions[self.number] = self
        self.opened_at = self.heard_at = now
        self.link.say(f.ServerInfo(self._info()))
        self._login_timer = self.link.session_timer(self._login_timed_out)
        if options.needs_login:
            self._login_timer.set(now + options.auth_timeout_s)
        self._ping_timer = self.link.session_timer(self._ping)
        self._ping_timer.set(now + min(FIRST_PING_S, options.ping_interval_s))

    def _info(self) -> dict[str, Any]:
        bus = self.bus
        return {
            "server_id": bus.server_id,
            "server_name": bus.server_id,
            "version": VERSION,
            "proto": 1,
            "go": GO,
            "host": bus.host,
            "port": bus.port,
            "headers": True,
            **({"auth_required": True} if bus.options.needs_login else {}),
            "max_payload": bus.options.max_payload,
            "client_id": self.number,
            "client_ip": self.link.address.rpartition(":")[0] or "127.0.0.1",
        }

    def closed(self, now: float) -> None:
        super().closed(now)
        self.state = "ended"
        self.bus.sessions.pop(self.number, None)
        for subscription in self.subscriptions.values():
            self.bus.subscriptions.remove(subscription)
        self.subscriptions.clear()

    def writable(self, now: float) -> None:
        self._pending = 0

    def _end(self, complaint: str = "") -> None:
        if complaint:
            self.link.say(f.Err(complaint))
        self.state = "ended"
        self.link.hang_up()

    def _login_timed_out(self, now: float) -> None:
        self._end("Authentication Timeout")

    def _ping(self, now: float) -> None:
        options = self.bus.options
        if now - self.heard_at < options.ping_interval_s and self.opened_at + FIRST_PING_S < now:
            self._ping_timer.set(self.heard_at + options.ping_interval_s)
            return
        if self._unanswered >= options.ping_max:
            self._end("Stale Connection")
            return
        self._unanswered += 1
        self.link.say(f.NatsPing())
        self._ping_timer.set(now + options.ping_interval_s)

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.heard_at = self.bus.now = now
        kind = frame.__class__
        if self.state == "connecting" and self.bus.options.needs_login and kind is not f.Connect:
            self._end("Authorization Violation")
        elif kind is f.Pub:
            self._publish(frame.subject, frame.reply, b"", frame.payload)  # type: ignore[attr-defined]
        elif kind is f.Hpub:
            self._publish_with_headers(frame)  # type: ignore[arg-type]
        elif kind is f.NatsPing:
            self.link.say(f.NatsPong())
        elif kind is f.NatsPong:
            self._unanswered = 0
        elif isinstance(frame, f.Sub):
            self._subscribe(frame)
        elif isinstance(frame, f.Unsub):
            self._unsubscribe(frame)
        elif isinstance(frame, f.Connect):
            self._connect(frame)
        elif isinstance(frame, Malformed):
            self._malformed(frame)

    def _malformed(self, frame: Malformed) -> None:
        """Hang up; what the line of a message says counts before what its payload is."""
        begun = self.codec.begun
        if begun is not None and begun.has_headers and not self._may_have_headers():
            return
        if begun is not None:
            self._check_subject(begun.subject)
        self._end(_COMPLAINTS.get(frame.code, ""))

    def unfinished(self, size: int, now: float) -> None:
        """The real server looks at the line of a message before its payload has come.

        To keep the line it looks at it once more: what it complains of, it complains of twice.
        """
        begun, state = self.codec.begun, self.state
        if begun is None or state == "ended" or (state == "connecting" and self.bus.options.needs_login):
            return
        may_come = not begun.has_headers or self._may_have_headers()
        if may_come and self._check_subject(begun.subject):
            self._check_subject(begun.subject)
            self._complained_of = begun.subject

    def _ok(self) -> None:
        if self._verbose:
            self.link.say(f.Ok())

    def _connect(self, frame: f.Connect) -> None:
        # Go's JSON passes null over, and async-nats writes it for whatever it leaves open
        options = {name: value for name, value in frame.options.items() if value is not None}
        for name, kind in _OPTION_TYPES.items():
            if name in options and type(options[name]) is not kind:
                self._end()
                return
        self.client = {**self.client, **options}  # what a second CONNECT does not say stays as it was
        self._verbose = options.get("verbose", self._verbose)
        self._pedantic = options.get("pedantic", self._pedantic)
        self.echo = options.get("echo", self.echo)
        self._headers = options.get("headers", self._headers)
        self._no_responders = options.get("no_responders", self._no_responders)
        if not self._may_enter(frame.credentials):
            self._end("Authorization Violation")
        elif options.get("protocol", 0) not in (0, 1):
            self._end("invalid client protocol")
        elif self._no_responders and not self._headers:
            self._end("no responders requires headers support")
        else:
            self._login_timer.cancel()
            self._ok()
            if self.state == "connecting":
                self.state = "ready"
                self.link.ready()

    def _may_enter(self, shown: Mapping[str, Any]) -> bool:
        options = self.bus.options
        if not options.needs_login:
            return True
        if options.token:
            return bool(shown.get("auth_token") == options.token)
        return (shown.get("user", ""), shown.get("pass", "")) == (options.user, options.password)

    def _publish_with_headers(self, frame: f.Hpub) -> None:
        if self._may_have_headers():
            self._publish(frame.subject, frame.reply, frame.headers, frame.payload)

    def _may_have_headers(self) -> bool:
        """If not, the real server ends the connection without a word."""
        if not self._headers:
            self._end()
        return self._headers

    def _publish(self, subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        self.in_msgs += 1
        self.in_bytes += len(payload)
        if self._pedantic:
            self._check_subject(subject)
            self._complained_of = ""
        if self._verbose:
            self.link.say(f.Ok())
        count = self.bus.route(self, subject, reply, headers, payload)
        if not count and reply and self._no_responders:
            self._tell_no_responders(reply)

    def _check_subject(self, subject: str) -> bool:
        """Complain of a subject, unless that has been done; whether it was to be complained of."""
        if not self._pedantic or self._complained_of == subject or is_literal(subject):
            return False
        self.link.say(f.Err("Invalid Publish Subject"))
        return True

    def _tell_no_responders(self, reply: str) -> None:
        matches = self.bus.subscriptions.match(reply)
        for subscription in matches.plain:
            if subscription.owner is self:
                self.link.say(f.Hmsg(reply, subscription.key, _NO_RESPONDERS, b""))
                return

    def _subscribe(self, frame: f.Sub) -> None:
        if frame.sid in self.subscriptions:  # a second one with the same sid is none, whatever it says
            self._ok()
            return
        if not is_pattern(frame.subject):
            self.link.say(f.Err("Invalid Subject"))
            return
        subscription = Subscription(frame.subject, self, frame.sid, frame.queue)
        self.subscriptions[frame.sid] = subscription
        self.bus.subscriptions.add(subscription)
        self._ok()
        node = listener_of(frame.subject)
        if node and is_literal(frame.subject):
            self.knows(node, frame.subject)

    def _unsubscribe(self, frame: f.Unsub) -> None:
        subscription = self.subscriptions.get(frame.sid)
        if subscription is not None:
            subscription.limit = max(0, frame.limit or 0)
            if subscription.delivered >= subscription.limit:
                self.end_subscription(subscription)
        self._ok()

    # what others say

    def deliver(
        self, subscription: Subscription, subject: str, reply: str, headers: bytes, payload: bytes
    ) -> None:
        """A message for this client; one without headers to a client that knows none."""
        link = self.link
        self.out_msgs += 1
        self.out_bytes += len(payload)
        if headers and self._headers:
            link.say(f.Hmsg(subject, subscription.key, headers, payload, reply))
        else:
            link.say(f.Msg(subject, subscription.key, payload, reply))
        if not link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:
                self._end("Slow Consumer")

    def end_subscription(self, subscription: Subscription) -> None:
        """The client listens there no more."""
        self.subscriptions.pop(subscription.key, None)
        self.bus.subscriptions.remove(subscription)

    # faults

    def _wrap(self, frame: Frame) -> Frame | None:
        """A bare packet as a message to this client."""
        if not isinstance(frame, Packet):
            return None
        topic = self.topic_for(frame)
        own = [s for s in self.bus.subscriptions.match(topic).plain if s.owner is self]
        return f.Msg(topic, own[0].key if own else "0", self.payload_of(frame))


def is_literal(subject: str) -> bool:
    """Whether a subject has no wildcards and no empty tokens."""
    return is_pattern(subject) and not any(token in "*>" for token in subject.split("."))


def is_pattern(subject: str) -> bool:
    """Whether somebody can listen there: no empty tokens, and nothing after ``>``."""
    tokens = subject.split(".")
    return "" not in tokens and ">" not in tokens[:-1]
