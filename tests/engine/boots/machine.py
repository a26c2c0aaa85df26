"""One host that really boots: its own user data runs, its own sshd answers, its end ends it all."""

from __future__ import annotations

import email
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.engine.metadata import InstanceMetadata

GUEST = Path(__file__).with_name("guest")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SSHD_CONFIG = """\
ListenAddress {address}:22
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
PidFile /run/sshd.pid
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowUsers ubuntu
PrintMotd no
SetEnv PATH={path} {environment}
"""


@dataclass
class Machine:
    """An instance as its owner meets it: namespaces for files and processes, an address."""

    instance_id: str
    address: str
    folder: Path
    endpoint: str
    """Of the cloud, S3 too."""
    metadata: InstanceMetadata = field(init=False)
    process: subprocess.Popen[bytes] | None = None
    _began: float = 0.0

    def boot(self, user_data: str, login_public: str) -> None:
        """Start it; what user data does goes on meanwhile."""
        self.folder.mkdir(parents=True)
        self._write_files(login_public)
        types = self._unpack(user_data)
        self.metadata = InstanceMetadata(self.instance_id)
        self.metadata.__enter__()
        (self.folder / "sshd_config").write_text(
            SSHD_CONFIG.format(
                address=self.address, folder=self.folder, path=SYSTEM_PATH,
                environment=" ".join(f"{k}={v}" for k, v in self._role().items()),
            )
        )  # fmt: skip
        environment = {
            "PATH": SYSTEM_PATH,
            "GUEST": str(self.folder),
            "KEY_TYPES": " ".join(types),
            "HARNESS_IMDS": self.metadata.address,
            "HARNESS_S3": self.endpoint,
            "HARNESS_POLL_S": "0.2",
        }
        self._began = time.monotonic()
        self.tick()
        with open(self.folder / "boot.log", "ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "--propagation", "private", "sh", str(GUEST / "boot.sh")],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True,
            )  # fmt: skip

    @property
    def console(self) -> str:
        """What it printed on its console."""
        path = self.folder / "console"
        return path.read_text() if path.exists() else ""

    @property
    def powered_off(self) -> bool:
        """Whether the guest asked to be powered off."""
        return (self.folder / "powered-off").exists()

    def tick(self) -> None:
        """Its time since boot; the kernel that it shares with this computer knows another."""
        (self.folder / "uptime").write_text(f"{time.monotonic() - self._began:.2f} 0.00\n")

    def end(self) -> None:
        """It is gone, with every process in it; safe to call twice."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
            self.metadata.__exit__(None, None, None)

    def _role(self) -> dict[str, str]:
        """Credentials come from the instance profile alone."""
        return {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata.address,
            "AWS_METADATA_SERVICE_TIMEOUT": "60",
            "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "3",
        }

    def _write_files(self, login_public: str) -> None:
        folder = self.folder
        shutil.copytree("/etc", folder / "etc", symlinks=True, ignore_dangling_symlinks=True)
        with open(folder / "etc" / "passwd", "a") as users:
            users.write("ubuntu:x:0:0::/home/ubuntu:/bin/sh\n")
        (folder / "etc" / "installed-packages").write_text(f"{sysconfig.get_path('purelib')}\n")
        (folder / "home" / "ubuntu").mkdir(parents=True)
        (folder / "sbin").mkdir()
        for name in ("systemctl", "uv", "nvidia-smi"):
            shutil.copy(GUEST / name, folder / "sbin" / name)
        for name in ("apt-mark", "shutdown"):
            (folder / "sbin" / name).write_text("#!/bin/sh\n")
            (folder / "sbin" / name).chmod(0o755)
        base = os.path.realpath(sys.executable)
        (folder / "sbin" / "python3").symlink_to(base)
        (folder / "authorized").write_text(f"{login_public}\n")

    def _unpack(self, user_data: str) -> tuple[str, ...]:
        """Scripts into files; the types of host keys that cloud-config asks for."""
        types: tuple[str, ...] = ()
        for part in email.message_from_string(user_data).walk():
            payload = part.get_payload(decode=True)
            if not isinstance(payload, bytes):
                continue
            kind = part.get_content_type()
            if kind == "text/cloud-config":
                types = tuple(yaml.safe_load(payload)["ssh_genkeytypes"])
            elif kind in ("text/cloud-boothook", "text/x-shellscript"):
                name = "boothook" if kind == "text/cloud-boothook" else "script"
                (self.folder / name).write_bytes(payload)
        return types
