"""``fakebrokers journal``: what a fake has written down, to read, and for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from fakebrokers.errors import UsageError
from fakebrokers.journal.export import FORMATS, rows_of, write_capture, write_jsonl, write_parquet
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import FrameRow, OpRow
from fakebrokers.journal.stored import began_ns, record_of, stored
from fakebrokers.output import plain

PLACE = click.argument("place", metavar="RUN", type=click.Path(path_type=Path))


@click.group()
def journal() -> None:
    """Read the journal of a fake, or export it for other programs.

    RUN is the folder of a journal or of a report, FOLDER/NAME for one run of it, or a file of a run that is
    still being written.
    """


@journal.command()
@PLACE
@click.option("--kind", metavar="NAME", help="Only frames, or states, of this name; such as PublishConfirm.")
@click.option("--role", metavar="NAME", help="Only frames with this role; such as confirm.")
@click.option("--connection", metavar="NAME", help="Only this connection; such as c1.")
@click.option("--faults", is_flag=True, help="Only what a fault has touched.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last lines of each run.")
def show(
    place: Path, kind: str | None, role: str | None, connection: str | None, faults: bool, last: int | None
) -> None:
    """Show runs as lines: seconds, connection, direction, frame, keys, size, faults.

    What the client was asked to do stands between them, with the name of its process.
    """

    def wanted(row: FrameRow | OpRow) -> bool:
        if isinstance(row, OpRow):
            return not (kind or role or connection or faults)
        if ((row.envelope and not role) or row.kind == State.HOLDS) and not kind:
            return False  # the first says what the line above says, the other is for pages
        fits = kind in (None, row.kind) and role in (None, row.role) and connection in (None, row.connection)
        return fits and (bool(row.fault) or not faults)

    for log in stored(place):
        click.echo(plain(_title(log)))
        start = began_ns(log)
        rows = [row for row in rows_of(log) if isinstance(row, FrameRow | OpRow) and wanted(row)]
        for row in rows[-last:] if last else rows:
            click.echo(plain(_line(row, start)))


@journal.command()
@PLACE
@click.option("--format", "as_", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file, or for Parquet a folder; standard output, unless given.",
)
def export(place: Path, as_: str, out: Path | None) -> None:
    """Hand runs to other programs: pandas and DuckDB (parquet, jsonl), Wireshark (pcapng).

    Bytes are in pcapng where the journal has whole frames: 'serve --journal DIR --journal-frames'.
    """
    logs = list(stored(place))
    try:
        told = _write(as_, logs, out)
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror or error}") from None
    if out is not None:
        click.echo(f"{told}: {out}")


def _write(as_: str, logs: Sequence[RunLog], out: Path | None) -> str:
    """Write the runs, and say how much that is."""
    if as_ == "parquet":
        if out is None:
            raise UsageError("--format parquet makes a file for each table: say in which folder with --out")
        return f"{write_parquet(logs, out)} rows"
    if as_ == "pcapng":
        if out is None and sys.stdout.isatty():
            raise UsageError(
                "a capture is not for a terminal: say where with --out, or pipe it into Wireshark"
            )
        with nullcontext(sys.stdout.buffer) if out is None else out.open("wb") as file:
            return f"{write_capture(logs, file)} packets"
    with nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8") as lines:
        return f"{write_jsonl(logs, lines)} rows"


def _title(log: RunLog) -> str:
    run = log.run
    about = [run.protocol, run.variant, run.profile, run.client, run.scenario, run.verdict]
    end = "" if run.ended else "  (not ended, or still being written)"
    return f"{run.run}  {' '.join(word for word in about if word)}{end}"


def _line(row: FrameRow | OpRow, start: int) -> str:
    if isinstance(row, FrameRow):
        return str(record_of(row, start))
    words = [f"{(row.t_ns - start) / 1e9:9.4f}", f"{row.process:>4}", "==", row.f, row.outcome]
    told = {"key": row.key, "value": row.value, "offset": row.offset, "error": row.error, "": row.note}
    words += [f"{name} {value}".strip() for name, value in told.items() if value not in (None, "")]
    return " ".join(words)
