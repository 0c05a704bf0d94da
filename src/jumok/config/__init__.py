"""Settings: the recipe, user overrides, and settings that are derived from the corpus and the machine."""
