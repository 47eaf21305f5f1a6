"""Histories for tests of the checkers: written line by line, or generated."""

from __future__ import annotations

import random
from typing import Any

from fakebrokers.core.frames import Frame, FrameSpec, FrameTable, Role
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.reader import RunLog


class Publish(Frame, frozen=True):
    ids: tuple[Any, ...]


class Confirm(Frame, frozen=True):
    ids: tuple[Any, ...]


class Hello(Frame, frozen=True):
    pass


class Beat(Frame, frozen=True):
    pass


class Close(Frame, frozen=True):
    pass


class Ids:
    def count(self, frame: Any) -> int:
        return len(frame.ids)

    def keys(self, frame: Any) -> Any:
        return frame.ids

    def select(self, frame: Any, indices: Any) -> Any:
        return frame


FRAMES: FrameTable = {
    Publish: FrameSpec(Role.PUBLISH, "ids", Ids()),
    Confirm: FrameSpec(Role.CONFIRM, "ids", Ids()),
    Hello: FrameSpec(Role.HANDSHAKE),
    Beat: FrameSpec(Role.HEARTBEAT),
    Close: FrameSpec(Role.CLOSE),
}


class Story:
    """Writes a history; every call is one record, a hundredth of a second behind the one before."""

    def __init__(self, run: str = "r", **attributes: Any) -> None:
        self.run = RunJournal(None, run, **attributes)
        self.journal = Journal(FRAMES)
        self.journal.sink = self.run
        self.now = 0.0
        self._op = 0

    def tick(self, seconds: float = 0.01) -> float:
        self.now += seconds
        return self.now

    def publish(
        self, value: str, end: str | None = "ok", *, key: str = "q", by: str = "p1", **more: Any
    ) -> None:
        """Begin to publish, and end it at once; None leaves it open."""
        self._op += 1
        self.run.op(self.tick(), by, self._op, "publish", "invoke", key=key, value=value)
        if end is not None:
            self.run.op(self.tick(), by, self._op, "publish", end, key=key, value=value, **more)  # type: ignore[arg-type]

    def deliver(self, value: str, offset: int | None = None, *, key: str = "q", by: str = "c1") -> None:
        self.run.op(self.tick(), by, None, "deliver", "ok", key=key, value=value, offset=offset)

    def subscribe(self, *, key: str = "q", by: str = "c1") -> None:
        self._op += 1
        self.run.op(self.tick(), by, self._op, "subscribe", "invoke", key=key)
        self.run.op(self.tick(), by, self._op, "subscribe", "ok", key=key)

    def drain(self, *, key: str = "q", by: str = "c1") -> None:
        self.run.op(self.tick(), by, None, "drain", "ok", key=key)

    def frame(self, frame: Frame, tap: Tap, connection: str = "c1") -> None:
        self.journal.add(self.tick(), connection, tap, frame, 10)

    def log(self, *, ended: bool = True) -> RunLog:
        self.journal.flush()
        if ended:
            self.run.attributes(ended=True)
        return self.run.log()


CONTRACTS = (
    "",
    "ordered",
    "exactly-once ordered",
    "at-least-once",
    "at-most-once ordered",
    "at-least-once by-hand",
    "at-least-once at-most-once false-answers",
)


def generated(seed: int, run: str) -> RunLog:
    """A random history in which every anomaly turns up now and then."""
    dice = random.Random(seed)
    limit = dice.choice([None, 40.0, 100.0])
    story = Story(run, contract=dice.choice(CONTRACTS), heartbeat_limit_ms=limit, seed=seed, client="c")
    values = [f"v{n}" for n in range(dice.randint(1, 6))]
    keys = ["q", "other"]
    story.frame(Hello(), Tap.OUT)
    for _ in range(dice.randint(1, 40)):
        value, key = dice.choice(values), dice.choice(keys[: dice.randint(1, 2)])
        process = dice.choice(["c1", "c2"])
        match dice.randint(0, 13):
            case 0 | 1 | 2:
                wire_key = dice.choice([None, "0", "1", "7"])
                offset = dice.choice([None, None, dice.randint(0, 6)])
                more = {"wire_key": wire_key, "offset": offset} if dice.random() < 0.6 else {}
                story.publish(value, dice.choice(["ok", "ok", "fail", "info", None]), key=key, **more)
            case 3 | 4 | 5:
                story.deliver(value, dice.choice([None, dice.randint(0, 6)]), key=key, by=process)
            case 6:
                story.subscribe(key=key, by=process)
            case 7:
                story.drain(key=key)
            case 8:
                event = dice.choice(["connection_lost", "reconnected", "note", "disconnected"])
                story.run.event(story.tick(), process, event)
            case 9:
                ids = dice.choice([(0,), (0, 1), (1, 7), ("a",)])
                story.frame(Publish(ids), dice.choice([Tap.IN, Tap.RECEIVED, Tap.HEARD]))
            case 10:
                story.frame(
                    Confirm(dice.choice([(0,), (1,), (0, 1)])), dice.choice([Tap.OUT, Tap.SAID, Tap.SENT])
                )
            case 11:
                story.frame(
                    dice.choice([Beat(), Hello(), Close()]), dice.choice([Tap.OUT, Tap.IN]), dice.choice("xy")
                )
            case 12:
                metric = dice.choice(["loop_lag_ms", "cpu_steal"])
                story.run.metric(story.tick(), metric, dice.choice([0.5, 400.0]))
            case _:
                story.journal.state(story.tick(), "x", dice.choice(["closed", "fault"]), "")
        story.tick(dice.choice([0.0, 0.0, 0.05, 1.5]))
    if dice.random() < 0.3:
        story._op += 1
        story.run.op(story.tick(), "p1", story._op, "connect", "invoke")
        story.run.op(story.tick(), "p1", story._op, "connect", "info", error=dice.choice(["hang", "timeout"]))
    return story.log(ended=dice.random() < 0.8)
