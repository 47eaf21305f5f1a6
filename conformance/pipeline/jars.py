"""A home for Spark without the jars that only cost time here."""

from __future__ import annotations

import os
from pathlib import Path

#: MLlib hooks into the start of every session, to register functions that nobody calls here; it does so by
#: way of Scala's reflection, which takes as long as all the rest of the start.
_LEFT_OUT = ("spark-mllib_",)


def installed_spark() -> Path:
    """The Spark that PySpark starts unless it is given another: SPARK_HOME, or what came with the package."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def spark_home(installed: Path, folder: Path) -> Path:
    """Make `folder` a SPARK_HOME with all of `installed` but the jars that are left out; links, no copies."""
    jars = folder / "jars"
    jars.mkdir(parents=True)
    for entry in installed.iterdir():
        if entry.name != "jars":
            (folder / entry.name).symlink_to(entry)
    for jar in (installed / "jars").iterdir():
        if not jar.name.startswith(_LEFT_OUT):
            (jars / jar.name).symlink_to(jar)
    return folder
