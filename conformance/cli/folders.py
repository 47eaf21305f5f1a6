"""Folders with scenarios of a user's own: the option ``--scenarios DIR``."""

from __future__ import annotations

from pathlib import Path

import click


def _add(ctx: click.Context, param: click.Parameter, value: tuple[Path, ...]) -> tuple[Path, ...]:
    from conformance.suite.load import add_folder

    for path in value:
        add_folder(path)
    return value


#: Adds the folders before the command begins; nothing of them reaches its function.
with_folders = click.option(
    "--scenarios",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    callback=_add,
    expose_value=False,
    help="Scenarios of your own besides; may be given again. See docs/own-scenarios.md.",
)
