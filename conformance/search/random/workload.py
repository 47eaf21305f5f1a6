"""What the application does while the schedule disturbs it. Users write their own, see `docs/chaos.md`."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, ClassVar

from conformance.clients.adapter.base import Call
from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext
from fakebrokers.renamed import OldName

AGAIN_S = 3.0  #: between two tries to open something
TRIES = 4  #: once nothing disturbs the client
ROUNDS = 200  #: of settling by hand, where little is delivered at a time
EVER = 1 << 30  #: messages; nobody has so many
SCRIPT = "script"  #: the kind of workload that plays a base script of the sweep, see `script`
LIVE_DRAIN_S = 2.0  #: where time is real, `recover` has waited until the client rests
MOST_OPEN = 20  #: publishes of one session that wait for their outcomes


class Workload:
    """One run's work. A subclass overrides `draw`, `begin` and `work`.

    Args:
        context: Where ops begin and time passes.
        actions: How this protocol publishes, consumes and asks.
        params: What `draw` has drawn, with the protocol's own settings.

    Attributes:
        role: That a client must have declared; "" where any will do.
        sessions, publishers, consumers: What was begun, and whether it is there.
    """

    role: ClassVar[str] = ""

    scene = OldName("context")

    def __init__(self, context: ChaosContext, actions: Actions, params: Mapping[str, Any]) -> None:
        self.context = context
        self.actions = actions
        self.params = params
        self.sessions: dict[str, bool] = {}
        self.publishers: dict[tuple[str, str], bool] = {}
        self.consumers: dict[str, tuple[str, str, bool]] = {}
        self.made: list[str] = []
        context.remake = lambda: actions.prepare(context, self.made)
        self._locks: dict[object, asyncio.Lock] = defaultdict(asyncio.Lock)  # one opens, the others wait
        self._subs = 0
        self._bodies = 0

    # what a subclass overrides

    @classmethod
    def bears(cls, actions: Actions, params: Mapping[str, Any]) -> bool:
        """Whether it makes sense while it is disturbed."""
        return True

    @classmethod
    def options(cls, actions: Actions, params: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the fake."""
        return actions.options(params)

    @classmethod
    def draw(cls, random: Random, actions: Actions) -> dict[str, Any]:
        """Settings of one run, as plain values; the same random numbers give the same settings."""
        return {}

    async def begin(self) -> None:
        """Before anything is disturbed: targets, sessions, subscriptions."""

    async def work(self) -> None:
        """The safety phase: goes on although ops fail. Ops never raise for what the client does."""

    async def phases(self) -> None:
        """The whole run: safety, then liveness."""
        await self.begin()
        self.context.disturb()
        await asyncio.gather(self.work(), asyncio.sleep(self.context.schedule.seconds))
        await self.context.heal()
        await self.recover()
        await self.drain()
        await self.finish()

    # what it works with

    async def make(self, *targets: str) -> None:
        """Make targets at the broker; a broker that loses all it has gets them again."""
        self.made += targets
        if not self.context.is_remote:  # there the client itself has to
            await self.actions.prepare(self.context, list(targets))

    async def session(self) -> str:
        """Connect another session. Returns its name: ``s1`` is the first."""
        name = f"s{len(self.sessions) + 1}"
        if len(self.sessions) == 1:
            self.context.notes.sessions = 2
        self.sessions[name] = False
        await self._joined(name)
        if len(self.sessions) == 1 and self.actions.probe_target:
            probed = self.context.own(self.actions.probe_target)
            if probed not in self.made:
                await self.make(probed)
            await self.publisher(name, probed)
        return name

    async def publisher(self, session: str, target: str) -> None:
        """Open what publishing to a target needs."""
        self.publishers.setdefault((session, target), False)
        await self._opened(session, target)

    async def consumer(self, session: str, target: str) -> str:
        """Consume a target. Returns the name of the subscription, which is a new one after a failure."""
        self._subs += 1
        sub = f"c{self._subs}"
        self.consumers[sub] = session, target, False
        there = await self.actions.subscribe(self.context, session, sub, target, self.params)
        self.consumers[sub] = session, target, there
        return sub

    def publish(self, session: str, target: str, *, wait: bool = True) -> Call:
        """Begin to publish a message that no other one equals."""
        return self.actions.publish(self.context, session, target, self.body(session), wait=wait)

    def put(self, target: str) -> None:
        """A message of another client; at a real server there is no one else."""
        if not self.context.is_remote:
            self.actions.put(self.context, target, self.body("put"))

    def body(self, who: str) -> str:
        """A body that no other message has; ``size`` of the settings says how long it is, characters."""
        self._bodies += 1
        head = f"{who}-{self._bodies}-"
        return head + "x" * max(0, int(self.params.get("size", 0)) - len(head))

    async def _joined(self, name: str) -> bool:
        async with self._locks[name]:
            if not self.sessions[name]:
                options = self.actions.connecting_of(int(name[1:]))
                self.sessions[name] = await self.context.join(name, self.actions.connect_s, **options)
                if self.sessions[name]:
                    await self.actions.joined(self.context, name)
        return self.sessions[name]

    async def _opened(self, session: str, target: str) -> bool:
        async with self._locks[session, target]:
            if not self.publishers[session, target] and await self._joined(session):
                self.publishers[session, target] = await self.actions.open(self.context, session, target)
        return self.publishers[session, target]

    # the liveness phase

    async def recover(self) -> None:
        """Nothing disturbs it any more: what could not be opened is opened, and every back-off ends.

        After this all sessions and subscriptions have to be there.
        """
        for attempt in range(TRIES):
            await self.context.sleep(AGAIN_S * (attempt + 1))
            if await self._all_there():
                break
        await self.context.sleep(self.actions.recover_s)
        read = dict.fromkeys(target for _, target, _ in self.consumers.values())
        for target in read:
            self.put(target)
        await self.context.sleep(self.actions.drain_s)
        for _ in range(ROUNDS):
            if not sum([await self.actions.settle(self.context, sub) for sub in self.consumers]):
                break
            await self.context.sleep(self.actions.settled_s)  # what is settled makes room for more
        if self.consumers:
            self.context.mark("subscribed")

    async def _all_there(self) -> bool:
        there = [await self._joined(name) for name in self.sessions]
        there += [await self._opened(session, target) for session, target in list(self.publishers)]
        for sub, (session, target, works) in list(self.consumers.items()):
            if not works and self.sessions[session]:
                del self.consumers[sub]
                again = await self.consumer(session, target)
                there.append(self.consumers[again][2])
        return all(there)

    async def drain(self) -> None:
        """Consumers get all that is there: what has not come after this never will."""
        within_s = LIVE_DRAIN_S if self.context.is_real_time else self.actions.drain_s
        waits = [self.context.adapter.wait_messages(sub, EVER, within_s) for sub in self.consumers]
        await asyncio.gather(*waits)

    async def finish(self) -> None:
        """A question works again; then the sessions are closed, and nothing is left."""
        for name in list(self.sessions)[1:]:
            await self.context.op("close", 5.0, session=name)
        op, args = self.actions.probing(self.params)
        if "target" in args:
            args = {**args, "target": self.context.own(args["target"])}
        await self.context.finale(op, **args)


