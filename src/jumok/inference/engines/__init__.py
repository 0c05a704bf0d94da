"""Engines run a search: torch runs any model, CTranslate2 runs a converted copy faster."""
