"""What a model does with one sentence: its attention, its search, its numbers, and the effect of changes.

explanation = jumok.explain(translator, "I go home.")      a LiveExplanation: data and the model behind it
jumok.explain(translator, "I go home.", edit=jumok.Silence("cross", 0, 3))
jumok.save_explanation(explanation, "x.html"); jumok.show_explanation(explanation)    a file; a notebook cell
"""
