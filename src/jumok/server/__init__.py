"""A translation server: LibreTranslate's HTTP API, and routes for scores, alignments and explanations."""
