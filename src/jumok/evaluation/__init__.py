"""Scores: BLEU, chrF and TER, perplexity, accuracy, alignment error, and pointing at regions of pictures.

Also the significance of differences, the scores of pairs for `jumok clean`, and what int8 or a shortlist
costs.
"""
