"""Text as tokens and words: normalisation, the SentencePiece tokenizer, word splitting, languages."""
