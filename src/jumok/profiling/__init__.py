"""The measured cost of attention: table 1 of "Attention is all you need", and why it divides by √d.

`jumok bench attention` prints the result of `attention_table`.
"""
