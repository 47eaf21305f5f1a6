"""What an action gets, and the errors it can answer with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from conformance.clients.reference.moleculer.streams import Incoming

Json = dict[str, Any]


@dataclass
class Context:
    """One request to a served action.

    Attributes:
        deadline: When the caller gives up, monotonic seconds; None if it does not.
        stream: What is uploaded.
        call: Calls another action as part of this request.
    """

    id: str
    action: str
    service: str
    params: Any
    meta: Json
    sender: str
    level: int
    request_id: str
    deadline: float | None
    stream: Incoming | None
    call: Callable[[Context, str, Any], Awaitable[Any]] | None = None
    headers: Json = field(default_factory=dict)


class ActionError(Exception):
    """An error with the members that Moleculer's errors have."""

    def __init__(
        self,
        message: str,
        code: Any = 500,
        type: str | None = None,
        data: Any = None,
        *,
        name: str = "MoleculerError",
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.members: Json = {
            "name": name,
            "message": message,
            "code": code,
            "type": type,
            "retryable": retryable,
            "data": data,
        }


def error_object(error: Exception, node: str) -> Json:
    """The ``error`` of an answer."""
    if isinstance(error, ActionError):
        members = error.members
    else:
        members = {"name": type(error).__name__, "message": str(error) or type(error).__name__}
    return {**members, "nodeID": node}


def not_found(action: Any, node: str) -> ActionError:
    """Nobody has the action here."""
    return ActionError(
        f"Service '{action}' is not found on '{node}' node.",
        404,
        "SERVICE_NOT_FOUND",
        {"action": action, "nodeID": node},
        name="ServiceNotFoundError",
        retryable=True,
    )


def timed_out(action: str, node: str) -> ActionError:
    """It took longer than the caller waits."""
    return ActionError(
        f"Request is timed out when call '{action}' action on '{node}' node.",
        504,
        "REQUEST_TIMEOUT",
        {"action": action, "nodeID": node},
        name="RequestTimeoutError",
        retryable=True,
    )
