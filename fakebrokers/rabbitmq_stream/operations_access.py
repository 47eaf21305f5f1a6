"""What the control API can do to users, rights, virtual hosts and policies of a fake RabbitMQ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from fakebrokers.control.describe import Operation
from fakebrokers.core.patterns import problem_of
from fakebrokers.errors import UsageError
from fakebrokers.options import Count
from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.policies import Policy
from fakebrokers.rabbitmq_stream.server import RabbitMQStream


class PermissionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may do in a virtual host: regular expressions; the empty one allows nothing."""

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"


class UserRow(msgspec.Struct, frozen=True):
    """A user with rights by virtual host."""

    name: str
    permissions: dict[str, PermissionRow]
    loopback_only: bool
    max_connections: int | None
    tags: list[str]


def users(server: RabbitMQStream) -> list[UserRow]:
    """All users; without passwords."""
    return server.call(lambda: [_user_row(user) for user in server.broker.access.users.values()])


def _user_row(user: User) -> UserRow:
    rights = {host: PermissionRow(p.configure, p.write, p.read) for host, p in user.permissions.items()}
    return UserRow(user.name, rights, user.loopback_only, user.max_connections, list(user.tags))


def add_user(
    server: RabbitMQStream,
    name: str,
    password: str,
    permissions: dict[str, PermissionRow] | None = None,
    loopback_only: bool = False,
    max_connections: Count | None = None,
    tags: Sequence[str] = ("administrator",),
) -> None:
    """Add or replace a user, who may do everything in the virtual host "/" unless told otherwise."""
    rights = None
    if permissions is not None:
        rights = {host: _permission(row) for host, row in permissions.items()}
    user = User(
        name,
        password,
        permissions=rights,
        tags=tags,
        loopback_only=loopback_only,
        max_connections=max_connections,
    )
    server.call(lambda: server.broker.access.add_user(user))


def delete_user(server: RabbitMQStream, name: str) -> None:
    """Delete a user; the connections that logged in as that user end."""
    server.call(lambda: server.broker.delete_user(_user(server, name).name, server.engine.now))


def change_password(server: RabbitMQStream, name: str, password: str) -> None:
    """Change a user's password; connections go on."""
    server.call(lambda: setattr(_user(server, name), "password", password))


def set_user_tags(server: RabbitMQStream, name: str, tags: Sequence[str] = ()) -> None:
    """What a user may do in the management API: ``administrator``, ``monitoring`` ...; none: nothing."""
    server.call(lambda: setattr(_user(server, name), "tags", tuple(tags)))


def set_permissions(
    server: RabbitMQStream,
    user: str,
    virtual_host: str = "/",
    configure: str = ".*",
    write: str = ".*",
    read: str = ".*",
) -> None:
    """What a user may do in a virtual host: regular expressions; the empty one allows nothing."""
    permission = _permission(PermissionRow(configure, write, read))

    def act() -> None:
        _virtual_host(server, virtual_host)
        _user(server, user).permissions[virtual_host] = permission

    server.call(act)


def clear_permissions(server: RabbitMQStream, user: str, virtual_host: str = "/") -> None:
    """Take from a user all access to a virtual host."""
    server.call(lambda: _user(server, user).permissions.pop(virtual_host, None))


def virtual_hosts(server: RabbitMQStream) -> dict[str, int | None]:
    """The virtual hosts, each with the largest number of connections; None for any number."""
    return server.call(lambda: dict(server.broker.access.virtual_hosts))


def add_virtual_host(server: RabbitMQStream, name: str, max_connections: Count | None = None) -> None:
    """Add a virtual host, or change how many connections it takes; nobody has rights there yet."""
    server.call(lambda: server.broker.access.virtual_hosts.__setitem__(name, max_connections))


def delete_virtual_host(server: RabbitMQStream, name: str) -> None:
    """Delete a virtual host with all that is in it; its connections end."""

    def act() -> None:
        _virtual_host(server, name)
        server.broker.delete_virtual_host(name, server.engine.now)

    server.call(act)


def _permission(row: PermissionRow) -> Permission:
    for name in ("configure", "write", "read"):
        if wrong := problem_of(getattr(row, name)):
            raise UsageError(f"{name}: {wrong}")
    return Permission(row.configure, row.write, row.read)


def _user(server: RabbitMQStream, name: str) -> User:
    found = server.broker.access.users.get(name)
    if found is None:
        raise UsageError(f"no user {name!r}; there are: {', '.join(server.broker.access.users) or 'none'}")
    return found


def _virtual_host(server: RabbitMQStream, name: str) -> None:
    there = server.broker.access.virtual_hosts
    if name not in there:
        raise UsageError(f"no virtual host {name!r}; there are: {', '.join(there) or 'none'}")


# policies


def policies(server: RabbitMQStream) -> list[dict[str, Any]]:
    """The policies."""
    return server.call(lambda: [msgspec.structs.asdict(policy) for policy in server.broker.policies])


def set_policy(
    server: RabbitMQStream,
    name: str,
    pattern: str,
    definition: dict[str, Any],
    priority: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)] = 0,
    apply_to: str = "all",
    virtual_host: str = "/",
) -> None:
    """Add or replace a policy: ``max-age``, ``max-length-bytes`` of the streams whose names fit a pattern."""
    policy = Policy(virtual_host, name, pattern, definition, priority, apply_to)
    problem = policy.problem()
    if problem is not None:
        raise UsageError(": ".join(problem))

    def act() -> None:
        _virtual_host(server, virtual_host)
        server.broker.policies.put(policy)
        server.broker.apply_policies()

    server.call(act)


def clear_policy(server: RabbitMQStream, name: str, virtual_host: str = "/") -> None:
    """Delete a policy."""

    def act() -> None:
        if not server.broker.policies.remove(virtual_host, name):
            raise UsageError(f"no policy {name!r} in {virtual_host!r}")
        server.broker.apply_policies()

    server.call(act)


OPERATIONS = (
    Operation(users, reads=True),
    Operation(add_user),
    Operation(delete_user),
    Operation(change_password),
    Operation(set_user_tags),
    Operation(set_permissions),
    Operation(clear_permissions),
    Operation(virtual_hosts, reads=True),
    Operation(add_virtual_host),
    Operation(delete_virtual_host),
    Operation(policies, reads=True),
    Operation(set_policy),
    Operation(clear_policy),
)
