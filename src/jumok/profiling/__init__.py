"""The measured cost of attention: table 1 of "Attention is all you need", and why scores are divided by √d.

`jumok bench attention` prints the result of `attention_table`.
"""
