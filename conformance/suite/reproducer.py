"""A failure as one file: a pytest test that needs nothing of the suite.

For a client in Python the file is complete: it holds the scenario's script, what this needs, and the calls of
the library. For others it holds the side of the broker: everything that was done to the fake, each step once
the frames have come that had come by then, beside a program that the reader writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from pprint import pformat
from typing import Any

import msgspec

from conformance.adapters.registry import bundled
from conformance.printing import plain
from conformance.results import reproducer_name
from conformance.suite.catalogue import fault_of
from conformance.suite.deeds import Deed, Source
from conformance.suite.judge import Judgement
from conformance.suite.one_file import OneFile
from conformance.suite.story import Asked, one_line, story, told
from fakebrokers.core.frames import Role
from fakebrokers.errors import UsageError
from fakebrokers.faults.plan import PLAN_VERSION
from fakebrokers.journal import Record, Tap
from fakebrokers.protocol import find_protocol

WIDTH = 100

_COMPLETE = """
import asyncio
import threading
import time

import pytest
from fakebrokers import {server}
from fakebrokers.errors import WaitTimeout
from conformance.suite.client import Client
from conformance.suite.direct import Direct
from conformance.suite.expect import Expect, Inconclusive, Violated
from {module} import {script}
{imports}


CRITERION = {criterion}


def test_{name}():
    ended, ticks = [], [time.monotonic()]
    thread = threading.Thread(target=on_a_loop, args=[ended, ticks], daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
        if time.monotonic() - ticks[-1] > 20:
            pytest.fail(f"{{CRITERION}}: the client lets nothing else run on its event loop", pytrace=False)
    if isinstance(ended[0], (Inconclusive, Violated)):
        pytest.fail(str(ended[0]), pytrace=False)
    if ended[0] is not None:
        raise ended[0]


def on_a_loop(ended, ticks):
    loop = asyncio.new_event_loop()

    def tick():
        ticks[:] = [time.monotonic()]
        loop.call_later(0.1, tick)

    tick()
    try:
        ended.append(loop.run_until_complete(run()))
    except BaseException as error:
        ended.append(error)
    finally:
        loop.close()


async def run():
    with {server}({settings}) as broker:
        try:
            await judged(broker)
        finally:
            print(broker.journal_excerpt(60))
            left = asyncio.all_tasks() - {{asyncio.current_task()}}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=2)


async def judged(broker):
    expect = Expect()
    client = Client(Direct({make}, {protocol!r}), broker.where, expect)
    try:
        async with asyncio.timeout({timeout_s}):
            await {script}({stage}, client, expect)
    except (TimeoutError, WaitTimeout) as error:
        raise Violated("the client does in time what the script waits for", str(error)) from None
    for result in client.results:
        if result.hang:
            raise Violated(f"{{result.op}} ends by its deadline", str(result))
