"""What a conformance run of one client is asked for, and the runner that does it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Hello
from conformance.coverage.meter import CoverageMeter
from conformance.known.defects import KnownDefects
from conformance.results import Results
from conformance.suite.brokers import RealBroker, fake_for
from conformance.suite.op_journal import open_run
from conformance.suite.pool import AdapterPool
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.journal import RunJournal

TARGET_S = 5.0  #: for the first connection to a real broker


class SuiteRequest(msgspec.Struct, kw_only=True):
    """What is to be run.

    Attributes:
        client: The name for reports; "" takes what the adapter says.
        who: The options that name the client on the command line.
        make_adapter: Makes an adapter for a protocol, not started.
        which: ``smoke``, ``gate``, ``full`` or ``soak``.
        rows: Exactly these, whatever `variant`, `which` and `ids` say; none: as they say.
        foreseen: What is likely, though nobody says so of this version: that needs no second opinion, and is
            not marked as expected. None: what `expect` says.
        target: URL of a real broker instead of the fake.
        journal: Folder in which every run is written down; None writes nothing.
        traces: Whether with every byte, so that the rules of another day can judge it.
        keep: Called with what is known so far, at the beginning and every few seconds: a run that is killed
            leaves that, marked as not complete.
        here: The adapter class of a stock client that is judged in this process first; see `here`.
        parallel: How many scenarios at once; None: as many as the machine carries.
        meter: Measures what of the client is executed; None: nobody does.
    """

    client: str
    protocol: str
    make_adapter: Callable[[], Adapter]
    variant: str | None = None
    which: str = "gate"
    ids: tuple[str, ...] = ()
    rows: tuple[Scenario, ...] = ()
    target: str | None = None
    strict: bool = False
    expect: Path | None = None
    foreseen: KnownDefects | None = None
    seed: int = 0
    journal: Path | None = None
    traces: bool = False
    keep: Callable[[Results], None] | None = None
    here: type[AdapterBase] | None = None
    parallel: int | None = None
    meter: CoverageMeter | None = None
    who: tuple[str, ...] = ()


class NothingExecuted(FakeBrokerError):
    """No client was judged: the run says nothing about the client."""


def reach(target: str) -> None:
    """Raise `NothingExecuted` unless something listens there."""
    host, port = _place(target)
    try:
        socket.create_connection((host, port), timeout=TARGET_S).close()
    except OSError as error:
        raise NothingExecuted(f"nothing answers at {host}:{port} ({error}): start the broker first") from None


def _place(target: str) -> tuple[str, int]:
    url = urlsplit(target if "//" in target else f"//{target}")
    try:
        if url.hostname and url.port:
            return url.hostname, url.port
    except ValueError:
        pass  # a port that is none
    raise UsageError(f"expected --target like rabbitmq-stream://guest:guest@127.0.0.1:5552, got {target!r}")


def name_of(order: SuiteRequest, about: Hello | None) -> str:
    """The client's name: as ordered, else as its adapter says."""
    return order.client or (about.library if about else "") or "client"


class RecordingPool(AdapterPool):
    """Passes on what the client said about itself."""

    def __init__(self, make: Callable[[], Adapter], greeted: Callable[[Hello], None]) -> None:
        super().__init__(make)
        self._greeted = greeted

    async def hello(self) -> Hello:
        found = await super().hello()
        self._greeted(found)
        return found


def journals_for(order: SuiteRequest, noted: list[Hello]) -> Callable[[Scenario], RunJournal] | None:
    """Opens the journal on disk for a run; None where none is wanted; for `noted` see `runner_for`."""
    if order.journal is None:
        return None
    folder = order.journal

    def open_journal(item: Scenario) -> RunJournal:
        about = noted[0] if noted else None
        return open_run(
            folder,
            item,
            client=name_of(order, about),
            client_version=about.library_version if about else "",
            seed=order.seed,
            profile=str(item.server.get("profile", "real")),
            traces=order.traces,
        )

    return open_journal


def runner_for(
    order: SuiteRequest, pool: AdapterPool, noted: list[Hello], options: Mapping[str, Any]
) -> Runner:
    """The runner of an order.

    Args:
        noted: What the client says about itself, as soon as it has.
        options: More of `Runner`.
    """
    options = {**options, "parallel": order.parallel, "open_run": journals_for(order, noted)}
    if order.target is None:
        return Runner(pool, fake_for(seed=order.seed), **options)
    host, port = _place(order.target)
    url = urlsplit(order.target if "//" in order.target else f"//{order.target}")
    login = {"user": unquote(url.username or ""), "password": unquote(url.password or "")}
    real = RealBroker(host, port, {})
    return Runner(
        pool,
        lambda _: real,
        endpoint=lambda broker: f"{broker.host}:{broker.port}",
        connect_options={key: value for key, value in login.items() if value},
        target=True,
        **{**options, "parallel": 1},  # the scenarios share their streams' names
    )
