"""From a model folder to a `Translator` with its engine, to a `TextModel` or to a `PictureClassifier`.

CTranslate2 needs neither torch nor numpy, so both are imported only when the model itself is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jumok.errors import (
    JumokError,
    ModelFolderError,
    RecipeError,
    StorageError,
    UnsupportedError,
    suggest,
)
from jumok.inference.engines.cache import evict, get_or_create
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine, require_ctranslate2
from jumok.inference.first_use import check_conversion, check_tokenizers
from jumok.inference.search.plan import SearchPlan
from jumok.inference.translator import LazyModel, ModelFacts, Translator
from jumok.storage.model_folder import read_stored_model
from jumok.storage.user_cache import private_folder
from jumok.text.sentences import sentences_for_scores, sentences_for_texts
from jumok.text.tokenizer_files import tokenizers_from_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe
    from jumok.inference.engines.protocol import Engine
    from jumok.inference.picture_classifier import PictureClassifier
    from jumok.inference.shortlist import Shortlist
    from jumok.inference.text_model import TextModel
    from jumok.models.model import TranslationModel
    from jumok.storage.model_folder import ModelCard, StoredModel
    from jumok.text.tokenizer import TokenizerPair

ENGINES = ("auto", "torch", "ctranslate2")
CONVERTER_VERSION = 1
"""Increment this number if `export` writes different files. Cached models are then converted again."""

PHASES = "phases"
"""Key of a fact of the model card (`jumok.json`): the number of phases of the training run, if several."""
INT8_COSTS = "int8_costs"
"""Key of a fact of the model card: how many BLEU points 8-bit weights cost on the validation set."""
MAX_INT8_COST = 0.2
"""BLEU points. A model runs with 8-bit weights if they cost less than this."""
MIN_POSITIONS, MAX_POSITIONS = 2048, 8192
"""Positions of a converted model. Each takes four bytes × width in the position table."""


def load(
    folder: str | Path,
    *,
    engine: str = "auto",
    cores: int | None = None,
    shortlist: Shortlist | bool = False,
    device: str = "auto",
    precision: str = "auto",
) -> Translator:
    """Return the translator in a model folder. Every file is verified first. No file is executed.

    The engine "ctranslate2" runs a converted copy of the model. The copy is made on first use and stored in
    the user's cache folder. (A model that was imported from CTranslate2's files needs no copy, and torch
    cannot run it.) The engine "torch" runs the model itself. "auto" selects ctranslate2 if ctranslate2 can
    run the model. If not, it selects torch, and `translator.engine.fallback_reason` says why.

    On a CPU, a converted model runs on `cores` cores, by default on all. `shortlist` limits translations to
    the tokens of a shortlist. True means the stored shortlist. `device` says where the engine computes
    (`system/device.py`): ctranslate2 can use the CPU and CUDA. `precision` is for torch only, because a
    converted model computes in the precision to which it was converted.
    """
    if engine not in ENGINES:
        raise RecipeError(
            f'There is no engine "{engine}".{suggest(engine, ENGINES)} Known: {", ".join(ENGINES)}.'
        )
    stored = read_stored_model(Path(folder))
    _check_translates(stored)
    tokenizers = open_tokenizers(stored)
    chosen_shortlist = choose_shortlist(shortlist, stored, tokenizers)
    if stored.converted_files is not None and engine == "torch":
        stored.weights()  # raises: only CTranslate2 runs this model
    reads_pictures = stored.card.recipe.source.kind == "pictures"  # only torch supports pictures
    if engine == "torch" or (engine == "auto" and reads_pictures):
        model = _build(stored, tokenizers, device, precision)
        return _make_translator(model, tokenizers, stored, None, chosen_shortlist)
    # Free the bytes of the weights: the engine has a converted copy. If needed, `_build` reads them again.
    stored = stored.without_weights()
    lazy_model = LazyModel(lambda: _build(stored, tokenizers, device, precision))
    options: dict[str, Any] = {"cores": cores, "shortlist": chosen_shortlist, "device": device}
    options["strict"] = engine == "ctranslate2"
    chosen_engine = _choose_engine(stored, tokenizers, lazy_model, options)
    return _make_translator(lazy_model, tokenizers, stored, chosen_engine, chosen_shortlist)


def load_text_model(folder: str | Path, *, device: str = "auto", precision: str = "auto") -> TextModel:
    """Return the language model or the encoder in a model folder. Every file is verified, as in `load`."""
    from jumok.inference.building import load_model  # start-up
    from jumok.inference.text_model import TextModel  # start-up
    from jumok.system.device import choose_device  # start-up

    stored = read_stored_model(Path(folder))
    recipe = stored.card.recipe
    if recipe.model.task in ("translate", "classify"):
        ability = {"translate": "translates", "classify": "names the classes of pictures"}[recipe.model.task]
        name = {"translate": "load", "classify": "load_picture_classifier"}[recipe.model.task]
        raise UnsupportedError(
            f"The model in {folder} {ability}; a model of plain text is needed. Load it with `jumok.{name}`, "
            "or use `jumok translate`."
        )
    tokenizers = open_tokenizers(stored)
    return TextModel(
        choose_device(device, precision).place(load_model(stored, tokenizers)),
        tokenizers.target,
        task=recipe.model.task,
        language=recipe.languages.target,
        max_tokens=recipe.training.max_sentence_tokens,
    )


def load_picture_classifier(
    folder: str | Path, *, device: str = "auto", precision: str = "auto"
) -> PictureClassifier:
    """Return the classifier of pictures in a model folder. Every file is verified, as in `load`."""
    from jumok.inference.building import load_model  # start-up
    from jumok.inference.picture_classifier import PictureClassifier  # start-up
    from jumok.system.device import choose_device  # start-up
    from jumok.text.class_names import ClassNames  # start-up
    from jumok.text.picture_tokenizer import PictureTokenizer  # start-up

    stored = read_stored_model(Path(folder))
    tokenizers = open_tokenizers(stored)
    pictures, classes = tokenizers.source, tokenizers.target
    if not isinstance(pictures, PictureTokenizer) or not isinstance(classes, ClassNames):
        raise UnsupportedError(
            f"The model in {folder} does not classify pictures. Load it with `jumok.load` or "
            "`jumok.load_text_model`; `jumok info` says what it does."
        )
    model = choose_device(device, precision).place(load_model(stored, tokenizers))
    return PictureClassifier(model, pictures, classes)


def open_tokenizers(stored: StoredModel) -> TokenizerPair:
    """Return the tokenizers of a model folder. On its first use, a child process loads them beforehand."""
    check_tokenizers(stored)
    tokenizers = tokenizers_from_files(stored.tokenizers)
    _check_pictures(stored, tokenizers)
    return tokenizers


def _check_pictures(stored: StoredModel, tokenizers: TokenizerPair) -> None:
    """Raise if the recipe and the source tokenizer differ in the kind of source or the size of pictures."""
    settings, source = stored.card.recipe.source, tokenizers.source
    if settings.kind == "pictures":
        from jumok.text.picture_tokenizer import PictureTokenizer  # start-up

        fits = source == PictureTokenizer.from_settings(settings)
    else:
        fits = not source.token_shape
    if not fits:
        raise ModelFolderError(
            f"{stored.folder} cannot be used: its recipe and its source tokenizer do not fit. Received: "
            f"source.kind = {settings.kind}, source.size = {settings.size}, source.patch_size = "
            f"{settings.patch_size}, and {source!r}. Copy the folder again from its origin."
        )


def choose_shortlist(
    requested: Shortlist | bool, stored: StoredModel, tokenizers: TokenizerPair
) -> Shortlist | None:
    """Return the requested shortlist. True stands for the stored shortlist, False for no shortlist.

    Raise if the shortlist does not fit the tokenizers.
    """
    if not isinstance(requested, bool):
        requested.check_fits(tokenizers)
        return requested
    if not requested:
        return None
    if stored.card.recipe.source.kind == "pictures":
        raise UnsupportedError(
            f"The model in {stored.folder} reads pictures. A shortlist gives the translations of source "
            "words, which pictures do not have. Leave --shortlist out."
        )
    if stored.shortlist is None:
        raise UnsupportedError(
            f"The model in {stored.folder} has no shortlist. Learn one with `jumok shortlist {stored.folder} "
            "PAIRS`, from the pairs that it was trained on."
        )
    from jumok.inference.shortlist import Shortlist  # start-up

    return Shortlist.from_bytes(stored.shortlist, tokenizers)


def max_positions_for(recipe: Recipe) -> int:
    """Return the number of positions of a converted model.

    The positions cover the longest source that is not split and, up to `MAX_POSITIONS`, the translation of
    this source. A longer translation runs on torch. Raise an UnsupportedError if the source alone needs more
    than `MAX_POSITIONS`.
    """
    max_tokens = recipe.training.max_sentence_tokens
    if max_tokens >= MAX_POSITIONS:
        raise UnsupportedError(
            f"a converted model has positions for at most {MAX_POSITIONS - 1:,} tokens of a source, and "
            f"training.max_sentence_tokens is {max_tokens:,}"
        )
    max_length = SearchPlan.from_settings(recipe.search).max_length(max_tokens)
    return max(MIN_POSITIONS, max_tokens + 1, min(max_length, MAX_POSITIONS))


def training_facts(recipe: Recipe, steps: int, plan: Sequence[tuple[int, int | None]]) -> dict[str, Any]:
    """Return the settings that determined the learning rate of every step.

    `plan` is the plan of the training run. It has a pair (first step, planned steps) for each of its
    revisions.
    """
    training = recipe.training
    return {
        "schedule": training.schedule,
        "learning_rate": training.learning_rate,
        "warmup": training.warmup_steps,
        "steps": steps,
        "plan": [list(revision) for revision in plan],
    }


def _check_translates(stored: StoredModel) -> None:
    """Raise if the model does not translate. The message says what the model can do instead."""
    task, folder = stored.card.recipe.model.task, stored.folder
    if task == "translate":
        return
    if task == "classify":
        raise UnsupportedError(
            f"The model in {folder} names the class of a picture and does not translate. `jumok translate "
            f"{folder} picture.png` prints the class; in Python: `jumok.load_picture_classifier`."
        )
    ability = "predicts masked tokens" if task == "masked" else "continues a text"
    complete = "" if task == "masked" else f"`jumok complete {folder}` continues lines, and "
    raise UnsupportedError(
        f"The model in {folder} was trained on plain text: it {ability} and does not translate. "
        f"{complete}`jumok evaluate {folder} text.txt` scores it; in Python, load it with "
        "`jumok.load_text_model`."
    )


def _build(
    stored: StoredModel, tokenizers: TokenizerPair, device: str = "cpu", precision: str = "fp32"
) -> TranslationModel:
    from jumok.inference.building import load_model  # start-up
    from jumok.system.device import choose_device  # start-up

    model = cast("TranslationModel", load_model(stored, tokenizers))
    return choose_device(device, precision).place(model)


def _make_translator(
    model: TranslationModel | LazyModel,
    tokenizers: TokenizerPair,
    stored: StoredModel,
    engine: Engine | None,
    shortlist: Shortlist | None,
) -> Translator:
    """Return a translator that searches and reads alignments as the model card says."""
    card = stored.card
    recipe, steps = card.recipe, card.facts.get("steps")
    training: dict[str, Any] = {}
    if isinstance(steps, int) and PHASES not in card.facts:  # the page draws the schedule of one phase only
        training = training_facts(recipe, steps, card.plan or ((0, steps),))
    translator = Translator(
        model,
        tokenizers,
        engine=engine,
        search=recipe.search,
        read_out=card.read_out,
        max_source_tokens=recipe.training.max_sentence_tokens,
        shortlist=shortlist,
        facts=ModelFacts(recipe.languages.source, recipe.languages.target, training, stored.digest),
    )
    translator.sentences = sentences_for_texts(card.facts)
    translator.sentences_for_scores = sentences_for_scores(card.facts)
    return translator


def _choose_engine(
    stored: StoredModel, tokenizers: TokenizerPair, model: LazyModel, options: dict[str, Any]
) -> Engine:
    """Return an engine for the converted model, or else the torch engine.

    If there is no engine for the converted model, and if `strict` is set or only CTranslate2 runs this model,
    raise an error.
    """
    try:
        require_ctranslate2()
        if stored.converted_files is None:
            private_folder("engines", make=True)  # raises an error if the cache cannot be used
        check_conversion(stored)
        return _converted_engine(stored, tokenizers, model, options)
    except UnsupportedError as error:
        if stored.converted_files is not None:
            raise UnsupportedError(f"{error}. Only CTranslate2 runs the model in {stored.folder}.") from None
        if options["strict"]:
            raise UnsupportedError(f"{error}. Choose the engine torch, or auto.") from None
        reason = str(error)
    except StorageError as error:
        if options["strict"] or stored.converted_files is not None:
            raise
        reason = str(error)
    from jumok.inference.engines.torch_engine import TorchEngine  # start-up

    return TorchEngine(model.model(), fallback_reason=reason, shortlist=options["shortlist"])


def _converted_engine(
    stored: StoredModel, tokenizers: TokenizerPair, model: LazyModel, options: dict[str, Any]
) -> Engine:
    """Return an engine for the converted model, which is converted now if it is not in the cache.

    Raise an UnsupportedError if the model cannot be converted.
    """
    if stored.card.recipe.source.kind == "pictures":
        raise UnsupportedError("CTranslate2 reads text, and this model reads pictures")
    recipe, vocab_sizes = stored.card.recipe, (tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    if stored.converted_files is not None:
        try:
            return _start_engine(dict(stored.converted_files), max(vocab_sizes), options)
        except _LoadError as error:
            raise ModelFolderError(
                f"{stored.folder} cannot be used: CTranslate2 cannot load it ({error}). Import it again."
            ) from None
    precision, max_positions = _precision(stored.card), max_positions_for(recipe)

    def convert() -> dict[str, bytes]:
        from jumok.inference.engines.ctranslate2_export import export  # start-up

        return export(model.model(), max_positions=max_positions, quantization=precision)

    key: dict[str, Any] = {
        "converter": CONVERTER_VERSION,
        "weights": stored.weights_entry["sha256"],
        "model": recipe.model.model_dump(mode="json"),
        "vocab_sizes": vocab_sizes,
        "max_positions": max_positions,
        "precision": precision,
    }
    folder = str(stored.folder.resolve())
    try:
        return _start_engine(get_or_create(key, convert, model=folder), max(vocab_sizes), options)
    except _LoadError:
        # The files are intact, but CTranslate2 cannot load them: perhaps another release of it wrote them.
        evict(key)
    try:
        return _start_engine(get_or_create(key, convert, model=folder), max(vocab_sizes), options)
    except _LoadError as error:
        raise UnsupportedError(f"CTranslate2 cannot run the converted model ({error})") from None


class _LoadError(Exception):
    """CTranslate2 cannot load a converted model."""


def _start_engine(files: dict[str, bytes], vocab_size: int, options: dict[str, Any]) -> Engine:
    try:
        return CTranslate2Engine(files, vocab_size=vocab_size, **options)
    except JumokError:
        raise
    except Exception as error:  # RuntimeError, UnicodeDecodeError, ValueError, MemoryError and others
        raise _LoadError(f"{type(error).__name__}: {error}") from error


def try_conversion(folder: str, digest: str) -> None:
    """Convert the model in a folder, store the result in the cache and run it.

    A model that only CTranslate2 runs is run from its folder. The child of `check_conversion` calls this.
    """
    stored = read_stored_model(Path(folder))
    if stored.digest != digest:
        raise ModelFolderError("it was changed while it was being loaded. Load it again.")
    tokenizers = tokenizers_from_files(stored.tokenizers)
    stored = stored.without_weights()
    model = LazyModel(lambda: _build(stored, tokenizers))
    try:
        engine = _converted_engine(stored, tokenizers, model, {"cores": 1})
    except UnsupportedError:
        return  # CTranslate2 does not run this model, so it cannot crash on it
    source = tokenizers.source.encode("Hello, 세계!")
    # The translation is not needed. If CTranslate2 crashes on the model, this process ends here.
    list(engine.search([source], SearchPlan(beam=1, max_length_ratio=1.0), prefixes=[[]]))


def _precision(card: ModelCard) -> str:
    """Return int8 if its cost was measured and is below `MAX_INT8_COST`, else float32."""
    cost = card.facts.get(INT8_COSTS)
    return "int8" if isinstance(cost, int | float) and cost < MAX_INT8_COST else "float32"
