"""`explain`: a recorded beam search, then one teacher-forced pass over the translation that it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy
import torch

from jumok.analysis.bound_model import BoundModel
from jumok.analysis.change_edits import check_changes, check_rows, edit_from_changes
from jumok.analysis.changes import Change
from jumok.analysis.explanation import BeforeChange, NextToken, PatchedPicture, WordAlignment
from jumok.analysis.facts import model_facts
from jumok.analysis.heads import head_statistics
from jumok.analysis.live_explanation import LiveExplanation
from jumok.analysis.search_recorder import SearchRecorder
from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.data.batching import padded_batch
from jumok.errors import DataError
from jumok.inference.alignment.readout import (
    AttendedPair,
    default_read_out,
    head_errors,
    last_layer_read_out,
    links_in_both_directions,
    read_alignment,
)
from jumok.inference.alignment.symmetrisation import Symmetrisation, symmetrise
from jumok.inference.attention_maps import label_maps, picture_map
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.inference.search.beam import beam_search
from jumok.inference.search.plan import SearchPlan
from jumok.inference.text_options import LINE_BY_LINE
from jumok.pictures.reading import picture_name
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.sentences import text_spans
from jumok.text.word_mapping import merge_to_words
from jumok.types import BEGIN, END, PAD, Alignment, ReadOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.analysis.cost import CostLimits
    from jumok.analysis.search_tree import SearchTree
    from jumok.attention import Edit
    from jumok.inference.translator import Translator
    from jumok.models.model import State, TranslationModel
    from jumok.types import Batch, LogProbs

SYMMETRISATIONS: tuple[Symmetrisation, ...] = ("intersection", "grow-diagonal-final")


@dataclass(frozen=True, slots=True)
class ExplanationOptions:
    """Options of the search and of the explanation.

    If `beam` is None, the beam of the translator's search settings is used. `candidates` is the number of
    next tokens that are stored per step. With `gold`, each cross-attention head gets its alignment error,
    except for a picture.
    """

    beam: int | None = None
    candidates: int = 8
    gold: Alignment | None = None

    def __post_init__(self) -> None:
        if self.candidates < 0:
            raise DataError(
                f"The number of candidates is at least 0. Received: candidates = {self.candidates}."
            )


def explain(
    translator: Translator,
    sentence: str,
    *,
    target: str | None = None,
    prefix: str | Sequence[int] = "",
    edit: Change | Sequence[Change] | Edit | None = None,
    options: ExplanationOptions | None = None,
    limits: CostLimits | None = None,
    on_partial: Callable[[str], None] | None = None,
) -> LiveExplanation:
    """Return an explanation: attention, search, candidates, alignments, statistics of one translation.

    With a model that reads pictures, `sentence` is the path of a picture or a data: URL, and the translation
    is its caption.

    `target` is explained instead of the model's own translation. Without `target`, a search is recorded. It
    begins with `prefix`, text or token ids. `on_partial` receives the text of the best hypothesis after each
    step of the search, until this hypothesis is finished.

    `edit` changes attention, and the explanation also holds the unchanged translation, `before`. The tokens
    before the first step that a `Change` affects stay the same. An `Edit`, which is a function, may affect
    all steps. An empty list is no edit. `on_partial` reports only the search under the edit.

    With `limits`, maps that would be too large are refused before they are computed.
    """
    num_sentences = 1 if translator.reads_pictures else len(text_spans(sentence, translator.sentences))
    if target is None and num_sentences > 1:
        raise DataError(
            "One short sentence is explained at a time. Received: a text that is translated in "
            f"{num_sentences} parts. Explain its sentences one by one (`jumok.split_sentences` finds them), "
            'or set `translator.sentences = "keep"`.'
        )
    if isinstance(edit, Sequence) and not edit:
        edit = None
    options = options or ExplanationOptions()
    plan = SearchPlan.from_settings(translator.search, beam=options.beam)
    explainer = _Explainer(translator, plan, target, options, limits)
    source = _Source.of(translator, sentence)
    explanation = explainer.explain(source, prefix, edit, on_partial)
    is_default_translation = target is None and options.beam is None and not prefix and edit is None
    if is_default_translation and translator.engine.name != TorchEngine.name:
        # Rounding in a converted model may lead to another translation. Users see the translation of the
        # converted model, so this translation is explained instead.
        [translation] = translator.translate([sentence], **LINE_BY_LINE)
        if translation.text != explanation.text:
            # This text is explained like a given target, because its search was not recorded. `written_by`
            # tells the page that the engine wrote the text. Then the page does not label the text as given.
            explanation = replace(explainer, target=translation.text).explain(source, "", None, None)
            return replace(explanation, facts={**explanation.facts, "written_by": translator.engine.name})
    return explanation


@dataclass(frozen=True, slots=True)
class EditedModel:
    """A model as a `Stepper`, with an edit on all its attention."""

    model: TranslationModel
    edit: Edit | None

    def begin(self, source: Batch) -> State:
        return self.model.begin(source, edit=self.edit)

    def step(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State]:
        return self.model.step(state, last_tokens)

    def step_with_attention(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State, Tensor]:
        result: tuple[LogProbs, State, Tensor] = self.model.step_with_attention(state, last_tokens)  # type: ignore[operator]
        return result

    def reorder(self, state: State, order: Tensor) -> State:
        return self.model.reorder(state, order)


@dataclass(frozen=True, slots=True)
class _Source:
    """A sentence or a picture, as the model reads it and as it is shown."""

    tokens: Sequence[Any]  # ids, or an array (patch, value)
    sentence: TokenizedSentence
    picture: PatchedPicture | None = None

    @classmethod
    def of(cls, translator: Translator, sentence_or_path: str) -> _Source:
        tokenizer = translator.tokenizers.source
        if isinstance(tokenizer, PictureTokenizer):
            path = sentence_or_path
            patches = tokenizer.encode(path)
            sentence = TokenizedSentence.from_patches(picture_name(path), tokenizer.tokens(patches))
            return cls(patches, sentence, PatchedPicture.from_patches(patches, tokenizer))
        text = sentence_or_path.strip()
        [ids] = map(tuple, translator.source_ids([text]))
        return cls(ids, TokenizedSentence.from_ids(text, ids, tokenizer))


@dataclass(frozen=True, slots=True)
class _Translation:
    """A translation as token ids, and the search for it. `tree` is None if there was no search."""

    ids: tuple[int, ...]
    score: float | None = None
    ended: bool = True
    tree: SearchTree | None = None


@dataclass(frozen=True, slots=True)
class _Explainer:
    """Explains a translation, and the translation before a change too if there is a change.

    The fields are the arguments of `explain` that are the same for both translations.
    """

    translator: Translator
    plan: SearchPlan
    target: str | None
    options: ExplanationOptions
    limits: CostLimits | None

    def explain(
        self,
        source: _Source,
        prefix: str | Sequence[int],
        edit: Change | Sequence[Change] | Edit | None,
        on_partial: Callable[[str], None] | None,
    ) -> LiveExplanation:
        prefix_ids = self._prefix_ids(prefix)
        unchanged_model = BoundModel(self.translator.model, source.tokens, limits=self.limits)
        if edit is None:
            translation = self._translate(unchanged_model, prefix_ids, on_partial)
            return self._explanation(unchanged_model, source, translation, len(prefix_ids))
        before = self._translate(unchanged_model, prefix_ids, None)  # the translation before the change
        changes, model_edit = self._changes_and_edit(edit, unchanged_model, before.ids)
        changed_model = replace(unchanged_model, edit=model_edit)
        first_step = min((change.first_step for change in changes), default=0)
        prefix_ids = list(before.ids[:first_step]) if first_step > len(prefix_ids) else prefix_ids
        translation = self._translate(changed_model, prefix_ids, on_partial)
        check_rows(changes, max(len(before.ids), len(translation.ids)) + 1)
        return self._explanation(
            changed_model,
            source,
            translation,
            len(prefix_ids),
            changes=changes,
            before=BeforeChange(
                self._tokenized_target(before.ids),
                unchanged_model.log_prob(before.ids, ended=before.ended),
                changed_model.log_prob(before.ids, ended=before.ended),
                _token_log_probs(unchanged_model, before.ids),
                _token_log_probs(changed_model, before.ids),
            ),
        )

    def _prefix_ids(self, prefix: str | Sequence[int]) -> list[int]:
        if isinstance(prefix, str):
            return self.translator.prefix_ids([prefix])[0]
        # This call refuses ids outside the vocabulary, which have no embedding.
        self.translator.tokenizers.target.tokens(prefix)
        return list(prefix)

    def _changes_and_edit(
        self,
        edit: Change | Sequence[Change] | Edit,
        unchanged_model: BoundModel,
        target: Sequence[int],
    ) -> tuple[tuple[Change, ...], Edit | None]:
        """Return the changes, checked against the maps of `target`, and the edit that makes them.

        If `edit` is a function, there are no changes.
        """
        if not isinstance(edit, Change | Sequence):
            return (), edit
        changes = (edit,) if isinstance(edit, Change) else tuple(edit)
        [weights] = unchanged_model.weights([target])
        shapes = {site: array.shape for site, array in weights.items()}
        check_changes(changes, shapes, unchanged_model.model, translates=True)
        return changes, edit_from_changes(changes, unchanged_model.model, unchanged_model.source_length)

    def _translate(
        self,
        bound_model: BoundModel,
        prefix_ids: Sequence[int],
        on_partial: Callable[[str], None] | None,
    ) -> _Translation:
        """Return the given translation, or the best one that beam search finds."""
        tokenizer = self.translator.tokenizers.target
        target_ids = () if self.target is None else tuple(tokenizer.encode(self.target))
        bound_model.check_cost([target_ids or prefix_ids])
        if self.target is not None:
            return _Translation(target_ids)
        if not len(bound_model.source):
            return _Translation(())
        if len(bound_model.source) > self.translator.max_source_tokens and not bound_model.reads_picture:
            raise DataError(
                f"This sentence is too long to be explained at once: it has {len(bound_model.source):,} "
                f"tokens, and the model takes {self.translator.max_source_tokens:,}. Give a shorter "
                "sentence, or explain the `parts` of its translation in Python, one by one."
            )
        recorder = SearchRecorder(self.plan, tokenizer, on_partial)
        stepper = EditedModel(bound_model.model, bound_model.edit)
        with torch.inference_mode():
            batch = padded_batch([bound_model.source]).to(bound_model.model.device)
            with bound_model.model.autocast():
                [ranked] = beam_search(stepper, batch, self.plan, prefixes=[prefix_ids], on_step=recorder)
        tree = recorder.tree(bound_model, self.translator.read_out)
        if not ranked:  # if the scores of the model are NaN, the search finds no hypothesis
            return _Translation((), ended=False, tree=tree)
        best = next(tree.finished())
        return _Translation(ranked[0].ids, ranked[0].score, tree.candidate(*best).id == END, tree)

    def _explanation(
        self,
        bound_model: BoundModel,
        source: _Source,
        translation: _Translation,
        num_forced: int,
        *,
        changes: tuple[Change, ...] = (),
        before: BeforeChange | None = None,
    ) -> LiveExplanation:
        target = self._tokenized_target(translation.ids)
        [weights] = bound_model.weights([translation.ids])
        log_probs = bound_model.log_probs(translation.ids)  # (step, token)
        sentence, picture = source.sentence, source.picture
        maps = label_maps(weights, sentence.tokens, target.tokens, picture=picture is not None)
        statistics = {site: head_statistics(attention, picture) for site, attention in maps.items()}
        alignments: tuple[WordAlignment, ...] = ()
        if picture is not None:
            alignments = (_patch_alignment(weights["cross"], target.word_of_token),)
        elif "cross" in weights:
            pair = AttendedPair(weights["cross"], sentence.word_of_token, target.word_of_token)
            alignments = tuple(_alignments(pair, self.translator.read_out))
            if self.options.gold is not None:
                errors = head_errors(pair, self.options.gold).astype(numpy.float32)
                statistics["cross"] = replace(statistics["cross"], error=errors)
        return LiveExplanation(
            source=sentence,
            target=target,
            attention=maps,
            log_probs=_select_tokens(log_probs, translation.ids).numpy(),
            candidates=tuple(self._next_tokens(log_probs)),
            statistics=statistics,
            alignments=alignments,
            search=translation.tree,
            score=translation.score,
            ended=translation.ended,
            forced=num_forced if translation.tree else 0,
            changes=changes,
            before=before,
            facts=self._facts(),
            picture=picture,
            bound_model=bound_model,
            target_tokenizer=self.translator.tokenizers.target,
        )

    def _tokenized_target(self, ids: Sequence[int]) -> TokenizedSentence:
        tokenizer = self.translator.tokenizers.target
        text = " ".join(tokenizer.decode(ids).splitlines())
        return TokenizedSentence.from_ids(text, ids, tokenizer)

    def _next_tokens(self, log_probs: Tensor) -> Iterator[tuple[NextToken, ...]]:
        """Yield the most probable tokens of every step, without `<pad>` and `<s>`."""
        masked = log_probs.index_fill(1, torch.tensor([PAD, BEGIN]), -torch.inf)
        best = masked.topk(min(self.options.candidates, masked.shape[1]), dim=1)
        for values, ids in zip(best.values.exp().tolist(), best.indices.tolist(), strict=True):
            tokens = self.translator.tokenizers.target.tokens(ids)
            yield tuple(NextToken(*fields) for fields in zip(ids, tokens, values, strict=True))

    def _facts(self) -> dict[str, object]:
        facts = self.translator.facts
        return {
            **model_facts(self.translator.model),
            "source_language": facts.source_language,
            "target_language": facts.target_language,
            **({"training": dict(facts.training)} if facts.training else {}),
        }


def _patch_alignment(weights: NDArray[Any], word_of_token: Sequence[int]) -> WordAlignment:
    """Return the patch that each word of a caption attends to most, in the mean of the last layer's heads."""
    read_out = last_layer_read_out(*weights.shape[:2])
    rows = merge_to_words(picture_map(weights), word_of_token, range(weights.shape[3]))  # (word, patch)
    best_patches = enumerate(rows.argmax(axis=1))
    # No link: the rows of words that have no token, and the last rows, of tokens that belong to no word.
    links = frozenset((int(patch), word) for word, patch in best_patches if word in word_of_token)
    return WordAlignment("read-out", read_out.heads, read_out.shift, "argmax", Alignment(links))


