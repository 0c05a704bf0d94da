"""The HTTP API: LibreTranslate's routes, version 1, candidate words, files, attention, and captions.

Each module lists its `ROUTES`. A new module is added to `API_ROUTES`.
"""

from jumok.server.api import attention, candidates, captions, file_stream, libretranslate, v1

__all__ = ["API_ROUTES"]

API_ROUTES = (
    *libretranslate.ROUTES,
    *v1.ROUTES,
    *candidates.ROUTES,
    *file_stream.ROUTES,
    *attention.ROUTES,
    *captions.ROUTES,
)
