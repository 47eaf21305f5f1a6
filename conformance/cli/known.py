"""``fakebrokers known``: files of known defects as one, in the form of today."""

from __future__ import annotations

from pathlib import Path

import click

from fakebrokers.errors import ResourceError, UsageError

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("known")
@click.argument("files", nargs=-1, type=_FILE, metavar="[FILE]...")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A results.json, or its folder: adds what has failed and is not known; may be given again.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it here instead of on stdout; may be one of those that are read.",
)
def known_command(files: tuple[Path, ...], results: tuple[Path, ...], write: Path | None) -> int:
    """Merge files of known defects, and add what a run has shown.

    Each cause is there once.

    The files are about one client, of any form: those before 0.3, one each for suite, sweep and chaos, too.
    """
    from conformance.gate import results_file
    from conformance.known.files import read, written
    from conformance.known.merge import merged, with_results
    from conformance.results import load

    if not files and not results:
        raise UsageError("expected a FILE of known defects, or --results of a run")
    parts = []
    for path in files:
        parts.append(read(path, warn=lambda _: None))
        said = f"{len(parts[-1].rows)} rows of the suite, {len(parts[-1].findings)} of generated runs"
        click.echo(f"{path}: {said}", err=True)
    known = merged(parts)
    for path in results:
        known = merged([with_results(known, load(results_file(path)))])
    text = written(known)
    if write is None:
        click.echo(text, nl=False)
        return 0
    try:
        write.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"{write}: cannot write there: {error.strerror}") from None
    defects = len({row.defect for row in known.shown})
    click.echo(f"{write}: {defects} defects in {len(known.shown)} rows", err=True)
    return 0
