"""The explanation of a class: the class that a classifier assigns to a picture, and where it looked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jumok.analysis.explanation import Explanation, NextToken, PatchedPicture
from jumok.analysis.facts import model_facts
from jumok.analysis.heads import head_statistics
from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.pictures.reading import picture_name

if TYPE_CHECKING:
    from jumok.inference.picture_classifier import PictureClassifier


def explain_class(classifier: PictureClassifier, path: str, *, candidates: int = 8) -> Explanation:
    """Return the explanation of a picture's class. `path` may also be a data: URL.

    The source is the class token and the patches. The target is the name of the class. The roll-out of the
    encoder from the class token shows where the classifier looked. `candidates` is the maximum number of
    classes that are stored with their probabilities.
    """
    attention = classifier.attention(path)
    picture = PatchedPicture.from_patches(
        classifier.picture_tokenizer.encode(path), classifier.picture_tokenizer
    )
    [answer] = classifier.classify([path])
    ranked = sorted(answer.probabilities.items(), key=lambda item: -item[1])[:candidates]
    ids = {name: classifier.classes.encode(name)[0] for name, _ in ranked}
    probability = answer.probabilities[answer.name]
    return Explanation(
        source=TokenizedSentence.from_patches(picture_name(path), attention.keys),
        target=TokenizedSentence(
            answer.name, tuple(classifier.classes.encode(answer.name)), (answer.name,), (answer.name,), (0,)
        ),
        attention={"encoder": attention},
        log_probs=np.log([probability], dtype=np.float32),
        candidates=(tuple(NextToken(ids[name], name, value) for name, value in ranked),),
        statistics={"encoder": head_statistics(attention, picture)},
        ended=False,  # a class has no </s>
        facts=model_facts(classifier.model),
        picture=picture,
    )
