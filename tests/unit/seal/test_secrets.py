"""Secrets: known values in every spelling, formats by name, and few false alarms."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.seal import Finding, scan
from harness.seal.secrets import DETECTORS, _in_stream, _searches
from tests.unit.seal.crafted import write_folder

VALUE = b"p@ss/word+with spaces & \xc3\xa9?"
KEY = b"-----BEGIN " + b"OPENSSH PRIVATE" + b" KEY-----\n" + b"QyNTUx\nOQAAACDAAAA+/xyz=\n"


def found_in(tmp_path: Path, data: bytes, **known: bytes) -> list[tuple[int, str]]:
    """(offset, detector) of every finding in one file."""
    folder = write_folder(tmp_path / "in", {"logs/host-0.log": data})
    findings = scan(folder, known)
    assert all(finding.member == "logs/host-0.log" for finding in findings)
    return [(finding.offset, finding.detector) for finding in findings]


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "raw": lambda value: value,
    "base64": base64.b64encode,
    "base64 of user and value": lambda value: base64.b64encode(b"user:" + value + b"@"),
    "URL-safe base64": lambda value: base64.urlsafe_b64encode(b"x" + value),
    "hex": lambda value: value.hex().encode(),
    "upper hex": lambda value: value.hex().upper().encode(),
    "URL": lambda value: urllib.parse.quote(value, safe="").encode(),
    "URL with slashes": lambda value: urllib.parse.quote(value).encode(),
    "form": lambda value: urllib.parse.quote_plus(value).encode(),
    "JSON": lambda value: json.dumps(value.decode()).encode(),
}


class TestKnownValues:
    @pytest.mark.parametrize("spelling", SPELLINGS)
    @pytest.mark.parametrize("value", [VALUE, KEY, b"plain-token-123"])
    def test_are_found_in_every_spelling(self, tmp_path: Path, spelling: str, value: bytes) -> None:
        data = b"before " + SPELLINGS[spelling](value) + b" after"
        found = found_in(tmp_path, data, passphrase=value)
        assert any(detector.startswith("known value passphrase (") for _, detector in found)

    def test_a_key_is_found_without_its_line_breaks_and_with_others(self, tmp_path: Path) -> None:
        body = KEY.split(b"\n", 1)[1]
        for number, text in enumerate((body.replace(b"\n", b""), body.replace(b"\n", b"\r\n"))):
            assert found_in(tmp_path / str(number), text, key=body)

    def test_the_value_is_not_in_the_finding(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"a": b"x" * 7 + VALUE})
        (finding, *_) = scan(folder, {"passphrase": VALUE})
        assert finding == Finding("a", 7, "known value passphrase (raw)")
        assert b"p@ss" not in repr(finding).encode()

    def test_a_name_that_holds_the_value_is_not_repeated(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"logs/of-secret-token/x": b" secret-token"})
        member, detector = "logs/(a file name)", "known value token (raw)"
        found = scan(folder, {"token": b"secret-token"})
        assert found == (Finding(member, 1, detector), Finding(member, 8, detector))

    @pytest.mark.parametrize("value", [b"", b"short", b" \n "])
    def test_one_too_short_to_search_for_is_an_error_without_the_value(
        self, tmp_path: Path, value: bytes
    ) -> None:
        with pytest.raises(BadInput, match="known value 'token' is shorter than 6 bytes") as error:
            found_in(tmp_path, b"", token=value)
        assert "short'" not in str(error.value)

    @given(st.binary(min_size=6, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
    def test_any_value_inside_any_base64(self, value: bytes, before: bytes, after: bytes) -> None:
        if len(value.strip()) < 6:
            return
        searches, overlap = _searches({"v": value})
        data = base64.b64encode(before + value + after)
        found = list(_in_stream(io.BytesIO(data), "m", searches, overlap))
        assert any(finding.detector.startswith("known value v") for finding in found)


B62 = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3dEf6hIj9kLm2nOp5q"
SAMPLES = {
    "aws-access-key-id": "AK" + "IAIOSFODNN7EXAMPLE",
    "aws-secret-access-key": '"SecretAccess' + f'Key": "{B62[:38]}/+"',
    "aws-session-token": "AWS_SESSION" + f"_TOKEN={B62 * 4}",
    "aws-presigned-url": "https://b/k?X-Amz-" + f"Signature={'0a' * 32}",
    "private-key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "openssh-private-key": "openssh-" + "key-v1\0",
    "openssh-private-key-base64": base64.b64encode(b"openssh-" + b"key-v1\0").decode(),
    "putty-private-key": "PuTTY-User-" + "Key-File-3: ssh-ed25519",
    "github-token": "gh" + f"p_{B62[:36]}",
    "github-fine-grained-token": "github" + f"_pat_{B62}{B62[:30]}",
    "hugging-face-token": "h" + f"f_{B62[:34]}",
    "slack-token": "xo" + "xb-123456789012-abcdefABCDEF",
    "slack-webhook": "https://hooks.sl" + f"ack.com/services/T0123ABCD/B0123ABCD/{B62[:24]}",
    "pulumi-token": "pu" + f"l-{'0a' * 20}",
    "json-web-token": "ey" + f"JhbGciOiJIUzI1.ey{'JzdWIiOiIxMjM0'}.{B62[:30]}",
    "password-in-url": "https://user:" + "hunter2@example.org/simple",
}
HARMLESS = [
    hashlib.sha256(b"x").hexdigest(),
    "secret_access_key: " + hashlib.sha1(b"x").hexdigest(),
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPvLbAHQ0JQvyQq0oQ9k1L0E3b4S3y2xv9d8d1ZQwq2J me@host",
    "-----BEGIN " + "PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "https://example.org:8443/a@b", "git@github.com:owner/repository.git", "ssh://git@host:22/x",
    "https://user:" + "****@example.org/", "s3://bucket/key:1@2", "file:///a/b:c@d",
    "the secret key is under the mat", "session token: none", "hf_transfer==0.1.9",
    "model.layers.0.self_attn.q_proj.weight", "i-0abcdef1234567890", "pul-is-a-word", "eyJ.eyJ.x",
]  # fmt: skip


class TestDetectors:
    def test_every_detector_has_a_sample(self) -> None:
        assert set(SAMPLES) == set(DETECTORS)

    @pytest.mark.parametrize("name", SAMPLES)
    def test_finds_its_sample_and_no_other_does(self, tmp_path: Path, name: str) -> None:
        data = b"start\n " + SAMPLES[name].encode() + b" \nend"
        assert {detector for _, detector in found_in(tmp_path, data)} == {name}

    @pytest.mark.parametrize("text", HARMLESS)
    def test_does_not_call_out_for_nothing(self, tmp_path: Path, text: str) -> None:
        assert found_in(tmp_path, b"x = " + text.encode() + b"\n") == []

    def test_stays_silent_on_many_hashes_and_commits(self, tmp_path: Path) -> None:
        rows = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(20_000)]
        text = "\n".join(json.dumps({"sha256": row, "commit": row[:40]}) for row in rows)
        assert found_in(tmp_path, text.encode()) == []

    def test_finds_all_of_several(self, tmp_path: Path) -> None:
        sample = SAMPLES["github-token"].encode()
        found = found_in(tmp_path, sample + b" " + sample)
        assert found == [(0, "github-token"), (len(sample) + 1, "github-token")]


class TestStreaming:
    NEAR: ClassVar[list[bytes]] = [
        b"x", b" ", b"\n", b"eyJ.", SAMPLES["hugging-face-token"].encode() + b"Q" * 20,
        SAMPLES["pulumi-token"].encode() + b"f", b"known-valu",
    ]  # fmt: skip

    @settings(deadline=None, max_examples=200)
    @given(
        st.lists(st.sampled_from([s.encode() for s in SAMPLES.values()] + NEAR * 2), min_size=20),
        st.integers(1, 300),
    )
    def test_findings_do_not_depend_on_where_windows_end(
        self, pieces: list[bytes], chunk_bytes: int
    ) -> None:
        data = b"".join(pieces)
        searches, _ = _searches({"k": b"known-value"})

        def found(size: int, overlap: int) -> list[Finding]:
            stream = io.BytesIO(data)
            return sorted(_in_stream(stream, "m", searches, overlap, chunk_bytes=size))

        longest = max(len(piece) for piece in data.split(b"\n"))
        assert found(chunk_bytes, longest) == found(1 << 20, 8192)

    @pytest.mark.parametrize("before", [b"", b"x"])
    def test_what_stands_before_is_seen_across_windows(self, before: bytes) -> None:
        sample = SAMPLES["pulumi-token"].encode()
        searches, _ = _searches({})
        for chunk_bytes in range(1, 120):
            stream = io.BytesIO(b" " * 99 + before + sample + b" " * 99)
            found = list(_in_stream(stream, "m", searches, 45, chunk_bytes=chunk_bytes))
            assert len(found) == (0 if before else 1)

    def test_what_stands_behind_is_seen_across_windows(self) -> None:
        searches, _ = _searches({})
        for chunk_bytes in range(1, 120):
            stream = io.BytesIO(b" " * 99 + self.NEAR[4] + b" " * 99)
            assert not list(_in_stream(stream, "m", searches, 60, chunk_bytes=chunk_bytes))

    def test_a_secret_across_two_chunks_of_a_big_file(self, tmp_path: Path) -> None:
        sample = SAMPLES["hugging-face-token"].encode()
        at = (1 << 20) - 20
        data = b"." * at + sample + b"." * (1 << 20)
        assert found_in(tmp_path, data) == [(at, "hugging-face-token")]

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"a": b""})
        (folder / "b").symlink_to("a")
        with pytest.raises(BadInput, match="is a link"):
            scan(folder, {})
