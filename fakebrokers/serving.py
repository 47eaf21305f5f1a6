"""``fakebrokers serve``: its flags as options of a fake, and the fake from its first to its last moment."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from socket import gaierror
from threading import Event, Thread
from traceback import format_exc
from typing import TYPE_CHECKING, Any

import click

from fakebrokers.commands import ExitCode
from fakebrokers.core.tls import Certificate
from fakebrokers.errors import JournalError, ResourceError, shortage
from fakebrokers.version import __version__

if TYPE_CHECKING:  # loaded when a fake is served, so that --help is quick
    from fakebrokers.control.brokers import Brokers
    from fakebrokers.control.describe import BrokerOptions
    from fakebrokers.protocol import Protocol
    from fakebrokers.server import FakeServer

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: Seconds that the fakes have to answer in once the process is told to end.
STUCK_S = 5.0

#: The flags that only some protocols have: name of the option that each sets, and what it is for.
FLAGS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "--tls": ("tls", {"is_flag": True, "help": "Listen for TLS too."}),
    "--certificate": (
        "tls",
        {
            "type": click.Choice([str(each) for each in Certificate]),
            "help": "The certificate to show there; turns --tls on.",
        },
    ),
    "--nodes": ("nodes", {"type": int, "metavar": "N", "help": "Brokers of the cluster, or fake nodes."}),
    "--user": (
        "users",
        {
            "multiple": True,
            "metavar": "NAME:PASSWORD",
            "help": "Who may log in; can be given more than once.",
        },
    ),
    "--management": (
        "management",
        {
            "type": click.IntRange(0, 65535),
            "metavar": "PORT|0",
            "help": "Serve the real server's HTTP API too.",
        },
    ),
    "--advertise": (
        "advertised_host",
        {"metavar": "HOST", "help": "Host that the fake gives to clients as its own."},
    ),
    "--real-delays": (
        "real_delays",
        {"is_flag": True, "help": "Be as slow as a real server where it is on purpose (failed logins)."},
    ),
    "--domains": (
        "domains",
        {
            "type": click.Path(exists=True, dir_okay=False),
            "metavar": "domains.toml",
            "help": "The domains and how they deliver.",
        },
    ),
    "--serializer": ("serializer", {"metavar": "NAME", "help": "How the fake nodes write packets."}),
    "--namespace": ("namespace", {"metavar": "NAME", "help": "Of the fake nodes."}),
}


def flags() -> Decorator:
    """Adds all of `FLAGS` to a command, and what all protocols have."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for flag, (_, attributes) in reversed(list(FLAGS.items())):
            command = click.option(flag, **attributes)(command)
        return click.option(
            "--seed",
            type=int,
            metavar="N",
            help="Seed of the faults' random decisions; goes before that of the plan.",
        )(command)

    return decorate


def options_of(protocol: Protocol, given: Mapping[str, Any]) -> BrokerOptions:
    """The options of a fake for the flags that were given.

    Args:
        given: As click names them: ``real_delays`` for ``--real-delays``; None, False and () are not given.

    Raises:
        click.BadOptionUsage: The protocol has no such option, or not with this value.
    """
    from fakebrokers.control.problems import Refusal
    from fakebrokers.control.values import read

    kind = protocol.load_control().options
    known = kind.__struct_fields__
    fields: dict[str, Any] = {}
    for flag, (name, _) in FLAGS.items():
        value = given.get(flag.removeprefix("--").replace("-", "_"))
        if value is None or value is False or value == ():
            continue
        if name not in known:
            there = ", ".join(each for each, (option, _) in FLAGS.items() if option in known)
            hint = f"it has: {there}" if there else "it has no options of its own"
            raise click.BadOptionUsage(flag, f"{protocol.name} has no option {flag}; {hint}")
        fields[name] = True if (name, value) == ("management", 0) else value
    if given.get("seed") is not None:
        fields["seed"] = given["seed"]
    try:
        return read(fields, kind, "options")
    except Refusal as refusal:
        name = refusal.answer.path.split(".")[1].partition("[")[0]
        flag = next((flag for flag, (option, _) in FLAGS.items() if option == name), f"--{name}")
        raise click.BadOptionUsage(flag, f"{flag}: {refusal.answer.problem}") from None


