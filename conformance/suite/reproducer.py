"""A failure as one file: a pytest test that fails as the run did.

For a bundled client in Python the file needs nothing of the suite: it holds the scenario's script, what this
needs, and the calls of the library. For others it runs the scenario with the adapter that was judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.clients.adapters.registry import bundled
from conformance.printing import plain
from conformance.results import reproducer_name
from conformance.suite import outside
from conformance.suite.catalogue import fault_of
from conformance.suite.deeds import SourceWriter
from conformance.suite.judge import Judgement
from conformance.suite.one_file import OneFile
from conformance.suite.story import Asked, reported, story
from conformance.suite.unnamed import expect_for
from fakebrokers.errors import UsageError
from fakebrokers.extras import installing
from fakebrokers.protocol import find_protocol

_COMPLETE = """
import asyncio
import threading
import time

import pytest
from fakebrokers import {server}
from fakebrokers.errors import WaitTimeout
from conformance.suite.client import Client
from conformance.suite.direct import Direct
from conformance.suite.expect import Inconclusive, Violated
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
    expect = {judge}()
    client = Client(Direct({make}, {protocol!r}), broker.where, expect)
    try:
        async with asyncio.timeout({timeout_s}):
            await {script}({stage}, client, expect)
    except (TimeoutError, WaitTimeout) as error:
        what = "the client does in time what the script waits for"
        raise Violated(what, str(error), id="in-time") from None
    for result in client.results:
        if result.hang and result not in expect.excused:
            raise Violated(f"{{result.op}} ends by its deadline", str(result), id="op-ends")
"""

_ADAPTER = """
from fakebrokers.suite import scenarios

test_{name} = scenarios(
    {client},
    {id!r},
{options}
)
"""


class PythonClient(msgspec.Struct, frozen=True):
    """A client whose calls can be written into the file.

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


def reproducer(
    judgement: Judgement,
    client: PythonClient | None = None,
    *,
    who: Sequence[str] = (),
    seed: int = 0,
    folder: Path | None = None,
) -> str:
    """The text of the file.

    Args:
        client: Whose calls can be written into the file; None: run it with its adapter.
        who: The option that names the client on the command line, and its value; none for an adapter class,
            of which there is no file.
        folder: Where the adapter's command is run; default: here.
    """
    if client is not None and not judgement.scenario.process:
        try:
            how = f"{installing()} pytest {client.install}".strip()
            what = "Everything is in this file."
            return "\n".join([*_head(judgement, how, what), "", _complete(judgement, client)])
        except (UsageError, TypeError):
            pass  # such as an adapter that needs more files
    if len(who) != 2:
        return ""
    what = "It runs the suite's scenario with the adapter that was judged."
    code = _with_adapter(judgement, who, seed, folder or Path.cwd())
    return "\n".join([*_head(judgement, f"{installing('suite')} pytest", what), code])


def _head(judgement: Judgement, how: str, what: str) -> list[str]:
    """Comments for people; nothing in them can end a comment.

    Args:
        how: What has to be installed, as a command.
    """
    item = judgement.scenario
    lines = [
        f"{item.id} {item.requirement.title} ({item.level})",
        "",
        f"Required: {item.requirement.passes}",
        f"Done:     {fault_of(item.requirement, item.protocol)}",
        f"Seen:     {judgement.reason}",
        "",
        what,
        f"Run it:   {how}; pytest {reproducer_name(judgement.scenario)}",
        "",
        "What happened in the run that failed (seconds, who, what):",
        *reported(story(judgement))[:60],
    ]
    return [f"# {_ascii(plain(line))}".rstrip() for line in lines]


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _settings(judgement: Judgement, source: SourceWriter, **more: Any) -> str:
    seed = judgement.plan.get("seed", 0)
    settings = {"seed": seed, "exact": True, **judgement.scenario.server, **more}  # as in the run
    return ", ".join(f"{key}={source.of(value)}" for key, value in settings.items())


def _complete(judgement: Judgement, client: PythonClient) -> str:
    item, source = judgement.scenario, SourceWriter()
    settings = _settings(judgement, source)
    judge = expect_for(item)
    names = {*source.names, (judge.__name__, judge.__module__)}
    stage, imports = "broker", [client.imports, *_imports(names)]
    if item.subject is not None:
        stage = f"{item.subject.__name__}(broker, client, expect)"
        imports.append(f"from {item.subject.__module__} import {item.subject.__name__}")
    root = _COMPLETE.format(
        server=find_protocol(item.protocol).server_name,
        judge=judge.__name__,
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


def _with_adapter(judgement: Judgement, who: Sequence[str], seed: int, folder: Path) -> str:
    """The scenario as the suite runs it, on the client as it was named on the command line."""
    item = judgement.scenario
    option, name = who
    own = outside.folder_of(item.script.__module__)
    options = {
        "protocol": item.protocol,
        "variant": item.variant or None,
        "seed": seed or None,
        "cwd": str(folder) if option == "--adapter" else None,
        "folders": str(own.path) if own else None,
    }
    return _ADAPTER.format(
        name=reproducer_name(item).removeprefix("test_").removesuffix(".py"),
        client=ascii(name),
        id=item.id,
        options="\n".join(f"    {key}={value!a}," for key, value in options.items() if value is not None),
    )


def _imports(names: Iterable[tuple[str, str]]) -> list[str]:
    return [f"from {module} import {name}" for name, module in sorted(set(names), key=lambda n: (n[1], n[0]))]
