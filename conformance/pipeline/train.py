"""Makes an archive of classes, in the background: python -m conformance.pipeline.train FOLDER"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from conformance.pipeline.archive import BASE, CLASSES, UNFINISHED, keep, whole
from conformance.pipeline.java import find_java


def train(folder: Path) -> None:
    """Put an archive into `folder`: all of it or nothing.

    Raises:
        OSError, subprocess.SubprocessError: It did not come about.
        UsageError: There is no Java.
    """
    os.nice(19)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as name:
        scratch = Path(name)
        base, classes = scratch / "base", scratch / "classes"
        if whole(folder, BASE) is None:
            java = find_java(None, scratch) / "bin" / "java"
            dump = [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
            subprocess.run(dump, capture_output=True, check=True)
            keep(base, folder, BASE)
        # Java writes the archive when it ends, after its Python; both have ended when nobody holds the pipe.
        command = [sys.executable, "-m", "conformance.pipeline.train", str(folder), str(classes)]
        subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        keep(classes, folder, CLASSES)


def lesson(folder: Path, classes: Path) -> None:
    """Analyse a journal that has a little of everything, on a Java that takes notes."""
    from conformance.pipeline.analysis import run_analysis
    from conformance.pipeline.schema import files_of
    from conformance.pipeline.session import spark_session
    from fakebrokers.journal import RunJournal
    from fakebrokers.journal.seal import seal

    journal = classes.with_name("journal")
    run = RunJournal(journal, "run", client="client", scenario="lesson", contract="exactly-once ordered")
    for second, value in enumerate("abc"):
        run.op(second + 0.1, "p", second, "publish", "invoke", key="q", value=value, wire_key=value)
        run.op(second + 0.2, "p", second, "publish", "ok", key="q", value=value, wire_key=value)
        run.op(second + 0.3, "c", None, "deliver", "ok", key="q", value=value, offset=second)
        run.metric(second + 0.4, "loop_lag_ms", 1.0)
    run.close(verdict="pass")
    seal(journal)
    notes = [f"-XX:SharedArchiveFile={whole(folder, BASE)}", f"-XX:ArchiveClassesAtExit={classes}"]
    with spark_session("local[*]", java_options=notes) as spark:
        run_analysis(spark, files_of([journal], classes.with_name("converted")), classes.with_name("out"))


if __name__ == "__main__":
    places = [Path(argument) for argument in sys.argv[1:]]
    (train if len(places) == 1 else lesson)(*places)
