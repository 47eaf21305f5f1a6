"""Folders of the commands: the option ``--scenarios DIR``, and those that a command writes into alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from fakebrokers.errors import ResourceError, UsageError


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


def reserve(folder: Path | None) -> None:
    """Make a folder, and keep other commands out of it until this one has ended.

    Raises:
        UsageError: Another one writes into it.
        ResourceError: Nobody can write there.
    """
    if folder is not None:
        click.get_current_context().with_resource(reserved(folder))


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """The same for as long as the block lasts. The system lets go of it whatever becomes of the process."""
    import fcntl  # POSIX, as all that is judged here

    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ResourceError(f"{folder}: cannot write there: {error.strerror}") from None
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another fakebrokers writes into it: wait until it has ended, or name another folder"
            raise UsageError(f"{folder}: {problem}") from None
        except OSError:
            pass  # a file system without locks on folders
        yield
    finally:
        os.close(place)
