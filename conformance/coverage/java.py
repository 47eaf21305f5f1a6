"""Methods, lines and branches of a library in Java: JaCoCo's agent is in the adapter's virtual machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import msgspec

from conformance.clients.adapter.process import JAVA_MEASURED
from conformance.clients.adapters.registry import Client
from conformance.coverage.document import Branch, ClientCoverage, document_of
from conformance.coverage.jacoco import AGENT, Probes, files_of, probes_of, programs, report
from conformance.coverage.processes import ProcessMeter
from fakebrokers.errors import UsageError

NOTE = (
    "A branch is a way out of a condition or of a switch; it is named by its line. By section, fault and "
    "base script, probes are counted: JaCoCo's marks, between which code has no jump, and often no call. "
    "Code that an exception has left counts up to the last mark before it."
)
PROBES = "probes"
CLASSES = "classes"
EXTRACT_S = 120.0
_NAME = re.compile(r"(\d+)-\d+\.exec")


class JavaMeter(ProcessMeter):
    """Measures a client in Java.

    Its ``protocol_modules`` are packages, with all that are in them, or classes, with those in them: of the
    adapter's libraries, or of Java itself.

    Raises:
        UsageError: One is not there, or JaCoCo cannot be had.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._java = shutil.which("java") or ""
        if not self._java:
            raise UsageError(f"{client.name}: --coverage of a client in Java takes the program java")
        agent = programs()[AGENT]
        super().__init__(client, folder)
        self._classes = folder / CLASSES
        shutil.rmtree(self._classes, ignore_errors=True)
        for name in client.protocol_modules:
            self._find(name)
        names = ":".join(f"{name}:{name}.*:{name}$*" for name in client.protocol_modules)
        program, *words = client.command
        self.client = msgspec.structs.replace(
            client,
            command=[program, f"-javaagent:{agent}=output=none,includes={names}", *words],
            more_env={**client.more_env, JAVA_MEASURED: str(self.left)},
        )

    def pid_of(self, path: Path) -> int | None:
        found = _NAME.fullmatch(path.name)
        return int(found[1]) if found else None

    def document(self) -> ClientCoverage:
        probes: dict[str, Probes] = {}
        merged: Probes = {}
        for label, paths in self.by_label().items():
            own = probes.setdefault(label, {})
            for path in paths:
                for each, passed in probes_of(path.read_bytes()).items():
                    own[each] = own.get(each, 0) | passed
                    merged[each] = merged.get(each, 0) | passed
        files = files_of(report(self._java, merged, self._classes, self.left))
        self.forget_files()
        shutil.rmtree(self._classes, ignore_errors=True)
        arcs = {label: steps_of(own) for label, own in probes.items()}
        branches = set().union(*arcs.values())
        return document_of(self.client, files, self.counted(arcs), branches, note=NOTE, groups_unit=PROBES)

    def _find(self, name: str) -> None:
        """Lay the classes of a module into the folder of those that count."""
        inside = name.replace(".", "/")
        wanted = re.compile(rf"{re.escape(inside)}([/$].*)?\.class")
        found = 0
        for jar in sorted(Path(self.client.folder, "build", "lib").glob("*.jar")):
            with ZipFile(jar) as archive:
                names = [each for each in archive.namelist() if wanted.fullmatch(each)]
                archive.extractall(self._classes, names)
                found += len(names)
        if not found and not self._of_java_itself(inside):
            why = f"{name}, which its protocol_modules name, is not there: {self.client.install}"
            raise UsageError(f"{self.client.name}: {why}")

    def _of_java_itself(self, inside: str) -> bool:
        tool = Path(self._java).resolve().with_name("jimage")
        image = tool.parents[1] / "lib" / "modules"
        if not tool.is_file() or not image.is_file():
            return False
        place = self.left / "image"
        pattern = rf"regex:/[^/]+/{re.escape(inside)}([/$].*)?\.class"
        _run([str(tool), "extract", "--dir", str(place), "--include", pattern, str(image)])
        for module in place.glob("*"):
            shutil.copytree(module, self._classes, dirs_exist_ok=True)
        found = any(place.rglob("*.class"))
        shutil.rmtree(place, ignore_errors=True)
        return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=EXTRACT_S, check=False)
    if done.returncode:
        raise UsageError(f"{Path(command[0]).name} fails: {(done.stderr or done.stdout).strip()}")


def steps_of(probes: Probes) -> set[Branch]:
    """Each probe that was passed."""
    return {
        (each.name, each.id, number)
        for each, passed in probes.items()
        for number in range(each.probes)
        if passed >> number & 1
    }
