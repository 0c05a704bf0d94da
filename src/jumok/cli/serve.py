"""`jumok serve MODEL…`: a translation server for clients of LibreTranslate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ShortlistOption
from jumok.cli.language import localise, localise_text
from jumok.errors import RecipeError, UnsupportedError
from jumok.server.limits import Limits
from jumok.system.processes import available_cores


def serve(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="Model folders, one per language pair.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 5000,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes; one per core if not given.", min=1)
    ] = None,
    shortlist: ShortlistOption = False,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Require an API key; the file has one key per line.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another host name of this server.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="An origin whose web pages may use the API (CORS)."),
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="A trusted reverse proxy.")
    ] = None,
    characters: Annotated[
        int, typer.Option(help="Maximum characters per request.", min=1)
    ] = Limits.max_characters,
    seconds: Annotated[
        float,
        typer.Option(
            help="Maximum seconds of work per request, by the measured speed of the models.",
            min=0.1,
            max=36,  # the queue takes 54 s of work per worker, at most two thirds of them from one client
        ),
    ] = Limits.max_request_seconds,
    requests_per_minute: Annotated[
        int, typer.Option(help="Per API key or address; 0 for no limit.", min=0)
    ] = Limits.requests_per_minute,
    glossary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Terms that requests can use by this name (.tsv, .tbx, …)."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Print the configuration and what is unsafe about it, then exit.")
    ] = False,
) -> None:
    """Serve models over HTTP: the API of LibreTranslate, more under /v1/, and a web page at /.

    SIGTERM finishes the accepted requests, then exits. SIGHUP reloads models, API keys and glossaries.
    """
    try:
        from jumok.server.event_log import configure_logging, log_event  # optional
        from jumok.server.lifecycle import run_server  # optional
        from jumok.server.service import ServerSettings  # optional
        from jumok.server.settings_check import describe_server, security_warnings  # optional
    except ImportError as error:
        raise UnsupportedError(
            localise(
                'The server needs optional packages ({name} is missing). Run: pip install "jumok[serve]"',
                name=error.name,
            )
        ) from None
    settings = ServerSettings(
        models=tuple(models),
        host=host,
        port=port,
        workers=workers or available_cores(),
        shortlist=shortlist,
        api_keys=api_keys,
        allowed_hosts=tuple(allow_host or ()),
        allowed_origins=tuple(allow_origin or ()),
        proxies=tuple(proxy or ()),
        glossaries=tuple(map(_parse_named_file, glossary or ())),
        limits=Limits(
            max_characters=characters, max_request_seconds=seconds, requests_per_minute=requests_per_minute
        ),
    )
    warnings = security_warnings(settings)
    if check:
        unsafe = (f"unsafe    {warning}" for warning in warnings)
        typer.echo("\n".join(map(localise_text, (*describe_server(settings), *unsafe))))
        return
    configure_logging(sys.stderr)
    for warning in warnings:
        log_event("unsafe", reason=warning)
    run_server(settings, on_listening=lambda url, _: typer.echo(f"jumok serve: {url}"))
    sys.stdout.flush()


def _parse_named_file(argument: str) -> tuple[str, Path]:
    name, equals, path = argument.partition("=")
    if not equals or not name or not path:
        raise RecipeError(
            localise(
                "--glossary takes NAME=FILE, such as law=terms.tsv. Received: {argument!r}.",
                argument=argument,
            )
        )
    return name, Path(path)
