"""A mutant as a child process: ``python -m conformance.clients.mutants PROTOCOL NAME``."""

from __future__ import annotations

import click

from conformance.clients.adapter.kit import run
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import protocols


@click.command()
@click.argument("protocol", type=click.Choice(protocols()))
@click.argument("name")
def main(protocol: str, name: str) -> None:
    """Serve the adapter protocol on stdin and stdout."""
    run(find_mutant(protocol, name).adapter())


main()
