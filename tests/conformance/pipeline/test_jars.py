"""The Spark that sessions start."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.pipeline.jars import installed_spark, spark_home


def test_a_home_has_everything_but_the_jars_left_out(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    for name in ("bin/spark-submit", "jars/spark-sql_2.13.jar", "jars/spark-mllib_2.13.jar", "jars/z.jar"):
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text(name)
    home = spark_home(installed, tmp_path / "home")
    assert (home / "bin" / "spark-submit").read_text() == "bin/spark-submit"
    assert sorted(jar.name for jar in (home / "jars").iterdir()) == ["spark-sql_2.13.jar", "z.jar"]


def test_settings_of_an_installation_are_kept(tmp_path: Path) -> None:
    for name in ("jars", "conf"):
        (tmp_path / "installed" / name).mkdir(parents=True)
    (tmp_path / "installed" / "conf" / "spark-defaults.conf").write_text("spark.x y")
    home = spark_home(tmp_path / "installed", tmp_path / "home")
    assert (home / "conf" / "spark-defaults.conf").read_text() == "spark.x y"


@pytest.mark.full
def test_a_spark_of_the_users_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert installed_spark() == Path(pyspark.__file__).parent
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert installed_spark() == tmp_path
