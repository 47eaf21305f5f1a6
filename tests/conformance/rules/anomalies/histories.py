"""Histories for tests of the checkers: written line by line, or generated."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from fakebrokers.core.frames import Frame, FrameSpec, FrameTable, Items, Role
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.reader import RunLog, read_run
from fakebrokers.journal.record import State


class Publish(Frame, frozen=True):
    ids: tuple[Any, ...]
    publisher: int = 0


class Confirm(Frame, frozen=True):
    ids: tuple[Any, ...]
    publisher: int = 0


class Answers(Frame, frozen=True):
    """One code for each id, 0 for what is stored."""

    ids: tuple[Any, ...]
    codes: tuple[int, ...]
    publishers: tuple[int, ...] = ()


class Hello(Frame, frozen=True):
    pass


class Beat(Frame, frozen=True):
    pass


class Close(Frame, frozen=True):
    pass


class Ids(Items):
    def count(self, frame: Any) -> int:
        return len(frame.ids)

    def keys(self, frame: Any) -> Any:
        return frame.ids

    def select(self, frame: Any, indices: Any) -> Any:
        return frame


class MixedAnswers(Ids):
    mixed = True
    roles = (Role.REJECT,)

    def role(self, frame: Any, index: int) -> Role | None:
        return Role.REJECT if frame.codes[index] else None

    def status(self, frame: Any, index: int) -> int:
        return int(frame.codes[index])

    def scope(self, frame: Any, index: int) -> int:
        return frame.publishers[index] if frame.publishers else 0


FRAMES: FrameTable = {
    Publish: FrameSpec(Role.PUBLISH, "ids", Ids(), scope="publisher"),
    Confirm: FrameSpec(Role.CONFIRM, "ids", Ids(), scope="publisher"),
    Answers: FrameSpec(Role.CONFIRM, "ids", MixedAnswers()),
    Hello: FrameSpec(Role.HANDSHAKE),
    Beat: FrameSpec(Role.HEARTBEAT),
    Close: FrameSpec(Role.CLOSE),
}


class Story:
    """Writes a history, in memory or into a folder; every call is one record, 10 ms behind the one before."""

    def __init__(self, run: str = "r", *, folder: Path | None = None, **attributes: Any) -> None:
        self.folder = folder
        self.run = RunJournal(folder, "story", run=run, **attributes)
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

    def state(self, connection: str, what: str, note: str = "") -> None:
        self.journal.state(self.tick(), connection, what, note)

    def log(self, *, ended: bool = True) -> RunLog:
        self.journal.flush()
        if self.folder is not None:
            if ended:
                self.run.close()
            else:
                self.run._wire.close()
                self.run._ops.close()
            return read_run(self.folder, self.run.run)
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


#: Where the offsets of a history begin: also where signed numbers and where all numbers of 64 bits end.
FIRST_OFFSETS = (0, 0, 0, (1 << 63) - 4, (1 << 64) - 4, -2)
ID_GROUPS = ((0,), (0, 1), (1, 7), ("a",), ((1 << 63) - 1, 1 << 63), ((1 << 64) - 1,), (0, 1 << 70))
WIRE_KEYS = (None, "0", "1", "7", str(1 << 63), str((1 << 64) - 1))


def generated(seed: int, run: str, folder: Path | None = None) -> RunLog:
    """A random history in which every anomaly turns up now and then."""
    dice = random.Random(seed)
    limit = dice.choice([None, 40.0, 100.0])
    contract = dice.choice(CONTRACTS)
    story = Story(run, folder=folder, contract=contract, heartbeat_limit_ms=limit, seed=seed, client="c")
    values = [f"v{n}" for n in range(dice.randint(1, 6))]
    keys = ["q", "other"]
    first = dice.choice(FIRST_OFFSETS)
    story.frame(Hello(), Tap.OUT)
    for _ in range(dice.randint(1, 40)):
        value, key = dice.choice(values), dice.choice(keys[: dice.randint(1, 2)])
        process = dice.choice(["c1", "c2"])
        match dice.randint(0, 13):
            case 0 | 1 | 2:
                offset = dice.choice([None, None, first + dice.randint(0, 6)])
                more = {"wire_key": dice.choice(WIRE_KEYS), "offset": offset} if dice.random() < 0.6 else {}
                story.publish(value, dice.choice(["ok", "ok", "fail", "info", None]), key=key, **more)
            case 3 | 4 | 5:
                story.deliver(value, dice.choice([None, first + dice.randint(0, 6)]), key=key, by=process)
            case 6:
                story.subscribe(key=key, by=process)
            case 7:
                story.drain(key=key)
            case 8:
                event = dice.choice(["connection_lost", "reconnected", "note", "disconnected"])
                story.run.event(story.tick(), process, event)
            case 9 | 10:
                story.frame(*_traffic(dice), dice.choice(["c1", "c1", "c2"]))
            case 11:
                story.frame(
                    dice.choice([Beat(), Hello(), Close()]), dice.choice([Tap.OUT, Tap.IN]), dice.choice("xy")
                )
            case 12:
                metric = dice.choice(["loop_lag_ms", "cpu_steal"])
                story.run.metric(story.tick(), metric, dice.choice([0.5, 400.0]))
            case _:
                story.state(
                    dice.choice(["x", "x", "c1", "c2"]),
                    dice.choice([State.CLOSED, State.FAULT, State.PEER]),
                    "n1",
                )
        story.tick(dice.choice([0.0, 0.0, 0.05, 1.5]))
    if dice.random() < 0.3:
        story._op += 1
        story.run.op(story.tick(), "p1", story._op, "connect", "invoke")
        story.run.op(story.tick(), "p1", story._op, "connect", "info", error=dice.choice(["hang", "timeout"]))
    return story.log(ended=dice.random() < 0.8)


def _traffic(dice: random.Random) -> tuple[Frame, Tap]:
    """A publish, or an answer to one, at one of the taps."""
    ids = dice.choice(ID_GROUPS)
    if dice.random() < 0.5:
        return Publish(ids, dice.choice([0, 0, 1])), dice.choice([Tap.IN, Tap.RECEIVED, Tap.HEARD])
    tap = dice.choice([Tap.OUT, Tap.SAID, Tap.SENT])
    if dice.random() < 0.5:
        return Confirm(ids, dice.choice([0, 0, 1])), tap
    codes = tuple([dice.choice([0, 5]) for _ in ids])
    return Answers(ids, codes, dice.choice([(), tuple(range(len(ids)))])), tap
