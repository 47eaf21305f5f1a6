"""The command ``fakebrokers``: ``serve``, ``ctl``, ``doctor``, and what others add (see `commands`)."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from fakebrokers.commands import Deferred, ExitCode, ExtraCommands, extra_commands, missing_package
from fakebrokers.control.ctl import ctl
from fakebrokers.description import descriptions, is_available, protocol_names
from fakebrokers.errors import FakeBrokerError, PlanError, UsageError, instead_of, shortage
from fakebrokers.output import inert_output, plain
from fakebrokers.proxying import proxy
from fakebrokers.serving import FLAGS, flags, options_of, tell_defect
from fakebrokers.serving import run as _run
from fakebrokers.version import __version__

if TYPE_CHECKING:  # loaded when a fake is served, so that --help is quick
    from fakebrokers.protocol import Protocol
    from fakebrokers.server import FakeServer

#: The options of all fakes, which a replay has too.
REPLAY_OPTIONS = ("host", "port", "faults", "seed", "journal_dir", "journal_frames")


class Commands(click.Group):
    """Own commands, and those of other packages, which are loaded only when one of them is asked for."""

    @cached_property
    def extra(self) -> ExtraCommands:
        return extra_commands()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *(name for name in self.extra.commands if name not in self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.commands.get(cmd_name) or self.extra.commands.get(cmd_name)
        return found.load() if isinstance(found, Deferred) else found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = {**self.extra.commands, **self.commands}
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, every[name].get_short_help_str(width)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.commands and name not in self.extra.commands:
            missing = f"there is no command {name!r}{instead_of(name, self.list_commands(ctx))}"
            if self.extra.problems:
                raise click.ClickException(f"{missing}. {' '.join(self.extra.problems)}")
            ctx.fail(missing)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        for problem in self.extra.problems:
            formatter.write_paragraph()
            formatter.write_text(problem)


class ServeCommand(click.Command):
    """``serve``: its help lists the protocols, which are loaded only for that."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text("Protocols:")
        with formatter.indentation():
            formatter.write_dl([(p.name, f"{p.about} (usual port {p.port})") for p in descriptions()])


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What the shell completes: a protocol, as far as this version has it."""
    return [name for name in protocol_names() if name.startswith(incomplete) and is_available(name)]


def _protocol(ctx: click.Context, param: click.Parameter, value: str) -> Protocol:
    """The protocol of that name."""
    from fakebrokers.protocol import find_protocol

    try:
        return find_protocol(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


def _port(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """A TCP port, 0 for any free one, or None where the protocol's usual one is asked for."""
    if value == "default":
        return None
    if not (value.isdecimal() and int(value) < 1 << 16):
        raise click.BadParameter(f"{value!r} is no port: 0 to 65535 (0 takes any free one) or 'default'")
    return int(value)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="fakebrokers %(version)s")
def cli() -> None:
    """Fake message brokers for tests, and a judge for the clients that talk to the real ones.

    Start a fake with 'fakebrokers serve PROTOCOL', or use the pytest fixture of the same name.
    'fakebrokers doctor' says what is installed and what is missing.
    """


