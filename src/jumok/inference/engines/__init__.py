"""Engines that run a converted copy of a model: faster than torch, and without importing it.

    translator = load(folder, engine="auto")        converted where that is possible, torch where it is not
    translator.engine.name, translator.engine.why

`export` writes a Transformer down for CTranslate2, `cache` keeps what was written, `converted` runs it.
"""

from jumok.engines.converted import ConvertedEngine, require_ctranslate2
from jumok.engines.loading import ENGINES, INT8_COSTS, load, places_for

__all__ = ["ENGINES", "INT8_COSTS", "ConvertedEngine", "load", "places_for", "require_ctranslate2"]
