"""A password in any text of the client is found, in the forms in which it may be shown; other words are
not.
"""

from __future__ import annotations

from base64 import b64encode

import pytest

from conformance.rules import judge
from conformance.run.case import Case
from conformance.run.inprocess import runner
from conformance.run.specs import Spec
from scenarios.rabbitmq_stream.sweep.logins import PASSWORD


@pytest.fixture
def case() -> Case:
    return runner("rabbitmq-stream")(Spec("rabbitmq-stream", "own-login"))


def names(case: Case) -> list[str]:
    return [finding.name for finding in judge(case)]


@pytest.mark.parametrize(
    "shown",
    [
        PASSWORD,
        PASSWORD.replace("/", "%2F"),
        PASSWORD.encode().hex(),
        b64encode(f"\0app\0{PASSWORD}".encode()).decode(),
        b64encode(f"app:{PASSWORD}".encode()).decode(),
    ],
    ids=["plain", "in a URL", "hex", "SASL", "Basic"],
)
def test_a_form_of_the_password_is_found_in_the_log(case: Case, shown: str) -> None:
    case.client_log = f"cannot log in with {shown}, giving up"
    assert names(case) == ["keeps-secrets"]


def test_it_is_found_in_an_event(case: Case) -> None:
    case.events[0].event.fields["text"] = f"connected as app:{PASSWORD}"
    assert names(case) == ["keeps-secrets"]


@pytest.mark.parametrize("login", ["app", "nobody", "guest", "password", "SaslAuthenticate", PASSWORD[:-1]])
def test_what_is_no_password_is_not(case: Case, login: str) -> None:
    case.client_log = f"cannot log in with {login}, giving up"
    assert names(case) == []


def test_a_password_that_is_a_name_too_is_not(case: Case) -> None:
    for done in case.done("connect"):
        done.args = {**done.args, "options": {**done.args["options"], "user": PASSWORD}}
    case.client_log = f"{PASSWORD} cannot log in"
    assert "keeps-secrets" not in names(case)


def test_a_password_in_an_address_is_one(case: Case) -> None:
    done = next(case.done("connect"))
    done.args = {**done.args, "endpoints": ["tcp://app:0ther%2Fpassword@127.0.0.1:1"]}
    case.client_log = "cannot connect to 127.0.0.1:1"
    assert names(case) == []
    case.client_log = "cannot log in at 127.0.0.1:1 with 0ther/password"
    assert names(case) == ["keeps-secrets"]
