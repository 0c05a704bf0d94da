"""The recipe: all settings in one typed object, each with a value; read from TOML, checked, saved.

The settings that a person has set have another type, `Overrides`. `resolve.py` makes a recipe of them. Most
other settings are derived from the corpus and the machine (`derive.py`). A setting that is neither set nor
derived has the default of its field. The docstring below a field is the comment of the setting in
`recipe.toml`, and the help of its command line option, if there is one (`setting_help`).
"""

from __future__ import annotations

import copy
import json
import tomllib
from functools import cache
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from jumok.config.renamed import with_current_names
from jumok.errors import RecipeError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

Size = Literal["auto", "tiny", "small", "base", "big"]
"""The sizes that a person may set; "auto" is the same as setting no size."""
ResolvedSize = Annotated[
    Literal["tiny", "small", "base", "big"] | None,
    BeforeValidator(lambda size: None if size == "auto" else size),
]
"""None: no size was set or derived. The widths and depths of an imported model, for example, have no size."""
NormName = Literal["layer", "rms", "batch"]
PositionName = Literal[
    "sinusoidal", "marian", "learned", "none", "rotary", "alibi", "relative-keys", "relative-bias"
]
ActivationName = Literal["relu", "swish", "gelu"]
InitialiserName = Literal[
    "xavier-uniform",
    "xavier-normal",
    "he-uniform",
    "he-normal",
    "lecun-uniform",
    "lecun-normal",
    "orthogonal",
    "normal",
    "truncated-normal",
    "uniform",
    "zeros",
    "ones",
]
Task = Literal["translate", "language-model", "masked", "classify"]
"""What a model learns: to translate a source (or to write the caption of a picture), to predict the next
token, to predict masked tokens, or to name the class of a picture."""


class Settings(BaseModel):
    """The base class of settings. Settings cannot be changed, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    section: ClassVar[str] = ""
    """The name of these settings' section in the recipe."""

    @model_validator(mode="before")
    @classmethod
    def _accept_old_names(cls, values: Any) -> Any:
        return _current_names(cls.section, values)


def _current_names(section: str, values: Any, *, stored: bool = False) -> Any:
    """Return the settings of a section under current names. Return `values` unchanged if it is not a dict."""
    if not section or not isinstance(values, dict):
        return values
    renamed_values = with_current_names(
        {f"{section}.{name}": value for name, value in values.items()}, stored=stored
    )
    return {name.removeprefix(f"{section}."): value for name, value in renamed_values.items()}


class LanguageSettings(Settings):
    section = "languages"
    source: str = ""
    """Language of the source side, as a code such as `en`."""
    target: str = ""
    """Language of the target side, as a code such as `ko`."""


