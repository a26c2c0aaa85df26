"""On the host, standard library only: what it tells and asks its fleet's records in S3.

    harness-records keys | ready | acknowledge

Credentials are the instance profile's (IMDSv2); requests are signed as in AWS Signature Version 4
(docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
"""

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("HARNESS_ROOT", "/"))
IMDS = os.environ.get("HARNESS_IMDS", "http://169.254.169.254")
POLL_S = float(os.environ.get("HARNESS_POLL_S", "5"))
ABOUT: dict[str, Any] = json.loads((ROOT / "etc/harness/fleet.json").read_text())
S3 = os.environ.get("HARNESS_S3", f"https://s3.{ABOUT['region']}.amazonaws.com")


def http(method: str, url: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
    """One request's answer. Raises OSError (URLError, HTTPError)."""
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def metadata(path: str) -> str:
    """One value of the instance's metadata."""
    life = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = http("PUT", f"{IMDS}/latest/api/token", life).decode()
    known = {"X-aws-ec2-metadata-token": token}
    return http("GET", f"{IMDS}/latest/meta-data/{path}", known).decode()


def s3(method: str, key: str, body: bytes = b"", *, once: bool = False) -> bytes:
    """GET or PUT of an object of the fleet's bucket; `once`: only where there is none."""
    role = metadata("iam/security-credentials/").split()[0]
    given = json.loads(metadata(f"iam/security-credentials/{role}"))
    path = urllib.parse.quote(f"/{ABOUT['bucket']}/{key}", safe="/-_.~")
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "host": urllib.parse.urlsplit(S3).netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": now,
        "x-amz-security-token": given["Token"],
    }
    if once:
        headers["if-none-match"] = "*"
    names = sorted(headers)
    lines = [method, path, "", *(f"{name}:{headers[name]}" for name in names), ""]
    canonical = "\n".join([*lines, ";".join(names), digest])
    scope = f"{now[:8]}/{ABOUT['region']}/s3/aws4_request"
    key_bytes = b"AWS4" + given["SecretAccessKey"].encode()
    for part in scope.split("/"):
        key_bytes = hmac.digest(key_bytes, part.encode(), "sha256")
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}"
    signature = hmac.digest(key_bytes, text.encode(), "sha256").hex()
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={given['AccessKeyId']}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    if method == "PUT":
        return http(method, S3 + path, {**headers, "Content-Type": "application/json"}, body)
    return http(method, S3 + path, headers)


def record(schema: str, **more: Any) -> dict[str, Any]:
    """What every record says, and more."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    about = {"schema": schema, "fleet": ABOUT["fleet"], "slot": ABOUT["slot"], "boot_id": boot}
    return {**about, "instance_id": metadata("instance-id"), **more}


def publish(key: str, what: dict[str, Any]) -> None:
    """Write once. One's own earlier copy will do; another instance's stays and is an error."""
    body = (json.dumps(what, sort_keys=True, separators=(",", ":")) + "\n").encode()
    for left in reversed(range(30)):
        try:
            s3("PUT", key, body, once=True)
            return
        except urllib.error.HTTPError as error:
            if error.code == 412:
                there = json.loads(s3("GET", key)).get("instance_id")
                if there == what["instance_id"]:
                    return
                sys.exit(f"{key} was published by {there}")
            problem: OSError = error
        except OSError as error:
            problem = error
        if not left:
            sys.exit(f"{key}: {problem}")
        time.sleep(POLL_S)


def said(*words: str) -> str:
    """First line of a command's output, empty when there is no such command."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.decode(errors="replace").splitlines() or [""])[0].strip()


def keys() -> None:
    """The public host keys, which were made on this host."""
    paths = sorted((ROOT / "etc/ssh").glob("ssh_host_*_key.pub"))
    public = [" ".join(path.read_text().split()[:2]) for path in paths]
    if not public:
        sys.exit("this host has no SSH host keys")
    publish(ABOUT["host_keys"], record("harness/host-keys/1", keys=public))


def ready() -> None:
    """The marker that the set-up is done, with the guard as systemd reports it."""
    guard = "harness-guard.timer"
    about = record(
        "harness/ready/1",
        deadline_utc=ABOUT["deadline_utc"],
        guard_enabled=said("systemctl", "is-enabled", guard),
        guard_active=said("systemctl", "is-active", guard),
        driver=said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        kernel=said("uname", "-r"),
        python=said("python3", "--version"),
    )
    publish(ABOUT["ready"], about)


def acknowledge() -> None:
    """Until the outer deadline of this very instance is found; the guard ends a host without it."""
    while True:
        try:
            found = json.loads(s3("GET", ABOUT["acknowledged"]))
            mine = {"instance_id": metadata("instance-id"), "deadline_utc": ABOUT["deadline_utc"]}
            if all(found.get(name) == value for name, value in mine.items()):
                (ROOT / "run/harness/acknowledged").write_text(f"{found['schedule']}\n")
                return
        except (OSError, ValueError, LookupError, AttributeError):
            pass
        time.sleep(POLL_S)


if __name__ == "__main__":
    {"keys": keys, "ready": ready, "acknowledge": acknowledge}[sys.argv[1]]()
