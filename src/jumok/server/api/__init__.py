"""The HTTP API: LibreTranslate's routes, version 1, attention, and captions.

Each module lists its `ROUTES`. A new module is added to `API_ROUTES`.
"""

from jumok.server.api import attention, captions, libretranslate, v1

__all__ = ["API_ROUTES"]

API_ROUTES = (*libretranslate.ROUTES, *v1.ROUTES, *attention.ROUTES, *captions.ROUTES)
