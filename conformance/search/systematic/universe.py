"""All specs of a protocol: every act at every frame of every base, and a second fault after a loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from conformance.clients.adapter.kit import AdapterBase
from conformance.run.acts import ACTS, InjectionPoint
from conformance.run.bases import Base
from conformance.run.case import Case
from conformance.run.concurrent_actions import HURRIED, UNIQUE
from conformance.run.inprocess import client_of, run
from conformance.run.material import material_of
from conformance.run.specs import EVERY, PLAIN, ConcurrentAction, Injection, Spec
from conformance.run.traits import Traits
from conformance.run.view import Conn
from conformance.search.systematic.orders import orders
from fakebrokers.core.frames import kind_of

WALK = "walk"  #: second word of the groups of bases whose steps are drawn by lot

#: Turns of the loop after which a concurrent action comes.
TURNS = (0, 1, 2, 4, 8)
FEW_OF_A_KIND = 2  #: ops of the same name in a base at which they come
#: Ops that only look at the client, or prepare what it does later.
QUIET = ("state", "stats", "raise_next", "set_clock", "set_counter", "cancel")


class DrawableSpec(NamedTuple):
    """A spec, and the group that it is drawn from."""

    group: tuple[str, ...]
    spec: Spec


def places(case: Case) -> list[InjectionPoint]:
    """The frames of a run, as the places at which acts can take place."""
    found = []
    kinds: Counter[tuple[str, str]] = Counter()
    for conn in case.conns.values():
        encode = case.traits.reading.codec("client").encode
        counts: Counter[str] = Counter()
        for seen in conn.frames:
            kind = kind_of(seen.frame)
            counts[seen.direction] += 1
            kinds[seen.direction, kind] += 1
            found.append(
                InjectionPoint(
                    conn.name,
                    seen.direction,
                    counts[seen.direction],
                    seen.frame,
                    seen.size,
                    kinds[seen.direction, kind],
                    encode(seen.frame) if seen.direction == "out" else b"",
                )
            )
    return found


def singles(case: Case) -> Iterator[DrawableSpec]:
    """Every act at every frame of a run without faults."""
    spec = case.spec
    first = next(iter(case.conns.values()), None)
    ready = 0 if case.material.bases[spec.base].handshake or first is None else _set_up(first)
    for place in places(case):
        if first is not None and place.connection == first.name and place.nth < ready:
            continue
        kind = kind_of(place.frame)
        for act in ACTS.values():
            for group, param in act.params(place, case.traits):
                injection = Injection(place.connection, place.direction, place.nth, act.name, param)
                yield DrawableSpec(
                    (act.name, kind if act.by_kind else "", group),
                    Spec(spec.protocol, spec.base, (injection,)),
                )


#: What is done as a second fault: act, parameter, and the direction of the frame.
SECOND: Sequence[tuple[str, object, str]] = (
    ("rst", None, "in"),
    ("rst-before", None, "in"),
    ("goodbye", "fin", "in"),
    ("rst", None, "out"),
    ("lost", None, "out"),
    ("cut", 6, "out"),
    ("late", None, "out"),
    ("goodbye", "stays", "out"),
    ("twice", None, "out"),
    ("fin", None, "out"),
    ("contradict", ["instead", None], "out"),
)
STAYING = ("stays", "stays-refused")
POSITIONS = (0.0, 0.5, 0.75)  #: of the first connection, after its set-up


def seconds(client: type[AdapterBase], case: Case) -> Iterator[DrawableSpec]:
    """A loss at three places of the first connection, then a fault at each frame of the next one."""
    spec = case.spec
    first = _spoken_to(case)
    if first is None or not case.reconnects:
        return
    for loss in losses(case):
        one = run(client, Spec(spec.protocol, spec.base, loss))
        known = set(case.conns) if not loss else {first.name}
        later = [name for name in one.conns if name not in known] if loss else list(one.conns)[1:]
        later = [name for name in later if one.conns[name].socket == first.socket]
        for place in places(one):
            if not later or place.connection != later[0]:
                continue
            for word, act, param in (*_once(place, case.traits), *_staying(place, case.traits)):
                injection = Injection(place.connection, place.direction, place.nth, act, param)
                group = ("second", word, kind_of(place.frame))
                yield DrawableSpec(group, Spec(spec.protocol, spec.base, (*loss, injection)))


def _once(place: InjectionPoint, traits: Traits) -> Iterator[tuple[str, str, Any]]:
    """What is done to one frame after a loss: its group, the act and the parameter."""
    happens = [("happens", [name, ""], "out") for name in traits.faults.happenings]
    for act, param, direction in (*SECOND, *happens):
        lacks = (act == "contradict" and traits.questions.opposite(place.frame, None) is None) or (
            act == "goodbye" and traits.faults.close_frame() is None
        )
        if direction == place.direction and not lacks:
            yield act, act, param


def _staying(place: InjectionPoint, traits: Traits) -> Iterator[tuple[str, str, Any]]:
    """The same of what is done from there on."""
    for name in STAYING:
        for word, param in ACTS[name].params(place._replace(ordinal=1), traits):
            yield f"{name} {word}", name, [param[0], place.ordinal, *param[2:]]


def lasting(case: Case) -> Iterator[DrawableSpec]:
    """The same trouble at every connection, at the frames of its beginning."""
    first = _spoken_to(case)
    if first is None or not case.reconnects:
        return
    for place in places(case):
        if place.connection != first.name or place.direction != "out" or place.nth > _set_up(first) + 1:
            continue
        for act, param in case.traits.faults.troubles:
            if act != "contradict" or case.traits.questions.opposite(place.frame, None) is not None:
                injection = Injection(EVERY, "out", place.nth, act, param)
                yield DrawableSpec(
                    ("lasting", act, kind_of(place.frame)),
                    Spec(case.spec.protocol, case.spec.base, (injection,)),
                )


def losses(case: Case) -> Iterator[tuple[Injection, ...]]:
    """The first faults; none where the base itself loses its connections."""
    if case.touched:
        yield ()
        return
    first = _spoken_to(case)
    if first is None:
        return
    frames = list(first.of("out"))
    start = _set_up(first)
    for share in POSITIONS:
        nth = start + int((len(frames) - start) * share)
        if 0 < nth <= len(frames):
            yield (Injection(first.name, "out", nth, "rst"),)


def _spoken_to(case: Case) -> Conn | None:
    """The first connection on which the server has said anything."""
    return next((conn for conn in case.conns.values() if any(conn.of("out"))), None)


def _set_up(conn: Conn) -> int:
    """How many frames the server says until a connection is ready; as many as the client does, or more."""
    return sum(1 for seen in conn.of("out") if conn.ready is not None and seen.at <= conn.ready)


def concurrent_actions(case: Case) -> Iterator[tuple[str, str, ConcurrentAction]]:
    """Concurrent actions of a run: what is done, the op that it comes to, and the concurrent action."""
    seen: dict[str, int] = {}
    for number, done in enumerate(case.ops, 1):
        seen[done.op] = seen.get(done.op, 0) + 1
        if done.phase or done.op in QUIET or seen[done.op] > FEW_OF_A_KIND:
            continue
        for what in case.traits.faults.concurrent:
            if what == "twice" and done.op in UNIQUE:
                continue
            for turns in (0,) if what == HURRIED else TURNS:
                yield what, done.op, ConcurrentAction(number, what, turns)


def universe(protocol: str, client: type[AdapterBase] | None = None) -> list[DrawableSpec]:
    """Everything, base by base.

    Args:
        client: Whose frames are disturbed; the reference client by default.
    """
    chosen = client or client_of(protocol)
    found: list[DrawableSpec] = []
    for base in material_of(protocol).bases.values():
        found.append(plain(protocol, base))
        if base.injections:
            case = run(chosen, found[-1].spec)
            found += of_run(case, seconds(chosen, case))
    return found


def plain(protocol: str, base: Base) -> DrawableSpec:
    """A base without faults."""
    words = ("costly",) if base.costly else (WALK, base.name) if base.is_drawn else (base.name,)
    return DrawableSpec((PLAIN, *words), Spec(protocol, base.name))


def of_run(case: Case, later: Iterable[DrawableSpec]) -> Iterator[DrawableSpec]:
    """What can be done to a run of a base.

    Args:
        later: Faults that follow a loss.
    """
    protocol, name = case.spec.protocol, case.spec.base
    yield from singles(case)
    yield from later
    yield from lasting(case)
    for what, word, change in orders(case):
        yield DrawableSpec(("order", what, word), Spec(protocol, name, (), (change,)))
    for what, op, action in concurrent_actions(case):
        yield DrawableSpec(("aside", what, op), Spec(protocol, name, concurrent=(action,)))
