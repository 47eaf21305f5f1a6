"""Who may come in (docs/protocols/nats.md, 4 "Logging in")."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from fakebrokers.errors import UsageError
from fakebrokers.extras import needs

#: First byte of the public key of a user, which makes its text begin with U.
_USER = 20 << 3
_KEY_SIZE = 32


class Access:
    """What clients have to show; nothing if nothing is given here.

    Args:
        users: Passwords by name; "" is who gives only a password.
        token: What clients may show instead of a name.
        nkeys: Public keys of users, such as ``UDXU4RCS...``; they sign what the server asks them to.

    Raises:
        UsageError: One of them is no public key of a user, or what checks signatures is not installed.
    """

    def __init__(
        self, users: Mapping[str, str] | None = None, token: str = "", nkeys: Iterable[str] = ()
    ) -> None:
        self.users = dict(users or {})
        self.token = token
        self.nkeys = {key: _public_key(key) for key in nkeys}

    @property
    def is_needed(self) -> bool:
        """Whether a client has to say who it is."""
        return bool(self.users or self.token or self.nkeys)

    def admits(self, shown: Mapping[str, Any], nonce: str) -> bool:
        """Whether this client may come in; an nkey goes before a token, and a token before a name.

        Args:
            shown: The credentials in its CONNECT.
            nonce: What it was asked to sign.
        """
        if not self.is_needed:
            return True
        if self.nkeys and "nkey" in shown:
            return self._has_signed(shown, nonce)
        if self.token and "auth_token" in shown:
            return bool(shown["auth_token"] == self.token)
        name, password = shown.get("user", ""), shown.get("pass", "")
        return isinstance(name, str) and name in self.users and bool(password == self.users[name])

    def _has_signed(self, shown: Mapping[str, Any], nonce: str) -> bool:
        key, signature = shown["nkey"], shown.get("sig")
        if not isinstance(key, str) or key not in self.nkeys or not isinstance(signature, str):
            return False
        letters = b"-_" if set(signature) & {"-", "_"} else None
        try:
            signed = base64.b64decode(signature.rstrip("=") + "==", letters)
        except (binascii.Error, ValueError):
            return False
        return _fits(self.nkeys[key], signed, nonce.encode())


def _fits(key: Any, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _public_key(text: str) -> Any:
    """The key in its text: base32 of a prefix, the key, and a checksum.

    Raises:
        UsageError: There is none.
    """
    with needs("nats", "an nkey of NATS"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    body, checksum = raw[:-2], raw[-2:]
    whole = len(body) == 1 + _KEY_SIZE and body[0] == _USER
    if not whole or binascii.crc_hqx(body, 0).to_bytes(2, "little") != checksum:
        raise UsageError(
            f"expected the public nkey of a user, 56 letters of which the first is U; got {text!r}"
        )
    return Ed25519PublicKey.from_public_bytes(body[1:])
