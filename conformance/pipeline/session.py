"""The only place that builds a Spark session."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.pipeline.java import find_java
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Settings = dict[str, bool | float | int | str | None]

#: Spark's own jars are trusted: not to verify their bytecode saves a tenth of a short analysis.
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")

#: Rows up to which the quick compiler is enough; beyond them the optimising one pays.
SMALL = 500_000


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    java_home: Path | None = None,
    rows: int = SMALL,
    memory: str = "2g",
) -> Iterator[SparkSession]:
    """A session for as long as the block lasts.

    Args:
        master: Spark's master; None for ``local[*]``, or, under spark-submit, what that was told.
        java_home: Of the Java to use; see `java.find_java`.
        rows: About how many rows will be read.
        memory: Heap of a local JVM.

    Raises:
        UsageError: PySpark or Java is missing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("analysis needs PySpark: pip install 'fakebrokers[spark]'") from None
    before = dict(os.environ)
    scratch = Path(tempfile.mkdtemp(prefix="fakebrokers-spark-"))
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName("fakebrokers analyze").config(map=_settings(rows))
    try:
        if not submitted:
            os.environ["JAVA_HOME"] = str(find_java(java_home, scratch))
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run python3 of the PATH
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config(map=_local(scratch, rows, memory))
        if master is not None or not submitted:
            builder = builder.master(master or "local[*]")
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(scratch, ignore_errors=True)


def _settings(rows: int) -> Settings:
    """What holds on clusters too. Adaptive planning costs more than it gains on small inputs."""
    cores = os.cpu_count() or 1
    return {
        "spark.sql.adaptive.enabled": str(rows > SMALL).lower(),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",  # rows that lie together by run may stay
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores if rows <= SMALL else max(8, 4 * cores)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _local(scratch: Path, rows: int, memory: str) -> Settings:
    """What only acts before the JVM starts."""
    quiet = resources.files("conformance.pipeline") / "log4j2.properties"
    options = [f"-Dlog4j2.configurationFile={quiet}", "-XX:+UseSerialGC"]
    if rows <= SMALL:
        options += ["-XX:TieredStopAtLevel=1", "-XX:MetaspaceSize=256m", *_UNVERIFIED]
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": " ".join(options),
    }
