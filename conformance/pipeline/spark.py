"""The units of an analysis as the tasks of a Spark job; summaries are merged on the way to the driver."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.pipeline.summary import Summary, unpacked
from conformance.pipeline.units import Unit

if TYPE_CHECKING:
    from pyspark import SparkContext

#: How often progress is looked at, and after how long without any task it is reported.
_LOOK_S, _PATIENCE_S = 1.0, 20.0


def judge_on_spark(
    context: SparkContext,
    units: Sequence[Unit],
    out: str,
    progress: Callable[[int], None],
    say: Callable[[str], None],
) -> Summary:
    """All of them, a task for each.

    Args:
        out: A folder that every worker can write: shared, or a URI.
        progress: Gets how many tasks are done.
        say: Gets what keeps the job from beginning.
    """
    if not units:
        return Summary()
    tasks = [msgspec.msgpack.encode(unit) for unit in units]
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(context, over, progress, say), daemon=True)
    watch.start()
    try:
        found = (
            context.parallelize(tasks, len(tasks))
            .map(_task(out))
            .treeReduce(_merge(), depth=_depth(len(tasks)))
        )
    finally:
        over.set()
        watch.join()
    ok, content = found
    return unpacked(content) if ok else Summary(problems=content.decode().splitlines())


def _depth(tasks: int) -> int:
    """One level for what the driver merges at once."""
    return 2 if tasks > 64 else 1


def ship(context: SparkContext, folder: Path) -> None:
    """Send these packages to workers that need not have them installed."""
    from conformance.pipeline.columns.rules import judging

    archive = folder / "fakebrokers.zip"
    packages = {"conformance", "fakebrokers", *(name.partition(".")[0] for name in judging())}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for package in map(import_module, sorted(packages)):
            root = Path(str(package.__file__)).parent
            for path in sorted(root.rglob("*")):
                if path.suffix in {".py", ".json", ".toml"} and "node_modules" not in path.parts:
                    file.write(path, str(Path(package.__name__) / path.relative_to(root)))
    context.addPyFile(str(archive))


# Both functions travel to the workers by value, because they are made here: so they can say there what is
# missing, where anything that is imported by name could only fail.


def _task(out: str) -> Callable[[bytes], tuple[bool, bytes]]:
    def judge(task: bytes) -> tuple[bool, bytes]:
        try:
            import msgspec

            from conformance.pipeline.summary import packed
            from conformance.pipeline.units import Unit, judged
        except ImportError as error:
            import platform
            import sys

            return False, (
                f"the worker on {platform.node()} lacks {error.name}: install fakebrokers[spark] for "
                f"{sys.executable} there, or set PYSPARK_PYTHON to a Python that has it"
            ).encode()
        return True, packed(judged(msgspec.msgpack.decode(task, type=Unit), out))

    return judge


def _merge() -> Callable[[tuple[bool, bytes], tuple[bool, bytes]], tuple[bool, bytes]]:
    def merge(one: tuple[bool, bytes], other: tuple[bool, bytes]) -> tuple[bool, bytes]:
        if not (one[0] and other[0]):
            said = [line for ok, content in (one, other) if not ok for line in content.split(b"\n")]
            return False, b"\n".join(dict.fromkeys(said))
        from conformance.pipeline.summary import packed, unpacked

        return True, packed(unpacked(one[1]).add(unpacked(other[1])))

    return merge


def _watch(
    context: SparkContext, over: threading.Event, progress: Callable[[int], None], say: Callable[[str], None]
) -> None:
    """Report how many tasks are done, and that none has begun."""
    waited, reported = 0.0, False
    tracker = context.statusTracker()
    while not over.wait(_LOOK_S):
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        done = sum(info.numCompletedTasks for info in stages)
        begun = done or any(info.numActiveTasks for info in stages)
        waited = 0.0 if begun else waited + _LOOK_S
        if waited >= _PATIENCE_S and not reported:
            reported = True
            say(
                f"no task has begun for {waited:.0f} s: {context.master} has no free worker that can reach "
                f"this driver at {context.getConf().get('spark.driver.host')} (set SPARK_LOCAL_IP to an "
                "address that the workers can reach)"
            )
        if stages:
            progress(done)
