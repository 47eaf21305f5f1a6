"""TLS for fakes: an authority and certificates made on the fly, deliberately bad ones too.

Needs the extra ``tls`` (trustme, cryptography).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from fakebrokers.core.clock import real_dates, wall
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.extras import needs

if TYPE_CHECKING:  # loaded for a fake with TLS, so that the command line is quick
    import trustme


class Certificate(StrEnum):
    """What the server shows."""

    GOOD = "good"
    EXPIRED = "expired"
    WRONG_HOST = "wrong-host"  #: for another host name
    UNKNOWN_AUTHORITY = "unknown-authority"  #: by an authority that is not in `Tls.ca_file`
    SELF_SIGNED = "self-signed"  #: by nobody but itself


def certificate_of(name: Certificate | str | bool) -> Certificate:
    """The certificate of that name; a bool is the good one.

    Raises:
        UsageError: There is none; with those there are.
    """
    if isinstance(name, bool):
        return Certificate.GOOD
    try:
        return Certificate(name)
    except ValueError:
        instead = instead_of(str(name), map(str, Certificate))
        raise UsageError(f"there is no certificate {name!r}{instead}") from None


class Tls:
    """The server's side of TLS.

    Args:
        hosts: Names or addresses that the good certificate is for; ``localhost`` is always in it too.
        ask_client: Ask clients for a certificate (SASL EXTERNAL); they may come without.
        show: What `show` does at once; True for the good one.

    Attributes:
        context: For the listener. `show` changes what later handshakes see.
        ca_file: PEM file with the authority that clients should trust; gone after `close`.
    """

    def __init__(self, *hosts: str, ask_client: bool = False, show: Certificate | str | bool = True) -> None:
        import ssl

        with needs("tls", "TLS"):
            import trustme
        self._hosts = (*hosts, "localhost")
        self._trustme = trustme
        with real_dates():
            self._authority = trustme.CA()
        self._folder = Path(tempfile.mkdtemp(prefix="fakebrokers-tls-"))
        self._remove = weakref.finalize(self, _remove_folder, self._folder, os.getpid())
        self.ca_file = self._folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if ask_client:
            self._authority.configure_trust(self.context)
            self.context.verify_mode = ssl.CERT_OPTIONAL
        self.show(show)

    def show(self, kind: Certificate | str | bool) -> None:
        """Change the certificate for all handshakes from now on; True for the good one."""
        wanted = certificate_of(kind)
        if wanted is Certificate.SELF_SIGNED:
            self._self_sign()
        else:
            self._issue(wanted).configure_cert(self.context)

    def _issue(self, kind: Certificate) -> trustme.LeafCert:
        if kind is Certificate.WRONG_HOST:
            return self._authority.issue_cert("elsewhere.example")
        if kind is Certificate.EXPIRED:
            yesterday = datetime.fromtimestamp(wall(), UTC) - timedelta(days=1)
            return self._authority.issue_cert(
                *self._hosts, not_before=yesterday - timedelta(days=30), not_after=yesterday
            )
        authority = self._trustme.CA() if kind is Certificate.UNKNOWN_AUTHORITY else self._authority
        return authority.issue_cert(*self._hosts)

    def _self_sign(self) -> None:
        """Show a certificate of the right host whose issuer is itself."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

        leaf = self._authority.issue_cert(*self._hosts)
        issued = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        builder = x509.CertificateBuilder(
            issuer_name=issued.subject,
            subject_name=issued.subject,
            public_key=issued.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=issued.not_valid_before_utc,
            not_valid_after=issued.not_valid_after_utc,
        ).add_extension(issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, False)
        own = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type] # trustme's keys can sign
        file = self._folder / "self-signed.pem"
        file.write_bytes(leaf.private_key_pem.bytes() + own.public_bytes(Encoding.PEM))
        self.context.load_cert_chain(file)

    def client_certificate(self, name: str) -> tuple[Path, Path]:
        """PEM files (certificate, key) of a client whose common name is `name`."""
        leaf = self._authority.issue_cert(common_name=name)
        certificate, key = (self._folder / f"{name}.{kind}.pem" for kind in ("cert", "key"))
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        return certificate, key

    def close(self) -> None:
        """Remove the files."""
        self._remove()


def _remove_folder(folder: Path, owner: int) -> None:
    """Remove it, unless this is a process that was forked from its owner."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
