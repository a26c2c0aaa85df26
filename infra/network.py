"""The network of a fleet: a small VPC of its own, or the account's default one, as planned."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2

from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import tags

OWN_RANGE = ipaddress.ip_network("10.42.0.0/16")
_SUBNET_BITS = 20


@dataclass(frozen=True)
class NetworkArgs:
    """What the network is made for."""

    admitted: AdmittedFleet

    @property
    def zones(self) -> tuple[str, ...]:
        """Every zone of the placement once, in their own order."""
        return tuple(sorted(set(self.admitted.placement.zones)))


def subnet_range(zone: str) -> str:
    """The own network's range in a zone: by its letter, so that it is the same in every order."""
    blocks = list(OWN_RANGE.subnets(new_prefix=_SUBNET_BITS))
    return str(blocks[(ord(zone[-1]) - ord("a")) % len(blocks)])


class Network(pulumi.ComponentResource):
    """`vpc_id` and a public subnet for every zone of the placement."""

    vpc_id: pulumi.Output[str]
    subnets: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("harness:infra:Network", name, None, opts)
        if args.admitted.network == "own":
            self._make(args)
        else:
            self._find(args)
        self.register_outputs({"vpc_id": self.vpc_id, "subnets": self.subnets})

    def _make(self, args: NetworkArgs) -> None:
        child = pulumi.ResourceOptions(parent=self)
        label = tags(args.admitted)
        vpc = ec2.Vpc(
            "network",
            cidr_block=str(OWN_RANGE),
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=label,
            opts=child,
        )
        gateway = ec2.InternetGateway("gateway", vpc_id=vpc.id, tags=label, opts=child)
        table = ec2.RouteTable("routes", vpc_id=vpc.id, tags=label, opts=child)
        ec2.Route(
            "outward",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=child,
        )
        # Free, and not bound by the internet gateway's rate for one flow.
        ec2.VpcEndpoint(
            "store",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{args.admitted.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id],
            tags=label,
            opts=child,
        )
        self.vpc_id = vpc.id
        self.subnets = {}
        for zone in args.zones:
            subnet = ec2.Subnet(
                f"subnet-{zone}",
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=subnet_range(zone),
                map_public_ip_on_launch=True,
                tags=label,
                opts=child,
            )
            ec2.RouteTableAssociation(
                f"routes-{zone}", subnet_id=subnet.id, route_table_id=table.id, opts=child
            )
            self.subnets[zone] = subnet.id

    def _find(self, args: NetworkArgs) -> None:
        look = pulumi.InvokeOptions(parent=self)
        found = ec2.get_vpc_output(default=True, opts=look)
        self.vpc_id = found.id
        self.subnets = {
            zone: ec2.get_subnet_output(
                vpc_id=found.id, availability_zone=zone, default_for_az=True, opts=look
            ).id
            for zone in args.zones
        }
