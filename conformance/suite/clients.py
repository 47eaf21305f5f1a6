"""Which client is to be judged: a bundled one, an adapter by its command, or a class in this process."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters import registry
from conformance.clients.adapters.stock import NotHere, adapter_class
from fakebrokers.errors import UsageError


class ClientUnderTest(NamedTuple):
    """A client to be judged.

    Attributes:
        name: For reports; "" takes what the adapter says.
        protocol: What it is to speak.
        make: Makes an adapter, not started.
        options: Those that name it on the command line; none for a class.
        in_process: Whether it runs in the suite's own process.
        here: The adapter class of a stock client that can run there too, on virtual time.
        why_process: Why it cannot, where it could; "" otherwise.
    """

    name: str
    protocol: str
    make: Callable[[], Adapter]
    options: tuple[str, ...]
    in_process: bool = False
    here: type[AdapterBase] | None = None
    why_process: str = ""


def bundled(
    name: str, protocol: str | None, *, asked: str = "--protocol", measured: registry.Client | None = None
) -> ClientUnderTest:
    """A client that comes along. `UsageError` if it cannot run here, or does not speak the protocol.

    Args:
        asked: Where the protocol may be given, for the error.
        measured: The same client, as it is started where it is measured.
    """
    found = measured or registry.find(name)
    if not found.runnable:
        raise UsageError(f"{found.name} cannot run here: {'; '.join(found.missing)}")
    spoken = _spoken(found.name, found.protocols, protocol, asked)
    return speaking(found, spoken)


def speaking(found: registry.Client, protocol: str) -> ClientUnderTest:
    """A bundled client that can run here, with a protocol that it speaks."""
    here, why = None, ""
    try:
        here = adapter_class(found.asked)
    except NotHere as error:
        why = str(error)
    return ClientUnderTest(
        found.name,
        protocol,
        lambda: ProcessAdapter(found.command, protocol, env=found.env),
        ("--client", found.asked),
        here=here,
        why_process=why,
    )


def command(
    line: str | Sequence[str], protocol: str | None, folder: Path | None = None, *, asked: str = "--protocol"
) -> ClientUnderTest:
    """An adapter by its command.

    Args:
        line: As one would type it, or as words.
        folder: Where it is run; relative paths to programs begin there too. None: here, as it is.
    """
    if protocol is None:
        raise UsageError(f"say with {asked} what the adapter speaks")
    words = shlex.split(line) if isinstance(line, str) else list(line)
    if not words:
        raise UsageError("expected the command of an adapter, got an empty one")
    shown = line if isinstance(line, str) else shlex.join(line)
    if folder is None:
        return ClientUnderTest("", protocol, lambda: ProcessAdapter(words, protocol), ("--adapter", shown))
    program = folder / words[0]
    started = [str(program) if os.sep in words[0] and program.exists() else words[0], *words[1:]]
    return ClientUnderTest(
        "",
        protocol,
        lambda: ProcessAdapter(started, protocol, env=_beside_python(), cwd=folder),
        ("--adapter", shown),
    )


def in_process(make: Callable[[], AdapterBase], protocol: str | None, *, asked: str) -> ClientUnderTest:
    """An adapter class, or what makes an adapter, on the suite's own loop."""
    name = getattr(make, "__name__", type(make).__name__)
    protocols = list(getattr(make, "protocols", ()))
    spoken = _spoken(name, protocols, protocol, asked) if protocols else protocol
    if spoken is None:
        raise UsageError(f"say with {asked} what {name} speaks")
    return ClientUnderTest("", spoken, lambda: InProcessAdapter(make, spoken), (), in_process=True)


def _spoken(name: str, protocols: Sequence[str], wanted: str | None, asked: str) -> str:
    spoken = wanted or (protocols[0] if len(protocols) == 1 else None)
    if spoken is None:
        raise UsageError(f"{name} speaks {', '.join(protocols)}: say which with {asked}")
    if spoken not in protocols:
        raise UsageError(f"{name} does not speak {spoken}, but {', '.join(protocols)}")
    return spoken


def _beside_python() -> dict[str, str]:
    """So that ``python`` means this one where pytest was started from a virtual environment by its path."""
    if sys.prefix == sys.base_prefix:
        return {}
    return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])}