@cli.command(cls=ServeCommand)
@click.argument("protocol", callback=_protocol, shell_complete=_names)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    callback=_port,
    default="0",
    metavar="N|0|default",
    help="0, unless given: any free port. 'default': the one that a real broker uses.",
)
@click.option(
    "--profile",
    default="real",
    show_default=True,
    metavar="real|seed|VERSION",
    help="Behave like the newest real server, the protocol's written document, or an older version.",
)
@click.option(
    "--transporter",
    metavar="NAME",
    help="What carries the packets, for a protocol that leaves the choice.",
)
@click.option(
    "--faults",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What to break, and when: a plan (TOML, JSON), or the replay file of a sweep or of chaos.",
)
@click.option(
    "--journal",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Record every frame in this folder.",
)
@click.option(
    "--journal-frames",
    is_flag=True,
    help="Record all fields of each frame, bodies too: 'journal export' turns them into bytes again.",
)
@flags()
@click.option(
    "--control",
    type=click.IntRange(0, 65535),
    metavar="PORT|0",
    help="Serve the control API on this port of the loopback interface (0: any free one).",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Repeat what a real server sent: a recording of 'proxy --record FILE'.",
)
def serve(
    protocol: Protocol,
    host: str,
    port: int | None,
    profile: str,
    transporter: str | None,
    faults: Path | None,
    journal: Path | None,
    journal_frames: bool,
    control: int | None,
    replay: Path | None,
    **given: Any,
) -> int:
    """Run a fake broker until Ctrl-C or SIGTERM.

    As soon as it accepts connections it prints one line: READY, the protocol, the url, and name=url for
    each further address.
    """
    from fakebrokers.control.describe import BrokerOptions

    wanted = options_of(protocol, given)
    kind = protocol.load()
    options: dict[str, Any] = {"host": host, "profile": profile, "faults": faults}
    options |= kind._options_from_environ(os.environ)
    options |= wanted.keywords()
    port_given = click.get_current_context().get_parameter_source("port") is not ParameterSource.DEFAULT
    if port_given or "port" not in options:
        options["port"] = protocol.port if port is None else port
    if transporter is not None:
        if transporter not in protocol.variants:
            there = ", ".join(protocol.variants) or "none"
            problem = f"{protocol.name} has no transporter {transporter!r}; it has: {there}"
            raise click.BadOptionUsage("--transporter", problem)
        options["transporter"] = transporter
        if port is None:
            options["port"] = protocol.wire(transporter).port
    if journal is not None:
        options["journal_dir"] = journal
        options["journal_frames"] = journal_frames
    elif journal_frames:
        raise click.BadOptionUsage("--journal-frames", "--journal-frames needs --journal DIR")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if replay is None:
            server = kind(**options)
        else:
            server, wanted = _replay(replay, protocol, options), BrokerOptions()
    for warning in caught:
        click.echo(f"warning: {warning.message}", err=True)
    return _run(protocol, server, wanted, control)


def _replay(recording: Path, protocol: Protocol, options: dict[str, Any]) -> FakeServer:
    """A fake that plays a recording; it takes no options of the protocol's own fake."""
    from fakebrokers.proxy.replay import Replay

    context = click.get_current_context()
    for flag in ("--profile", "--transporter", *FLAGS):
        name = flag.removeprefix("--").replace("-", "_")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadOptionUsage(flag, f"--replay does not go with {flag}: no broker of ours answers")
    wanted = {name: options[name] for name in REPLAY_OPTIONS if name in options}
    return Replay(recording, protocol=protocol.name, **wanted)


cli.add_command(proxy)
cli.add_command(ctl)
cli.add_command(
    Deferred(
        "simulate",
        "fakebrokers.simulation.search.command:simulate",
        "Find the fewest faults that break a system, on virtual time.",
    )
)
cli.add_command(
    Deferred(
        "journal",
        "fakebrokers.journal.cli:journal",
        "Read the journal of a fake, or export it for other programs.",
    )
)
cli.add_command(
    Deferred(
        "trace",
        "fakebrokers.viewer.cli:trace",
        "Make a page of a run: each frame, each call, each fault.",
    )
)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def doctor(as_json: bool) -> int:
    """Show what is installed, what is missing, and how to get it.

    The exit code is 0 when the fakes can run, whatever else is missing, and 3 when they cannot.
    """
    from fakebrokers.doctor import examine, print_json, print_tables

    findings = examine()
    (print_json if as_json else print_tables)(findings)
    return ExitCode.OK if findings.healthy else ExitCode.HARNESS


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with the exit codes of `ExitCode`."""
    with inert_output() as unwritten:
        code = _exit_code(args, unwritten)
        if problem := unwritten():
            click.echo(f"Error: {problem}", err=True)
            code = ExitCode.HARNESS
    sys.exit(code or 0)


def _exit_code(args: Sequence[str] | None, unwritten: Callable[[], str]) -> int | str | None:
    """Run the command line, and say what went wrong."""
    code: int | str | None
    try:
        code = cli.main(args, prog_name="fakebrokers", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        code = ExitCode.USAGE
    except click.ClickException as error:
        error.show()
        code = ExitCode.HARNESS
    except (PlanError, UsageError) as error:
        click.echo(f"Error: {plain(str(error), lines=True)}", err=True)
        code = ExitCode.USAGE
    except FakeBrokerError as error:
        click.echo(f"Error: {plain(str(error), lines=True)}", err=True)
        code = ExitCode.HARNESS
    except click.Abort:
        code = 128 + signal.SIGINT
    except SystemExit as ended:  # click ends so where the reader of its output has gone
        code = ended.code
    except Exception as error:
        code = ExitCode.HARNESS
        if unwritten():
            pass  # that is what it is about, and is told at the end
        elif short := shortage(error):
            click.echo(f"Error: {short}", err=True)
        elif missing := missing_package(error):
            click.echo(
                f"Error: {missing} is not installed; 'fakebrokers doctor' shows how to get it", err=True
            )
        else:
            tell_defect()
    return code
