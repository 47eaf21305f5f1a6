"""Real Moleculer nodes, and JavaScript clients of the buses, as child processes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import PATIENCE_S

HERE = Path(__file__).parent
PACKAGES = (
    Path(__file__).parents[2] / "conformance" / "clients" / "adapters" / "moleculer-node" / "node_modules"
)


def require(*packages: str) -> None:
    """Leave the test out where Node.js or these packages are missing."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is missing")
    missing = [name for name in packages if not (PACKAGES / name / "package.json").is_file()]
    if missing:
        pytest.skip(f"npm packages are missing: {', '.join(missing)}; run npm ci in {PACKAGES.parent}")


class RealNode:
    """A node that offers ``ID.add ID.fail ID.down ID.up`` and does what it is told, a line of JSON each."""

    def __init__(self, package: str, options: dict[str, Any]) -> None:
        program = [
            str(shutil.which("node")),
            str(HERE / "node.cjs"),
            str(PACKAGES),
            package,
            json.dumps(options),
        ]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> Any:
        """The next line that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the node ended with {self.process.wait(PATIENCE_S)}"
        return json.loads(line)

    def do(self, what: str, *arguments: Any) -> Any:
        """Do something; what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([what, *arguments]) + "\n")
        self.process.stdin.flush()
        return self.read()


@contextmanager
def real_node(package: str, **options: Any) -> Iterator[RealNode]:
    """A node that has started."""
    node = RealNode(package, options)
    try:
        assert node.read() == "ready"
        yield node
    finally:
        node.process.kill()
        node.process.communicate()


def run_script(text: str) -> str:
    """What a program in JavaScript prints."""
    program = [str(shutil.which("node")), "-e", text]
    done = subprocess.run(
        program, cwd=PACKAGES.parent, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
