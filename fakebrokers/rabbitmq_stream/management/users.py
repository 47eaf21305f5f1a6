"""Virtual hosts, users, their permissions, and limits on connections."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated

import msgspec

from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.management.asked import (
    CREATED,
    DONE,
    Answer,
    Asked,
    Route,
    bad,
    listing,
    not_found,
    regular_expression,
)
from fakebrokers.rabbitmq_stream.rows import Row

_LIMIT = "max-connections"


class NewUser(msgspec.Struct, frozen=True):
    """A user to be added or changed; without a password nobody logs in under that name."""

    tags: str | list[str]
    password: str = ""


class Rights(msgspec.Struct, frozen=True):
    """Regular expressions; the empty one allows nothing."""

    configure: str
    write: str
    read: str


class Described(msgspec.Struct, frozen=True):
    """What a virtual host is made with; the fake keeps nothing of it."""


class Limit(msgspec.Struct, frozen=True):
    """How many connections; a negative number: any."""

    value: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class Names(msgspec.Struct, frozen=True):
    """Users."""

    users: list[str]


# virtual hosts


def virtual_host_rows(asked: Asked) -> Iterable[Row]:
    """The virtual hosts."""
    state = {node.name: "running" if node.up else "stopped" for node in asked.broker.cluster.nodes}
    for name in asked.broker.access.virtual_hosts:
        yield {
            "name": name,
            "description": "",
            "tags": [],
            "metadata": {"description": "", "tags": []},
            "tracing": False,
            "cluster_state": state,
        }


def _virtual_host(asked: Asked) -> Answer:
    name = asked.virtual_host()
    return 200, next(row for row in virtual_host_rows(asked) if row["name"] == name)


def _add_virtual_host(asked: Asked) -> Answer:
    asked.read(Described)
    return add_virtual_host(asked, asked.at["vhost"])


def add_virtual_host(asked: Asked, name: str) -> Answer:
    """Add a virtual host; whoever makes it may do everything there, as with a real server."""
    there = asked.broker.access.virtual_hosts
    if name in there:
        return DONE
    there[name] = None
    asked.user.permissions[name] = Permission()
    return CREATED


def _delete_virtual_host(asked: Asked) -> Answer:
    asked.broker.delete_virtual_host(asked.virtual_host(), asked.now)
    return DONE


# users


def user_rows(asked: Asked) -> Iterable[Row]:
    """The users; passwords as the hash that a server keeps."""
    for user in asked.broker.access.users.values():
        limits = {} if user.max_connections is None else {_LIMIT: user.max_connections}
        yield {
            "name": user.name,
            "password_hash": _hash(user),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": user.tags,
            "limits": limits,
        }


def _hash(user: User) -> str:
    """Four bytes of salt, then SHA-256 of salt and password; the salt is from the name, to be repeatable."""
    if not user.password:
        return ""
    salt = sha256(user.name.encode()).digest()[:4]
    return b64encode(salt + sha256(salt + user.password.encode()).digest()).decode()


def user_in(asked: Asked) -> User:
    """The user in the path."""
    found = asked.broker.access.users.get(asked.at["user"])
    if found is None:
        raise not_found()
    return found


def _user(asked: Asked) -> Answer:
    name = user_in(asked).name
    return 200, next(row for row in user_rows(asked) if row["name"] == name)


def _put_user(asked: Asked) -> Answer:
    if isinstance(asked.body, dict) and asked.body.get("password_hash"):
        problem = "expected none: the fake keeps passwords in clear, so give it the password"
        raise bad("body.password_hash", problem)
    return put_user(asked, asked.at["user"], asked.read(NewUser))


def put_user(asked: Asked, name: str, new: NewUser) -> Answer:
    """Add or change a user; a new one has no rights."""
    given = new.tags.split(",") if isinstance(new.tags, str) else new.tags
    tags = [tag.strip() for tag in given if tag.strip()]
    users = asked.broker.access.users
    known = users.get(name)
    if known is None:
        users[name] = User(name, new.password, permissions={}, tags=tags)
        return CREATED
    known.password, known.tags = new.password, tuple(tags)
    return DONE


def _delete_user(asked: Asked) -> Answer:
    asked.broker.delete_user(user_in(asked).name, asked.now)
    return DONE


def _delete_users(asked: Asked) -> Answer:
    names = asked.read(Names).users
    for number, name in enumerate(names):
        if name not in asked.broker.access.users:
            raise bad(f"body.users[{number}]", f"expected a user that exists, got {name[:100]!r}")
    for name in names:
        asked.broker.delete_user(name, asked.now)
    return DONE


def _whoami(asked: Asked) -> Answer:
    return 200, {"name": asked.user.name, "tags": asked.user.tags}


# permissions


def permission_rows(asked: Asked) -> Iterable[Row]:
    """Who may do what, by user and virtual host."""
    for user in asked.broker.access.users.values():
        for virtual_host, given in user.permissions.items():
            rights = {"configure": given.configure, "write": given.write, "read": given.read}
            yield {"user": user.name, "vhost": virtual_host, **rights}


def _permissions_of_user(asked: Asked) -> Answer:
    name = user_in(asked).name
    return 200, [row for row in permission_rows(asked) if row["user"] == name]


def _permission(asked: Asked) -> Answer:
    here = asked.virtual_host(), user_in(asked).name
    for row in permission_rows(asked):
        if (row["vhost"], row["user"]) == here:
            return 200, row
    raise not_found()


def _put_permission(asked: Asked) -> Answer:
    given = asked.read(Rights)
    return put_permission(asked, asked.at["vhost"], asked.at["user"], given, "body")


def put_permission(asked: Asked, virtual_host: str, user: str, given: Rights, where: str) -> Answer:
    """Give a user rights in a virtual host."""
    known = asked.broker.access.users.get(user)
    if known is None or virtual_host not in asked.broker.access.virtual_hosts:
        raise bad("path", f"vhost_or_user_not_found: expected both to exist, got {virtual_host!r}, {user!r}")
    for name in ("configure", "write", "read"):
        regular_expression(getattr(given, name), f"{where}.{name}")
    new = virtual_host not in known.permissions
    known.permissions[virtual_host] = Permission(given.configure, given.write, given.read)
    return CREATED if new else DONE


def _delete_permission(asked: Asked) -> Answer:
    if user_in(asked).permissions.pop(asked.virtual_host(), None) is None:
        raise not_found()
    return DONE


# limits


def _virtual_host_limits(asked: Asked) -> Answer:
    there = asked.broker.access.virtual_hosts
    names = [asked.virtual_host()] if "vhost" in asked.at else list(there)
    return 200, [{"vhost": name, "value": {_LIMIT: there[name]}} for name in names if there[name] is not None]


def _user_limits(asked: Asked) -> Answer:
    users = [user_in(asked)] if "user" in asked.at else list(asked.broker.access.users.values())
    limited = [user for user in users if user.max_connections is not None]
    return 200, [{"user": user.name, "value": {_LIMIT: user.max_connections}} for user in limited]


def _limit_virtual_host(asked: Asked) -> Answer:
    _check_limit(asked)
    asked.broker.access.virtual_hosts[asked.virtual_host()] = _limit(asked)
    return DONE


def _unlimit_virtual_host(asked: Asked) -> Answer:
    _check_limit(asked)
    asked.broker.access.virtual_hosts[asked.virtual_host()] = None
    return DONE


def _limit_user(asked: Asked) -> Answer:
    _check_limit(asked)
    user_in(asked).max_connections = _limit(asked)
    return DONE


def _unlimit_user(asked: Asked) -> Answer:
    _check_limit(asked)
    user_in(asked).max_connections = None
    return DONE


def _check_limit(asked: Asked) -> None:
    name = asked.at["limit"]
    if name != _LIMIT:
        raise bad("path", f"expected {_LIMIT}, as this fake has no other limit, got {name[:100]!r}")


def _limit(asked: Asked) -> int | None:
    value = asked.read(Limit).value
    return None if value < 0 else value


ROUTES = (
    Route("GET", "/whoami", _whoami),
    Route("GET", "/vhosts", lambda asked: listing(asked, virtual_host_rows(asked))),
    Route("GET", "/vhosts/{vhost}", _virtual_host),
    Route("PUT", "/vhosts/{vhost}", _add_virtual_host, administrator=True),
    Route("DELETE", "/vhosts/{vhost}", _delete_virtual_host, administrator=True),
    Route("GET", "/vhosts/{vhost}/permissions", lambda asked: listing(asked, permission_rows(asked)), True),
    Route("GET", "/users", lambda asked: listing(asked, user_rows(asked)), administrator=True),
    Route("POST", "/users/bulk-delete", _delete_users, administrator=True),
    Route("GET", "/users/{user}", _user, administrator=True),
    Route("PUT", "/users/{user}", _put_user, administrator=True),
    Route("DELETE", "/users/{user}", _delete_user, administrator=True),
    Route("GET", "/users/{user}/permissions", _permissions_of_user, administrator=True),
    Route("GET", "/permissions", lambda asked: listing(asked, permission_rows(asked)), administrator=True),
    Route("GET", "/permissions/{vhost}/{user}", _permission, administrator=True),
    Route("PUT", "/permissions/{vhost}/{user}", _put_permission, administrator=True),
    Route("DELETE", "/permissions/{vhost}/{user}", _delete_permission, administrator=True),
    Route("GET", "/topic-permissions", lambda asked: (200, []), administrator=True),
    Route("GET", "/vhost-limits", _virtual_host_limits),
    Route("GET", "/vhost-limits/{vhost}", _virtual_host_limits),
    Route("PUT", "/vhost-limits/{vhost}/{limit}", _limit_virtual_host, administrator=True),
    Route("DELETE", "/vhost-limits/{vhost}/{limit}", _unlimit_virtual_host, administrator=True),
    Route("GET", "/user-limits", _user_limits),
    Route("GET", "/user-limits/{user}", _user_limits),
    Route("PUT", "/user-limits/{user}/{limit}", _limit_user, administrator=True),
    Route("DELETE", "/user-limits/{user}/{limit}", _unlimit_user, administrator=True),
)
