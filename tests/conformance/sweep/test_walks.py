"""Walks: the same steps each time, other ones in another walk."""

from __future__ import annotations

import pytest

from conformance.sweep.room import room_of
from conformance.sweep.run import runner
from conformance.sweep.specs import Spec

PROTOCOLS = ("rabbitmq-stream", "blazingmq", "pzq")


def steps(protocol: str, name: str) -> list[tuple[str, str]]:
    return [(done.op, str(done.args.get("body"))) for done in runner(protocol)(Spec(protocol, name)).ops]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_walk_is_the_same_each_time_and_unlike_others(protocol: str) -> None:
    assert steps(protocol, "walk-0") == steps(protocol, "walk-0")
    assert steps(protocol, "walk-0") != steps(protocol, "walk-1")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_walks_together_do_all_that_there_is_to_do(protocol: str) -> None:
    walks = [name for name in room_of(protocol).bases if name.startswith("walk-")]
    done = {op for name in walks[:8] for op, _ in steps(protocol, name)}
    asking = set(room_of(protocol).model.ops)
    assert len(walks) >= 15
    assert "publish" in done
    assert "subscribe" in done
    assert asking & done
