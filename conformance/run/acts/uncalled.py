"""Unasked frames, and things that happen to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act, act_at_frame, applied, at_frame, said
from conformance.run.acts.specimen import kind_named, specimen
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.core.host import Host
from fakebrokers.core.session import HangUp
from fakebrokers.errors import WireError
from fakebrokers.faults.effect import Action, Effect, Passage
from fakebrokers.faults.effects import Inject

STRANGE_KEY = 0x7777


def unasked(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every frame that the server can send, unasked; after the first frame of each kind."""
    if place.direction != "out" or place.ordinal > 1:
        return
    for kind in traits.faults.said_by_server():
        for key in (None, STRANGE_KEY) if kind.spec.key is not None else (None,):
            if _fits(specimen(kind, traits, key), traits):
                yield kind_of(kind), [kind_of(kind), key]
    yield from ((name, [name, "named"]) for name in traits.faults.unasked)
    yield from ((name, [name, "noise"]) for name in traits.faults.noise)


def _fits(frame: Frame | None, traits: Traits) -> bool:
    """Whether there is such a frame on the wire."""
    try:
        return frame is not None and bool(traits.reading.codec("server").encode(frame))
    except WireError:
        return False


@act("unasked", unasked, lies=True, by_kind=False)
def say_unasked(param: Any, traits: Traits) -> Sequence[Effect]:
    """An unasked frame comes, after the one at hand."""
    name, key = param
    if key == "noise":
        noise = traits.faults.noise[name]
        return [Inject(hex=noise.hex()) if isinstance(noise, bytes) else at_frame("unasked", param, traits)]
    return said(
        traits.faults.unasked[name] if key == "named" else specimen(kind_named(name, traits), traits, key)
    )


@applied("unasked")
def say_noise(passage: Passage, param: Any, traits: Traits) -> None:
    """Parts that are no message come, after the one at hand."""
    passage.pass_through()
    passage.say_raw(traits.faults.noise[param[0]])


class Happening(Action, frozen=True):
    """Something that happens to the broker, as a model names it."""

    traits: Any
    name: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        """In the next turn of the loop: the frame at hand leaves before that, as the broker meant it."""
        asyncio.get_running_loop().call_soon(self.traits.faults.happenings[self.name], host.server)


def happenings(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """At the first two frames of each kind, in both directions."""
    if place.ordinal <= 2:
        for name in traits.faults.happenings:
            yield from ((name, [name, after]) for after in ("", "rst"))


@act_at_frame("happens", happenings)
def happens(passage: Passage, param: Any, traits: Traits) -> None:
    """Something happens to the broker after the frame; the connection may be reset in the same step."""
    name, after = param
    passage.pass_through()
    passage.host(Happening(traits, name))
    if after:
        passage.hang_up(HangUp.RST)
