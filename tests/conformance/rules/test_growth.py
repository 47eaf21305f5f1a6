"""What a client holds after each round, where the fake sees its connections go and where it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.rules.life import ROUNDS, no_growth
from conformance.run.case import Case
from conformance.run.facts import Facts
from conformance.run.material import material_of
from conformance.run.specs import Spec
from conformance.run.trace import Position
from conformance.run.view import Conn


def grown(protocol: str, *held: dict[str, int], conns: tuple[Conn, ...] = ()) -> list[Any]:
    looks: list[Any] = [
        SimpleNamespace(
            op="stats", phase="rounds", begun=Position(2 * n + 1, 0, n + 0.5),
            result=SimpleNamespace(ok=True, value=value),
        )
        for n, value in enumerate(held)
    ]  # fmt: skip
    case = Case(Spec(protocol, "at-rest"), material_of(protocol), [], looks, [])
    case.__dict__["_read"] = ({conn.name: conn for conn in conns}, Facts())
    return [found[0] for found in no_growth(case)]


@pytest.mark.parametrize(("protocol", "is_found"), [("narconi", True), ("pzq", False)])
def test_connections_whose_end_nobody_sees_do_not_grow(protocol: str, is_found: bool) -> None:
    """A ROUTER is not told that a REQ has left (docs/protocols/pzq.md, "Sockets")."""
    conns = [Conn(f"c{number}", Position(2 * number, 0, float(number))) for number in range(ROUNDS)]
    assert bool(grown(protocol, *[{"tasks": 3}] * ROUNDS, conns=tuple(conns))) is is_found


def test_threads_grow_as_long_as_a_pool_has_room() -> None:
    [found] = grown("narconi", *({"threads": 13 + n, "tasks": 3} for n in range(6)))
    assert (found, found.word) == ("threads grows with every round: [13, 14, 15, 16, 17, 18]", "fills_pools")