def _alignments(pair: AttendedPair, model_read_out: ReadOut | None) -> Iterator[WordAlignment]:
    """Yield the word alignments of several read-outs, and two symmetrisations of the model's own read-out.

    The first is the alignment of the model's own read-out.
    """
    layers, heads = pair.weights.shape[:2]
    own_read_out = model_read_out or default_read_out(layers, heads)
    all_heads = tuple((layer, head) for layer in range(layers) for head in range(heads))
    read_outs = {
        "read-out": own_read_out,
        "shifted": ReadOut(own_read_out.heads, 1 - own_read_out.shift),
        "mean": ReadOut(all_heads),
        "mean, shifted": ReadOut(all_heads, 1),
        **{f"layer {n}": ReadOut(tuple(head for head in all_heads if head[0] == n)) for n in range(layers)},
        **{f"layer {layer}, head {head}": ReadOut(((layer, head),)) for layer, head in all_heads},
    }
    for name, read_out in read_outs.items():
        links = read_alignment(pair, read_out)
        method = "argmax" if read_out.min_source_weight is None else "argmax in both directions"
        yield WordAlignment(name, read_out.heads, read_out.shift, method, links)
        if name == "read-out":
            both_directions = links_in_both_directions(pair, read_out)
            for method in SYMMETRISATIONS:
                links = Alignment(symmetrise(*both_directions, method))
                yield WordAlignment(method, read_out.heads, read_out.shift, method, links)


def _select_tokens(log_probs: Tensor, ids: Sequence[int]) -> Tensor:
    """Return the log-probability of each token and of `</s>`. `log_probs` is (step, token)."""
    return log_probs.gather(1, torch.tensor([*ids, END])[:, None])[:, 0].float()


def _token_log_probs(bound_model: BoundModel, ids: Sequence[int]) -> tuple[float, ...]:
    """Return the log-probability of each token of a translation and of the final `</s>`."""
    return tuple(_select_tokens(bound_model.log_probs(ids), ids).tolist())
