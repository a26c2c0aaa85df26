"""Ending hosts: one call a host, the strongest form first, and only AWS's own word ends one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from botocore.exceptions import ClientError

from harness.cloud import observe
from harness.cloud.clients import Aws, absent, asking, code_of, words_of
from harness.errors import HarnessError, Waiting
from harness.strict import Model

HOST_LIMIT_S = 900.0
"""GPU hosts often take more than five minutes to terminate."""
VOLUME_LIMIT_S = 300.0
POLL_S = 15.0

How = Literal["force, no OS shutdown", "force", "default", "already ended"]
UNSUPPORTED = (
    "UnsupportedOperation",
    "Unsupported",
    "InvalidParameterCombination",
    "InvalidParameter",
    "InvalidParameterValue",
    "UnknownParameter",
)
"""How AWS refuses a form of terminating that the instance does not take (EC2 user guide, 'Methods
for terminating an instance')."""


class EndedHost(Model):
    """One host that AWS says is terminated."""

    id: str
    how: How
    asked_utc: str
    """Before the call."""
    ended_utc: str
    """When AWS was first seen to say 'terminated': never before it was."""
    reason: str
    """AWS's words; ends are by somebody."""


class GoneVolume(Model):
    """A volume that AWS says does not exist."""

    id: str
    gone_utc: str
    deleted: bool
    """It had outlived its host and was deleted by us."""


FORMS: tuple[tuple[How, bool, bool], ...] = (
    ("force, no OS shutdown", True, True),
    ("force", True, False),
    ("default", False, False),
)
"""What is asked in turn: Force, SkipOsShutdown."""


def ask_to_end(aws: Aws, instance_id: str) -> How | None:
    """Ask AWS to end one host: forced without OS shutdown, else forced, else the ordinary way.

    None: AWS says that it does not know the id (gone for an hour, or not visible yet). Raises
    Waiting when the host is protected (said once, never tried in a loop) or when AWS errs.
    """
    for how, force, skip in FORMS:
        try:
            with_flags = {"Force": force, "SkipOsShutdown": skip}
            chosen = {name: True for name, wanted in with_flags.items() if wanted}
            aws.ec2.terminate_instances(InstanceIds=[instance_id], **chosen)
        except ClientError as error:
            if absent(error):
                return None
            if how == "default" or code_of(error) not in UNSUPPORTED:
                raise _not_ended(aws, instance_id, error) from None
        else:
            return how
    return None


def _not_ended(aws: Aws, instance_id: str, error: ClientError) -> HarnessError:
    if code_of(error) == "OperationNotPermitted":
        return Waiting(
            f"somebody has set termination protection on this host, so it runs and costs on "
            f"({words_of(error)})",
            where=f"{aws.region} {instance_id}",
            next_command="aws ec2 modify-instance-attribute --no-disable-api-termination "
            f"--region {aws.region} --instance-id {instance_id}",
        )
    return Waiting(
        f"AWS did not end this host, so it runs and costs on ({code_of(error)}: {words_of(error)})",
        where=f"{aws.region} {instance_id}",
        next_command="type the same command again",
    )


def end_hosts(
    aws: Aws, ids: Sequence[str], *, limit_s: float = HOST_LIMIT_S
) -> dict[str, EndedHost | HarnessError]:
    """Ask for the end of every host, one call each, then wait for AWS to say 'terminated'.

    Every id has an ended host or the error that says why it is not one; nothing is raised for a
    single host, so that one cannot hide the others. Harmless to repeat.
    """
    result: dict[str, EndedHost | HarnessError] = {}
    pending: dict[str, _Ending] = {}
    for each in ids:
        asked = aws.clock.utc()
        try:
            pending[each] = _Ending(asked, aws.clock.monotonic(), ask_to_end(aws, each))
        except HarnessError as error:
            result[each] = error
    until = aws.clock.monotonic() + limit_s
    while pending:
        for each, ended in _poll(aws, pending).items():
            result[each] = ended
            del pending[each]
        if not pending or aws.clock.monotonic() >= until:
            break
        aws.clock.sleep(POLL_S)
    for each, ending in pending.items():
        result[each] = Waiting(
            f"this host is '{ending.state}' {limit_s:.0f} s after its end was asked for "
            f"({ending.how or 'AWS did not know the id'}); until AWS says 'terminated' it may cost",
            where=f"{aws.region} {each}",
            next_command="type the same command again; it goes on waiting",
        )
    return {each: result[each] for each in ids}


def ended_or_raise(results: Mapping[str, EndedHost | HarnessError]) -> tuple[EndedHost, ...]:
    """The ended hosts, or Waiting with the first error and the ids of all that are not ended."""
    errors = {each: got for each, got in results.items() if isinstance(got, HarnessError)}
    if not errors:
        return tuple(got for got in results.values() if isinstance(got, EndedHost))
    first = next(iter(errors.values()))
    others = [each for each in errors if each != next(iter(errors))]
    more = f"; not ended either: {', '.join(others)}" if others else ""
    raise Waiting(f"{first.what}{more}", where=first.where, next_command=first.next_command)


@dataclass
class _Ending:
    """A host whose end was asked for."""

    asked_utc: str
    asked_at: float
    how: How | None
    state: str = "not shown"
    was_shown: bool = False


def _poll(aws: Aws, pending: Mapping[str, _Ending]) -> dict[str, EndedHost]:
    ended = {}
    for each, seen in observe.instances_by_id(aws, list(pending)).items():
        ending = pending[each]
        if seen is not None:
            ending.state, ending.was_shown = seen.state, True
            if ending.how is None and not seen.terminated:
                ending.how = ask_to_end(aws, each)  # visible only now
        if (seen is not None and seen.terminated) or (seen is None and _gone(aws, each, ending)):
            ended[each] = EndedHost(
                id=each,
                how=ending.how or "already ended",
                asked_utc=ending.asked_utc,
                ended_utc=aws.clock.utc(),
                reason=seen.reason if seen else "AWS no longer knows the id",
            )
    return ended


def _gone(aws: Aws, instance_id: str, ending: _Ending) -> bool:
    """Whether AWS's word is NotFound for an id that was visible, or long enough for a new one.

    A filter that finds nothing says less than the id's own NotFound.
    """
    settled = ending.was_shown or aws.clock.monotonic() - ending.asked_at >= observe.APPEAR_S
    if not settled:
        return False
    with asking(f"for the host {instance_id}", where=aws.region):
        try:
            aws.ec2.describe_instances(InstanceIds=[instance_id])
        except ClientError as error:
            if absent(error):
                return True
            raise
    return False


def follow_volumes(
    aws: Aws, ids: Sequence[str], *, limit_s: float = VOLUME_LIMIT_S
) -> tuple[GoneVolume, ...]:
    """Follow volumes of ended hosts by id until AWS says NotFound.

    A volume that is 'available' outlived its host and never goes by itself: it is deleted. Raises
    Waiting after `limit_s`, naming what is left; harmless to repeat.
    """
    gone: list[GoneVolume] = []
    deleted: set[str] = set()
    left = list(dict.fromkeys(ids))
    until = aws.clock.monotonic() + limit_s
    while True:
        for each in list(left):
            seen = observe.volume(aws, each)
            if seen is None:
                gone.append(GoneVolume(id=each, gone_utc=aws.clock.utc(), deleted=each in deleted))
                left.remove(each)
            elif seen.state == "available" and each not in deleted:
                delete_volume(aws, each)
                deleted.add(each)
        if not left:
            return tuple(gone)
        if aws.clock.monotonic() >= until:
            raise Waiting(
                f"{len(left)} volume(s) are still there {limit_s:.0f} s after their hosts ended: "
                f"{', '.join(left)}",
                where=aws.region,
                next_command="type the same command again; it goes on waiting",
            )
        aws.clock.sleep(POLL_S)


def delete_volume(aws: Aws, volume_id: str) -> None:
    """Delete a volume; one that is gone already is no error."""
    with asking(f"to delete the volume {volume_id}", where=aws.region):
        try:
            aws.ec2.delete_volume(VolumeId=volume_id)
        except ClientError as error:
            if not absent(error):
                raise
