"""A queue: its messages, its apps, and who has handles to it (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.app import App
from fakebrokers.blazingmq.codes import DEFAULT_APP, AckStatus
from fakebrokers.blazingmq.host import Host, Usage
from fakebrokers.blazingmq.learner import Learner
from fakebrokers.blazingmq.openings import Openings
from fakebrokers.blazingmq.routing import Outcome
from fakebrokers.blazingmq.store import Store
from fakebrokers.blazingmq.stream import Opened, Stream, Subscriber

if TYPE_CHECKING:
    from fakebrokers.blazingmq.domains import Domain
    from fakebrokers.blazingmq.message import Message

#: How often a broker looks for what is too old in queues that nobody uses, seconds.
_LOOK_S = 5.0

_SUCCESS = AckStatus.SUCCESS  #: by itself: looks into an enum cost, and this is asked of every message


class Queue:
    """See the module's text.

    Attributes:
        uri: Its canonical name.
        domain: What it may hold, and how it delivers.
        store: What it holds.
        apps: By name.
        handles: Of all clients, in the order in which they were opened.
        openings: Who may open it.
        learner: Numbers the schemas of properties.
    """

    def __init__(self, uri: str, domain: Domain, usage: Usage, host: Host) -> None:
        self.uri = uri
        self.domain = domain
        self.store = Store(usage)
        self.handles: dict[Opened, None] = {}
        names = domain.app_ids if domain.mode == "fanout" else (DEFAULT_APP,)
        self.learner = Learner()
        self.openings = Openings(self.handles)
        self._host = host
        self.apps = {name: self._new_app(name) for name in names}
        self._authorised = frozenset(names)
        self._limited = domain.has_limits
        self._history: OrderedDict[bytes, float] = OrderedDict()
        self._expiry = host.timers.new(self._look)

    @property
    def messages(self) -> Mapping[bytes, Message]:
        """What is stored, by GUID, in the order in which it came."""
        return self.store.messages

    def touched(self) -> None:
        """Somebody does something with it."""
        if self._history:
            self._host.touched(self.expire)

    def app(self, name: str) -> App:
        """The app of that name; one that the domain does not list gets nothing."""
        if name not in self.apps:
            self.apps[name] = self._new_app(name, authorised=False)
        return self.apps[name]

    def _new_app(self, name: str, authorised: bool = True) -> App:
        return App(name, self.store, self._host, self.advance, authorised)

    def reconfigure(self, domain: Domain) -> None:
        """The domain has changed; apps that are new in it get what comes from here on."""
        self.domain = domain
        self._limited = domain.has_limits
        for name in domain.app_ids if domain.mode == "fanout" else ():
            self.app(name).authorised = True
        self._authorised = frozenset([app.name for app in self.apps.values() if app.authorised])

    def forget_idle(self, app: App) -> None:
        """Forget an app that the domain does not list, once nobody reads it."""
        if not app.authorised and not app.streams:
            self.apps.pop(app.name, None)

    # messages

    def post(self, message: Message) -> AckStatus:
        """Store a message and hand it out."""
        if self.domain.mode == "broadcast":
            self._broadcast(message)
            return _SUCCESS
        if self._is_known(message) or not self._authorised:
            return _SUCCESS
        status = self._room_for() if self._limited else _SUCCESS
        if status is _SUCCESS:
            self._store(message)
            self.store.ahead.append(message)
            self.advance()
        return status

    def _is_known(self, message: Message) -> bool:
        """Whether the same GUID was posted before: what is still stored is never forgotten."""
        self._forget(message.at // _LOOK_S * _LOOK_S)
        return message.guid in self._history or message.guid in self.messages

    def _forget(self, now: float) -> None:
        """GUIDs that are too old at a time may come again."""
        remembered = 0.0 if self.domain.mode == "broadcast" else self.domain.deduplication_time_ms / 1000
        while self._history and next(iter(self._history.values())) <= now - remembered:
            self._history.popitem(last=False)

    def _room_for(self) -> AckStatus:
        """Whether there is room; what is held may exceed each limit once, whatever the message's size."""
        domain, usage = self.domain, self.store.usage
        for messages, most, held, size in (
            (len(self.messages), domain.queue_messages, self.store.bytes, domain.queue_bytes),
            (usage.messages, domain.domain_messages, usage.bytes, domain.domain_bytes),
        ):
            if most and messages > most:
                return AckStatus.LIMIT_MESSAGES
            if size and held > size:
                return AckStatus.LIMIT_BYTES
        return AckStatus.SUCCESS

    def _store(self, message: Message) -> None:
        message.waiting = self._authorised
        self.store.add(message)
        self._history[message.guid] = message.at
        self._host.touched(self.expire)
        if self.domain.message_ttl_s and not self._expiry.is_set:
            self._expiry.set((message.at // _LOOK_S + 1) * _LOOK_S)

    def advance(self) -> None:
        """Give each app its turn with what came, until all stop.

        One delivery for each handle, whatever number of its streams get the message.
        """
        ahead = self.store.ahead
        while ahead:
            message = ahead[0]
            if not message.waiting:
                ahead.popleft()
                continue
            takers: dict[Opened, list[Subscriber]] = {}
            stopped = []
            for app in self.apps.values():
                taker = app.offer(message)
                if taker is Outcome.ALL_FULL:
                    stopped.append(app)
                elif isinstance(taker, Subscriber):
                    takers.setdefault(taker.stream.handle, []).append(taker)
            if len(stopped) == len(self.apps):
                return
            ahead.popleft()
            for app in stopped:
                app.fall_behind(message)
            for together in takers.values():
                together[0].stream.deliver(message, together, out_of_order=False)

    def _broadcast(self, message: Message) -> None:
        """Hand it to all that are there; once, if it is several times in one event."""
        if message.guid in self._history:
            return
        self._history[message.guid] = message.at
        self._host.touched(self.expire)
        for app in self.apps.values():
            for taker in app.everybody(message):
                taker.stream.handle.push(message, [taker.info], False)

    def confirm(self, guid: bytes, app_id: str) -> None:
        """An app is done with a message."""
        message = self.messages.get(guid)
        if message is not None:
            message.waiting -= {app_id}
            if not message.waiting:
                self.store.remove(message)

    def attempts_failed(self, stream: Stream) -> None:
        """A client was lost with what a stream has unconfirmed; poisonous messages are dropped."""
        most = self.domain.max_delivery_attempts
        for guid, unconfirmed in list(stream.unconfirmed.items()):
            if unconfirmed.message.attempt_failed(stream.app_id, most):
                stream.confirm(guid)
                self.confirm(guid, stream.app_id)

    def purge(self, app_id: str | None = None) -> int:
        """Drop the messages of one app, or of all; how many there were."""
        names = list(self.apps) if app_id is None else [app_id]
        meant = [each for each in self.messages.values() if not each.waiting.isdisjoint(names)]
        for message in meant:
            for name in names:
                self.confirm(message.guid, name)
        self._forget_gone()
        return len(meant)

    def _forget_gone(self) -> None:
        store = self.store
        store.ahead = deque([each for each in store.ahead if each.waiting])
        for app in self.apps.values():
            app.forget_gone()

    def _look(self, now: float) -> None:
        """A broker looks at the ages of all messages from time to time."""
        self.expire(now)
        if self.messages:
            self._expiry.set(now + _LOOK_S)

    def expire(self, now: float) -> None:
        """GUIDs that are too old are forgotten, and messages go: no client hears of it."""
        self._forget(now)
        if not self.domain.message_ttl_s:
            return
        found = list(self._too_old(int(self._host.wall(now))))
        for message in found:
            self.store.remove(message)
        if found:
            self._forget_gone()

    def _too_old(self, second: int) -> Iterator[Message]:
        """The ages of messages are counted in whole seconds of the clock."""
        for message in self.messages.values():
            if second - int(self._host.wall(message.at)) <= self.domain.message_ttl_s:
                return
            yield message

    def redeliver(self) -> None:
        """Take back what all consumers have unconfirmed, and deliver it again."""
        for app in self.apps.values():
            for stream in app.streams:
                app.take_back(stream.give_back())
            app.usable()  # whoever was full is not any more
