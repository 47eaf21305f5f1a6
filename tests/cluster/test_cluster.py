"""An analysis on a standalone cluster whose workers are other machines: network namespaces of their own.

Needs root, ``ip`` and Java; ``ci/nightly`` runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
COMMAND = "import sys; from conformance.cli_analyze import analyze; sys.exit(analyze(standalone_mode=False))"
PORT = 7199


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cluster:
    """A master on the driver's machine, and two workers elsewhere.

    Attributes:
        driver: The driver's namespace; it has the address ``10.199.7.1``.
        workers: Their processes.
    """

    def __init__(self, folder: Path, java: Path) -> None:
        import pyspark

        self.spark = Path(pyspark.__file__).parent
        self.folder = folder
        self.env = {
            **os.environ,
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(self.spark),
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }
        self.driver = f"fb{os.getpid()}d"
        self.url = f"spark://10.199.7.1:{PORT}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Cluster:
        try:
            self._network()
            self._start(
                self.driver, "master.Master", "--host", "10.199.7.1", "--port", str(PORT), "--webui-port", "0"
            )
            for number in (2, 3):
                worker = (
                    "--host",
                    f"10.199.7.{number}",
                    "--cores",
                    "1",
                    "--memory",
                    "1g",
                    "--webui-port",
                    "0",
                    self.url,
                )
                # No package of ours there: it must travel with the job.
                self.workers.append(
                    self._start(f"fb{os.getpid()}w{number}", "worker.Worker", *worker, PYTHONPATH="")
                )
            deadline = time.monotonic() + 120
            while self._log().count("Registering worker") < len(self.workers):
                assert time.monotonic() < deadline, self._log()
                time.sleep(0.2)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _network(self) -> None:
        self._namespace(self.driver)
        ip("-n", self.driver, "link", "add", "hub", "type", "bridge")
        ip("-n", self.driver, "addr", "add", "10.199.7.1/24", "dev", "hub")
        ip("-n", self.driver, "link", "set", "hub", "up")
        for number in (2, 3):
            name = f"fb{os.getpid()}w{number}"
            self._namespace(name)
            ip(
                "-n",
                self.driver,
                "link",
                "add",
                f"to{number}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                name,
            )
            ip("-n", self.driver, "link", "set", f"to{number}", "master", "hub", "up")
            ip("-n", name, "addr", "add", f"10.199.7.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def _namespace(self, name: str) -> None:
        ip("netns", "add", name)
        self._stack.callback(ip, "netns", "del", name)
        ip("-n", name, "link", "set", "lo", "up")

    def _start(self, namespace: str, role: str, *options: str, **env: str) -> subprocess.Popen[bytes]:
        script = str(self.spark / "bin" / "spark-class")
        command = ["ip", "netns", "exec", namespace, script, f"org.apache.spark.deploy.{role}", *options]
        with (self.folder / f"{namespace}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.env, **env},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._stack.callback(self.kill, process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """A machine that is gone, with its executors."""
        if process.poll() is None:
            for pid in [*_below(process.pid), process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def _log(self) -> str:
        return (self.folder / f"{self.driver}.log").read_text(errors="replace")

    def analyze(self, journal: Path, out: Path) -> subprocess.Popen[bytes]:
        """The command line, on the driver's machine."""
        options = (str(journal), "--out", str(out), "--json", "--master", self.url)
        return subprocess.Popen(
            ["ip", "netns", "exec", self.driver, sys.executable, "-c", COMMAND, *options],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def _below(pid: int) -> list[int]:
    """All descendants of a process."""
    found = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    return [each for child in map(int, found) for each in (*_below(child), child)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("missing: root and the command ip (iproute2), to make network namespaces")
    from conformance.pipeline.java import find_java

    with Cluster(tmp_path, find_java(None, tmp_path / "shim")) as running:
        yield running


def document(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "analysis.json").read_text())
    return {name: value for name, value in found.items() if name not in ("seconds", "out")}


def journal(folder: Path, records: int) -> Path:
    from tests.benchmarks.generate import generate

    generate(folder, records)
    return folder


def wanted(folder: Path, out: Path) -> dict[str, Any]:
    """The same without Spark."""
    from conformance.cli_analyze import analyze_journals

    analyze_journals((folder,), out, engine="local")
    return document(out)


def test_workers_on_other_machines_find_the_same(cluster: Cluster, tmp_path: Path) -> None:
    folder = journal(tmp_path / "journal", 100_000)
    running = cluster.analyze(folder, tmp_path / "out")
    said, complaints = running.communicate(timeout=240)
    assert running.returncode == 0, complaints.decode()[-3000:]
    assert json.loads(said)["runs"] == 30
    assert document(tmp_path / "out") == wanted(folder, tmp_path / "here")


def test_a_machine_that_dies_in_the_middle_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    folder, out = journal(tmp_path / "journal", 20_000_000), tmp_path / "out"
    running = cluster.analyze(folder, out)
    deadline = time.monotonic() + 240
    while len(list((out / "parts").glob("*.msgpack"))) < 4:
        assert running.poll() is None, running.communicate()[1].decode()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    cluster.kill(cluster.workers[0])
    _, complaints = running.communicate(timeout=400)
    assert running.returncode == 0, complaints.decode()[-3000:]
    assert document(out) == wanted(folder, tmp_path / "here")


def test_a_cluster_without_workers_is_told(cluster: Cluster, tmp_path: Path) -> None:
    for worker in cluster.workers:
        cluster.kill(worker)
    running = cluster.analyze(journal(tmp_path / "journal", 4_000), tmp_path / "out")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(45)
    finally:
        cluster.kill(running)
    assert "no task has begun" in running.communicate()[1].decode()
