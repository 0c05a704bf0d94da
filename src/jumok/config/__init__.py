"""Settings: the recipe, user overrides, and what is derived from the corpus and the machine."""
