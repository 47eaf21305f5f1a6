"""One client of the Redis server.

    connected -> ready -> ended        a client that listens may say little else in RESP2

Everything is as redis-server 7.0.15 answered it (docs/protocols/redis.md, 3 "Life of a connection").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.subscriptions import Subscription, Subscriptions
from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.broker import CHANNEL, PATTERN, SHARD, RedisBroker
from fakebrokers.redis.codec import RedisCodec
from fakebrokers.redis.commands import (
    Caller,
    Complaint,
    find_command,
    not_queued,
    unknown_command,
    wrong_number,
)

#: Bytes said to a client that does not read before the server ends its connection.
MAX_PENDING = 64 * 1024 * 1024
#: Commands that a client may say while it waits before it is not read any more.
MAX_POSTPONED = 1000

_ONLY = (
    "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
    " are allowed in this context"
)
_ABORT = "EXECABORT Transaction discarded because of: "
_LOADING = "LOADING Redis is loading the dataset in memory"
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


class RedisSession(Caller):
    """The state machine of one connection."""

    def __init__(self, broker: RedisBroker, codec: RedisCodec) -> None:
        super().__init__(broker, codec)
        self._kinds: f.Kinds = codec.kinds
        self._postponed: deque[Frame] = deque()  # what was said while it waits
        self._entered = not broker.needs_login
        self._pending = 0
        self._handlers: Mapping[type[Frame], Callable[[Any], None]] = {
            codec.kinds.publish: self._publish,
            f.Subscribe: lambda frame: self._listen(frame, self.channels, "subscribe"),
            f.Psubscribe: lambda frame: self._listen(frame, self.patterns, "psubscribe"),
            f.Unsubscribe: lambda frame: self._unlisten(frame, self.channels, "unsubscribe"),
            f.Punsubscribe: lambda frame: self._unlisten(frame, self.patterns, "punsubscribe"),
            f.Ssubscribe: lambda frame: self._listen(frame, self.shards, "ssubscribe"),
            f.Sunsubscribe: lambda frame: self._unlisten(frame, self.shards, "sunsubscribe"),
            codec.kinds.spublish: self._publish_sharded,
            f.Auth: self._auth,
            f.Hello: self._hello,
            codec.kinds.command: self._command,
            codec.kinds.blank: lambda frame: None,
        }

    # life

    def opened(self, now: float) -> None:
        self.broker.connected += 1
        self.number = self.broker.connected
        self.broker.sessions[self.number] = self
        self.opened_at = now
        self._patience = self.link.session_timer(self._give_up)

    def closed(self, now: float) -> None:
        super().closed(now)
        self.state = "ended"
        self.broker.sessions.pop(self.number, None)
        self._forget_subscriptions()
        self._forget_stored()

    def _forget_stored(self) -> None:
        """Neither wait for anything, nor have a transaction."""
        self.broker.waiting.pop(self, None)
        if self.stored is not None:
            self.stored.close()
            self.stored = None

    def _forget_subscriptions(self) -> None:
        for subscription in (*self.channels.values(), *self.patterns.values()):
            self.broker.subscriptions.remove(subscription)
        for subscription in self.shards.values():
            self.broker.shards.remove(subscription)
        for own in (self.channels, self.patterns, self.shards):
            own.clear()

    def writable(self, now: float) -> None:
        self._pending = 0

    def _count(self, own: dict[str, Subscription]) -> int:
        """What an answer tells: sharded channels count for themselves."""
        return len(own) if own is self.shards else len(self.channels) + len(self.patterns)

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.broker.now = now
        if self in self.broker.waiting:
            self._postponed.append(frame)
            if len(self._postponed) > MAX_POSTPONED:
                self.link.stop_reading()
            return
        if isinstance(frame, Malformed):
            self.link.say(f.RedisError(f"ERR Protocol error: {frame.problem}"))
            self.end()
            return
        if self.state == "connected":
            self.state = "ready"
            self.link.ready()
        if not isinstance(frame, f.Blank):
            self._last = frame
        try:
            if frame.__class__ is not self._kinds.publish or not self._is_free:
                self._check(frame)
            self._handlers[type(frame)](frame)
        except Complaint as complaint:
            if self.stored is not None:
                self.stored.spoil()
            self.link.say(f.RedisError(str(complaint)))

    @property
    def _is_free(self) -> bool:
        """Whether the client may publish without another look."""
        return self._entered and not self.listening and self.stored is None

    def _check(self, frame: Any) -> None:
        """Raise `Complaint` where the client may not say this now."""
        if isinstance(frame, f.Blank):
            return
        if isinstance(frame, f.Command):
            self._check_command(frame)
            return
        if self.stored is not None and self.stored.queues:
            raise not_queued()
        if isinstance(frame, f.Auth) and not frame.arguments:
            raise wrong_number("auth")
        if not self._entered and not isinstance(frame, f.Auth | f.Hello):
            raise Complaint(_NOAUTH)
        allowed = isinstance(frame, _LISTENING)
        if self.listening and not self.codec.resp3 and not allowed:
            raise Complaint(_ONLY.format(frame.verb.lower()))

    def _check_command(self, frame: f.Command) -> None:
        command = find_command(self, frame.verb)
        if command is None:
            raise unknown_command(frame)
        name = command.check(frame)
        if self.broker.store is not None and (problem := self.broker.store.problem_with(frame)):
            raise Complaint(problem)
        if not self._entered and not command.before_login:
            raise Complaint(_NOAUTH)
        if self.listening and not self.codec.resp3 and not command.while_listening:
            problem = _ONLY.format(name)
            raise Complaint(problem if name != "exec" else f"{_ABORT}{problem.removeprefix('ERR ')}")
        if self.broker.loading and command.needs_data:
            raise Complaint(_LOADING)

    def _command(self, frame: f.Command) -> None:
        command = find_command(self, frame.verb)
        if command is not None and command.act is not None:
            command.act(self, frame.arguments)

    def answer(self, value: Any) -> None:
        """Say the answer to a command; see `frames.Reply` for the value."""
        if isinstance(value, resp.Failure):
            self.link.say(f.RedisError(str(value)))
        else:
            self.link.say(self._kinds.reply(value))

    # what waits for something to be stored

    def wait(self, timeout_s: float) -> None:
        """Answer when something is stored, or after so many seconds; 0 is for ever."""
        self.broker.waiting[self] = None
        if timeout_s:
            self._patience.set(self.broker.now + timeout_s)

    def try_again(self) -> bool:
        """Whether what the client waits for is there now; then it has its answer."""
        assert self.stored is not None
        found = self.stored.try_again()
        if isinstance(found, resp.Waits):
            return False
        self._go_on(found)
        return True

    def _give_up(self, now: float) -> None:
        assert self.stored is not None
        self.broker.now = now
        self._go_on(self.stored.given_up())

    def _go_on(self, value: Any) -> None:
        """Answer, and hear what the client has said meanwhile."""
        del self.broker.waiting[self]
        self._patience.cancel()
        self.answer(value)
        while self._postponed and self not in self.broker.waiting:
            self.handle(self._postponed.popleft(), self.broker.now)
        if not self._postponed:
            self.link.resume_reading()

    # messages

    def published(self, frame: f.Publish) -> None:
        """The client publishes a message."""

    def _publish(self, frame: f.Publish) -> None:
        self.published(frame)
        count = self.broker.route(self, frame.channel, frame.payload)
        self.link.say(self._kinds.published(count))

    def _listen(self, frame: Any, own: dict[str, Subscription], action: str) -> None:
        for name in frame.channels:
            if name not in own:
                key = PATTERN if own is self.patterns else SHARD if own is self.shards else CHANNEL
                subscription = own[name] = Subscription(name, self, key)
                self._registry(own).add(subscription)
            self.link.say(f.Subscribed(action, name, self._count(own)))
            if own is self.channels:
                self.subscribed(name)

    def subscribed(self, channel: str) -> None:
        """The client listens to a channel from now on."""

    def _unlisten(self, frame: Any, own: dict[str, Subscription], action: str) -> None:
        names = frame.channels or tuple(own) or (None,)
        for name in names:
            subscription = own.pop(name, None) if name is not None else None
            if subscription is not None:
                self._registry(own).remove(subscription)
            self.link.say(f.Subscribed(action, name, self._count(own)))

    def _registry(self, own: dict[str, Subscription]) -> Subscriptions:
        return self.broker.shards if own is self.shards else self.broker.subscriptions

    def _publish_sharded(self, frame: f.Spublish) -> None:
        self.link.say(self._kinds.published(self.broker.route_sharded(frame.channel, frame.payload)))

    # logging in

    def _auth(self, frame: f.Auth) -> None:
        words = frame.arguments
        if len(words) > 2:
            raise Complaint("ERR syntax error")
        if len(words) == 1 and not self.broker.needs_login:
            raise Complaint(_NO_PASSWORD)
        self._log_in(b"default" if len(words) == 1 else words[0], words[-1])
        self.answer("OK")

    def _log_in(self, user: bytes, password: bytes) -> None:
        broker, name = self.broker, resp.text(user)
        if name != (broker.user or "default") or (
            broker.needs_login and resp.text(password) != broker.password
        ):
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
        self.answer(self._greeting())

    def _greeting(self) -> dict[bytes, Any]:
        return {
            b"server": b"redis",
            b"version": self.broker.profile.version.encode(),
            b"proto": 3 if self.codec.resp3 else 2,
            b"id": self.number,
            b"mode": b"standalone",
            b"role": b"master",
            b"modules": (),
        }

    def reset(self) -> None:
        """RESET: as if just connected."""
        self._forget_subscriptions()
        self._forget_stored()
        self._entered = not self.broker.needs_login
        self.codec.resp3 = False
        self.name, self.database = b"", 0

    # what others say

    def deliver(self, subscription: Subscription, channel: str, payload: bytes) -> None:
        """A message for this client."""
        link = self.link
        if subscription.key == PATTERN:
            link.say(self._kinds.pmessage(subscription.pattern, channel, payload))
        elif subscription.key == SHARD:
            link.say(self._kinds.smessage(channel, payload))
        else:
            link.say(self._kinds.message(channel, payload))
        if not link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:  # client-output-buffer-limit pubsub
                self.end()

    # faults

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return f.RedisError(f"ERR refused with code {code}") if hasattr(frame, "verb") else None

    def describe(self) -> dict[str, Any]:
        return {"state": self.state, "client": resp.text(self.name), "subscriptions": self.listening}


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
