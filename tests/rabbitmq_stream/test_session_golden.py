"""Every recorded conversation with a real server, replayed against the session of the same profile.

The answers have to be the same bytes at the same time, except for what the recordings cannot fix:

* time stamps in chunks are the fake's own (`without_times`);
* a confirm, or a chunk, may be cut in two where the real writer happened to (`joined`);
* a recorder that sent two segments before it read saw the end only after the second one.

The streams, nodes and versions are set up as the recorder's were. A few cases are notes of a count, not
bytes; they are played out in words.
"""

from __future__ import annotations

import pytest

from tests.rabbitmq_stream.golden import SERVERS, cases
from tests.rabbitmq_stream.scenes import SCENES, Scene
from tests.rabbitmq_stream.stage import Stage


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("scene", SCENES)
def test_the_fake_answers_as_the_real_server_did(scene: Scene, server: str) -> None:
    scene(Stage(server))


@pytest.mark.parametrize("server", SERVERS)
def test_every_recorded_case_is_replayed(server: str) -> None:
    played: set[str] = set()
    for scene in SCENES:
        stage = Stage(server)
        scene(stage)
        played |= stage.played
    assert played == {case.id for case in cases(server)}
