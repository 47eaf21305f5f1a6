"""What a script does to the broker, written down as it does it: streams, faults, frames by hand, crashes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from fakebrokers.core.calls import OF_ITS_LIFE, CallListener
from fakebrokers.faults.plan import Plan

#: What only looks, waits, or belongs to the life of the fake itself.
_NOT_DONE = OF_ITS_LIFE | {
    *("client_holds", "expect", "journal_excerpt", "messages", "stream_named", "unacked", "wait_for"),
    *("messages_url", "near_miss", "queue_url", "wait_for_async", "websocket_url"),
}

#: How many bytes of texts a statement may hold. Writing down megabytes takes time from the scenario, and
#: nobody reads them.
LITERALS_MAX = 256 << 10


class Deed(msgspec.Struct, frozen=True):
    """One thing that was done to the broker.

    Attributes:
        at_s: On the clock of the runner's loop.
        mark: The journal's newest record at that moment.
        text: As a statement in Python; empty if there is none for it, such as for a function.
        plan: The faults that were added to the fake itself.
    """

    at_s: float
    mark: int
    text: str
    plan: dict[str, Any] = {}


class Deeds(CallListener):
    """Listens to what is asked of a fake (its methods, faults and proxy) on the thread that made this.

    Args:
        clock: Returns the time.
    """

    def __init__(self, broker: Any, clock: Callable[[], float]) -> None:
        super().__init__(_NOT_DONE)
        self.done: list[Deed] = []
        self._broker = broker
        self._clock = clock
        self._thread = threading.get_ident()
        if hasattr(broker, "journal"):
            self.listen(broker, "broker")
            self._when_started(broker)

    def _when_started(self, broker: Any) -> None:
        start = broker.start

        def started() -> Any:
            found = start()
            if getattr(broker, "proxy", None) is not None:
                self.listen(broker.proxy, "broker.proxy")
            return found

        broker.start = started

    def begun(self, name: str, method: Callable[..., Any], args: Sequence[Any], options: Any) -> None:
        if threading.get_ident() == self._thread:
            self._note(name, args, options)

    def _note(self, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        source, plan = SourceWriter(), {}
        if name.endswith("faults.add"):  # as plain values, which need no import
            plan = Plan(seed=self._broker.faults.plan.seed, faults=tuple(args)).to_dict()
            name, args = f"{name.removesuffix('add')}load", [plan]
        try:
            given = [source.of(each) for each in args]
            given += [f"{key}={source.of(value)}" for key, value in options.items()]
            text = f"{name}({', '.join(given)})"
        except TypeError:
            text = ""
        faults = plan if name == "broker.faults.load" else {}
        self.done.append(Deed(self._clock(), self._broker.journal.last_seq, text, faults))


class SourceWriter:
    """Writes values as Python source, in ASCII; `names` collects what has to be imported for it."""

    def __init__(self) -> None:
        self.names: set[tuple[str, str]] = set()
        self._length = 0

    def of(self, value: Any) -> str:
        """The source of a value. Raises `TypeError` for what has none, such as a function or megabytes."""
        if isinstance(value, bytes | str):
            self._length += len(value)
            if self._length > LITERALS_MAX:
                raise TypeError(f"more than {LITERALS_MAX} bytes of literals")
        match value:
            case Enum():
                return f"{self._name(type(value))}.{value.name}"
            case None | bool() | int() | float() | str() | bytes():
                return ascii(value)
            case msgspec.Struct():
                fields = ", ".join(f"{k}={self.of(v)}" for k, v in msgspec.structs.asdict(value).items())
                return f"{self._name(type(value))}({fields})"
            case Mapping():
                return "{" + ", ".join(f"{self.of(k)}: {self.of(v)}" for k, v in value.items()) + "}"
            case tuple():
                return f"({', '.join(map(self.of, value))}{',' if len(value) == 1 else ''})"
            case list():
                return f"[{', '.join(map(self.of, value))}]"
        raise TypeError(f"no source for a {type(value).__name__}")

    def _name(self, kind: type) -> str:
        self.names.add((kind.__name__, kind.__module__))
        return kind.__name__
