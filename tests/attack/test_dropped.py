"""A fake that nobody holds and nobody stopped: it says so, and gives back what it had."""

from __future__ import annotations

import gc
import os
import socket
import weakref
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol
from tests.eventually import PATIENCE_S, eventually
from tests.toy import Toy

FAKES = [
    ("rabbitmq-stream", {}),
    ("rabbitmq-stream", {"tls": True, "management": True, "nodes": 2}),
    ("blazingmq", {}),
    ("pzq", {}),
    ("pzq", {"proxied": True}),
    ("narconi", {"tls": True}),
    ("moleculer", {"management": True}),
    ("moleculer", {"transporter": "tcp"}),
]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_gone(reference: weakref.ref[Any]) -> bool:
    gc.collect()
    return reference() is None


@pytest.mark.parametrize(("protocol", "options"), FAKES, ids=str)
def test_a_fake_that_was_dropped_warns_and_frees_its_listeners(
    protocol: str, options: dict[str, Any]
) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this platform has no /proc")
    kind = find_protocol(protocol).load()
    with kind(**options):  # what the first one of a process sets up stays
        pass
    before = descriptors()
    fake = kind(**options).start()
    port, folder = fake.port, fake.tls and fake.tls.ca_file.parent
    gone = weakref.ref(fake)
    assert descriptors() > before
    with pytest.warns(ResourceWarning, match=f"a {protocol} fake was dropped while it ran") as warned:
        del fake
        eventually(lambda: is_gone(gone) and descriptors() <= before)
    assert len([each for each in warned if "was dropped" in str(each.message)]) == 1
    socket.create_server(("127.0.0.1", port)).close()
    assert folder is None or not Path(folder).exists()


def test_a_fake_that_goes_on_serving_is_not_dropped() -> None:
    with Toy() as toy:
        port = toy.port
        gc.collect()
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock:
            sock.sendall(b"hello me\n")
            assert sock.recv(100)


def test_a_connection_keeps_its_fake_until_it_ends() -> None:
    toy = Toy().start()
    port, gone = toy.port, weakref.ref(toy)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock:
        sock.sendall(b"hello me\n")
        assert sock.recv(100)
        del toy
        gc.collect()
        sock.sendall(b"get a\n")
        with sock.makefile("rb") as lines:
            assert b"value a\n" in lines  # beats may stand before it
    with pytest.warns(ResourceWarning, match="a toy fake was dropped"):
        eventually(lambda: is_gone(gone))


def test_a_timer_does_not_keep_a_fake() -> None:
    toy = Toy().start()
    toy.call(toy.engine.timers.new(lambda now: None).set, toy.now + 3600)
    gone = weakref.ref(toy)
    with pytest.warns(ResourceWarning, match="a toy fake was dropped"):
        del toy
        eventually(lambda: is_gone(gone))


def test_one_that_was_stopped_or_never_started_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    Toy()
    with Toy():
        pass
    gc.collect()
    assert [str(each.message) for each in recwarn if "dropped" in str(each.message)] == []


def test_one_that_could_not_be_made_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(UsageError, match="Toy has no 'no_such_option'"):
        Toy(no_such_option=1)  # type: ignore[call-arg]
    gc.collect()
    assert list(recwarn) == []
