"""The frames of a protocol by the names that a journal has of them."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.protocol import find_protocol, is_available, protocol_names


class Kinds:
    """All frames of a protocol, on whichever wire.

    Args:
        protocol: Its name; of one that this version does not have, no frame is known.
    """

    def __init__(self, protocol: str) -> None:
        self._classes: dict[str, list[type[Frame]]] = {}
        known = protocol in protocol_names() and is_available(protocol)
        for wire in find_protocol(protocol).wires if known else ():
            for each in wire.frames:
                others = self._classes.setdefault(kind_of(each), [])
                if each not in others:
                    others.append(each)

    def class_of(self, kind: str) -> type[Frame] | None:
        """The frame of that name; None if there is none."""
        return next(iter(self._classes.get(kind, ())), None)

    def frame_of(self, kind: str, fields: str) -> Frame | None:
        """A frame from its fields in JSON, as journals have them; None where they do not make one: bodies
        that are too large for the journal, or credentials, may be missing."""
        for each in self._classes.get(kind, ()):
            with suppress(msgspec.DecodeError, TypeError, ValueError):
                return msgspec.json.decode(fields, type=each)
        return None


NO_KINDS = Kinds("")
