"""The reference client as a child process: ``python -m conformance.mutants.pzq [--mutant NAME]``."""

from __future__ import annotations

import click

from conformance.adapter import kit
from conformance.mutants.pzq.adapter import PzqAdapter
from conformance.mutants.registry import find_mutant


@click.command()
@click.option("--mutant", metavar="NAME", help="One of the mutants instead of the correct client.")
def main(mutant: str | None) -> None:
    """Serve the adapter protocol on stdin and stdout."""
    adapter = find_mutant("pzq", mutant).adapter if mutant else PzqAdapter
    kit.run(adapter())


main()