def run(protocol: Protocol, server: FakeServer, options: BrokerOptions, control: int | None = None) -> int:
    """Start the server, say so, and stop it when the process is told to end; the exit code.

    Args:
        control: Port of the control API, 0 for any free one; None: there is none.
    """
    from fakebrokers.control.brokers import Brokers

    asked_to_end = told_to_end()
    try:
        server.start()
    except OSError as error:
        raise click.ClickException(_cannot_listen(error, _taken(error, options))) from None
    brokers = Brokers(getattr(server, "host", "127.0.0.1"))
    with ExitStack() as stack:
        stack.callback(brokers.close)
        brokers.adopt(protocol.name, server)
        options.prepare(server)
        extra = [f"{name}={url}" for name, url in server.urls.items()]
        if getattr(server, "tls", None) is not None:
            extra.append(f"ca={server.tls.ca_file.as_uri()}")  # type: ignore[union-attr]
        if control is not None:
            extra.append(f"control={controlled(brokers, control, stack)}")
        click.echo(" ".join(["READY", protocol.name, server.url, *extra]))
        code = wait(asked_to_end, brokers)
    return code if _sound(brokers) else ExitCode.HARNESS


def _taken(error: OSError, options: BrokerOptions) -> str:
    """The flag whose port an error is about."""
    management = getattr(options, "management", False)
    asked_for = not isinstance(management, bool) and str(management) in str(error)
    return "--management" if asked_for else "--port"


def _cannot_listen(error: OSError, flag: str) -> str:
    """Why the fake does not listen, and what helps where that is known."""
    told = f"cannot listen: {shortage(error) or error}"
    if error.errno == errno.EADDRINUSE:
        told += f". {flag} 0 takes any free port"
    elif error.errno == errno.EADDRNOTAVAIL or isinstance(error, gaierror):
        told += ". --host has to be an address of this machine"
    return told


def told_to_end() -> Event:
    """Set once somebody tells the process to end, or its terminal has gone; `nohup` keeps it from that."""
    asked_to_end = Event()

    def end(*_: object) -> None:
        if not asked_to_end.is_set():
            Thread(target=_end_if_stuck, name="fakebrokers-end", daemon=True).start()
        asked_to_end.set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # SIGHUP is none on Windows
        if number is not None and (name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN):
            signal.signal(number, end)
    return asked_to_end


def _end_if_stuck() -> None:
    """End the process at once if the fakes' thread does not answer, so that they cannot be stopped."""
    from fakebrokers.core.loop import loop_thread

    answers = Event()
    loop_thread().post(answers.set)
    if not answers.wait(STUCK_S):
        text = f"Error: the fakes have not answered for {STUCK_S:g} s, so this ends without stopping them\n"
        os.write(2, text.encode())
        os._exit(ExitCode.HARNESS)


def wait(asked_to_end: Event, brokers: Brokers) -> int:
    """Wait for that, and tell meanwhile what goes wrong inside the brokers; the exit code."""
    code = ExitCode.OK
    while not asked_to_end.wait(0.5):  # the time limit lets Ctrl-C through on Windows
        if not _sound(brokers):
            code = ExitCode.HARNESS
    return code if _sound(brokers) else ExitCode.HARNESS


def controlled(brokers: Brokers, port: int, stack: ExitStack) -> str:
    """Serve the control API until the stack unwinds; its URL."""
    from fakebrokers.control.api import ControlApi  # aiohttp takes its time to load

    try:
        return stack.enter_context(ControlApi(brokers, port=port)).url
    except OSError as error:
        raise click.ClickException(_cannot_listen(error, "--control")) from None


def _sound(brokers: Brokers) -> bool:
    """Whether nothing went wrong inside the fakes since the last look; tells what did."""
    try:
        brokers.check()
    except Exception as error:
        expected = [each for each in _single(error) if isinstance(each, JournalError | ResourceError)]
        for each in expected:
            click.echo(f"Error: {each}", err=True)
        if len(expected) < len(_single(error)):
            tell_defect()
        return False
    return True


def _single(error: BaseException) -> list[BaseException]:
    """The errors in a group, or the one that is none."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [single for each in error.exceptions for single in _single(each)]


def tell_defect() -> None:
    """For an exception that nobody foresaw."""
    click.echo(f"a defect of fakebrokers {__version__}, please report it:\n{format_exc()}", err=True)
