"""Checkpoints off the host: copied to the store while an arm trains, and back where they are lost.

The follow loop looks now and then. Copying keeps it from looking elsewhere for as long as it
takes; the trainer's own ranks notice a lost peer meanwhile, and deadlines need nobody.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field

from harness.errors import Waiting
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.plan.kinds import Count
from harness.stages.push import fetch_listing
from harness.staging import keep_folder
from harness.store.protocol import Artifact
from harness.strict import Model
from harness.study import Study
from trainer import contract

LOOK_S = 2.0
_NAME = re.compile(r"update-([1-9][0-9]*)")


class StoredCheckpoint(Model):
    """Outcome of copying one checkpoint of all ranks to the store."""

    update: Count
    ranks: tuple[tuple[Artifact, ...], ...]
    """Every rank's files."""


@dataclass
class Keeper:
    """Looks after one arm's checkpoints."""

    study: Study
    arm: str
    _looked_s: float | None = field(default=None, init=False)

    def look(self, group: GroupJob) -> None:
        """Copy the newest checkpoint that all ranks hold, unless the store has it or a newer one.

        One that the trainer removes meanwhile is left; the next look finds its successor.
        """
        now = self.study.clock.monotonic()
        if self._looked_s is not None and now - self._looked_s < LOOK_S:
            return
        self._looked_s = now
        with suppress(Waiting):  # a host that does not answer is the follow loop's to judge
            self._store_newest(group)

    def _store_newest(self, group: GroupJob) -> None:
        held = [_updates(host, _folder(group.out, rank)) for rank, host in enumerate(group.hosts)]
        newest = max(set.intersection(*held), default=0)
        known = self.stored()
        if newest <= (known.update if known else 0):
            return
        self.study.journal.note(f"checkpoint/{self.arm}", {"storing": newest, "of": group.key})
        ranks = []
        for rank, host in enumerate(group.hosts):
            files = self._put(host, f"{_folder(group.out, rank)}/update-{newest}")
            if files is None:
                return
            ranks.append(files)
        found = StoredCheckpoint(update=newest, ranks=tuple(ranks))
        self.study.journal.note(f"checkpoint/{self.arm}/stored", found.to_json())

    def stored(self) -> StoredCheckpoint | None:
        """The newest one in the store."""
        entry = self.study.journal.find("note", f"checkpoint/{self.arm}/stored")
        return None if entry is None else StoredCheckpoint.model_validate_json(
            contract.canonical(entry.data)
        )  # fmt: skip

    def bring_back(self, group: GroupJob) -> tuple[str, ...]:
        """Before another attempt: every host that lacks the stored checkpoint gets its rank's.

        Returns the folders, like outputs of an earlier attempt, that hold it; none if there is
        nothing in the store.
        """
        known = self.stored()
        if known is None:
            return ()
        out = f"out/checkpoints.{self.arm}"
        for rank, host in enumerate(group.hosts):
            folders = [_folder(each, rank) for each in (*group.earlier, out)]
            if not any(known.update in _updates(host, folder) for folder in folders):
                self._fetch(host, known.ranks[rank], f"{_folder(out, rank)}/update-{known.update}")
        return (out,)

    def _put(self, host: Host, folder: str) -> tuple[Artifact, ...] | None:
        label = f"checkpoint-{self.arm}-{host.name}"
        try:
            return keep_folder(self.study, host, f"{host.work}/{folder}", label=label)
        except Waiting:
            return None

    def _fetch(self, host: Host, files: tuple[Artifact, ...], folder: str) -> None:
        listing = [each.to_json() for each in files]
        local = self.study.work / f"checkpoint-{self.arm}-{host.name}.json"
        contract.write_json(local, listing)
        fetch_listing(self.study, host, folder, local, contract.hash_of(listing))


def _folder(out: str, rank: int) -> str:
    return f"{out}/checkpoint-{rank}"


def _updates(host: Host, folder: str) -> set[int]:
    """Of the whole checkpoints in a folder; none when it is absent."""
    done = host.run(["ls", f"{host.work}/{folder}"], timeout_s=60, check=False)
    matches = (_NAME.fullmatch(name) for name in done.stdout.split())
    return {int(match[1]) for match in matches if match} if done.exit_code == 0 else set()
