"""A reference client as a child process: ``python -m conformance.clients.reference PROTOCOL``."""

from __future__ import annotations

import click

from conformance.clients.adapter.kit import run
from conformance.clients.reference.registry import protocols, reference


@click.command()
@click.argument("protocol", type=click.Choice(protocols()))
def main(protocol: str) -> None:
    """Serve the adapter protocol on stdin and stdout."""
    run(reference(protocol)())


main()