class SourceSettings(Settings):
    section = "source"
    kind: Literal["text", "pictures"] = "text"
    """What the model reads: text, or pictures. Derived from the corpus."""
    size: int = Field(32, ge=1, le=1024)
    """Pixels per side of a picture: every picture is stretched to this square. Derived from the pictures."""
    patch_size: int = Field(4, ge=1, le=256)
    """Pixels per side of a patch, which is one token of a picture; must divide the size."""
    colour: Literal["rgb", "grey"] = "rgb"
    """Colours of pictures: red, green and blue, or brightness only. Derived from the pictures."""

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1

    @property
    def num_patches(self) -> int:
        """Patches per picture; 0 for text."""
        return (self.size // self.patch_size) ** 2 if self.kind == "pictures" else 0


class TextSettings(Settings):
    section = "text"
    kind: Literal["unigram", "bpe"] = "unigram"
    """How tokens are learnt: the unigram language model or byte-pair encoding."""
    vocab_size: int = Field(8000, ge=64, le=128_000)
    """Tokens in the vocabulary, the four special tokens included. Derived from the size of the corpus."""
    shared: bool = True
    """One vocabulary for both languages, which lets the embeddings be tied."""
    byte_fallback: bool = True
    """Encode characters that are not in the vocabulary as bytes, so that no text is unknown."""
    sampling: float = Field(0.0, ge=0, le=1)
    """Subword regularisation while training; 0: none. Unigram: share of words segmented at random; BPE:
    probability that a merge is skipped."""


class AttentionSettings(Settings):
    """A mechanism by its name in the catalogue (`jumok models` lists them), with its own options.

    In TOML `{ kind = "bahdanau", units = 256 }`, or just the name if no option is set. The catalogue checks
    the options.
    """

    model_config = ConfigDict(extra="allow")

    kind: str = "scaled-dot"
    """The mechanism's name."""

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _accept_bare_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and value:
            if "kind" not in value:
                raise ValueError('the mechanism\'s name is missing, as in { kind = "bahdanau" }')
            # In the table of old names, an option of a mechanism is a key like `luong-location.longest`.
            return _current_names(str(value["kind"]), value)
        return {"kind": value} if isinstance(value, str) else value


class BlockSettings(Settings):
    """Settings of every stack of self-attention blocks, in an encoder or a decoder."""

    section = "model"

    size: ResolvedSize = None
    """Sets all widths and depths of the model. `auto` chooses by the corpus and says why."""
    width: int = Field(256, ge=8, le=8192)
    """Width of the embeddings and of every block."""
    feed_forward: int = Field(1024, ge=8, le=65536)
    """Width of the hidden layer of the position-wise network."""
    activation: ActivationName = "relu"
    """Activation of the hidden layer of the position-wise network; the paper's is `relu`."""
    output_bias: bool = False
    """Add a bias to the output layer, as models of Marian have."""
    heads: int = Field(4, ge=1, le=64)
    """Attention heads per block; must divide the width unless key_width and value_width are set."""
    key_width: int | None = Field(None, ge=1, le=8192)
    """Width of the queries and keys of a head; default: the width divided by the heads."""
    value_width: int | None = Field(None, ge=1, le=8192)
    """Width of the values of a head; default: the width divided by the heads."""
    key_value_groups: int | None = Field(None, ge=1, le=64)
    """Groups of heads that share keys and values; 1 is multi-query attention; default: a group per head."""
    attention_bias: bool = False
    """Add biases to the projections of attention; the paper has none."""
    attention_init: InitialiserName = "xavier-uniform"
    """Initial values of the projections of attention."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of activations dropped while training. Derived from the size of the corpus."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of attention weights dropped while training."""
    norm: Literal["pre", "post"] = "pre"
    """Where the norms stand: before each sub-layer of a block, or after it as published."""
    norm_kind: NormName = "layer"
    """Normalise over the features of a position (`layer`; `rms` keeps their mean) or over a `batch`."""
    positions: PositionName = "sinusoidal"
    """Position encoding: added to the embeddings, or used in self-attention (see `jumok models`)."""
    max_positions: int = Field(1024, ge=2, le=1_000_000)
    """Number of `learned` positions (decoder-only: of source plus target); other encodings have no limit."""
    tied: bool = True
    """Share one matrix between embeddings and output (target and output only if tokenizers differ)."""


class TransformerSettings(BlockSettings):
    task: ClassVar[Task] = "translate"
    family: Literal["transformer"] = "transformer"
    """The family of the model."""
    encoder_layers: int = Field(4, ge=1, le=64)
    """Blocks in the encoder."""
    decoder_layers: int = Field(4, ge=1, le=64)
    """Blocks in the decoder."""
    encoder_attention: AttentionSettings = AttentionSettings()
    """Mechanism of the encoder's self-attention."""
    decoder_attention: AttentionSettings = AttentionSettings()
    """Mechanism of the decoder's masked self-attention."""
    cross_attention: AttentionSettings = AttentionSettings()
    """Mechanism of the attention from decoder to encoder."""
    encoder_from: str | None = None
    """Folder of an `encoder-only` model, whose vocabulary, sizes and weights the encoder starts from."""


class RecurrentSettings(Settings):
    section = "model"
    task: ClassVar[Task] = "translate"
    family: Literal["recurrent"] = "recurrent"
    """The family of the model."""
    size: ResolvedSize = None
    """Sets all widths and depths of the model. `auto` chooses by the corpus and says why."""
    cell: Literal["rnn", "lstm", "gru"] = "gru"
    """The cell: a plain tanh layer (`rnn`), a long short-term memory or a gated recurrent unit."""
    encoder_layers: int = Field(1, ge=1, le=16)
    """Recurrent layers of the encoder."""
    decoder_layers: int = Field(1, ge=1, le=16)
    """Recurrent layers of the decoder."""
    width: int = Field(256, ge=8, le=8192)
    """Width of the states; in a bidirectional encoder each direction has half of it."""
    encoder_width: int | None = Field(None, ge=8, le=16384)
    """Width of the encoder's states, both directions together; default: the width."""
    embedding: int = Field(256, ge=8, le=8192)
    """Width of the embeddings and of the layer that predicts the next token."""
    bidirectional: bool = True
    """The encoder reads in both directions."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of activations dropped while training. Derived from the size of the corpus."""
    tied: bool = True
    """Share one matrix between embeddings and output (target and output only if tokenizers differ)."""
    attention: AttentionSettings = AttentionSettings(kind="bahdanau")
    """Mechanism of the attention to the source; `none` gives the decoder only the encoder's last state."""
    order: Literal["auto", "before", "after"] = "auto"
    """Whether the decoder attends before its step (Bahdanau) or after it (Luong); `auto`: as in the paper of
    the mechanism."""
    input_feeding: bool = False
    """Feed context and state, combined, into the next step too (Luong et al. 2015, section 3.3)."""


class DecoderOnlySettings(BlockSettings):
    family: Literal["decoder-only"] = "decoder-only"
    """The family of the model."""
    task: Literal["translate", "language-model"] = "translate"
    """Translate a source, or continue a text. Derived from the corpus: pairs or plain text."""
    layers: int = Field(8, ge=1, le=128)
    """Blocks of the stack that reads source and target."""
    attention: AttentionSettings = AttentionSettings()
    """Mechanism of the masked self-attention."""


class EncoderOnlySettings(BlockSettings):
    family: Literal["encoder-only"] = "encoder-only"
    """The family of the model."""
    task: Literal["masked", "classify"] = "masked"
    """Predict masked tokens, or the class of a picture. Derived from the corpus: plain text or pictures."""
    layers: int = Field(4, ge=1, le=128)
    """Blocks of the encoder."""
    attention: AttentionSettings = AttentionSettings()
    """Mechanism of the bidirectional self-attention."""


SETTINGS_BY_FAMILY: dict[str, type[Settings]] = {
    "transformer": TransformerSettings,
    "recurrent": RecurrentSettings,
    "decoder-only": DecoderOnlySettings,
    "encoder-only": EncoderOnlySettings,
}


def _family(model: Any) -> str:
    """Return the family of model settings; the default is the Transformer."""
    if isinstance(model, dict):
        return str(model.get("family", "transformer"))
    return str(getattr(model, "family", "transformer"))


ModelSettings = Annotated[
    Annotated[TransformerSettings, Tag("transformer")]
    | Annotated[RecurrentSettings, Tag("recurrent")]
    | Annotated[DecoderOnlySettings, Tag("decoder-only")]
    | Annotated[EncoderOnlySettings, Tag("encoder-only")],
    Discriminator(_family),
]


MAX_MINUTES = 366 * 24 * 60  # a year


class TrainingSettings(Settings):
    section = "training"
    steps: int | None = Field(None, ge=1)
    """Stop after this many updates."""
    epochs: float | None = Field(None, gt=0)
    """Stop after this many passes over the corpus."""
    minutes: float | None = Field(None, gt=0, le=MAX_MINUTES)
    """Stop after about this many minutes. A short measurement converts them to steps, stored with the run."""
    batch_tokens: int = Field(4096, ge=16)
    """Target tokens per batch, including padding. Derived from the size of the corpus."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are summed for one update."""
    learning_rate: float = Field(1e-3, gt=0)
    """Peak learning rate. Derived from the width and the batch size."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Adam's β₂, the decay of its average of squared gradients. Derived from the tokens per update."""
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    """Learning rate after the warm-up: inverse square root, cosine to zero at the last step, or constant."""
    warmup_steps: int = Field(1000, ge=0)
    """Updates during which the learning rate rises to its peak."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability mass taken from the reference token and spread over all tokens."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay of Adam (AdamW); 0 is plain Adam."""
    clip_norm: float = Field(1.0, ge=0)
    """Maximum norm of the gradient; 0 does not clip."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of an exponential moving average of the weights, which is validated and saved; 0: none."""
    average_checkpoints: int = Field(1, ge=1, le=50)
    """Average the weights of this many checkpoints; 1 takes the best checkpoint."""
    validate_every: int = Field(500, ge=1)
    """Updates between validations; each validation also saves a checkpoint."""
    stop_on: Literal["chrf", "bleu", "loss", "accuracy"] = "chrf"
    """Validation score that decides which checkpoint is best and when to stop."""
    patience: int = Field(10, ge=0)
    """Stop if the score has not improved for this many validations; 0 never stops early."""
    max_sentence_tokens: int = Field(200, ge=4)
    """Skip pairs with more tokens than this on either side."""
    held_out_pairs: int = Field(1000, ge=0)
    """Pairs held out for validation if no validation set is given (at most a tenth of the corpus)."""
    processes: int = Field(1, ge=1, le=256)
    """Processes that compute every update together, with one thread each; 1: this process with all its
    threads. A run of more than a minute measures which is faster: one process, or one per core."""
    shares: int = Field(0, ge=0, le=256)
    """Divide every update into this many shares, so that the weights do not depend on the number of
    processes. There may be no more processes than shares. 0: one share per process, which is faster."""
    device: Literal["cpu", "cuda", "mps", "xpu"] = "cpu"
    """Where the model is trained. Derived: the first accelerator that torch finds, or the CPU."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Precision of products in training; weights are always fp32. Derived from the device."""
    seed: int = Field(1, ge=0)
    """Seed of all random numbers, which depend only on the seed and the step."""


def _list_of_names(value: Any) -> Any:
    """Return a single name as a list of one; convert paths to strings."""
    names = [value] if isinstance(value, str | Path) else value
    return [_name(name) for name in names] if isinstance(names, list | tuple) else names


def _name(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


Name = Annotated[str, BeforeValidator(_name)]
Names = Annotated[tuple[str, ...], BeforeValidator(_list_of_names)]


class FineTuningSettings(Settings):
    section = "fine_tuning"
    start_from: Name | None = None
    """Folder of a trained model, whose vocabulary, sizes and weights training starts from."""
    keep: Names = ()
    """Files of pairs that the start model can translate and that the new model should still translate. They
    are not trained on. The weights are chosen by the loss on these pairs, and their score is reported."""
    replay: Names = ()
    """Files of old pairs that are trained on again, so that the model does not forget them; a plain text is
    translated by the start model. Default: the pairs of the start model's run, else its own translations of
    the new sources."""
    replay_share: float = Field(0.5, ge=0, lt=1)
    """Share of old pairs (replay) among the training pairs; 0: only new pairs."""
    interpolate: bool = True
    """Choose a point between the weights of the start model and the new weights, by the validation set and
    the pairs to keep; false takes the new weights."""
    freeze: Names = ()
    """Weights that are not trained: `encoder`, `decoder`, `embeddings`, or patterns of weight names such as
    `encoder.0.*`."""


EXTRA_TOKENS = 10
"""A translation has at most `search.max_length_ratio` × source tokens, plus this many."""


class SearchSettings(Settings):
    section = "search"
    beam: int = Field(4, ge=1, le=64)
    """Hypotheses per step of the beam search; 1 is greedy."""
    patience_factor: float = Field(2.0, gt=0, le=64)
    """The search of a sentence ends when `beam` times this many hypotheses are finished."""
    length_penalty: float = 1.0
    """The score of a hypothesis is log p / length^penalty."""
    coverage_penalty: float = Field(0.0, ge=0)
    """Weight of the coverage penalty (Wu et al. 2016, eq. 14) for source words without attention."""
    no_repeat_ngram_size: int = Field(0, ge=0)
    """Forbid n-grams of this many tokens to occur twice in a translation; 0 allows all."""
    max_length_ratio: float = Field(3.0, gt=0, le=1000)
    """A translation has at most this many tokens per token of its source, plus 10. Derived from the pairs."""


class Recipe(Settings):
    """All settings by section, each with a value: `recipe.model.width`. A recipe cannot be changed."""

    languages: LanguageSettings = LanguageSettings()
    source: SourceSettings = SourceSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = TransformerSettings()
    training: TrainingSettings = TrainingSettings()
    fine_tuning: FineTuningSettings = FineTuningSettings()
    search: SearchSettings = SearchSettings()


def make_recipe(settings: Mapping[str, Any] | None = None, **overrides: Any) -> Recipe:
    """Return a recipe with the nested `settings`, updated with `overrides` (`section.name=value`).

    An override that is None has no effect. All other settings have their defaults.

    >>> make_recipe({"model": {"size": "tiny"}}, **{"training.minutes": 45}).training.minutes
    45.0
    """
    try:
        return Recipe.model_validate(merge_settings(settings, overrides))
    except ValidationError as error:
        faults = _explain(error)
        lines = [f"  {name}: {fault}" for name, fault in faults.items()]
        raise RecipeError("\n".join(["The recipe cannot be used:", *lines]), faults) from None


def merge_settings(nested: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings updated with `section.name` → value, all under current names. Check no value.

    None means "not set". Neither argument is changed.
    """
    merged = {
        section: _current_names(section, copy.deepcopy(values)) for section, values in (nested or {}).items()
    }
    not_none = {name: value for name, value in settings.items() if value is not None}
    for path, value in with_current_names(not_none).items():
        section, _, name = path.partition(".")
        if isinstance(merged.setdefault(section, {}), dict):
            merged[section][name] = value
    return merged


def make_stored_recipe(settings: dict[str, Any]) -> Recipe:
    """Return the recipe of nested settings that jumok has stored; old names in them cause no warning."""
    return make_recipe(_with_stored_names(settings))


def named_recipes() -> dict[str, Path]:
    """Return the recipes that ship with jumok: name → file, whose first line says what it is."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "recipes").glob("*.toml"))}


def read_recipe(path: Path) -> dict[str, Any]:
    """Return the settings in a recipe file; nothing but the TOML is checked.

    If there is no file at `path`, `path` may be the name of a recipe that ships with jumok. Old setting names
    in the recipe of a run folder are replaced by the current names without a warning.
    """
    recipe_files = named_recipes()
    try:
        file = path if path.is_file() else recipe_files.get(str(path), path)
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise RecipeError(
            f"There is no recipe at {path}.{suggest(str(path), recipe_files)} "
            f"Recipes that ship with jumok: {', '.join(recipe_files)}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not a TOML file: {error}.") from None
    is_in_run_folder = path.with_name("run.json").exists()
    return _with_stored_names(settings) if is_in_run_folder else settings


def _with_stored_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the nested settings of a stored recipe under their current names, without a warning."""
    nested = {section: _current_names(section, values, stored=True) for section, values in settings.items()}
    model = nested.get("model")
    if isinstance(model, dict):
        for name, value in model.items():
            if isinstance(value, dict):
                model[name] = _current_names(str(value.get("kind")), value, stored=True)
    return nested


def recipe_to_toml(recipe: Recipe) -> str:
    """Return the recipe as TOML, each setting below its help. Settings that are None are left out."""
    lines: list[str] = []
    for section, settings in recipe:
        lines.append(f"[{section}]")
        lines.extend(_toml_lines(settings))
        lines.append("")
    return "\n".join(lines)


def flatten(recipe: Recipe) -> dict[str, Any]:
    """Return `section.name` → value of all settings. Values are as a person writes them (`as_written`)."""
    return {
        f"{section}.{name}": as_written(value) for section, settings in recipe for name, value in settings
    }


def as_written(value: Any) -> Any:
    """Return a value as a person writes it: a mechanism as its name, or as a dict if it has options."""
    if isinstance(value, AttentionSettings):
        return value.model_dump() if value.options else value.kind
    return value


def setting_names() -> list[str]:
    """Return `section.name` of every setting of all families."""
    sections: list[tuple[str, type[BaseModel]]] = [
        (section, type(settings)) for section, settings in Recipe() if section != "model"
    ]
    classes = [*sections, *(("model", family) for family in SETTINGS_BY_FAMILY.values())]
    return list(dict.fromkeys(f"{section}.{name}" for section, kind in classes for name in kind.model_fields))


def setting_help(settings: type[BaseModel], name: str) -> str:
    """Return the docstring below a field, which is the help of the setting; "" if there is none."""
    classes = [base for base in settings.__mro__ if issubclass(base, Settings)]
    return next((texts[name] for texts in map(_field_docstrings, classes) if name in texts), "")


@cache
def _field_docstrings(settings: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of one class; empty if the source code is missing.

    Pydantic could read these docstrings, but it would read them for all classes at every import of this
    module, which takes 20 ms. `inspect.getsource` would parse the whole file. This function parses only the
    lines of the class.
    """
    import ast  # start-up
    import inspect  # start-up
    import linecache  # start-up

    lines = linecache.getlines(inspect.getfile(settings))
    from_class = dropwhile(lambda line: not line.startswith(f"class {settings.__name__}("), lines)
    head = next(from_class, "")
    body = takewhile(lambda line: not line.strip() or line.startswith(" "), from_class)
    statements = [
        statement
        for tree in ast.parse("".join((head, *body))).body
        if isinstance(tree, ast.ClassDef)
        for statement in tree.body
    ]
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(statements)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(below.value.value, str)
    }


def _toml_lines(settings: Settings) -> list[str]:
    lines: list[str] = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if value is not None:
            lines.append(f"# {' '.join(setting_help(type(settings), name).split())}")
            lines.append(f"{name} = {_toml(value)}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, BaseModel):
        inside = ", ".join(f"{name} = {_toml(item)}" for name, item in value if item is not None)
        return f"{{ {inside} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON escapes are TOML escapes; unlike JSON, TOML also refuses a bare DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _explain(error: ValidationError) -> dict[str, str]:
    """Return `section.name` → what is wrong. For an unknown name, suggest the closest known name."""
    faults: dict[str, str] = {}
    for detail in error.errors():
        path = [str(part) for part in detail["loc"]]
        name = ".".join(_without_family(path))
        if detail["type"] == "extra_forbidden":
            faults[name] = _explain_unknown(path[-1], _settings_at(path[:-1]))
        elif detail["type"] == "union_tag_invalid":
            family, known = _family(detail["input"]), ", ".join(SETTINGS_BY_FAMILY)
            hint = suggest(family, SETTINGS_BY_FAMILY)
            faults["model.family"] = f"there is no family {family!r}.{hint} Known: {known}."
        else:
            faults[name] = f"{detail['msg']}. Received: {detail['input']!r}"
    return faults


def _explain_unknown(name: str, settings: type[BaseModel]) -> str:
    """Say which families have a setting that these settings lack, or which setting may be meant."""
    families = [family for family, kind in SETTINGS_BY_FAMILY.items() if name in kind.model_fields]
    if settings not in SETTINGS_BY_FAMILY.values() or not families:
        return f"there is no such setting.{suggest(name, settings.model_fields)}"
    own = next(family for family, kind in SETTINGS_BY_FAMILY.items() if kind is settings)
    similar = [known for known in settings.model_fields if known in name or name in known]
    instead = similar or [known for known in settings.model_fields if known != "family"]
    owners = f"{' and '.join(families)} {'has' if len(families) == 1 else 'have'} it"
    return f"the family {own} has no such setting ({owners}). It has: {', '.join(instead)}."


def _without_family(path: list[str]) -> list[str]:
    """Remove the family that pydantic puts after `model` in the path of an error."""
    return [
        part
        for index, part in enumerate(path)
        if (path[0], index) != ("model", 1) or part not in SETTINGS_BY_FAMILY
    ]


def _settings_at(path: list[str]) -> type[BaseModel]:
    """Return the class of the settings at a path such as ["model", "transformer"]."""
    settings: type[BaseModel] = Recipe
    for part in path:
        annotation = settings.model_fields[part].annotation if part in settings.model_fields else None
        kinds = [SETTINGS_BY_FAMILY.get(part), annotation, *get_args(annotation)]
        classes = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
        settings = next(classes, settings)
    return settings
