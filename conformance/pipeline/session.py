"""The only place that builds a Spark session."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.pipeline.archive import archive_folder, archive_options, start_training
from conformance.pipeline.jars import installed_spark, spark_home
from conformance.pipeline.java import find_java
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Settings = dict[str, bool | float | int | str | None]

#: Rows up to which the quick compiler is enough; beyond them the optimising one pays.
SMALL = 500_000
_QUICK = ("-Xmn300m", "-XX:TieredStopAtLevel=1", "-XX:MetaspaceSize=256m")

#: Spark's own jars are trusted: not to verify their bytecode saves a tenth of a short analysis.
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    java_home: Path | None = None,
    rows: int = SMALL,
    memory: str = "2g",
    java_options: Sequence[str] = (),
) -> Iterator[SparkSession]:
    """A session for as long as the block lasts.

    Args:
        master: Spark's master; None for ``local[*]``, or, under spark-submit, what that was told.
        java_home: Of the Java to use; see `java.find_java`.
        rows: About how many rows will be read.
        memory: Heap of a local JVM.
        java_options: More of them for a local JVM; it then verifies all classes, and uses no archive of them.

    Raises:
        UsageError: PySpark or Java is missing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("analysis needs PySpark: pip install 'fakebrokers[spark]'") from None
    before = dict(os.environ)
    scratch = Path(tempfile.mkdtemp(prefix="fakebrokers-spark-"))
    archive = None
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName("fakebrokers analyze").config(map=_settings(rows))
    try:
        if not submitted:
            java, spark = find_java(java_home, scratch), installed_spark()
            os.environ["JAVA_HOME"] = str(java)
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run python3 of the PATH
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            if (master or "local").startswith("local") and (spark / "jars").is_dir():
                archive = archive_folder(java, spark)
                home = archive / "home" if archive else spark_home(spark, scratch / "home")
                os.environ["SPARK_HOME"] = str(home)
            more = java_options or [*_UNVERIFIED, *archive_options(archive)]
            builder = builder.config(map=_local(scratch, memory, [*_java_options(rows, memory), *more]))
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
    if archive and not java_options:
        start_training(archive, java_home)


def _settings(rows: int) -> Settings:
    """What holds on clusters too. Adaptive planning costs more than it gains on small inputs."""
    cores = os.cpu_count() or 1
    return {
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else every column tells where it was made
        "spark.sql.adaptive.enabled": str(rows > SMALL).lower(),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",  # rows that lie together by run may stay
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(1 + rows // 200_000 if rows <= SMALL else max(8, 4 * cores)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _java_options(rows: int, memory: str) -> list[str]:
    quiet = resources.files("conformance.pipeline") / "log4j2.properties"
    # A heap of its full size from the start is not collected just to find out that it must grow.
    options = [f"-Dlog4j2.configurationFile={quiet}", "-XX:+UseSerialGC", f"-Xms{memory}"]
    return [*options, *_QUICK] if rows <= SMALL else options


def _local(scratch: Path, memory: str, java_options: Sequence[str]) -> Settings:
    """What only acts before the JVM starts."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in java_options),
    }
