"""One client of the Redis server.

    connected -> ready -> ended        a client that listens may say little else in RESP2

Everything is as redis-server 7.0.15 answered it (tests/moleculer/redis/test_session.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.subscriptions import Subscription, Subscriptions
from fakebrokers.moleculer.bus import NodeSession
from fakebrokers.moleculer.packets import Packet, packet_in
from fakebrokers.moleculer.redis import frames as f
from fakebrokers.moleculer.redis import resp
from fakebrokers.moleculer.redis.bus import CHANNEL, PATTERN, SHARD, VERSION, RedisBus
from fakebrokers.moleculer.redis.codec import RedisCodec
from fakebrokers.moleculer.redis.commands import COMMANDS, Complaint, unknown_command, wrong_number
from fakebrokers.moleculer.topics import listener_of

_ONLY = (
    "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
    " are allowed in this context"
)
_NOAUTH = "NOAUTH Authentication required."
_NOAUTH_HELLO = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user>"
    " <pass> option can be used to authenticate the client and select the RESP protocol version at the same"
    " time"
)
_WRONGPASS = "WRONGPASS invalid username-password pair or user is disabled."
_NO_PASSWORD = (
    "ERR AUTH <password> called without any password configured for the default user."
    " Are you sure your configuration is correct?"
)

#: What a client that listens may still say in RESP2, besides a few commands.
_LISTENING = (
    f.Subscribe,
    f.Psubscribe,
    f.Ssubscribe,
    f.Unsubscribe,
    f.Punsubscribe,
    f.Sunsubscribe,
)

#: Commands whose first argument is part of their name.
_FAMILIES = ("client", "command", "config", "pubsub")


MAX_PENDING = 64 * 1024 * 1024


class RedisSession(NodeSession):
    """The state machine of one connection."""

    bus: RedisBus
    codec: RedisCodec

    def __init__(self, bus: RedisBus, codec: RedisCodec) -> None:
        self.bus = self.broker = bus
        self.codec = codec
        codec.wrap = self._wrap
        self.state = "connected"
        self.number = 0
        self.name: bytes = b""
        self.database = 0
        self.channels: dict[str, Subscription] = {}
        self.patterns: dict[str, Subscription] = {}
        self.shards: dict[str, Subscription] = {}
        self._entered = not bus.options.needs_login
        self._pending = 0
        self._last: Any = None
        self._handlers: Mapping[type[Frame], Callable[[Any], None]] = {
            f.Publish: self._publish,
            f.Subscribe: lambda frame: self._listen(frame, self.channels, "subscribe"),
            f.Psubscribe: lambda frame: self._listen(frame, self.patterns, "psubscribe"),
            f.Unsubscribe: lambda frame: self._unlisten(frame, self.channels, "unsubscribe"),
            f.Punsubscribe: lambda frame: self._unlisten(frame, self.patterns, "punsubscribe"),
            f.Ssubscribe: lambda frame: self._listen(frame, self.shards, "ssubscribe"),
            f.Sunsubscribe: lambda frame: self._unlisten(frame, self.shards, "sunsubscribe"),
            f.Spublish: self._publish_sharded,
            f.Auth: self._auth,
            f.Hello: self._hello,
            f.Command: self._command,
            f.Blank: lambda frame: None,
        }

    # life

    def opened(self, now: float) -> None:
        self.bus.connected += 1
        self.number = self.bus.connected
        self.bus.sessions[self.number] = self
        self.opened_at = now

    def closed(self, now: float) -> None:
        super().closed(now)
        self.state = "ended"
        self.bus.sessions.pop(self.number, None)
        self._forget_subscriptions()

    def _forget_subscriptions(self) -> None:
        for subscription in (*self.channels.values(), *self.patterns.values()):
            self.bus.subscriptions.remove(subscription)
        for subscription in self.shards.values():
            self.bus.shards.remove(subscription)
        for own in (self.channels, self.patterns, self.shards):
            own.clear()

    def writable(self, now: float) -> None:
        self._pending = 0

    @property
    def listening(self) -> int:
        """Channels and patterns that the client listens to."""
        return len(self.channels) + len(self.patterns) + len(self.shards)

    def _count(self, own: dict[str, Subscription]) -> int:
        """What an answer tells: sharded channels count for themselves."""
        return len(own) if own is self.shards else len(self.channels) + len(self.patterns)

    @property
    def last_command(self) -> str:
        """What the client said last, as CLIENT LIST has it."""
        last = self._last
        if last is None:
            return "NULL"
        verb = str(last.verb).lower()
        if verb in _FAMILIES and last.arguments:
            return f"{verb}|{resp.text(last.arguments[0]).lower()}"
        return verb

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.bus.now = now
        if isinstance(frame, Malformed):
            self.link.say(f.RedisError(f"ERR Protocol error: {frame.problem}"))
            self.end()
            return
        if self.state == "connected":
            self.state = "ready"
            self.link.ready()
        if frame.__class__ is not f.Blank:
            self._last = frame
        try:
            if frame.__class__ is not f.Publish or not self._entered or self.listening:
                self._check(frame)
            self._handlers[type(frame)](frame)
        except Complaint as complaint:
            self.link.say(f.RedisError(str(complaint)))

    def end(self) -> None:
        """Hang up."""
        self.state = "ended"
        self.link.hang_up()

    def _check(self, frame: Any) -> None:
        """Raise `Complaint` where the client may not say this now."""
        if isinstance(frame, f.Blank):
            return
        if isinstance(frame, f.Command):
            self._check_command(frame)
            return
        if isinstance(frame, f.Auth) and not frame.arguments:
            raise wrong_number("auth")
        if not self._entered and not isinstance(frame, f.Auth | f.Hello):
            raise Complaint(_NOAUTH)
        allowed = isinstance(frame, _LISTENING)
        if self.listening and not self.codec.resp3 and not allowed:
            raise Complaint(_ONLY.format(frame.verb.lower()))

    def _check_command(self, frame: f.Command) -> None:
        command = COMMANDS.get(frame.verb.upper())
        if command is None:
            raise unknown_command(frame)
        name = command.check(frame)
        if not self._entered and not command.before_login:
            raise Complaint(_NOAUTH)
        if self.listening and not self.codec.resp3 and not command.while_listening:
            raise Complaint(_ONLY.format(name))

    def _command(self, frame: f.Command) -> None:
        command = COMMANDS.get(frame.verb.upper())
        if command is not None and command.act is not None:
            command.act(self, frame.arguments)

    def _publish(self, frame: f.Publish) -> None:
        if not self.node and frame.channel.startswith("MOL"):
            self._look_for_sender(frame)
        count = self.bus.publish(frame.channel, frame.payload, self.bus.now, self.node)
        self.link.say(f.Reply(count))

    def _look_for_sender(self, frame: f.Publish) -> None:
        """Of a node's two connections one only publishes: it shows by the sender of its first packet."""
        packet = packet_in(frame)
        if packet is not None and isinstance(packet.sender, str):
            self.node = packet.sender
            self.link.identify(packet.sender)

    def _listen(self, frame: Any, own: dict[str, Subscription], action: str) -> None:
        for name in frame.channels:
            if name not in own:
                key = PATTERN if own is self.patterns else SHARD if own is self.shards else CHANNEL
                subscription = own[name] = Subscription(name, self, key)
                self._registry(own).add(subscription)
            self.link.say(f.Subscribed(action, name, self._count(own)))
            node = listener_of(name) if own is self.channels else ""
            if node:
                self.knows(node, name)

    def _unlisten(self, frame: Any, own: dict[str, Subscription], action: str) -> None:
        names = frame.channels or tuple(own) or (None,)
        for name in names:
            subscription = own.pop(name, None) if name is not None else None
            if subscription is not None:
                self._registry(own).remove(subscription)
            self.link.say(f.Subscribed(action, name, self._count(own)))

    def _registry(self, own: dict[str, Subscription]) -> Subscriptions:
        return self.bus.shards if own is self.shards else self.bus.subscriptions

    def _publish_sharded(self, frame: f.Spublish) -> None:
        self.link.say(f.Reply(self.bus.publish_sharded(frame.channel, frame.payload)))

    # logging in

    def _auth(self, frame: f.Auth) -> None:
        words = frame.arguments
        if len(words) > 2:
            raise Complaint("ERR syntax error")
        if len(words) == 1 and not self.bus.options.needs_login:
            raise Complaint(_NO_PASSWORD)
        self._log_in(b"default" if len(words) == 1 else words[0], words[-1])
        self.link.say(f.Reply("OK"))

    def _log_in(self, user: bytes, password: bytes) -> None:
        options = self.bus.options
        known = options.user or "default"
        if resp.text(user) != known and not (resp.text(user) == "default" and not options.user):
            raise Complaint(_WRONGPASS)
        if options.needs_login and resp.text(password) != options.password:
            raise Complaint(_WRONGPASS)
        self._entered = True

    def _hello(self, frame: f.Hello) -> None:
        if frame.version and not frame.version.removeprefix("-").isdigit():
            raise Complaint("ERR Protocol version is not an integer or out of range")
        if frame.version and frame.version not in ("2", "3"):
            raise Complaint("NOPROTO unsupported protocol version")
        login, name = _hello_options(frame.options)
        if login is not None:
            self._log_in(*login)
        if not self._entered:
            raise Complaint(_NOAUTH_HELLO)
        if name is not None:
            self.name = name
        if frame.version:
            self.codec.resp3 = frame.version == "3"
        self.link.say(f.Reply(self._greeting()))

    def _greeting(self) -> dict[bytes, Any]:
        return {
            b"server": b"redis",
            b"version": VERSION.encode(),
            b"proto": 3 if self.codec.resp3 else 2,
            b"id": self.number,
            b"mode": b"standalone",
            b"role": b"master",
            b"modules": (),
        }

    def reset(self) -> None:
        """RESET: as if just connected."""
        self._forget_subscriptions()
        self._entered = not self.bus.options.needs_login
        self.codec.resp3 = False
        self.name, self.database = b"", 0

    # what others say

    def deliver(self, subscription: Subscription, channel: str, payload: bytes) -> None:
        """A message for this client."""
        link = self.link
        if subscription.key == PATTERN:
            link.say(f.Pmessage(subscription.pattern, channel, payload))
        elif subscription.key == SHARD:
            link.say(f.Smessage(channel, payload))
        else:
            link.say(f.Message(channel, payload))
        if not link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:  # client-output-buffer-limit pubsub
                self.end()

    # faults

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        if isinstance(frame, Packet):
            return super().refusal(frame, code, now)
        return f.RedisError(f"ERR refused with code {code}")

    def _wrap(self, frame: Frame) -> Frame | None:
        if not isinstance(frame, Packet):
            return None
        return f.Message(self.topic_for(frame), self.payload_of(frame))


def _hello_options(options: Sequence[bytes]) -> tuple[tuple[bytes, bytes] | None, bytes | None]:
    """User and password, and the client's name, as far as HELLO has them."""
    login: tuple[bytes, bytes] | None = None
    name: bytes | None = None
    words = list(options)
    while words:
        word = words.pop(0)
        if word.upper() == b"AUTH" and len(words) >= 2:
            login = (words.pop(0), words.pop(0))
        elif word.upper() == b"SETNAME" and words:
            name = words.pop(0)
        else:
            raise Complaint(f"ERR Syntax error in HELLO option '{resp.text(word)}'")
    return login, name
