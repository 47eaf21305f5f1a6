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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.eventually import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.full, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
COMMAND = "import sys; from conformance.cli.analyze import analyze; sys.exit(analyze(standalone_mode=False))"
PORT = 7199
#: Seconds for anything here: what takes ten on a machine of one's own may take minutes on a busy one.
PATIENCE_S = 500


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def wait_until(is_so: Callable[[], object], otherwise: Callable[[], object]) -> None:
    """Wait for it; fails with what `otherwise` says when that takes too long."""
    eventually(is_so, otherwise, patience_s=PATIENCE_S)


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
                options = {
                    "--host": f"10.199.7.{number}",
                    "--cores": "1",
                    "--memory": "1g",
                    "--webui-port": "0",
                    "--work-dir": str(self.folder / f"work-{len(self.workers)}"),
                }
                words = [word for option in options.items() for word in option]
                # No package of ours there: it must travel with the job.
                name = f"fb{os.getpid()}w{number}"
                self.workers.append(self._start(name, "worker.Worker", *words, self.url, PYTHONPATH=""))
            wait_until(lambda: self._log().count("Registering worker") == len(self.workers), self._log)
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

    def is_at_work(self, number: int) -> bool:
        """Whether a task has begun on that worker."""
        logs = (self.folder / f"work-{number}").glob("app-*/*/stderr")
        return any("Running task" in path.read_text(errors="replace") for path in logs)

    def analyze(self, journal: Path, out: Path) -> Analysis:
        """The command line, on the driver's machine."""
        options = (str(journal), "--out", str(out), "--json", "--master", self.url)
        streams = [self.folder / name for name in ("stdout", "stderr")]
        with streams[0].open("wb") as stdout, streams[1].open("wb") as stderr:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.driver, sys.executable, "-c", COMMAND, *options],
                env=self.env,
                cwd=self.folder,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self._stack.callback(self.kill, process)
        return Analysis(process, *streams)


class Analysis(NamedTuple):
    """A process, and the files that have what it says."""

    process: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    def complaints(self) -> str:
        """The end of what it has said so far on standard error."""
        return self.stderr.read_text(errors="replace")[-3000:]

    def result(self) -> dict[str, Any]:
        """The document that it prints at its end."""
        assert self.process.wait(PATIENCE_S) == 0, self.complaints()
        found: dict[str, Any] = json.loads(self.stdout.read_text())
        return found


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
    from conformance.cli.analyze import analyze_journals

    analyze_journals((folder,), out, engine="local")
    return document(out)


def test_workers_on_other_machines_find_the_same(cluster: Cluster, tmp_path: Path) -> None:
    folder = journal(tmp_path / "journal", 100_000)
    assert cluster.analyze(folder, tmp_path / "out").result()["runs"] == 30
    assert document(tmp_path / "out") == wanted(folder, tmp_path / "here")


def test_a_machine_that_dies_in_the_middle_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    from conformance.pipeline.sources import sources_in
    from conformance.pipeline.units import planned

    folder, out = journal(tmp_path / "journal", 6_000_000), tmp_path / "out"
    units = len(planned(sources_in([str(folder)], str(tmp_path / "scratch"))))
    running = cluster.analyze(folder, out)

    def is_in_the_middle() -> bool:
        assert running.process.poll() is None, running.complaints()
        return done() > 0 and cluster.is_at_work(0)

    def done() -> int:
        return len(list((out / "parts").glob("*.msgpack")))

    wait_until(is_in_the_middle, running.complaints)
    cluster.kill(cluster.workers[0])
    assert done() < units / 2, "too late: most of it is done"
    running.result()
    assert document(out) == wanted(folder, tmp_path / "here")


def test_a_cluster_without_workers_is_told(cluster: Cluster, tmp_path: Path) -> None:
    for worker in cluster.workers:
        cluster.kill(worker)
    running = cluster.analyze(journal(tmp_path / "journal", 4_000), tmp_path / "out")
    wait_until(lambda: "no task has begun" in running.complaints(), running.complaints)
    assert running.process.poll() is None  # it waits on: a worker may come
