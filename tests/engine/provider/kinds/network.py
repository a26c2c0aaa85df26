"""VPC, subnets, gateway, routes, endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.engine.provider.kind import (
    Cloud,
    Kind,
    Values,
    ec2_tags,
    found,
    patiently,
    retag,
    seen_tags,
)


def _one(
    operation: str, key: str, ids: str, gone: str, outputs: Callable[[Values], Values]
) -> Callable[[Cloud, str, Values], Values | None]:
    """A reader of things that EC2 describes by id."""

    def read(cloud: Cloud, resource_id: str, _: Values) -> Values | None:
        ec2 = cloud.client("ec2")
        said = found(lambda: getattr(ec2, operation)(**{ids: [resource_id]}), gone)
        if said is None or not said[key]:
            return None
        one: Values = said[key][0]
        return {**outputs(one), "tags": seen_tags(one.get("Tags"))}

    return read


def _gone(operation: str, argument: str, code: str) -> Callable[[Cloud, str, Values], None]:
    """A deleter that waits for what still depends on the thing."""

    def delete(cloud: Cloud, resource_id: str, _: Values) -> None:
        act = getattr(cloud.client("ec2"), operation)
        patiently(lambda: act(**{argument: resource_id}), "DependencyViolation", gone=(code,))

    return delete


def _vpc(cloud: Cloud, inputs: Values) -> str:
    ec2 = cloud.client("ec2")
    made = ec2.create_vpc(CidrBlock=inputs["cidrBlock"], TagSpecifications=ec2_tags(inputs, "vpc"))
    vpc = str(made["Vpc"]["VpcId"])
    for field, attribute in (
        ("enableDnsSupport", "EnableDnsSupport"),
        ("enableDnsHostnames", "EnableDnsHostnames"),
    ):
        if field in inputs:
            ec2.modify_vpc_attribute(VpcId=vpc, **{attribute: {"Value": inputs[field]}})
    return vpc


def _gateway(cloud: Cloud, inputs: Values) -> str:
    ec2 = cloud.client("ec2")
    made = ec2.create_internet_gateway(TagSpecifications=ec2_tags(inputs, "internet-gateway"))
    gateway = str(made["InternetGateway"]["InternetGatewayId"])
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=inputs["vpcId"])
    return gateway


def _no_gateway(cloud: Cloud, gateway: str, known: Values) -> None:
    ec2 = cloud.client("ec2")
    patiently(
        lambda: ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=known["vpcId"]),
        "DependencyViolation",
        gone=("Gateway.NotAttached", "InvalidInternetGatewayID.NotFound"),
    )
    _gone("delete_internet_gateway", "InternetGatewayId", "InvalidInternetGatewayID.NotFound")(
        cloud, gateway, known
    )


def _table(cloud: Cloud, inputs: Values) -> str:
    made = cloud.client("ec2").create_route_table(
        VpcId=inputs["vpcId"], TagSpecifications=ec2_tags(inputs, "route-table")
    )
    return str(made["RouteTable"]["RouteTableId"])


def _route(cloud: Cloud, inputs: Values) -> str:
    table, to = inputs["routeTableId"], inputs["destinationCidrBlock"]
    cloud.client("ec2").create_route(
        RouteTableId=table, DestinationCidrBlock=to, GatewayId=inputs["gatewayId"]
    )
    return f"r-{table}-{to}"


def _find_route(cloud: Cloud, _: str, known: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_route_tables(RouteTableIds=[known["routeTableId"]]),
        "InvalidRouteTableID.NotFound",
    )
    routes = said["RouteTables"][0]["Routes"] if said else []
    to = known["destinationCidrBlock"]
    there = any(each.get("DestinationCidrBlock") == to for each in routes)
    return {"state": "active"} if there else None


def _no_route(cloud: Cloud, _: str, known: Values) -> None:
    ec2 = cloud.client("ec2")
    patiently(
        lambda: ec2.delete_route(
            RouteTableId=known["routeTableId"], DestinationCidrBlock=known["destinationCidrBlock"]
        ),
        gone=("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"),
    )


def _association(cloud: Cloud, inputs: Values) -> str:
    made = cloud.client("ec2").associate_route_table(
        RouteTableId=inputs["routeTableId"], SubnetId=inputs["subnetId"]
    )
    return str(made["AssociationId"])


def _find_association(cloud: Cloud, association: str, known: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_route_tables(RouteTableIds=[known["routeTableId"]]),
        "InvalidRouteTableID.NotFound",
    )
    there: list[Any] = said["RouteTables"][0]["Associations"] if said else []
    known_ids = {each.get("RouteTableAssociationId") for each in there}
    return {} if association in known_ids else None


def _subnet(cloud: Cloud, inputs: Values) -> str:
    ec2 = cloud.client("ec2")
    made = ec2.create_subnet(
        VpcId=inputs["vpcId"],
        CidrBlock=inputs["cidrBlock"],
        AvailabilityZone=inputs["availabilityZone"],
        TagSpecifications=ec2_tags(inputs, "subnet"),
    )
    subnet = str(made["Subnet"]["SubnetId"])
    if inputs.get("mapPublicIpOnLaunch"):
        ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})
    return subnet


def _endpoint(cloud: Cloud, inputs: Values) -> str:
    made = cloud.client("ec2").create_vpc_endpoint(
        VpcId=inputs["vpcId"],
        ServiceName=inputs["serviceName"],
        VpcEndpointType=inputs["vpcEndpointType"],
        RouteTableIds=inputs.get("routeTableIds", []),
        TagSpecifications=ec2_tags(inputs, "vpc-endpoint"),
    )
    return str(made["VpcEndpoint"]["VpcEndpointId"])


def _find_endpoint(cloud: Cloud, endpoint: str, _: Values) -> Values | None:
    ec2 = cloud.client("ec2")
    said = found(
        lambda: ec2.describe_vpc_endpoints(VpcEndpointIds=[endpoint]),
        "InvalidVpcEndpointId.NotFound",
    )
    there = [each for each in (said or {}).get("VpcEndpoints", []) if each["State"] != "deleted"]
    return {"state": "available"} if there else None


def _no_endpoint(cloud: Cloud, endpoint: str, _: Values) -> None:
    cloud.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[endpoint])


KINDS = (
    Kind(
        "aws:ec2/vpc:Vpc",
        _vpc,
        _one("describe_vpcs", "Vpcs", "VpcIds", "InvalidVpcID.NotFound", lambda one: {
            "cidrBlock": one["CidrBlock"],
        }),
        _gone("delete_vpc", "VpcId", "InvalidVpcID.NotFound"),
        retag,
    ),
    Kind(
        "aws:ec2/internetGateway:InternetGateway",
        _gateway,
        _one("describe_internet_gateways", "InternetGateways", "InternetGatewayIds",
             "InvalidInternetGatewayID.NotFound", lambda one: {}),
        _no_gateway,
        retag,
    ),
    Kind(
        "aws:ec2/routeTable:RouteTable",
        _table,
        _one("describe_route_tables", "RouteTables", "RouteTableIds",
             "InvalidRouteTableID.NotFound", lambda one: {}),
        _gone("delete_route_table", "RouteTableId", "InvalidRouteTableID.NotFound"),
        retag,
    ),
    Kind("aws:ec2/route:Route", _route, _find_route, _no_route),
    Kind(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        _association,
        _find_association,
        _gone("disassociate_route_table", "AssociationId", "InvalidAssociationID.NotFound"),
    ),
    Kind(
        "aws:ec2/subnet:Subnet",
        _subnet,
        _one("describe_subnets", "Subnets", "SubnetIds", "InvalidSubnetID.NotFound", lambda one: {
            "cidrBlock": one["CidrBlock"],
            "availabilityZone": one["AvailabilityZone"],
        }),
        _gone("delete_subnet", "SubnetId", "InvalidSubnetID.NotFound"),
        retag,
    ),
    Kind("aws:ec2/vpcEndpoint:VpcEndpoint", _endpoint, _find_endpoint, _no_endpoint, retag),
)  # fmt: skip
