"""The HTTP API: the routes of LibreTranslate, and jumok's own routes, most of them under /v1/.

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
