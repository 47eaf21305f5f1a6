"""TLS for fakes: an authority and certificates made on the fly, deliberately bad ones too.

Needs the extra ``tls`` (trustme, cryptography).
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import trustme


class Certificate(StrEnum):
    """What the server shows."""

    GOOD = "good"
    EXPIRED = "expired"
    WRONG_HOST = "wrong-host"  #: for another host name
    UNKNOWN_AUTHORITY = "unknown-authority"  #: by an authority that is not in `Tls.ca_file`


class Tls:
    """The server's side of TLS.

    Args:
        host: Name or address that the good certificate is for; ``localhost`` is always in it too.
        ask_client: Ask clients for a certificate (SASL EXTERNAL); they may come without.

    Attributes:
        context: For the listener. `show` changes what later handshakes see.
        ca_file: PEM file with the authority that clients should trust; gone after `close`.
    """

    def __init__(self, host: str, *, ask_client: bool = False) -> None:
        try:
            import trustme
        except ModuleNotFoundError:
            raise UsageError("TLS needs certificates: pip install 'fakebrokers[tls]'") from None
        self._host = host
        self._trustme = trustme
        self._authority = trustme.CA()
        self._folder = tempfile.TemporaryDirectory(prefix="fakebrokers-tls-")
        self.ca_file = Path(self._folder.name) / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if ask_client:
            self._authority.configure_trust(self.context)
            self.context.verify_mode = ssl.CERT_OPTIONAL
        self.show(Certificate.GOOD)

    def show(self, kind: Certificate | str) -> None:
        """Change the certificate for all handshakes from now on."""
        self._issue(Certificate(kind)).configure_cert(self.context)

    def _issue(self, kind: Certificate) -> trustme.LeafCert:
        if kind is Certificate.WRONG_HOST:
            return self._authority.issue_cert("elsewhere.example")
        if kind is Certificate.EXPIRED:
            yesterday = datetime.now(UTC) - timedelta(days=1)
            return self._authority.issue_cert(
                self._host, "localhost", not_before=yesterday - timedelta(days=30), not_after=yesterday
            )
        authority = self._trustme.CA() if kind is Certificate.UNKNOWN_AUTHORITY else self._authority
        return authority.issue_cert(self._host, "localhost")

    def client_certificate(self, name: str) -> tuple[Path, Path]:
        """PEM files (certificate, key) of a client whose common name is `name`."""
        leaf = self._authority.issue_cert(common_name=name)
        certificate, key = (Path(self._folder.name) / f"{name}.{kind}.pem" for kind in ("cert", "key"))
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        return certificate, key

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()
