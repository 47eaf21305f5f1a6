"""The embedded NATS server with the options of nats-server, for suites that start a program of that name.

Put a file ``nats-server`` on the PATH that runs ``python -m tests.moleculer.nats_server "$@"`` in this tree.
Options that it does not know (TLS, clusters, JetStream, configuration files) end it with exit code 1. At
SIGUSR2 it is about to go: it tells its clients, and takes no new ones.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from fakebrokers import Moleculer
from fakebrokers.moleculer.nats.frames import ServerInfo


def server(words: Sequence[str]) -> Moleculer:
    """The server that these options ask for; not started."""
    parser = argparse.ArgumentParser("nats-server", allow_abbrev=False)
    parser.add_argument("-a", "--addr", default="127.0.0.1")
    parser.add_argument("-p", "--port", type=int, default=4222)
    parser.add_argument("-m", "--http_port", type=int, default=0)
    for name in ("user", "pass", "auth"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("-DV", action="store_true")
    known, others = parser.parse_known_args(words)
    if others:
        sys.exit(f"nats-server: not in the embedded server: {' '.join(others)}")
    return Moleculer(
        host=known.addr,
        port=known.port,
        user=known.user,
        password=getattr(known, "pass"),
        token=known.auth,
        management=known.http_port or False,
    )


def retire(bus: Moleculer) -> None:
    """Tell all clients that the server is about to go (lame duck mode)."""
    bus.refuse()
    for connection in bus.connections:
        bus.say(connection["name"], ServerInfo({"ldm": True, "max_payload": bus.bus_options.max_payload}))


def main() -> None:
    """Serve until a signal."""
    bus = server(sys.argv[1:])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM, signal.SIGINT})
    bus.start()
    while signal.sigwait({signal.SIGUSR2, signal.SIGTERM, signal.SIGINT}) == signal.SIGUSR2:
        retire(bus)
    bus.stop()


if __name__ == "__main__":
    main()
