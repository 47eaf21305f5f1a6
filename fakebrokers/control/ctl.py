"""``fakebrokers ctl``: the control API on the command line.

fakebrokers ctl URL                                     the brokers behind it
fakebrokers ctl URL create_stream name=orders           an operation; its arguments by name
fakebrokers ctl rabbitmq add_user bob secret            in the words of rabbitmqctl
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

import click
import msgspec

from fakebrokers.errors import instead_of

#: The tools of real brokers that this one stands in for: the click commands, by name.
_TOOLS = {"rabbitmq": "fakebrokers.rabbitmq_stream.ctl:rabbitmq"}
#: What a broker has besides operations.
_LISTS = ("connections", "faults")


class Ctl(click.Group):
    """Its commands are URLs, and the names of tools that it stands in for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_TOOLS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _TOOLS:
            tool: click.Command = resolve_name(_TOOLS[cmd_name])
            return tool
        if cmd_name.startswith("http://"):
            ctx.obj = cmd_name
            return operate
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            if re.fullmatch(r"(https://)?[^/]*:\d+/?", word):
                meant = shlex.join([f"http://{word.removeprefix('https://')}", *args[1:]])
                ctx.fail(f"{word!r} is no URL of a control API; did you mean 'fakebrokers ctl {meant}'?")
            ctx.fail(
                "expected the URL of a control API, such as http://127.0.0.1:9090, which 'fakebrokers serve "
                f"PROTOCOL --control 0' prints, or the name of a tool, got {word!r}{instead_of(word, _TOOLS)}"
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Ctl, subcommand_metavar="URL|rabbitmq COMMAND [ARGS]...")
def ctl() -> None:
    """Control a running fake over its control API.

    URL is what 'serve --control 0' prints as control=. COMMAND is an operation of the broker ('ctl URL' lists
    them), 'connections' or 'faults'; arguments are NAME=VALUE, where VALUE is JSON or else text.
    """


@click.command(name="URL")
@click.argument("command", required=False)
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--broker", default="", metavar="NAME", help="Which one, if the process has several.")
@click.pass_obj
def operate(url: str, command: str | None, arguments: Sequence[str], broker: str) -> None:
    """Carry out an operation and print what it returns, as JSON."""
    from fakebrokers.control.client import ControlClient  # HTTP takes its time to load

    client = ControlClient(url, broker)
    given = dict(_argument(each) for each in arguments)
    if command is None:
        answer = client.request("GET", "/brokers")
    elif command in _LISTS and not given:
        answer = client.get(command)
    else:
        answer = client.tell(command, **given)
    if answer is not None:
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
