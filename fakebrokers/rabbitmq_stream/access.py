"""Who may do what: users, permissions, virtual hosts and limits on connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fakebrokers.core.patterns import Pattern
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.refusals import Refused

Right = Literal["configure", "write", "read"]

#: Who has one of these may use the management API; only the first may change users, rights and virtual hosts.
MANAGEMENT_TAGS = ("administrator", "monitoring", "policymaker", "management")


class Permission:
    """What a user may do in a virtual host: a regular expression per right, searched in the name.

    The empty expression allows nothing.
    """

    def __init__(self, configure: str = ".*", write: str = ".*", read: str = ".*") -> None:
        self.configure = configure
        self.write = write
        self.read = read
        self._compiled: dict[Right, Pattern] = {}

    def allows(self, right: Right, resource: str) -> bool:
        """Whether the right covers a stream or super stream of that name."""
        text = getattr(self, right) or "^$"
        pattern = self._compiled.get(right)
        if pattern is None or pattern.text != text:
            pattern = self._compiled[right] = Pattern(text)
        return pattern.found_in(resource)


class User:
    """A user.

    Attributes:
        name: As in SASL.
        password: In clear; this is a test double. Empty: no login with a password.
        tags: What the management API lets the user do; see `MANAGEMENT_TAGS`.
        permissions: By virtual host; no entry: no access to it.
        loopback_only: May log in from the same machine only (code 11 otherwise).
        max_connections: None: any number.
    """

    def __init__(
        self,
        name: str,
        password: str,
        *,
        permissions: dict[str, Permission] | None = None,
        tags: Sequence[str] = ("administrator",),
        loopback_only: bool = False,
        max_connections: int | None = None,
    ) -> None:
        self.name = name
        self.password = password
        self.tags = tuple(tags)
        self.permissions = {"/": Permission()} if permissions is None else permissions
        self.loopback_only = loopback_only
        self.max_connections = max_connections

    def may(self, right: Right, virtual_host: str, resource: str) -> bool:
        """Whether the user has a right on a stream or super stream."""
        permission = self.permissions.get(virtual_host)
        return permission is not None and permission.allows(right, resource)


class Access:
    """All users and virtual hosts of a broker.

    Attributes:
        users: By name; ``guest`` with password ``guest`` to begin with.
        virtual_hosts: Largest number of connections by name; None: any number.
        max_connections: Of the node, over all virtual hosts; None: any number.
        anonymous: The user that ANONYMOUS logs in as.
    """

    def __init__(self) -> None:
        self.users = {"guest": User("guest", "guest", loopback_only=True)}
        self.virtual_hosts: dict[str, int | None] = {"/": None}
        self.max_connections: int | None = None
        self.anonymous = "guest"

    def add_user(self, user: User) -> User:
        """Add or replace a user."""
        self.users[user.name] = user
        return user

    def authenticate(self, name: str, password: str | None, *, loopback: bool) -> User:
        """The user of that name; a password of None is not checked (ANONYMOUS, EXTERNAL).

        Raises:
            Refused: No such user or wrong password: code 8. From another machine: code 11.
        """
        user = self.users.get(name)
        if user is None or password not in (None, user.password):
            raise Refused(Code.AUTHENTICATION_FAILURE)
        if user.loopback_only and not loopback:
            raise Refused(Code.SASL_AUTHENTICATION_FAILURE_LOOPBACK)
        return user

    def check_virtual_host(self, user: User, virtual_host: str, opened: list[tuple[str, str]]) -> None:
        """Check that a connection may open a virtual host.

        Args:
            user: Of the new connection.
            virtual_host: The one it asks for.
            opened: User name and virtual host of each connection that is open already.

        Raises:
            Refused: It does not exist, the user has no access, or a limit is reached: code 12.
        """
        here = sum(1 for _, other in opened if other == virtual_host)
        own = sum(1 for other, _ in opened if other == user.name)
        self.check_access(user, virtual_host)
        if (
            _reached(self.virtual_hosts[virtual_host], here)
            or _reached(user.max_connections, own)
            or _reached(self.max_connections, len(opened))
        ):
            raise Refused(Code.VIRTUAL_HOST_ACCESS_FAILURE)

    def check_access(self, user: User, virtual_host: str) -> None:
        """Check that a user has access to a virtual host, whatever the limits are.

        Raises:
            Refused: It does not exist, or the user has no access: code 12.
        """
        if virtual_host not in self.virtual_hosts or virtual_host not in user.permissions:
            raise Refused(Code.VIRTUAL_HOST_ACCESS_FAILURE)


def _reached(limit: int | None, number: int) -> bool:
    return limit is not None and number >= limit
