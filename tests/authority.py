"""A small RFC 3161 time-stamp authority on loopback: certificates of its own, `openssl ts`."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CONFIG = """
[tsa]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


@dataclass(frozen=True)
class Authority:
    """Where it listens, and its root certificate."""

    url: str
    root: Path


def _certificate(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey,
    *, root: bool,
) -> x509.Certificate:  # fmt: skip
    now = datetime.now(UTC)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=root, path_length=None), critical=True)
    )
    if not root:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(by, hashes.SHA256())


def make_files(folder: Path, name: str = "Test time stamps") -> Path:
    """Keys, certificates and configuration; returns the root certificate's file."""
    folder.mkdir(parents=True)
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    root = _certificate(f"{name} root", f"{name} root", root_key, root_key, root=True)
    leaf = _certificate(name, f"{name} root", key, root_key, root=False)
    (folder / "root.pem").write_bytes(root.public_bytes(pem))
    (folder / "tsa.pem").write_bytes(leaf.public_bytes(pem))
    (folder / "tsa.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "serial").write_text("01\n")
    (folder / "tsa.conf").write_text(CONFIG.format(folder=folder))
    return folder / "root.pem"


def answer(folder: Path, query: bytes) -> bytes:
    """`openssl ts -reply` to a request. Fails where openssl is missing."""
    asked = folder / "query.tsq"
    asked.write_bytes(query)
    return subprocess.run(
        ["openssl", "ts", "-reply", "-config", "tsa.conf", "-section", "tsa", "-queryfile",
         asked.name, "-signer", "tsa.pem", "-inkey", "tsa.key"],
        cwd=folder, capture_output=True, check=True,
    ).stdout  # fmt: skip


@contextmanager
def authority(folder: Path) -> Iterator[Authority]:
    """One that answers until the block ends. It answers one request at a time."""
    root, one = make_files(folder), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            with one:
                reply = answer(folder, query)
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Authority(f"http://127.0.0.1:{server.server_port}/tsa", root)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
