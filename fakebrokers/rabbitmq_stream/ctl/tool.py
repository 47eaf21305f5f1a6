"""The tool itself: its options, what its commands share, and how lists are printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from fakebrokers.control.listing import Listing

if TYPE_CHECKING:  # HTTP takes its time to load
    from fakebrokers.control.client import ControlClient

Command = Callable[..., Any]

VHOST = click.option("-p", "--vhost", "virtual_host", default="/", show_default=True, metavar="VHOST")


#: Options with a value, and what it is remembered as.
_VALUES = {
    "-n": "node",
    "--node": "node",
    "-t": "timeout",
    "--timeout": "timeout",
    "--formatter": "formatter",
}
_QUIET = ("-q", "--quiet")
_BARE = ("-s", "--silent", "--no-table-headers")


class _Tool(click.Group):
    """Options that the real tools take anywhere are taken anywhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        kept: list[str] = []
        rest = iter(args)
        for arg in rest:
            name, equals, value = arg.partition("=")
            if name in _VALUES and (equals or name == arg):
                ctx.meta[_VALUES[name]] = value if equals else next(rest, "")
            elif arg in _BARE:
                ctx.meta["headers"] = False
            elif arg == "--":
                kept += [arg, *rest]
            elif arg not in _QUIET:  # nothing but the answer is printed anyway
                kept.append(arg)
        return super().parse_args(ctx, kept)


@click.group(cls=_Tool)
@click.option(
    "--control",
    envvar="FAKEBROKERS_CONTROL",
    required=True,
    metavar="URL",
    help="What 'serve --control 0' prints as control=; or in the variable FAKEBROKERS_CONTROL.",
)
@click.option("--broker", default="", metavar="NAME", help="Which one, if the process has several.")
@click.pass_context
def rabbitmq(ctx: click.Context, control: str, broker: str) -> None:
    """Stand in for rabbitmqctl and rabbitmq-streams.

    Lists are tables with tabs, as those of the real tools; --formatter json and csv, -q, -s and -n NODE
    are understood anywhere.
    """
    from fakebrokers.control.client import ControlClient

    ctx.obj = ControlClient(control, broker)


def client() -> ControlClient:
    """The broker that commands talk to."""
    found: ControlClient = click.get_current_context().obj
    return found


def tell(operation: str, **arguments: Any) -> None:
    """Carry out an operation that returns nothing."""
    client().tell(operation, **arguments)


def show(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print these columns of the rows, in the form that was asked for."""
    meta = click.get_current_context().meta
    listing = Listing(meta.get("formatter", "table"), meta.get("headers", True))
    click.echo(listing.text(rows, columns), nl=False)


def command(act: Command) -> click.Command:
    """Make a function a command of the same name."""
    return rabbitmq.command(name=act.__name__)(act)


def split(columns: Sequence[str]) -> list[str]:
    """Names of columns, which may come one by one or with commas."""
    return [name for column in columns for name in column.split(",") if name]