"""

_BESIDE = '''
import os
import shlex
import subprocess
import time
from collections import Counter
from contextlib import suppress

from fakebrokers import {server}
from fakebrokers.journal import Tap
{imports}
CRITERION = {criterion}
{faults}

def test_{name}() -> None:
    with {server}({settings}) as broker:
{steps}
        ended(program)


def start(broker) -> subprocess.Popen:
    """Start the program; its environment says where the broker is."""
    command = shlex.split(os.environ.get("CLIENT", ""))
    assert command, "say with CLIENT='...' which program makes the calls that stand here as comments"
    environment = {{**os.environ, "HOST": broker.host, "PORT": str(broker.port)}}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True)


def go(program, times=1) -> None:
    """Let the program make its next call: it waits for a line on stdin before each."""
    with suppress(BrokenPipeError):
        program.stdin.write("\\n" * times)
        program.stdin.flush()


def came(broker, program, counts) -> None:
    """Wait until that many frames of each kind have come; of a batch each message counts."""
    deadline = time.monotonic() + 30
    while True:
        seen = Counter()
        for record in broker.journal.records():
            if record.tap & Tap.RECEIVED or record.kind == "accepted":
                seen[record.kind] += max(1, len(record.keys))
        if all(seen[kind] >= count for kind, count in counts.items()):
            return
        here = f"{{broker.journal_excerpt(30)}}\\nexpected {{counts}}, got {{dict(seen)}}"
        assert program.poll() is None, f"{{here}}; the program has ended"
        assert time.monotonic() < deadline, f"{{here}} in 30 s"
        time.sleep(0.01)


def ended(program) -> None:
    """The program says with its exit code 0 that it saw what is required."""
    try:
        assert program.wait(timeout={timeout_s}) == 0, CRITERION
    finally:
        program.kill()
'''


class PythonClient(msgspec.Struct, frozen=True):
    """A client whose calls can stand in the file.

    Attributes:
        imports: Statement that imports what `make` uses.
        make: Expression for its adapter.
        install: What to install for it.
        sources: Paths of the modules that are copied into the file, by name.
        kept: Packages of the suite that are the library itself (the reference clients).
    """

    imports: str
    make: str
    install: str = ""
    sources: dict[str, Path] = {}
    kept: frozenset[str] = frozenset()


def python_client(name: str) -> PythonClient | None:
    """The bundled client of that name, if it is written in Python and has its calls in its own folder."""
    for client in bundled():
        folder = Path(client.folder)
        if client.name == name and client.language == "python" and (folder / "adapter.py").is_file():
            adapter = f"{client.name.replace('-', '_')}_adapter"
            sources = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "adapter"}
            return PythonClient(
                imports=f"from {adapter} import Adapter",
                make="Adapter()",
                install=f"{client.library}=={client.version or client.tested}",
                sources={**sources, adapter: folder / "adapter.py"},
            )
    return None


def reproducer(judgement: Judgement, client: PythonClient | None = None) -> str:
    """The text of the file."""
    if client is not None and not judgement.scenario.process:
        try:
            code = _complete(judgement, client)
            how = f"pip install pytest fakebrokers {client.install}".strip()
            return "\n".join([*_head(judgement, how, "Everything stands in this file."), "", code])
        except (UsageError, TypeError):
            pass  # such as an adapter that needs more files
    how = "pip install pytest fakebrokers; CLIENT='your program' pytest {file}"
    what = (
        "The broker's side is complete. The client's calls stand as comments: write a program that makes "
        "them and reads a line from stdin before each. HOST and PORT say where the broker is. With exit "
        "code 0 it says that it saw what is required."
    )
    return "\n".join([*_head(judgement, how, what), _beside(judgement)])


def _head(judgement: Judgement, how: str, what: str) -> list[str]:
    """Comments for people; nothing in them can end a comment."""
    item = judgement.scenario
    how = how.format(file=reproducer_name(judgement.scenario))
    lines = [
        f"{item.id} {item.requirement.title} ({item.level})",
        "",
        f"Required: {item.requirement.passes}",
        f"Done:     {fault_of(item.requirement, item.protocol)}",
        f"Seen:     {judgement.reason}",
        "",
        what,
        f"Run it:   {how}" + ("" if "CLIENT" in how else f"; pytest {reproducer_name(judgement.scenario)}"),
        "",
        "What happened in the run that failed (seconds, who, what):",
        *told(story(judgement))[:60],
    ]
    return [f"# {_ascii(plain(line))}".rstrip() for line in lines]


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _settings(judgement: Judgement, source: Source, **more: Any) -> str:
    seed = judgement.plan.get("seed", 0)
    settings = {"seed": seed, "exact": True, **judgement.scenario.server, **more}  # as in the run
    return ", ".join(f"{key}={source.of(value)}" for key, value in settings.items())


def _complete(judgement: Judgement, client: PythonClient) -> str:
    item, source = judgement.scenario, Source()
    settings = _settings(judgement, source)
    stage, imports = "broker", [client.imports, *_imports(source.names)]
    if item.subject is not None:
        stage = f"{item.subject.__name__}(broker, client, expect)"
        imports.append(f"from {item.subject.__module__} import {item.subject.__name__}")
    root = _COMPLETE.format(
        server=find_protocol(item.protocol).server_name,
        module=item.script.__module__,
        script=item.script.__name__,
        stage=stage,
        imports="\n".join(imports),
        criterion=ascii(_ascii(plain(judgement.criterion or judgement.reason))),
        name=reproducer_name(item).removeprefix("test_").removesuffix(".py"),
        settings=settings,
        make=client.make,
        protocol=item.protocol,
        timeout_s=item.timeout_s,
    )
    return OneFile(
        {"conformance", "scenarios"},
        machinery=frozenset({"conformance"}),
        sources=client.sources,
        kept=client.kept,
        ops={step.text.partition(" ")[0] for step in story(judgement) if isinstance(step, Asked)},
    ).flatten(root)


def _beside(judgement: Judgement) -> str:
    item, source = judgement.scenario, Source()
    steps = story(judgement)
    plan, steps = _first_faults(steps, judgement.plan.get("seed", 0))
    names = {name for step in steps if isinstance(step, Deed) for name in step.names}
    settings = _settings(judgement, source)
    return _BESIDE.format(
        server=find_protocol(item.protocol).server_name,
        imports="".join(f"{line}\n" for line in _imports(names | source.names)),
        criterion=ascii(_ascii(plain(judgement.criterion or judgement.reason))),
        faults=f"FAULTS = {pformat(plan, width=WIDTH, sort_dicts=False)}\n" if plan else "",
        name=reproducer_name(item).removeprefix("test_").removesuffix(".py"),
        settings=f"{settings}, faults=FAULTS" if plan else settings,
        steps="\n".join(f"        {line}" for line in _broker_side(steps, judgement.records)),
        timeout_s=item.timeout_s,
    )


def _first_faults(steps: list[Deed | Asked], seed: int) -> tuple[dict[str, Any], list[Deed | Asked]]:
    """The faults that are there before the client is asked for anything, as one plan, and the other steps."""
    faults: list[Any] = []
    rest = list(steps)
    for step in steps:
        if isinstance(step, Asked) or step.text.startswith(("broker.faults.clear", "broker.faults.remove")):
            break
        if step.plan:
            faults += step.plan["faults"]
            rest.remove(step)
    return ({"version": PLAN_VERSION, "seed": seed, "faults": faults} if faults else {}), rest


def _broker_side(steps: Iterable[Deed | Asked], records: Iterable[Record]) -> Iterable[str]:
    """Statements for what was done to the fake, each once what had come by then has come again."""
    came = [r for r in records if r.kind == "accepted" or (r.tap & Tap.RECEIVED and r.role != Role.HEARTBEAT)]
    before: Counter[str] = Counter()
    is_started = False
    asked, times = "", 0
    for step in [*steps, None]:
        line = one_line(step) if isinstance(step, Asked) else ""
        if times and line != asked:
            yield "go(program" + (f", {times}" if times > 1 else "") + f")  {_comment(asked)}"
        times = times + 1 if line == asked else 1
        asked = line
        if line and not is_started:
            is_started = True
            yield "program = start(broker)"
        if not isinstance(step, Deed):
            times = times if line else 0
            continue
        times = 0
        counts: Counter[str] = Counter()
        for record in came:
            if record.seq <= step.mark:
                counts[record.kind] += max(1, len(record.keys))
        fresh = {kind: count for kind, count in counts.items() if count > before[kind]}
        if fresh and is_started:
            yield f"came(broker, program, {fresh})"
        before = counts
        yield step.text or _comment(f"something inside the fake, which {step.place} does")
    if not is_started:
        yield "program = start(broker)"


def _comment(text: str) -> str:
    return f"# {_ascii(plain(text))}"


def _imports(names: Iterable[tuple[str, str]]) -> list[str]:
    return [f"from {module} import {name}" for name, module in sorted(set(names), key=lambda n: (n[1], n[0]))]
