"""Signatures of commitments: keys as people have them, and what is no signature."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from harness.attest.choice import chosen
from harness.attest.signing import (
    PASSPHRASE,
    Signer,
    check_envelope,
    fingerprint,
    load_public_keys,
    load_signer,
)
from harness.attest.statement import statement
from harness.errors import BadInput
from trainer import contract

PAYLOAD = statement(
    what="selection", run="r", plan_hash="0" * 64, commit="a" * 40, files={"plan.json": "1" * 64}
)


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """key.pem and other.pem with .pub files, rsa.pem, protected.pem (passphrase 'open it')."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("key", "other"):
        openssl(folder, "genpkey", "-algorithm", "ed25519", "-out", f"{name}.pem")
        openssl(folder, "pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")
    openssl(folder, "genpkey", "-algorithm", "rsa", "-out", "rsa.pem")
    openssl(folder, "pkey", "-in", "key.pem", "-aes256", "-passout", "pass:open it",
            "-out", "protected.pem")  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def signer(keys: Path) -> Signer:
    return load_signer(keys / "key.pem")


def test_a_signature_holds_for_its_key_and_payload_only(keys: Path, signer: Signer) -> None:
    envelope = signer.sign(PAYLOAD)
    (key,), (other,) = (load_public_keys(keys / f"{name}.pub") for name in ("key", "other"))
    check_envelope(envelope, PAYLOAD, key, where="e")
    with pytest.raises(BadInput, match="no signature by the key"):
        check_envelope(envelope, PAYLOAD, other, where="e")
    with pytest.raises(BadInput, match="something else"):
        check_envelope(envelope, PAYLOAD + b" ", key, where="e")
    forged = json.loads(envelope)
    forged["payload"] = base64.b64encode(PAYLOAD + b" ").decode()
    with pytest.raises(BadInput, match="no signature by the key"):
        check_envelope(contract.canonical(forged), PAYLOAD + b" ", key, where="e")


def test_openssl_accepts_the_signature_over_the_specified_encoding(
    keys: Path, signer: Signer, tmp_path: Path
) -> None:
    """DSSE, protocol.md: 'DSSEv1' SP LEN(type) SP type SP LEN(body) SP body."""
    value = json.loads(signer.sign(PAYLOAD))
    kind = value["payloadType"]
    assert base64.b64decode(value["payload"]) == PAYLOAD
    assert value["signatures"][0]["keyid"] == signer.fingerprint
    (tmp_path / "sig").write_bytes(base64.b64decode(value["signatures"][0]["sig"]))
    (tmp_path / "data").write_bytes(f"DSSEv1 {len(kind)} {kind} {len(PAYLOAD)} ".encode() + PAYLOAD)
    openssl(tmp_path, "pkeyutl", "-verify", "-pubin", "-inkey", str(keys / "key.pub"), "-rawin",
            "-in", "data", "-sigfile", "sig")  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda e: e | {"payload": "*"}, "base64"),
        (lambda e: e | {"signatures": []}, "no signature"),
        (lambda e: e | {"payloadType": "text/plain"}, "something else"),
        (lambda e: e | {"more": 1}, "more"),
    ],
)
def test_an_envelope_that_is_none_is_one_sentence(
    keys: Path, signer: Signer, change: object, said: str
) -> None:
    assert callable(change)
    data = contract.canonical(change(json.loads(signer.sign(PAYLOAD))))
    (key,) = load_public_keys(keys / "key.pub")
    with pytest.raises(BadInput, match=said):
        check_envelope(data, PAYLOAD, key, where="e")


def test_keys_are_read_as_people_have_them(
    keys: Path, signer: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "me.keys"
    listed.write_bytes(b"ssh-rsa AAAA\n# a note\n" + signer.public_line)
    assert [fingerprint(key) for key in load_public_keys(listed)] == [signer.fingerprint]
    own = tmp_path / "id_ed25519"
    own.write_bytes(
        signer.private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    )
    assert load_signer(own).fingerprint == signer.fingerprint
    with pytest.raises(BadInput, match=PASSPHRASE):
        load_signer(keys / "protected.pem")
    monkeypatch.setenv(PASSPHRASE, "open it")
    assert load_signer(keys / "protected.pem").fingerprint == signer.fingerprint
    monkeypatch.setenv(PASSPHRASE, "close it")
    with pytest.raises(BadInput, match="passphrase is another"):
        load_signer(keys / "protected.pem")


def test_the_fingerprint_is_the_one_that_ssh_keygen_prints(signer: Signer, tmp_path: Path) -> None:
    """OpenSSH's words for RFC 8032's first test key, taken from `ssh-keygen -l`."""
    blob = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    line = b"\0\0\0\x0bssh-ed25519\0\0\0 " + blob
    path = tmp_path / "k.pub"
    path.write_bytes(b"ssh-ed25519 " + base64.b64encode(line) + b" x\n")
    (key,) = load_public_keys(path)
    assert fingerprint(key) == "SHA256:bbXpuKG6zhzdmnxq256TlqzFBzRl2f6OOg722cYNbU8"


@pytest.mark.parametrize("name", ["rsa.pem", "key.pub", "missing"])
def test_what_cannot_sign_is_said_with_how_to_make_a_key(keys: Path, name: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_signer(keys / name)
    assert "ssh-keygen" in caught.value.next_command


def test_certificates_without_an_authority_are_a_mistake(keys: Path) -> None:
    with pytest.raises(BadInput, match="--timestamp URL"):
        chosen(None, "", keys / "key.pub")
