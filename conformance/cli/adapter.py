"""``fakebrokers adapter check CMD``, ``fakebrokers adapter new LANGUAGE`` and ``fakebrokers clients``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from conformance.clients.adapter.new import BUILDS, COMMANDS, LANGUAGES, new
from conformance.clients.adapter.profile import profiles
from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from conformance.clients.adapter.check import CheckReport

PROTOCOLS = click.Choice(list(profiles()))


@click.group("adapter")
def adapter() -> None:
    """Adapters let the suite drive a client library in any language."""


@adapter.command("check")
@click.argument("command")
@click.option("--protocol", type=PROTOCOLS, help="What to say hello with; by default whatever it takes.")
@click.option("--hello-timeout", type=float, help="Seconds from its start to its hello.  [default: 4.5]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
def check_command(command: str, protocol: str | None, hello_timeout: float | None, as_json: bool) -> None:
    """Try whether the adapter COMMAND speaks the protocol. Exit code 1 if it does not."""
    from conformance.clients.adapter.check import check
    from conformance.clients.adapter.hello import HELLO_S

    report = asyncio.run(check(command, protocol, hello_s=hello_timeout or HELLO_S))
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=2))
    else:
        _show(report)
    if not report.ok:
        raise SystemExit(ExitCode.FAILED)


def _show(report: CheckReport) -> None:
    console = SafeConsole(highlight=False, soft_wrap=True)
    for item in report.checks:
        mark = "[green]ok[/]       " if item.ok else "[red]failed[/]   "
        mark = "[yellow]not tried[/]" if item.not_tried else mark
        console.print(f"{mark} {item.name:<14} {item.asks}")
        if item.not_tried:
            console.print(_printable(f"          {item.not_tried}"), markup=False, style="yellow")
        if item.problem:
            for word, text in (("expected", item.expected), ("came", item.problem), ("fix", item.fix)):
                style = "red" if word == "came" else None
                console.print(f"       {word + ':':<9} {_printable(text)}", markup=False, style=style)
    if report.hello is not None:
        known = report.hello
        roles = ", ".join(known.roles) or "none yet"
        who = f"{known.library} {known.library_version} ({known.language}), roles: {roles}"
        console.print(_printable(who), markup=False)


def _printable(text: str) -> str:
    """What a terminal may be given: an adapter's text may hold anything, escape sequences among it."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in text
    )


@adapter.command("new")
@click.argument("language", type=click.Choice(LANGUAGES))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--protocol", type=PROTOCOLS, default="rabbitmq-stream", show_default=True)
def new_command(language: str, folder: Path, protocol: str) -> None:
    """Write a starting point for an adapter into FOLDER; it passes the check as it is."""
    try:
        written = new(language, folder, protocol)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    for path in written:
        click.echo(path)
    build = f"{BUILDS[language]} && " if language in BUILDS else ""
    click.echo(f'\nTry it:  cd {folder} && {build}fakebrokers adapter check "{COMMANDS[language]}"')


@click.command("clients")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def clients(as_json: bool) -> None:
    """List the bundled clients, and which of them can run here."""
    from conformance.clients.adapters.registry import bundled

    found = bundled()
    if as_json:
        click.echo(json.dumps([client.as_json() for client in found], indent=2))
        return
    table = Table("client", "version", "language", "protocols", "here", box=None, header_style="bold")
    for client in found:
        here = "[green]yes[/]" if client.runnable else "[yellow]" + "; ".join(client.missing) + "[/]"
        table.add_row(client.name, client.version or "-", client.language, ", ".join(client.protocols), here)
    SafeConsole(highlight=False).print(table)


commands: tuple[click.Command, ...] = (adapter, clients)
