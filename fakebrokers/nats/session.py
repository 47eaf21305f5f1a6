"""One client of the NATS server.

    connecting -> ready -> ended

Everything is as nats-server 2.9.10 answered it (docs/protocols/nats.md, 3 "Life of a connection"); before
CONNECT it takes all commands, and is verbose, unless clients have to log in.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.subscriptions import Subscription
from fakebrokers.nats import frames as f
from fakebrokers.nats.broker import NatsBroker
from fakebrokers.nats.client import NatsClient
from fakebrokers.nats.codec import SECRETS, NatsCodec
from fakebrokers.nats.nodes import Node, connect_urls

#: Bytes said to a client that does not read before the server ends its connection.
MAX_PENDING = 64 * 1024 * 1024

#: The first PING comes this long after the connect (it measures the round trip).
FIRST_PING_S = 2.0

#: What a cluster is called.
CLUSTER = "fakebrokers"

#: What the server says about bytes that are no command, by the code of `Malformed`; it hangs up silently
#: where there is nothing.
_COMPLAINTS = {
    "unknown": "Unknown Protocol Operation",
    "control-line": "maximum control line exceeded",
    "payload": "Maximum Payload Violation",
}

_NO_RESPONDERS = 503
#: Bytes that a client with an nkey signs.
_NONCE_SIZE = 11

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
    **dict.fromkeys(SECRETS, str),
}


class NatsSession(NatsClient):
    """The state machine of one connection.

    Args:
        server: The one of the cluster that it is a connection to.
        tls: Whether it goes on in TLS after INFO.
    """

    def __init__(self, broker: NatsBroker, codec: NatsCodec, server: Node, *, tls: bool = False) -> None:
        super().__init__(server)
        self.broker = broker
        self.codec = codec
        self.tls = tls
        self._kinds: f.Kinds = codec.kinds
        self._pub = codec.kinds.pub
        self._nonce = ""
        self.state = "connecting"
        self._verbose = self._pedantic = True  # until CONNECT says otherwise
        self._headers = False
        self._wants_news = False
        self._no_responders = False
        self._pending = 0
        self._unanswered = 0
        self._complained_of = ""  # the subject of a message whose payload has not come

    # life

    def opened(self, now: float) -> None:
        broker, profile = self.broker, self.broker.profile
        broker.connected += 1
        self.number = broker.connected
        broker.sessions[self.number] = self
        self.opened_at = self.heard_at = now
        if broker.logins.nkeys:
            self._nonce = base64.urlsafe_b64encode(broker.random.randbytes(_NONCE_SIZE)).decode().rstrip("=")
        self.link.say(self._kinds.info(self._info()))
        self._login_timer = self.link.session_timer(self._login_timed_out)
        if broker.logins.is_needed:
            self._login_timer.set(now + profile.auth_timeout_s)
        self._ping_timer = self.link.session_timer(self._ping)
        self._ping_timer.set(now + min(FIRST_PING_S, profile.ping_interval_s))

    def _info(self) -> dict[str, Any]:
        broker, node = self.broker, self.server
        cluster = {"cluster": CLUSTER, "connect_urls": connect_urls(broker.nodes, self.tls, node)}
        return {
            "server_id": node.id,
            "server_name": node.id,
            "version": broker.profile.version,
            "proto": 1,
            "go": broker.profile.go,
            "host": node.host,
            "port": node.tls_port if self.tls else node.port,
            "headers": True,
            **({"auth_required": True} if broker.logins.is_needed else {}),
            **({"tls_required": True} if self.tls else {}),
            "max_payload": broker.profile.max_payload,
            "client_id": self.number,
            "client_ip": self.link.address.rpartition(":")[0] or "127.0.0.1",
            **({"nonce": self._nonce} if self._nonce else {}),
            **(cluster if len(broker.nodes) > 1 else {}),
            **({"ldm": True} if node.leaving else {}),
        }

    def tell_nodes(self) -> None:
        """Say which servers there are now, to a client that has said that it wants to know."""
        if self.state == "ready" and self._wants_news:
            self.link.say(self._kinds.info(self._info()))

    def closed(self, now: float) -> None:
        super().closed(now)
        self.state = "ended"
        self.broker.sessions.pop(self.number, None)
        for subscription in self.subscriptions.values():
            self.broker.subscriptions.remove(subscription)
        self.subscriptions.clear()

    def writable(self, now: float) -> None:
        self._pending = 0

    def end(self, complaint: str = "") -> None:
        """Hang up, after a word about what is wrong."""
        self.state = "ended"
        if complaint:
            self.link.say(f.Err(complaint))
        self.link.hang_up()

    def describe(self) -> dict[str, Any]:
        name = self.client.get("name", "")
        return {"state": self.state, "client": name, "subscriptions": len(self.subscriptions)}

    def _login_timed_out(self, now: float) -> None:
        self.end("Authentication Timeout")

    def _ping(self, now: float) -> None:
        options = self.broker.profile
        if now - self.heard_at < options.ping_interval_s and self.opened_at + FIRST_PING_S < now:
            self._ping_timer.set(self.heard_at + options.ping_interval_s)
            return
        if self._unanswered >= options.ping_max:
            self.end("Stale Connection")
            return
        self._unanswered += 1
        self.link.say(self._kinds.ping())
        self._ping_timer.set(now + options.ping_interval_s)

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.heard_at = self.broker.now = now
        kind = frame.__class__
        if self.state == "connecting" and self.broker.logins.is_needed and kind is not f.Connect:
            self.end("Authorization Violation")
        elif kind is self._pub:
            self._publish(frame.subject, frame.reply, b"", frame.payload)  # type: ignore[attr-defined]
        elif isinstance(frame, f.Hpub):
            self._publish_with_headers(frame)
        elif isinstance(frame, f.Ping):
            self.link.say(self._kinds.pong())
        elif isinstance(frame, f.Pong):
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
        self.end(_COMPLAINTS.get(frame.code, ""))

    def unfinished(self, size: int, now: float) -> None:
        """The real server looks at the line of a message before its payload has come.

        To keep the line it looks at it once more: what it complains of, it complains of twice.
        """
        begun, state = self.codec.begun, self.state
        if begun is None or state == "ended" or (state == "connecting" and self.broker.logins.is_needed):
            return
        may_come = not begun.has_headers or self._may_have_headers()
        if may_come and self._check_subject(begun.subject):
            self._check_subject(begun.subject)
            self._complained_of = begun.subject

    def _ok(self) -> None:
        if self._verbose:
            self.link.say(self._kinds.ok())

    def _connect(self, frame: f.Connect) -> None:
        # Go's JSON passes null over, and async-nats writes it for whatever it leaves open
        options = {name: value for name, value in frame.options.items() if value is not None}
        said = {**frame.options, **frame.credentials}
        if any(
            said.get(name) is not None and type(said[name]) is not kind
            for name, kind in _OPTION_TYPES.items()
        ):
            self.end()
            return
        self.client = {**self.client, **options}  # what a second CONNECT does not say stays as it was
        self._verbose = options.get("verbose", self._verbose)
        self._pedantic = options.get("pedantic", self._pedantic)
        self.echo = options.get("echo", self.echo)
        self._headers = options.get("headers", self._headers)
        self._no_responders = options.get("no_responders", self._no_responders)
        self._wants_news = options.get("protocol", 0) >= 1
        if not self.broker.logins.admits(frame.credentials, self._nonce):
            self.end("Authorization Violation")
        elif options.get("protocol", 0) not in (0, 1):
            self.end("invalid client protocol")
        elif self._no_responders and not self._headers:
            self.end("no responders requires headers support")
        else:
            self._login_timer.cancel()
            self._ok()
            if self.state == "connecting":
                self.state = "ready"
                self.link.ready()

    def _publish_with_headers(self, frame: f.Hpub) -> None:
        if self._may_have_headers():
            self._publish(frame.subject, frame.reply, frame.headers, frame.payload)

    def _may_have_headers(self) -> bool:
        """If not, the real server ends the connection without a word."""
        if not self._headers:
            self.end()
        return self._headers

    def _publish(self, subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        self.in_msgs += 1
        self.in_bytes += len(payload)
        if self._pedantic:
            self._check_subject(subject)
            self._complained_of = ""
        if self._verbose:
            self.link.say(self._kinds.ok())
        count = self.broker.route(self, subject, reply, headers, payload)
        if not count and reply and self._no_responders:
            self._tell_no_responders(reply)

    def _check_subject(self, subject: str) -> bool:
        """Complain of a subject, unless that has been done; whether it was to be complained of."""
        if not self._pedantic or self._complained_of == subject or is_literal(subject):
            return False
        self.link.say(f.Err("Invalid Publish Subject"))
        return True

    def _tell_no_responders(self, reply: str) -> None:
        answer = self._status(reply, _NO_RESPONDERS)
        if answer is not None:
            self.link.say(answer)

    def _status(self, reply: str, code: int) -> f.Hmsg | None:
        """What the server itself says about a request of this client, if it listens to answers there."""
        for subscription in self.broker.subscriptions.match(reply).plain:
            if subscription.owner is self:
                headers = b"NATS/1.0 %d\r\n\r\n" % code
                answer: f.Hmsg = self._kinds.hmsg(reply, subscription.key, headers, b"")
                return answer
        return None

    def _subscribe(self, frame: f.Sub) -> None:
        if frame.sid in self.subscriptions:  # a second one with the same sid is none, whatever it says
            self._ok()
            return
        if not is_pattern(frame.subject):
            self.link.say(f.Err("Invalid Subject"))
            return
        subscription = Subscription(frame.subject, self, frame.sid, frame.queue)
        self.subscriptions[frame.sid] = subscription
        self.broker.subscriptions.add(subscription)
        self._ok()
        self.subscribed(frame)

    def subscribed(self, frame: f.Sub) -> None:
        """The client listens from now on."""

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
            link.say(self._kinds.hmsg(subject, subscription.key, headers, payload, reply))
        else:
            link.say(self._kinds.msg(subject, subscription.key, payload, reply))
        if not link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:
                self.end("Slow Consumer")

    def end_subscription(self, subscription: Subscription) -> None:
        """The client listens there no more."""
        self.subscriptions.pop(subscription.key, None)
        self.broker.subscriptions.remove(subscription)

    # faults

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """A status in place of the answer to a request; where nobody waits for one, what is not permitted."""
        match frame:
            case f.Pub(subject=subject, reply=reply) | f.Hpub(subject=subject, reply=reply):
                answer = self._status(reply, code) if reply else None
                return answer or f.Err(f'Permissions Violation for Publish to "{subject}"')
            case f.Sub(subject=subject):
                return f.Err(f'Permissions Violation for Subscription to "{subject}"')
            case f.Connect():
                return f.Err("Authorization Violation")
        return None


def is_literal(subject: str) -> bool:
    """Whether a subject has no wildcards and no empty tokens."""
    return is_pattern(subject) and not any(token in "*>" for token in subject.split("."))


def is_pattern(subject: str) -> bool:
    """Whether somebody can listen there: no empty tokens, and nothing after ``>``."""
    tokens = subject.split(".")
    return "" not in tokens and ">" not in tokens[:-1]
