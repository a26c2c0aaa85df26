"""Recording that hosts are gone for good."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import BadInput
from harness.lost import PREFIX, LostHost
from harness.receipts import ProvisionReceipt
from harness.study import Study


def record_losses(
    study: Study, provisioned: ProvisionReceipt, statements: Sequence[tuple[str, str]]
) -> None:
    """Record each stated loss, once, with its proof.

    Raises BadInput for a host that the fleet does not have, Refused without proof.
    """
    fleet = study.fleet(provisioned)
    known = [host.name for host in provisioned.hosts]
    for name, why in statements:
        if name not in known:
            raise BadInput(f"there is no such host; there are {', '.join(known)}", where=name)

        def act(name: str = name, why: str = why) -> LostHost:
            return LostHost(host=name, why=why, proof=fleet.proof_of_loss(name))

        study.journal.effect(
            f"{PREFIX}{name}", LostHost, intent={"why": why}, act=act, adopt=lambda: None
        )
    study.fleets.close()  # opened anew, it leaves them alone
