"""A project with a client, scenarios of its own, and the one line that makes tests of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: pytester imports all plugins again for every run; two are slow to import, and not needed.
QUICK = ("-p", "no:allure_pytest", "-p", "no:hypothesispytest", "-p", "tests.conformance.entry.unhurried")

ADAPTER = """
import os
from pathlib import Path
from conformance.clients.adapter.kit import AdapterBase, op, run

class Adapter(AdapterBase):
    library = "toy"
    library_version = "7"
    protocols = ("pzq",)
    roles = ("publisher",)

    def __init__(self):
        super().__init__()
        with Path(__file__).with_name("started").open("a") as file:
            file.write(f"{os.getpid()}\\n")

    @op("connect")
    async def connect(self, session, endpoints, options=None, timeout_ms=None):
        self.sessions[session] = endpoints

    @op("publish")
    async def publish(self, session, target, body, **more):
        return {"outcome": "unknown", "key": {}, "meta": {}}

    @op("close")
    async def close(self, session):
        self.sessions.pop(session, None)

if __name__ == "__main__":
    run(Adapter())
"""
#: Title, level and body of each script; the ids count up from TOY-1.01.
SCRIPTS = (
    ("passes", "MUST", "expect.that(True, 'all is well', id='all-is-well')"),
    ("is tolerated", "MUST", "expect.tolerate(False, 'all is well', 'nearly', id='all-is-well')"),
    ("fails", "MUST", "expect.that(False, 'all is well', 'it is <not>', id='all-is-well')"),
    ("is not exercised", "MUST", "expect.exercised(False, 'nobody came', id='nobody-came')"),
    ("breaks the harness", "MUST", "broker.no_such_method_of_the_fake = 1; raise SystemError('a defect')"),
    ("needs what is not declared", "MUST", "expect.that(True, 'all is well', id='all-is-well')"),
    ("is for consumers", "MUST", "expect.that(True, 'all is well', id='all-is-well')"),
    ("fails at first", "SHOULD", "expect.that(again('flaky'), 'all is well', 'not yet', id='all-is-well')"),
    ("waits long", "MAY", "Path('waiting').touch(); await asyncio.sleep(60)"),
    ("passes too", "MUST", "expect.that(True, 'all is well', id='all-is-well')"),
)
MORE = {6: ", ops=['pzq.monitor']", 7: ", roles=['consumer']"}
FAMILY = """
family = "TOY"
title = "Toys"
protocol = "pzq"
[basis]
T1 = "toys"
[[sections]]
id = "TOY-1"
title = "One"
"""
HEAD = """
import asyncio
from pathlib import Path
from conformance.suite import scenario

def again(name):
    path = Path(name)
    before = path.read_text() if path.exists() else ""
    path.write_text(before + "x")
    return bool(before)
"""

ALL = [f"TOY-1.{number:02}" for number in range(1, 11) if number != 9]
#: pass, non-strict, flaky and the last one; failed and inconclusive; the harness; the two that do not fit
OUTCOMES = {"passed": 4, "failed": 2, "errors": 1, "skipped": 2}

IN_PROCESS, CHILD = "Adapter", "'python adapter.py', protocol='pzq'"


def line(client: str = IN_PROCESS, *ids: str, more: str = "", name: str = "test_conformance") -> str:
    """The one line."""
    who, _, rest = client.partition(", ")
    words = [who, *map(repr, ids or ["TOY"]), "folders='toys'", *filter(None, [rest, more])]
    return f"{name} = scenarios({', '.join(words)})\n"


def write(project: Path, *lines: str) -> None:
    head = "from conformance.pytest import scenarios\nfrom adapter import Adapter\n\n"
    (project / "test_conformance.py").write_text(head + "\n".join(lines))


def furnish(place: Path) -> None:
    """Put the adapter and the scenarios there."""
    rows, scripts = [FAMILY], [HEAD]
    for number, (title, level, body) in enumerate(SCRIPTS, 1):
        name = f"TOY-1.{number:02}"
        rows.append(
            f'[[scenarios]]\nid = "{name}"\ntitle = "It {title}"\nlevel = "{level}"\nseverity = "low"\n'
            'basis = ["T1"]\nfault = "None"\npasses = "All is well"\n'
        )
        scripts.append(
            f"@scenario('{name}', unconnected='a toy'{MORE.get(number, '')})\n"
            f"async def script_{number}(broker, client, expect):\n    {body}\n"
        )
    folder = place / "toys" / "catalogue"
    folder.mkdir(parents=True)
    (folder / "toy.toml").write_text("\n".join(rows))
    (folder.parent / "scripts.py").write_text("\n".join(scripts))
    (place / "adapter.py").write_text(ADAPTER)


def apart(project: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own."""
    command = [sys.executable, "-m", "pytest", *QUICK[2:], *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=cwd or project, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def starts(project: Path) -> list[int]:
    """The processes of the client, in the order of their starts."""
    return [int(word) for word in (project / "started").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
