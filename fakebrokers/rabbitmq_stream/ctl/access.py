"""Users, rights, virtual hosts and policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.ctl.tool import VHOST, client, command, show, tell

# users


@command
@click.argument("name")
@click.argument("password")
def add_user(name: str, password: str) -> None:
    """Add a user without any rights."""
    if any(row["name"] == name for row in client().tell("users")):
        raise UsageError(f"user {name!r} exists already")
    tell("add_user", name=name, password=password, permissions={}, tags=[])


@command
@click.argument("name")
def delete_user(name: str) -> None:
    """Delete a user; the connections that logged in as that user end."""
    tell("delete_user", name=name)


@command
@click.argument("name")
@click.argument("password")
def change_password(name: str, password: str) -> None:
    """Change a user's password."""
    tell("change_password", name=name, password=password)


@command
@click.argument("name")
@click.argument("tags", nargs=-1, metavar="[TAG]...")
def set_user_tags(name: str, tags: Sequence[str]) -> None:
    """What a user may do in the management API."""
    tell("set_user_tags", name=name, tags=tags)


@command
def list_users() -> None:
    """List the users with their tags."""
    rows = [{"user": row["name"], "tags": row["tags"]} for row in client().tell("users")]
    show(rows, ("user", "tags"))


# rights


@command
@VHOST
@click.argument("user")
@click.argument("configure")
@click.argument("write")
@click.argument("read")
def set_permissions(virtual_host: str, user: str, configure: str, write: str, read: str) -> None:
    """What a user may do in a virtual host: regular expressions."""
    tell("set_permissions", user=user, virtual_host=virtual_host, configure=configure, write=write, read=read)


@command
@VHOST
@click.argument("user")
def clear_permissions(virtual_host: str, user: str) -> None:
    """Take from a user all access to a virtual host."""
    tell("clear_permissions", user=user, virtual_host=virtual_host)


def _permissions() -> list[dict[str, Any]]:
    return [
        {"user": row["name"], "vhost": virtual_host, **rights}
        for row in client().tell("users")
        for virtual_host, rights in row["permissions"].items()
    ]


@command
@VHOST
def list_permissions(virtual_host: str) -> None:
    """List who may do what in a virtual host."""
    rows = [row for row in _permissions() if row["vhost"] == virtual_host]
    show(rows, ("user", "configure", "write", "read"))


@command
@click.argument("user")
def list_user_permissions(user: str) -> None:
    """List what a user may do where."""
    rows = [row for row in _permissions() if row["user"] == user]
    show(rows, ("vhost", "configure", "write", "read"))


# virtual hosts


@command
@click.argument("name")
def add_vhost(name: str) -> None:
    """Add a virtual host."""
    if name in client().tell("virtual_hosts"):
        raise UsageError(f"virtual host {name!r} exists already")
    tell("add_virtual_host", name=name)


@command
@click.argument("name")
def delete_vhost(name: str) -> None:
    """Delete a virtual host with all that is in it; its connections end."""
    tell("delete_virtual_host", name=name)


@command
def list_vhosts() -> None:
    """List the virtual hosts."""
    show([{"name": name} for name in client().tell("virtual_hosts")], ("name",))


# policies


@command
@VHOST
@click.option("--priority", type=int, default=0)
@click.option("--apply-to", default="all")
@click.argument("name")
@click.argument("pattern")
@click.argument("definition", metavar="JSON")
def set_policy(
    virtual_host: str, priority: int, apply_to: str, name: str, pattern: str, definition: str
) -> None:
    """Limit the streams whose names fit a pattern: max-age, max-length-bytes."""
    try:
        settings = msgspec.json.decode(definition, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"definition: expected a JSON object: {error}") from None
    tell(
        "set_policy",
        name=name,
        pattern=pattern,
        definition=settings,
        priority=priority,
        apply_to=apply_to,
        virtual_host=virtual_host,
    )


@command
@VHOST
@click.argument("name")
def clear_policy(virtual_host: str, name: str) -> None:
    """Delete a policy."""
    tell("clear_policy", name=name, virtual_host=virtual_host)


@command
@VHOST
def list_policies(virtual_host: str) -> None:
    """List the policies of a virtual host."""
    rows = [row for row in client().tell("policies") if row["virtual_host"] == virtual_host]
    named = [row | {"vhost": row["virtual_host"], "apply-to": row["apply_to"]} for row in rows]
    show(named, ("vhost", "name", "pattern", "apply-to", "definition", "priority"))
