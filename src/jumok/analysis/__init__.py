"""What a model does with one sentence: its attention, its search, its numbers, and the effect of changes.

explanation = jumok.explain(translator, "I go home.")    a LiveExplanation: data, and the model behind them
jumok.explain(translator, "I go home.", edit=jumok.Silence("cross", 0, 3))    without head 3 of layer 0
jumok.save_explanation(explanation, "x.html")                                 a file
jumok.show_explanation(explanation)                                           a cell of a notebook
"""
