"""What the shell completes: names of clients and ids of scenarios."""

from __future__ import annotations

from collections.abc import Sequence

import click


def client_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
    """The bundled clients; where a protocol was given, those that speak it."""
    from conformance.adapters.registry import bundled

    return [
        client.name for client in bundled(ctx.params.get("protocol")) if client.name.startswith(incomplete)
    ]


def scenario_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
    """The ids, in the order of the catalogue."""
    from conformance.suite.catalogue import requirements

    return [each for each in requirements() if each.startswith(incomplete.upper())]
