"""What the shell completes: names of clients, ids of scenarios, names of rules."""

from __future__ import annotations

from collections.abc import Sequence

import click


def client_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
    """The bundled clients; where a protocol was given, those that speak it."""
    from conformance.clients.adapters.registry import bundled

    return [
        client.name for client in bundled(ctx.params.get("protocol")) if client.name.startswith(incomplete)
    ]


def scenario_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
    """The ids, in the order of the catalogue."""
    from conformance.suite.load import requirements

    return [each for each in requirements() if each.startswith(incomplete.upper())]


def words_to_explain(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
    """The ids and, in lower case, the names of rules."""
    from conformance.rules.sentences import rules

    return [
        *scenario_ids(ctx, param, incomplete),
        *(each for each in rules() if each.startswith(incomplete)),
    ]
