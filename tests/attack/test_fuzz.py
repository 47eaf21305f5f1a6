"""Changed recordings of every wire to a running server: a little of what ``ci/nightly fuzz`` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakebrokers.protocol import protocols
from tests.attack.fuzz.attack import attack
from tests.attack.fuzz.recorded import TALKS, talks_of
from tests.attack.fuzz.second import SECONDS
from tests.attack.fuzz.serving import SERVERS

COUNT = 2000
#: By protocol where one wire is attacked in several ways, or its name says nothing.
NAMES = {
    "rabbitmq-stream": {"rabbitmq-stream"},
    "blazingmq": {"blazingmq"},
    "pzq": {"pzq"},
    "narconi": {"narconi-http", "narconi-websocket"},
    **{name: {f"{name}-alone"} for name in ("nats", "redis", "mqtt")},
}
#: These speak HTTP, and are no protocols of their own.
APIS = {"control", "management", "proxy"}


def test_no_wire_is_left_out() -> None:
    shipped = [each for each in protocols() if each.server.startswith("fakebrokers.")]
    names = [NAMES.get(each.name, {wire.name for wire in each.wires}) for each in shipped]
    assert {*TALKS} == {*SECONDS} == {*SERVERS} == APIS.union(*names)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the size of a process from /proc")
@pytest.mark.parametrize("wire", TALKS)
def test_a_server_goes_on_serves_others_and_says_nothing(wire: str, tmp_path: Path) -> None:
    assert sum(len(talk.pieces) for talk in talks_of(wire)) > 20
    found = attack(wire, COUNT, tmp_path)
    assert (found.stderr, found.asked) == ("", COUNT // 4)
    assert found.connections >= COUNT // 50
