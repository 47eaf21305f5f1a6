"""``fakebrokers trace``: a run to look at, as one HTML file."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from fakebrokers.commands import own_package
from fakebrokers.errors import UsageError
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.rows import MARK
from fakebrokers.journal.stored import stored
from fakebrokers.output import plain
from fakebrokers.viewer.document import of_log
from fakebrokers.viewer.page import first_difference, write_page
from fakebrokers.viewer.rows import RunDocument

NAMES_SHOWN = 10
PAGE = Path("trace.html")


@click.command()
@click.argument("place", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--beside",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Another run, such as one that passed: both side by side, from their first difference on.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=PAGE,
    show_default=True,
    metavar="FILE",
    help="The page.",
)
def trace(place: Path, beside: Path | None, out: Path) -> None:
    """Make a page of a run: each frame, each call, each fault.

    RUN is FOLDER/NAME, with the folder of a journal or of a report; the folder alone where it holds one run;
    or a file of a run that is still being written. The page is one file and needs no network. Runs whose
    traces were kept (--traces) show every byte, and which rules they violate today.
    """
    logs = [_one(place), *([_one(beside)] if beside is not None else [])]
    documents = [_document(log) for log in logs]
    difference = first_difference(*documents) if len(documents) > 1 else None
    try:
        write_page(out, documents, difference)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror or error}") from None
    said = f"{len(documents[0].rows)} rows"
    if beside is not None:
        said += (
            ", and no difference but in times" if difference is None else ", from their first difference on"
        )
    click.echo(plain(f"{out}: {said}"))


def _one(place: Path) -> RunLog:
    """The only run at a place."""
    logs = list(stored(place))
    if len(logs) == 1:
        return logs[0]
    names = [log.run.run for log in logs]
    doubled = len({name.rpartition(MARK)[0] for name in names}) < len(names)
    shown = ", ".join(name if doubled else name.rpartition(MARK)[0] or name for name in names[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    raise UsageError(
        f"{place}: expected one run, found {len(names)}: name one, FOLDER/NAME, of {shown}{more}"
    )


def _document(log: RunLog) -> RunDocument:
    """By the suite where the trace was kept and the suite is installed: it knows more of it."""
    if not log.trace:
        return of_log(log)
    try:
        own_package("conformance")
    except ModuleNotFoundError:
        return of_log(log)
    try:
        found: RunDocument = import_module("conformance.rules.again").stored_document(log)
    except ValueError as error:
        print(f"{plain(log.run.run)}: not judged by the rules: {plain(str(error))}", file=sys.stderr)
        return of_log(log)
    return found