class Mixture(Workload):
    """Publishers, consumers and requests side by side. Subclasses say of what there is how much."""

    publishes: ClassVar[bool] = False
    consumes: ClassVar[bool] = False
    asks: ClassVar[bool] = False

    @classmethod
    def draw(cls, random: Random, actions: Actions) -> dict[str, Any]:
        found: dict[str, Any] = {
            "sessions": random.choice((1, 1, 2)),
            "targets": random.choice((1, 1, 2)),
            "rate": random.choice((2.0, 5.0, 20.0, 100.0)),
            "size": random.choice((0, 0, 20, 300, 5000)),
        }
        if cls.publishes and "publish" in actions.kinds:
            found["targets"] = max(found["targets"], found["sessions"])
            found["publishers"] = random.choice((1, 1, 2, 3))
            found["messages"] = random.choice((5, 10, 20, 40))
            found["waits"] = random.choice((0.0, 0.5, 1.0))
        if cls.consumes:
            found["consumers"] = random.choice((1, 1, 2))
            found["puts"] = random.choice((5, 10, 20))
            found["sleep_ms"] = random.choice((0, 0, 0, 30))
        if cls.asks:
            found["requests"] = random.choice((5, 10, 20))
        return found

    async def begin(self) -> None:
        reads = self.consumes
        count = self.params.get("targets", 1)
        self.targets = [self.context.own(self.actions.target(n, read=reads)) for n in range(count)]
        self.targets = list(dict.fromkeys(self.targets))
        await self.make(*self.targets)
        for _ in range(self.params.get("sessions", 1)):
            await self.session()
        readers = list(self._pairs("consumers"))
        for session, target in dict.fromkeys(readers) if self.actions.reads_once else readers:
            await self.consumer(session, target)
        for session, target in self._pairs("publishers"):
            await self.publisher(session, target)

    def _pairs(self, what: str) -> Iterator[tuple[str, str]]:
        """Sessions and targets in turn, as many as the settings say."""
        names = list(self.sessions)
        for number in range(self.params.get(what, 0)):
            session = number % len(names)
            # two sessions never publish to one target: where numbers count in a connection, nobody could
            # say whose confirm is whose
            target = session if what == "publishers" else number
            yield names[session], self.targets[target % len(self.targets)]

    async def work(self) -> None:
        loops = [self._publishing(session, target) for session, target in self._pairs("publishers")]
        if self.params.get("puts"):
            loops.append(self._putting())
        if self.params.get("requests"):
            loops += [self._asking(session) for session in self.sessions]
        await asyncio.gather(*loops)

    async def _publishing(self, session: str, target: str) -> None:
        waiting: deque[Call] = deque()
        for _ in range(self.params["messages"]):
            if await self._opened(session, target):
                wait = self.context.random.random() < self.params["waits"]
                waiting.append(self.publish(session, target, wait=wait))
            if len(waiting) >= MOST_OPEN:
                await waiting.popleft()
            await self._pause()
        for call in waiting:
            await call

    async def _putting(self) -> None:
        for number in range(self.params["puts"]):
            self.put(self.targets[number % len(self.targets)])
            await self._pause()
            if number % 5 == 4:
                for sub in list(self.consumers):
                    await self.actions.settle(self.context, sub)

    async def _asking(self, session: str) -> None:
        calls = []
        for number in range(self.params["requests"]):
            if await self._joined(session):
                call = self.actions.ask(self.context, session, number)
                calls += [] if call is None else [call]
            await self._pause()
        for call in calls:
            await call

    async def _pause(self) -> None:
        await self.context.sleep(self.context.random.expovariate(self.params["rate"]))


class PublishOnly(Mixture):
    """Publishes with confirms."""

    publishes = True


class ConsumeOnly(Mixture):
    """Consumes what others publish, and settles it."""

    consumes = True


class AskOnly(Mixture):
    """Asks, and waits for replies."""

    asks = True


class Mixed(Mixture):
    """All of it at once: it consumes what it publishes itself, too."""

    publishes = consumes = asks = True
