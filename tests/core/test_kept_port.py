from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import warnings

import pytest

from fakebrokers.core.kept_port import KeptPort

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares a port this way")


def take(port: int, *, listen: bool, shared: bool = True) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
    try:
        sock.bind(("127.0.0.1", port))
        if listen:
            sock.listen()
    except OSError:
        sock.close()
        raise
    return sock


def test_somebody_listens_there_again_and_again() -> None:
    kept = KeptPort("127.0.0.1", 0)
    for _ in range(3):
        with take(kept.port, listen=True), socket.create_connection(("127.0.0.1", kept.port)):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", kept.port))
    kept.close()


def test_nobody_else_gets_it_until_it_is_given_back() -> None:
    kept = KeptPort("127.0.0.1", 0)
    with pytest.raises(OSError) as caught:
        take(kept.port, listen=False, shared=False)
    assert caught.value.errno == errno.EADDRINUSE
    kept.close()
    kept.close()
    take(kept.port, listen=True, shared=False).close()


def test_it_cannot_be_had_while_somebody_listens() -> None:
    with take(0, listen=True) as other, pytest.raises(OSError, match="in use"):
        KeptPort("127.0.0.1", other.getsockname()[1])


def test_what_is_dropped_is_given_back_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = KeptPort("127.0.0.1", 0)
        port = kept.port
        del kept
        gc.collect()
    take(port, listen=True, shared=False).close()


def test_a_child_does_not_keep_it() -> None:
    kept = KeptPort("127.0.0.1", 0)
    ready, told = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(told[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    kept.close()
    try:
        take(kept.port, listen=True, shared=False).close()
    finally:
        os.write(told[1], b"x")
        os.waitpid(child, 0)
        for end in (*ready, *told):
            os.close(end)
