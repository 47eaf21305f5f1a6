"""The scenarios as ordinary tests of pytest, in the repository of a client:

    # test_conformance.py
    from conformance.pytest import scenarios

    test_conformance = scenarios("python adapter.py", protocol="rabbitmq-stream")

makes one test of each scenario: ``test_conformance[RMQS-3.06]``. See ``docs/pytest-conformance.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapters.registry import bundled
from conformance.known.defects import KnownDefects, Part
from conformance.known.files import load
from conformance.suite import clients
from conformance.suite.harness import ClientHarness
from conformance.suite.items import ScenarioItem
from conformance.suite.load import SETS, add_folder, all_scenarios, select
from conformance.suite.outside import folder_of
from conformance.suite.scenario import Scenario
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.protocol import find_protocol

__all__ = ["scenarios"]

Place = str | Path
Client = str | Sequence[str] | Callable[[], AdapterBase]
PROTOCOL = "protocol=..."


def scenarios(
    client: Client,
    *ids: str,
    protocol: str | None = None,
    variant: str | None = None,
    level: str | None = None,
    which: str = "gate",
    expect: Place | None = None,
    folders: Place | Sequence[Place] = (),
    seed: int = 0,
    cwd: Place = "",
) -> Callable[..., None]:
    """A test function with one case for each scenario; give it a name that begins with ``test``.

    Relative paths begin at the file that calls this, and so does the command.

    Args:
        client: A bundled client by name; else the command of an adapter, as one line or as words; or an
            adapter class (`conformance.clients.adapter.kit.AdapterBase`), which then runs in this process.
        ids: Ids (``RMQS-3.06``), sections (``RMQS-3``) or families (``RMQS``); none: those of `which`.
        protocol: Needed only where the client does not say, or speaks several.
        variant: Only this transporter, profile or server version.
        level: Only ``MUST``, ``SHOULD`` or ``MAY``, of `which` or, if that is left out, of all.
        which: ``smoke`` (the 15 that find most), ``gate`` (all MUST), ``full`` or ``soak``, if no ids are
            given.
        expect: A file of known failures: they are ``xfail``, and a failure if they pass.
        folders: Scenarios of your own besides, see ``docs/own-scenarios.md``.
        seed: Of the fakes' random decisions.
        cwd: Where the command is run; default: the folder of the file that calls this.

    Raises:
        pytest.Collector.CollectError: The arguments fit nothing; the text says what was expected.
    """
    caller = sys._getframe(1)
    here = Path(caller.f_code.co_filename).resolve().parent
    try:
        judged = _client(client, protocol, here / cwd)
        own = [folders] if isinstance(folders, str | Path) else folders
        chosen = _chosen(judged.protocol, ids, variant, level, which, [here / each for each in own])
        known = load(here / expect, Part.SUITE, warnings.warn) if expect else KnownDefects()
    except UsageError as error:
        raise pytest.Collector.CollectError(
            f"{caller.f_code.co_filename}:{caller.f_lineno}: {error}"
        ) from None
    station = ClientHarness(
        judged,
        known=known,
        greeted=lambda hello: known.check_client(Path(expect or ""), judged.name, hello),
        seed=seed,
    )
    items = [
        ScenarioItem(item, station=station, client=judged, known=known, seed=seed, folder=here)
        for item in chosen
    ]
    return _test(items, caller)


def _client(client: Client, protocol: str | None, here: Path) -> clients.ClientUnderTest:
    if protocol is not None:
        protocol = find_protocol(protocol).name
    if isinstance(client, str):
        names = {name for one in bundled() for name in (one.name, *one.aliases)}
        if client in names:
            return clients.bundled(client, protocol, asked=PROTOCOL)
        if protocol is None and len(client.split()) == 1:
            raise UsageError(
                f"there is no bundled client {client!r}{instead_of(client, names)}; for a command, say with "
                f"{PROTOCOL} what the adapter speaks"
            )
    if isinstance(client, Sequence):
        return clients.command(client, protocol, here, asked=PROTOCOL)
    return clients.in_process(client, protocol, asked=PROTOCOL)


def _chosen(
    protocol: str,
    ids: Sequence[str],
    variant: str | None,
    level: str | None,
    which: str,
    own: Sequence[Path],
) -> list[Scenario]:
    if which not in SETS:
        raise UsageError(f"there is no set {which!r}{instead_of(which, SETS)}")
    if level not in (None, "MUST", "SHOULD", "MAY"):
        raise UsageError(f"expected the level MUST, SHOULD or MAY, got {level!r}")
    mine = [None, *map(add_folder, own)]
    pool = [item for item in all_scenarios() if folder_of(item.script.__module__) in mine]
    every = ids or (level and which == "gate")
    found = select(
        pool,
        protocol=protocol,
        variant=variant,
        level=level,
        which="full" if every else which,
        ids=ids,
    )
    if not found:
        raise UsageError("there is no scenario like that: `fakebrokers list` shows what there is")
    return found


def _test(items: Sequence[ScenarioItem], caller: FrameType) -> Callable[..., None]:
    """The test function; for reports and editors it is at the line that asked for it."""

    def test(conformance_scenario: Any) -> None:
        conformance_scenario.report()

    test.__code__ = test.__code__.replace(
        co_filename=caller.f_code.co_filename, co_firstlineno=caller.f_lineno
    )
    test.__module__ = caller.f_globals.get("__name__", test.__module__)
    test.__doc__ = "A scenario of the conformance suite."
    cases: Any = [item.parameter for item in items]
    found: Callable[..., None] = pytest.mark.parametrize("conformance_scenario", cases, indirect=True)(test)
    return found
