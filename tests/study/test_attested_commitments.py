"""A study whose commitments are signed and time-stamped, and what `verify` says of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.attest.choice import chosen
from harness.attest.signing import load_public_keys
from harness.clock import Clock
from harness.display.progress import make_progress
from harness.errors import BadInput
from harness.fleet.choice import LOCAL
from harness.plan import load_plan
from harness.run import begin_plan
from harness.seal.extract import extract
from harness.verify import Trust, verify
from tests import authority as tsa
from tests.study.conftest import Desk, MakeDesk, make_desk_in
from tests.study.test_verify_evidence import forge
from trainer import contract


@dataclass(frozen=True)
class Attested:
    """Evidence of a signed and stamped study, its members, the key and the authority."""

    desk: Desk
    kept: Path
    members: Path
    key: Path
    root: Path

    @property
    def public(self) -> Path:
        """The public key."""
        return self.key.with_suffix(".pub")


def make_key(path: Path) -> Path:
    public = str(path.with_suffix(".pub"))
    for words in (
        ("genpkey", "-algorithm", "ed25519", "-out", str(path)),
        ("pkey", "-in", str(path), "-pubout", "-out", public),
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def attested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attested]:
    desk = make_desk_in(tmp_path_factory.mktemp("attested"))
    key = make_key(desk.folder / "study.pem")
    with tsa.authority(desk.folder / "tsa") as running:
        done = desk.run("--sign", str(key), "--timestamp", running.url,
                        "--timestamp-ca", str(running.root))  # fmt: skip
    assert done.code == 0, done.err
    kept = desk.harness("keep", str(desk.latest), "--into", str(desk.folder / "kept"))
    assert kept.code == 0, kept.err
    folder, members = desk.folder / "kept" / "toy", desk.folder / "members"
    extract(folder / "evidence.tar.gz", members, expected_tar_sha256=None)
    yield Attested(desk, folder, members, key, running.root)


def test_verify_says_who_signed_and_when_the_commitments_existed(attested: Attested) -> None:
    done = attested.desk.harness("verify", str(attested.kept))
    assert done.code == 0, done.err
    for what in ("plan and prepared inputs", "selection"):
        assert f"signed    {what}, by SHA256:" in done.out
        assert f"stamped   {what}, 20" in done.out
    assert "CN=Test time stamps" in done.out
    for words in ("whose key signed", "time-stamp authority's", "the clock beyond"):
        assert words in done.out
    trusting = attested.desk.harness(
        "verify", str(attested.kept), "--signer", str(attested.public),
        "--timestamp-ca", str(attested.root),
    )  # fmt: skip
    assert trusting.code == 0, trusting.err
    assert "whose key signed" not in trusting.out
    assert "time-stamp authority's" not in trusting.out
    report = json.loads((attested.kept / "report" / "report.json").read_bytes())
    told = json.dumps(report["tables"]["commitments"])
    assert told.count("signed by SHA256:") == 2
    assert told.count("time-stamped 20") == 2


def test_another_key_or_authority_than_the_reader_knows_is_said(
    attested: Attested, tmp_path: Path
) -> None:
    other = load_public_keys(make_key(tmp_path / "other.pem").with_suffix(".pub"))
    with pytest.raises(BadInput, match="--signer names SHA256:"):
        verify(attested.kept, Trust(signers=other))
    root = tsa.make_files(tmp_path / "tsa").read_bytes()
    with pytest.raises(BadInput, match="no time stamp of this commitment"):
        verify(attested.kept, Trust(certificates=root))


def test_evidence_without_them_is_refused_to_a_reader_who_expects_them(
    finished: Desk, attested: Attested
) -> None:
    plain = verify(finished.latest)
    assert "who committed: not signed (plan and prepared inputs, selection)" in plain.cannot
    with pytest.raises(BadInput, match="--signer"):
        verify(finished.latest, Trust(signers=load_public_keys(attested.public)))
    with pytest.raises(BadInput, match="--timestamp-ca"):
        verify(finished.latest, Trust(certificates=attested.root.read_bytes()))


def test_openssl_alone_accepts_the_stamps_in_the_archive(attested: Attested) -> None:
    for name in ("plan", "selection"):
        subprocess.run(
            ["openssl", "ts", "-verify", "-in", f"{name}.tsr", "-data", f"{name}.json",
             "-CAfile", f"{name}.pem"],
            cwd=attested.members / "statements", check=True, capture_output=True,
        )  # fmt: skip


def no_stamp(members: Path) -> None:
    (members / "statements" / "selection.tsr").unlink()


def no_signature(members: Path) -> None:
    (members / "statements" / "plan.dsse.json").unlink()


def stamp_of_the_other(members: Path) -> None:
    shutil.copyfile(members / "statements/plan.tsr", members / "statements/selection.tsr")


def signature_of_the_other(members: Path) -> None:
    shutil.copyfile(
        members / "statements/plan.dsse.json", members / "statements/selection.dsse.json"
    )


def other_statement(members: Path) -> None:
    path = members / "statements" / "plan.json"
    path.write_bytes(path.read_bytes().replace(b"harness", b"Harness"))


def other_time(members: Path) -> None:
    path = members / "receipts" / "select.json"
    value = contract.read_json(path)
    value["attestation"]["stamped_utc"] = "2020-01-01T00:00:00.000000Z"
    contract.write_json(path, value)


def other_key(members: Path) -> None:
    other = make_key(members / "other.pem").with_suffix(".pub")
    shutil.copyfile(other, members / "statements" / "plan.pub")
    for path in members.glob("other.*"):
        path.unlink()


@pytest.mark.parametrize(
    "change",
    [no_stamp, no_signature, stamp_of_the_other, signature_of_the_other, other_statement,
     other_time, other_key],
)  # fmt: skip
def test_what_was_changed_after_signing_is_found(
    attested: Attested, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    forged = forge(attested.kept, attested.members, tmp_path, change)
    with pytest.raises(BadInput) as caught:
        verify(forged)
    assert "statements/" in caught.value.where


def test_a_run_goes_on_with_its_key_only_and_without_the_authority(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts wait for the selection: a missing stamp of it is said, and stops nothing."""
    desk = make_desk()
    monkeypatch.setenv("HARNESS_CACHE", str(desk.folder / "cache"))
    key, other = make_key(desk.folder / "study.pem"), make_key(desk.folder / "other.pem")
    with tsa.authority(desk.folder / "tsa") as running:
        begin_plan(
            load_plan(desk.plan), desk.runs, make_progress(sys.stderr, as_json=True), Clock(),
            choice=LOCAL, attesting=chosen(key, running.url, running.root),
        )  # fmt: skip
    without = desk.run()
    assert without.code == 4
    assert "--sign" in without.err
    assert desk.run("--sign", str(other)).code == 2
    done = desk.run("--sign", str(key))
    assert done.code == 0, done.err
    checked = desk.harness("verify", str(desk.latest))
    assert checked.code == 0, checked.err
    assert "stamped   plan and prepared inputs, 20" in checked.out
    assert "signed    selection, by SHA256:" in checked.out
    assert "when it existed: not time-stamped (selection)" in checked.out
    assert "was not time-stamped" in (desk.latest / "report" / "index.html").read_text()


def test_without_a_stamp_of_the_plan_nothing_begins(make_desk: MakeDesk) -> None:
    desk = make_desk()
    root = tsa.make_files(desk.folder / "tsa")
    done = desk.run("--timestamp", "http://127.0.0.1:1/tsa", "--timestamp-ca", str(root))
    assert done.code == 4
    assert "cannot be reached" in done.err.replace("\n", " ")
    assert not (desk.latest / "receipts" / "provision.json").exists()
