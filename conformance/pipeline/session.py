"""The only place that builds a Spark session."""

from __future__ import annotations

import hashlib
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

#: Rows up to which the quick compiler is enough; beyond them the optimising one pays.
SMALL = 2_000_000


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    java_home: Path | None = None,
    rows: int = 0,
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
    scratch = Path(tempfile.mkdtemp(prefix="fakebrokers-spark-"))
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName("fakebrokers analyze").config(map=_settings(scratch))
    if not submitted:
        os.environ["JAVA_HOME"] = str(find_java(java_home, scratch))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config(map=_local(scratch, rows, memory))
    if master is not None or not submitted:
        builder = builder.master(master or "local[*]")
    try:
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _settings(scratch: Path) -> dict[str, str]:
    """What holds on clusters too."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _local(scratch: Path, rows: int, memory: str) -> dict[str, str]:
    """What only acts before the JVM starts."""
    options = [f"-Dlog4j2.configurationFile={_quiet()}", "-XX:+UseSerialGC"]
    if rows <= SMALL:
        options += ["-XX:TieredStopAtLevel=1", *_class_data(scratch)]
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": " ".join(options),
    }


def _class_data(scratch: Path) -> list[str]:
    return []


def _quiet() -> str:
    return str(resources.files("conformance.pipeline") / "log4j2.properties")
