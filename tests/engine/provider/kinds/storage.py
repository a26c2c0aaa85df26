"""The bucket, its settings, single objects."""

from __future__ import annotations

from collections.abc import Callable

from tests.engine.provider.kind import Cloud, Kind, Values, aws_tags, found, patiently

_NO_BUCKET = ("NoSuchBucket", "404")


def _bucket(cloud: Cloud, inputs: Values) -> str:
    client = cloud.client("s3")
    place = {}
    if cloud.region != "us-east-1":
        place = {"CreateBucketConfiguration": {"LocationConstraint": cloud.region}}
    client.create_bucket(Bucket=inputs["bucket"], **place)
    if inputs.get("tags"):
        client.put_bucket_tagging(
            Bucket=inputs["bucket"], Tagging={"TagSet": aws_tags(inputs["tags"])}
        )
    return str(inputs["bucket"])


def _find_bucket(cloud: Cloud, name: str, _: Values) -> Values | None:
    client = cloud.client("s3")
    if found(lambda: client.head_bucket(Bucket=name), *_NO_BUCKET) is None:
        return None
    return {"bucket": name, "arn": f"arn:aws:s3:::{name}", "region": cloud.region}


def _no_bucket(cloud: Cloud, name: str, _: Values) -> None:
    client = cloud.client("s3")
    patiently(lambda: client.delete_bucket(Bucket=name), gone=("NoSuchBucket",))


def _setting(
    token: str,
    put: Callable[[Cloud, Values], object],
    seen: Callable[[Cloud, str], object],
    remove: Callable[[Cloud, str], object],
    absent: str,
) -> Kind:
    """A sub-resource of a bucket: every write is a put."""

    def create(cloud: Cloud, inputs: Values) -> str:
        put(cloud, inputs)
        return str(inputs["bucket"])

    def read(cloud: Cloud, name: str, _: Values) -> Values | None:
        there = found(lambda: seen(cloud, name), *_NO_BUCKET, absent)
        return {} if there else None

    def update(cloud: Cloud, _: str, __: Values, new: Values) -> None:
        put(cloud, new)

    def delete(cloud: Cloud, name: str, _: Values) -> None:
        patiently(lambda: remove(cloud, name), gone=(*_NO_BUCKET, absent))

    fields = {"versioningConfiguration", "rules", "blockPublicAcls", "blockPublicPolicy"}
    fields |= {"ignorePublicAcls", "restrictPublicBuckets"}
    return Kind(token, create, read, delete, update, changeable=frozenset(fields))


def _put_versioning(cloud: Cloud, inputs: Values) -> None:
    cloud.client("s3").put_bucket_versioning(
        Bucket=inputs["bucket"],
        VersioningConfiguration={"Status": inputs["versioningConfiguration"]["status"]},
    )


def _suspend(cloud: Cloud, name: str) -> None:
    cloud.client("s3").put_bucket_versioning(
        Bucket=name, VersioningConfiguration={"Status": "Suspended"}
    )


def _put_encryption(cloud: Cloud, inputs: Values) -> None:
    rules = [
        {
            "ApplyServerSideEncryptionByDefault": {
                "SSEAlgorithm": each["applyServerSideEncryptionByDefault"]["sseAlgorithm"]
            }
        }
        for each in inputs["rules"]
    ]
    cloud.client("s3").put_bucket_encryption(
        Bucket=inputs["bucket"], ServerSideEncryptionConfiguration={"Rules": rules}
    )


def _put_private(cloud: Cloud, inputs: Values) -> None:
    cloud.client("s3").put_public_access_block(
        Bucket=inputs["bucket"],
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": inputs.get("blockPublicAcls", False),
            "IgnorePublicAcls": inputs.get("ignorePublicAcls", False),
            "BlockPublicPolicy": inputs.get("blockPublicPolicy", False),
            "RestrictPublicBuckets": inputs.get("restrictPublicBuckets", False),
        },
    )


def _put_lifecycle(cloud: Cloud, inputs: Values) -> None:
    rules = [
        {
            "ID": each["id"],
            "Status": each["status"],
            "Filter": {"Prefix": (each.get("filter") or {}).get("prefix", "")},
            "AbortIncompleteMultipartUpload": {
                "DaysAfterInitiation": int(
                    each["abortIncompleteMultipartUpload"]["daysAfterInitiation"]
                )
            },
        }
        for each in inputs["rules"]
    ]
    cloud.client("s3").put_bucket_lifecycle_configuration(
        Bucket=inputs["bucket"], LifecycleConfiguration={"Rules": rules}
    )


def _object(cloud: Cloud, inputs: Values) -> str:
    cloud.client("s3").put_object(
        Bucket=inputs["bucket"],
        Key=inputs["key"],
        Body=inputs["content"].encode(),
        ContentType=inputs.get("contentType", "application/octet-stream"),
    )
    return str(inputs["key"])


def _find_object(cloud: Cloud, key: str, known: Values) -> Values | None:
    client = cloud.client("s3")
    there = found(
        lambda: client.head_object(Bucket=known["bucket"], Key=key), "NoSuchKey", *_NO_BUCKET
    )
    return {"key": key} if there else None


def _no_object(cloud: Cloud, key: str, known: Values) -> None:
    client = cloud.client("s3")
    patiently(lambda: client.delete_object(Bucket=known["bucket"], Key=key), gone=_NO_BUCKET)


def _change_object(cloud: Cloud, _: str, __: Values, new: Values) -> None:
    _object(cloud, new)


KINDS = (
    Kind("aws:s3/bucket:Bucket", _bucket, _find_bucket, _no_bucket, autoname="bucket"),
    _setting(
        "aws:s3/bucketVersioning:BucketVersioning",
        _put_versioning,
        lambda cloud, name: cloud.client("s3").get_bucket_versioning(Bucket=name).get("Status"),
        _suspend,
        "-",
    ),
    _setting(
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        _put_encryption,
        lambda cloud, name: cloud.client("s3").get_bucket_encryption(Bucket=name),
        lambda cloud, name: cloud.client("s3").delete_bucket_encryption(Bucket=name),
        "ServerSideEncryptionConfigurationNotFoundError",
    ),
    _setting(
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        _put_private,
        lambda cloud, name: cloud.client("s3").get_public_access_block(Bucket=name),
        lambda cloud, name: cloud.client("s3").delete_public_access_block(Bucket=name),
        "NoSuchPublicAccessBlockConfiguration",
    ),
    _setting(
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        _put_lifecycle,
        lambda cloud, name: cloud.client("s3").get_bucket_lifecycle_configuration(Bucket=name),
        lambda cloud, name: cloud.client("s3").delete_bucket_lifecycle(Bucket=name),
        "NoSuchLifecycleConfiguration",
    ),
    Kind(
        "aws:s3/bucketObjectv2:BucketObjectv2",
        _object,
        _find_object,
        _no_object,
        _change_object,
        changeable=frozenset({"content", "contentType"}),
    ),
)
