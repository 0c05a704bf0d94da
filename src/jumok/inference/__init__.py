"""From a model to translations: `load`, Translator, search, engines, word alignments read from attention."""
