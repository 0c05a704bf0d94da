"""Evaluation: BLEU, chrF, TER, perplexity, accuracy, alignment error, pointing, and significance."""
