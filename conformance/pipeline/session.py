"""The only place that starts Spark."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.pipeline.jars import installed_spark, spark_home
from conformance.pipeline.java import find_java
from conformance.pipeline.spark import ship
from fakebrokers.errors import UsageError
from fakebrokers.extras import needs

if TYPE_CHECKING:
    from pyspark import SparkContext

#: The JVM only hands tasks out and takes bytes in, so its quick compiler is enough for any input.
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MetaspaceSize=256m")
#: Spark's own jars are trusted: not to verify their bytecode saves a tenth of a short analysis.
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


@contextmanager
def spark_context(
    master: str | None = None, *, java_home: Path | None = None, memory: str = "1g"
) -> Iterator[SparkContext]:
    """A running Spark for as long as the block lasts.

    Args:
        master: Spark's master; None for ``local[*]``, or, under spark-submit, its own.
        java_home: Of the Java to use; see `java.find_java`.
        memory: Heap of a local JVM.

    Raises:
        UsageError: PySpark or Java is missing, or Spark fails (no such master, a task that cannot end).
    """
    # of a newer pandas, which nothing here uses; spark-submit prints it among the results
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    with needs("spark", "analysis on Spark (--engine local does without)"):
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
    before = dict(os.environ)
    scratch = Path(tempfile.mkdtemp(prefix="fakebrokers-spark-"))
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = SparkConf().setAppName("fakebrokers analyze")
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    try:
        if not submitted:
            _prepare(conf, master or "local[*]", java_home, scratch, memory)
        if master is not None or not submitted:
            conf.setMaster(master or "local[*]")
        context = SparkContext.getOrCreate(conf)
        try:
            if not str(context.master).startswith("local"):
                ship(context, scratch)
            yield context
        finally:
            context.stop()
    except (Py4JError, PySparkException) as error:
        where = master or "the master of spark-submit"
        said = str(getattr(error, "java_exception", None) or error).splitlines()[0]
        raise UsageError(
            f"expected a Spark that does the job at {where}, it ended with: {said}; Spark's own words above "
            "say more. Is the URL right, and can the master be reached from here?"
        ) from None
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(scratch, ignore_errors=True)


def _prepare(conf: object, master: str, java_home: Path | None, scratch: Path, memory: str) -> None:
    """What only acts before the JVM starts. A cluster gets Spark's own defaults but for the log."""
    quiet = resources.files("conformance.pipeline") / "log4j2.properties"
    options = [f"-Dlog4j2.configurationFile={quiet}", *_QUICK]
    settings = {"spark.driver.memory": memory}
    os.environ["JAVA_HOME"] = str(find_java(java_home, scratch))
    if master.startswith("local"):
        installed = installed_spark()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run python3 of the PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if (installed / "jars").is_dir():
            os.environ["SPARK_HOME"] = str(spark_home(installed, scratch / "home"))
        options += _UNVERIFIED
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(scratch),
        }
    settings["spark.driver.extraJavaOptions"] = " ".join(f'"{option}"' for option in options)
    for name, value in settings.items():
        conf.set(name, value)  # type: ignore[attr-defined]
