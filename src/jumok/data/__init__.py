"""Sentence pairs: readers per format, cleaning, corpus reports, the hold-out, the store on disk, batches."""
