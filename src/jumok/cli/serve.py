"""`jumok serve MODEL…`: a translation server that clients of LibreTranslate already speak to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ShortlistOption
from jumok.errors import UnsupportedError
from jumok.processes import available_cores
from jumok.serve import Limits


def serve(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Model folders, one for each direction.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 is all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.", min=0, max=65535)] = 5000,
    workers: Annotated[
        int | None, typer.Option(help="Processes that translate; one a core if not given.", min=1)
    ] = None,
    shortlist: ShortlistOption = False,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ask for a key: one of this file, a line each.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name under which it is reached.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A web page's origin that may use it.")
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="A reverse proxy that is believed.")
    ] = None,
    characters: Annotated[int, typer.Option(help="The most of one request.", min=1)] = Limits.characters,
    requests_per_minute: Annotated[
        int, typer.Option(help="Of one key or address; 0 is no limit.", min=0)
    ] = Limits.requests_per_minute,
    check: Annotated[
        bool, typer.Option("--check", help="Say what it would do and what is unsafe about it; do nothing.")
    ] = False,
) -> None:
    """Serve models over HTTP: the contract of LibreTranslate, more under /v1/, and a page at /.

    SIGTERM answers what was accepted, then ends. SIGHUP reads the models anew.
    """
    try:
        from jumok.serve.checking import plan_lines, warnings
        from jumok.serve.journal import note, write_journal
        from jumok.serve.running import run_server
        from jumok.serve.service import ServeSettings
    except ImportError as error:
        raise UnsupportedError(
            f'Serving needs a few libraries more ({error.name} is missing). Run: pip install "jumok[serve]"'
        ) from None
    settings = ServeSettings(
        models=tuple(models),
        host=host,
        port=port,
        workers=workers or available_cores(),
        shortlist=shortlist,
        keys=api_keys,
        allowed_hosts=tuple(allow_host or ()),
        allowed_origins=tuple(allow_origin or ()),
        proxies=tuple(proxy or ()),
        limits=Limits(characters=characters, requests_per_minute=requests_per_minute),
    )
    unsafe = warnings(settings)
    if check:
        typer.echo("\n".join([*plan_lines(settings), *(f"unsafe    {warning}" for warning in unsafe)]))
        return
    write_journal(sys.stderr)
    for warning in unsafe:
        note("unsafe", reason=warning)
    run_server(settings, listening=lambda address, _: typer.echo(f"jumok serve: {address}"))
    sys.stdout.flush()
