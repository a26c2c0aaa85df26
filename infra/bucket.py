"""The bucket: made or adopted, its settings put again each time, kept when the rest goes."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_aws import s3

from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import STUDY

INCOMPLETE_UPLOAD_DAYS = 7


@dataclass(frozen=True)
class BucketArgs:
    """Which bucket, and whether admission saw it."""

    admitted: AdmittedFleet


class Bucket(pulumi.ComponentResource):
    """`name`, known once all its settings are put."""

    name: pulumi.Output[str]

    def __init__(self, name: str, args: BucketArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:Bucket", name, None, opts)
        bucket = self._bucket(args)
        kept = pulumi.ResourceOptions(parent=self, retain_on_delete=True)
        settings: list[pulumi.Resource] = [
            s3.BucketVersioning(
                "versioning",
                bucket=bucket,
                versioning_configuration={"status": "Enabled"},
                opts=kept,
            ),
            s3.BucketServerSideEncryptionConfiguration(
                "encryption",
                bucket=bucket,
                rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
                opts=kept,
            ),
            s3.BucketPublicAccessBlock(
                "private",
                bucket=bucket,
                block_public_acls=True,
                block_public_policy=True,
                ignore_public_acls=True,
                restrict_public_buckets=True,
                opts=kept,
            ),
        ]
        if not args.admitted.bucket_present:
            # An adopted bucket has rules of earlier studies, which a new configuration would
            # replace; the preserve stage adds to them.
            settings.append(
                s3.BucketLifecycleConfiguration(
                    "uploads-expire",
                    bucket=bucket,
                    rules=[
                        {
                            "id": "harness-incomplete-uploads",
                            "status": "Enabled",
                            "filter": {"prefix": ""},
                            "abort_incomplete_multipart_upload": {
                                "days_after_initiation": INCOMPLETE_UPLOAD_DAYS
                            },
                        }
                    ],
                    opts=pulumi.ResourceOptions.merge(
                        kept, pulumi.ResourceOptions(ignore_changes=["rules"])
                    ),
                )
            )
        self.name = pulumi.Output.all(bucket, *(each.urn for each in settings)).apply(
            lambda known: str(known[0])
        )
        self.register_outputs({"name": self.name})

    def _bucket(self, args: BucketArgs) -> pulumi.Output[str]:
        """Names differ, so that adopting a bucket that this stack made only lets go of it."""
        known = args.admitted.bucket
        if args.admitted.bucket_present:
            found = s3.Bucket.get("adopted", known, opts=pulumi.ResourceOptions(parent=self))
            adopted: pulumi.Output[str] = found.bucket
            return adopted
        # It outlives the fleet, so it carries the study's name and not the fleet's tags.
        made = s3.Bucket(
            "made",
            bucket=known,
            tags={"Name": known, STUDY: args.admitted.study},
            opts=pulumi.ResourceOptions(
                parent=self, retain_on_delete=True, ignore_changes=["tags"]
            ),
        )
        name: pulumi.Output[str] = made.bucket
        return name
