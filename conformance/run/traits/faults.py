"""What faults are made of that no frame table says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from fakebrokers.core.frames import Frame

Args = Mapping[str, Any]


class FaultMaterial(ABC):
    """What faults are made of that no frame table says.

    Attributes:
        specimens: Frames of kinds that `acts.specimen` cannot make from the types of their fields.
        not_made_up: Frames of the server that no act makes up, because a broker that says them without
            doing them lies about what it has (let `happenings` do it instead).
        happenings: What can happen to the broker, by name; called with the fake.
        unasked: Further frames of the server that nobody asks for, by name: for ids that nobody has.
        noise: Units that are no frames, by name.
        fixed: Further arguments of ops that are not changed, because they tie ops together here.
        other_parts: What may replace a part of a message, besides what any protocol can have there.
        concurrent: Of `concurrent_actions.CONCURRENT`, those that base scripts are tried with.
        troubles: Acts and parameters that are done to every connection for a while, at the same frame.
    """

    specimens: ClassVar[Mapping[type[Frame], Frame]] = {}
    not_made_up: ClassVar[tuple[type[Frame], ...]] = ()
    happenings: ClassVar[Mapping[str, Callable[[Any], None]]] = {}
    unasked: ClassVar[Mapping[str, Frame]] = {}
    noise: ClassVar[Mapping[str, Any]] = {}
    fixed: ClassVar[tuple[str, ...]] = ()
    other_parts: ClassVar[Mapping[str, bytes]] = {}
    troubles: ClassVar[Sequence[tuple[str, Any]]] = ()
    concurrent: ClassVar[tuple[str, ...]] = ("close", "cancel", "twice", "loss", "hurried")

    def is_bearable(self, frame: Frame) -> bool:
        """Whether a run with this changed frame has an end: no beats every millisecond, no gigabytes."""
        return True

    @abstractmethod
    def said_by_server(self) -> Sequence[type[Frame]]:
        """The kinds of frames that acts may make up for the client."""

    def spellings(self, frame: Frame, data: Any) -> Mapping[str, Any]:
        """Other units on the wire that mean the same as this one, by what is otherwise."""
        return {}

    def payload_at(self, frame: Frame) -> int | None:
        """Where the messages begin in the bytes of a frame that carries some; None if it carries none."""
        return None

    def borders(self, frame: Frame, data: Any) -> Sequence[int]:
        """Where the parts of a message, or the messages in a frame, begin but for the first; bytes."""
        return ()

    def pieces(self, data: Any, points: Iterable[int]) -> list[Any]:
        """A unit cut after so many bytes, as its transport may carry it; empty where nobody sees them."""
        if not isinstance(data, bytes | bytearray):
            return []
        inside = sorted({point for point in points if 0 < point < len(data)})
        return [bytes(data[start:end]) for start, end in pairwise((0, *inside, len(data)))]

    def other_versions(self, data: bytes) -> dict[str, bytes]:
        """A frame in versions that do not exist, by name; empty where the wire has no versions."""
        return {}

    def close_frame(self) -> Frame | None:
        """What a server says before it ends a connection; None if it says nothing."""
        return None

    def last_of(self, frame: Frame) -> Frame | None:
        """The same frame, which says that the connection ends after it; None if no frame of its kind can."""
        return None
