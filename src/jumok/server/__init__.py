"""A translation server with the API of LibreTranslate, batching, scores, alignments and explanations."""
