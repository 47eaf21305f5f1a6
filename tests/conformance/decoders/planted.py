"""Plants defects in the codec of a fake, one at a time, and says what finds each.

    python -m tests.conformance.decoders.planted rabbitmq-stream one.diff more.json

A defect is a unified diff (a file each; paths from the top of the repository, with or without ``a/`` and
``b/``), or a triple (file, old text, new text) of a JSON file that holds a list of them. It is applied to a
copy of the tree, and there it is found by

    decoder    where the reference client runs every base without a fault: the judge's decoder reads another
               frame than the fake's codec, or one that is malformed; or it cannot open what is in a frame; or
               the rules find something, as it reads otherwise what client and fake agree upon
    vectors    a test of the recordings fails, or of the golden vectors of the notes
    beside     if by neither: a test fails that has the decoder read all that the fake's codec can write, also
               frames that the reference client has no use for

``nats`` is the wire of ``moleculer``, and means the same here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conformance.decoders.runs import trouble

TOP = Path(__file__).parents[3]
PACKAGES = ("fakebrokers", "conformance", "scenarios", "tests")
LEFT_OUT = shutil.ignore_patterns("node_modules", "target", "build", "__pycache__", ".hypothesis")
TESTS = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider")
LONGEST_S = 600.0  #: of one defect's runs, or of its tests

#: The tests of what is put together by the notes, of all protocols.
BY_THE_NOTES = (
    "tests/conformance/decoders/test_vectors.py",
    "tests/conformance/decoders/test_contents.py",
)
#: The tests of recordings, and of those, by protocol.
VECTORS: dict[str, tuple[str, ...]] = {
    "rabbitmq-stream": (
        "tests/rabbitmq_stream/test_golden.py",
        "tests/rabbitmq_stream/test_session_golden.py",
        "tests/conformance/decoders/test_rabbitmq_stream_recorded.py",
        *BY_THE_NOTES,
    ),
    "moleculer": (
        "tests/moleculer/test_packets.py::test_recorded_packets_are_read_and_written_back",
        "tests/moleculer/nats/test_nodes_of_nats.py",
        "tests/nats/test_session.py::test_measured_answers",
        "tests/conformance/decoders/test_nats_recorded.py",
        "tests/nats/test_recorded.py",
        *BY_THE_NOTES,
    ),
    "blazingmq": (
        "tests/blazingmq/test_golden.py",
        "tests/blazingmq/test_recorded.py",
        "tests/blazingmq/test_session_golden.py",
        "tests/conformance/decoders/test_blazingmq_recorded.py",
        *BY_THE_NOTES,
    ),
}


#: The tests of the decoder beside the fake's codec.
BESIDE = {
    "rabbitmq-stream": "tests/conformance/decoders/test_rabbitmq_stream.py",
    "moleculer": "tests/conformance/decoders/test_nats.py",
    "blazingmq": "tests/conformance/decoders/test_blazingmq.py",
}


class Defect(NamedTuple):
    """A small wrong change.

    Attributes:
        name: For the report.
        diff: A unified diff; "": it is a triple.
        file, old, new: A file of the repository, and the text that is replaced there, which it has once.
    """

    name: str
    diff: str = ""
    file: str = ""
    old: str = ""
    new: str = ""

    def apply(self, top: Path) -> None:
        """Change the tree there. Raises ValueError where it does not fit."""
        if not self.diff:
            path = top / self.file
            text = path.read_text("utf-8")
            if text.count(self.old) != 1:
                raise ValueError(f"{self.name}: {self.file} has the old text {text.count(self.old)} times")
            path.write_text(text.replace(self.old, self.new), "utf-8")
            return
        strip = "-p1" if "\n+++ b/" in f"\n{self.diff}" else "-p0"
        command = ["git", "apply", strip, "--recount", "-"]
        done = subprocess.run(command, cwd=top, input=self.diff, text=True, capture_output=True, check=False)
        if done.returncode:
            raise ValueError(f"{self.name}: {done.stderr.strip()}")


def defects_in(paths: Sequence[Path]) -> Iterator[Defect]:
    """Those of the files."""
    for path in paths:
        text = path.read_text("utf-8")
        if path.suffix == ".json":
            for number, (file, old, new) in enumerate(json.loads(text), 1):
                yield Defect(f"{path.stem} {number}", file=file, old=old, new=new)
        else:
            yield Defect(path.stem, diff=text)


def found_by(protocol: str, defect: Defect) -> dict[str, str]:
    """What finds a defect: ``decoder`` and ``vectors``, or else ``beside``, each with how."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        for package in PACKAGES:
            shutil.copytree(TOP / package, top / package, ignore=LEFT_OUT)
        shutil.copy(TOP / "pyproject.toml", top)
        defect.apply(top)
        found = {
            "decoder": _last_line(top, "-m", "tests.conformance.decoders.planted", "--run", protocol),
            "vectors": _last_line(top, *TESTS, *VECTORS[protocol]),
        }
        if not any(found.values()):
            found["beside"] = _last_line(top, *TESTS, BESIDE[protocol])
    return {who: how for who, how in found.items() if how}


def _last_line(top: Path, *arguments: str) -> str:
    """The last line of a Python program that fails; "" if it does not."""
    environment = {**os.environ, "PYTHONPATH": str(top), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    try:
        done = subprocess.run(
            command, cwd=top, env=environment, text=True, capture_output=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "it takes for ever"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (failed or lines or ["?"])[-1] if done.returncode else ""


def run_bases(protocol: str) -> int:
    """Exit code 1 at the first trouble; it is printed."""
    first = next(trouble(protocol), "")
    print(first)
    return int(bool(first))


def main(arguments: Sequence[str]) -> int:
    """Exit code 1: a defect was found by nothing."""
    if arguments[0] == "--run":
        return run_bases(arguments[1])
    protocol, *files = arguments
    protocol = {"nats": "moleculer"}.get(protocol, protocol)
    counts: Counter[str] = Counter()
    for defect in defects_in([Path(file) for file in files]):
        found = found_by(protocol, defect)
        counts[" and ".join(found) or "nothing"] += 1
        print(f"{defect.name}: {' and '.join(found) or 'nothing'}", flush=True)
        for who, how in found.items():
            print(f"    {who}: {how}", flush=True)
    print(", ".join(f"{count} found by {who}" for who, count in counts.items()))
    return int(counts["nothing"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
