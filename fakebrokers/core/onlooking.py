"""How the suite and the viewer look at a fake from outside: at its wire, and at what it holds."""

from __future__ import annotations

from fakebrokers.core.lifetime import Lifetime
from fakebrokers.core.watch import Watcher


def can_be_watched(broker: object) -> bool:
    """Whether it is a fake, or a proxy of ours, and nothing that stands for a real server."""
    return isinstance(broker, Lifetime)


def watch_wire(server: Lifetime, watcher: Watcher | None) -> None:
    """Report to `watcher` what passes between the server and its clients; call it before `start`."""
    server._watcher = watcher


def record_holdings(server: Lifetime) -> None:
    """Let the journal of a fake record what the broker holds, whenever that changes.

    It does nothing where the protocol does not say what its broker holds (``Description.model``), and for a
    proxy. See `Journal.record_holdings`.
    """
    server._record_holdings()
