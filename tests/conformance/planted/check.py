"""Runs the witness of each defect both ways: ``python -m tests.conformance.planted.check [PROTOCOL[/ID]
...]``.

Each witness has to pass on the reference client and to fail once its defect is planted; each run has a
process of its own, on virtual time.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from conformance.clients.reference.kit import ClientError
from fakebrokers.core.virtual import run

HERE = Path(__file__).parent
PACKAGE = "tests.conformance.planted"
LIMIT_S = 600.0  #: virtual seconds of a witness
FORK = get_context("fork")  # what was imported is there


def modules(wanted: list[str]) -> list[str]:
    """The names of the planted defects, such as ``pzq/p01``."""
    found = sorted(f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.py"))
    return [name for name in found if not wanted or any(name.startswith(each) for each in wanted)]


def module_of(name: str) -> str:
    """Where a defect is written down."""
    return f"{PACKAGE}.{name.replace('/', '.')}"


def one(name: str, *, planted: bool, pipe: Connection) -> None:
    """What comes of one witness: "" if it passes."""
    module = import_module(module_of(name))
    if planted:
        module.plant()

    async def limited() -> None:
        await asyncio.wait_for(module.witness(), LIMIT_S)

    try:
        run(limited())
    except (AssertionError, ClientError, TimeoutError) as error:
        pipe.send(f"{type(error).__name__}: {error}")
    else:
        pipe.send("")


def outcome(name: str, *, planted: bool) -> str:
    """The same, in a process of its own."""
    mine, other = FORK.Pipe(duplex=False)
    child = FORK.Process(target=one, args=(name,), kwargs={"planted": planted, "pipe": other})
    child.start()
    other.close()
    try:
        text: str = mine.recv()
    except EOFError:
        text = "the witness itself has failed"
    child.join()
    return text


def main() -> int:
    """Run all of them, and say which do not hold."""
    bad = 0
    for name in modules(sys.argv[1:]):
        plain, planted = outcome(name, planted=False), outcome(name, planted=True)
        holds = not plain and bool(planted)
        bad += not holds
        print(
            f"{'holds' if holds else 'BAD'} {name}: without [{plain[:150]}], with [{planted[:150]}]",
            flush=True,
        )
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
