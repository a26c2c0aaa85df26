"""harness prices: the dated prices that bounds are made of; refreshed from AWS's public list."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from harness.cli.app import AsJson, app, finish
from harness.display.output import print_json, show
from harness.display.prices import price_table
from harness.display.progress import Progress
from harness.errors import BadInput, Waiting
from harness.price_refresh import (
    Offered,
    changes,
    offered_of,
    read_offer,
    refreshed,
    sources,
)
from harness.prices import PRICE_FOLDER, PriceFile, load_prices
from trainer import contract

CHUNK = 1 << 20


@app.command()
def prices(
    region: Annotated[str, typer.Option("--region", help="Whose prices.")] = "us-east-1",
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read the public price list and write the file anew.")
    ] = False,
    sourced: Annotated[
        list[str] | None,
        typer.Option("--from", help="Offer file (JSON), a path or https address; repeatable. "
                     "Absent: the Price List Query API, with your AWS credentials."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; absent: the one in use.")
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Print the prices of a region, or refresh them."""

    def work(progress: Progress) -> None:
        old = load_prices(region)
        new = old
        if refresh:
            if sourced:
                source = f"AWS price list, offer files: {', '.join(map(_name, sourced))}"
                new = refreshed(old, _from_files(sourced, old), source)
            else:
                source = "AWS Price List Query API, on demand"
                new = refreshed(old, _from_api(old), source)
            contract.write_json(out or PRICE_FOLDER / f"{region}.json", new.to_json())
        if as_json:
            print_json(new.to_json())
        else:
            show(price_table(new, changes(old, new)))

    finish(work, as_json=as_json)


def _name(source: str) -> str:
    """The address, or a file's name without the folders of this computer."""
    return source if "://" in source else Path(source).name


def _from_files(given: Iterable[str], old: PriceFile) -> Iterator[Offered]:
    for source in given:
        with closing(_open(source)) as handle:
            yield from read_offer(_chunks(handle, source), sources(old), source)


def _open(source: str) -> IO[bytes]:
    try:
        if "://" in source:
            if not source.startswith(("https://", "http://127.0.0.1:")):
                raise BadInput("is no https address", where=source)
            opened: IO[bytes] = urllib.request.urlopen(source, timeout=60)
            return opened
        return open(source, "rb")
    except urllib.error.URLError as error:
        raise Waiting(
            f"cannot be fetched ({error.reason})",
            where=source,
            next_command="type the same command again, or fetch the file and give its path",
        ) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=source) from None


def _chunks(handle: IO[bytes], source: str) -> Iterator[str]:
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while data := handle.read(CHUNK):
            yield decoder.decode(data)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read ({error})", where=source) from None


def _from_api(old: PriceFile) -> Iterator[Offered]:
    """Every product of the wanted usage types, by the Query API (it lives in us-east-1)."""
    import json

    from harness.cloud.clients import Aws, asking
    from harness.price_refresh import SERVICES

    aws = Aws("us-east-1")
    with asking("for the price list", where="pricing"):
        client: Any = aws.session.client("pricing", "us-east-1")
        pages = client.get_paginator("get_products")
        for service in SERVICES:
            for usage in sorted(sources(old)):
                wanted = [{"Type": "TERM_MATCH", "Field": "usagetype", "Value": usage}]
                for page in pages.paginate(ServiceCode=service, Filters=wanted):
                    for text in page["PriceList"]:
                        entry = json.loads(text)
                        found = offered_of(entry, str(entry.get("publicationDate", "")))
                        if found is not None:
                            yield found
