"""Settings: one typed recipe, read from TOML, overridden, checked, saved.

What is not set is derived from the corpus and the machine (`derive.py` says how and why); a field's default
below is only what stands when there is nothing to derive it from. Which fields a person set is what pydantic
calls `model_fields_set`, so "not set" needs no special value. The docstring under each field is its help text
everywhere: `--help`, the commented `recipe.toml` and the reference page.
"""

from __future__ import annotations

import copy
import json
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from jumok.errors import RecipeError, nearest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "FAMILIES",
    "AttentionSettings",
    "DecoderOnlySettings",
    "EncoderOnlySettings",
    "LanguageSettings",
    "ModelSettings",
    "Recipe",
    "RecurrentSettings",
    "SearchSettings",
    "Settings",
    "Size",
    "Task",
    "TextSettings",
    "TrainingSettings",
    "TransformerSettings",
    "differences",
    "flatten",
    "make_recipe",
    "read_recipe",
    "setting_names",
    "write_recipe",
]

Size = Literal["auto", "tiny", "small", "base", "big"]
NormName = Literal["layer", "rms", "batch"]
PositionName = Literal["sinusoidal", "learned", "none", "rotary", "alibi", "relative-keys", "relative-bias"]
Task = Literal["translate", "language-model", "masked"]
"""What a model learns: the translation of a source, the next piece of a text, the hidden pieces of a text."""


class Settings(BaseModel):
    """Values that cannot change; a name that does not exist is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class LanguageSettings(Settings):
    source: str = ""
    """Language of the source side, as a code such as `en`."""
    target: str = ""
    """Language of the target side, as a code such as `ko`."""


class TextSettings(Settings):
    kind: Literal["unigram", "bpe"] = "unigram"
    """How pieces are learnt: the unigram language model or byte-pair encoding."""
    pieces: int = Field(8000, ge=64, le=128_000)
    """How many pieces a vocabulary holds, the four marks included. Derived from the size of the corpus."""
    shared: bool = True
    """One vocabulary for both languages, which lets the embeddings be tied."""
    byte_fallback: bool = True
    """Characters never seen fall into bytes, so that no text is ever unknown."""
    sampling: float = Field(0.0, ge=0, le=1)
    """Share of the words that are cut otherwise than best while training; 0 always takes the best cut."""


class AttentionSettings(Settings):
    """A mechanism by its name in the catalogue (`jumok models` lists them), with options of its own.

    In TOML `{ kind = "bahdanau", units = 256 }`, or the name alone where no option is set. The catalogue
    checks the options: what they are is a matter of the mechanism.
    """

    model_config = ConfigDict(extra="allow")

    kind: str = "scaled-dot"
    """The mechanism's name."""

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and value and "kind" not in value:
            raise ValueError('the mechanism\'s name is missing, as in { kind = "bahdanau" }')
        return {"kind": value} if isinstance(value, str) else value


class BlockSettings(Settings):
    """What every stack of self-attention blocks has, whichever half of the Transformer it is."""

    size: Size = "auto"
    """The one dial: sets the widths and depths of the model. `auto` picks from the corpus and says why."""
    width: int = Field(256, ge=8, le=8192)
    """Width of the embeddings and of every block."""
    feed_forward: int = Field(1024, ge=8, le=65536)
    """Width of the hidden layer of the position-wise network."""
    heads: int = Field(4, ge=1, le=64)
    """Attention heads of a block; must divide the width."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of activations dropped while training. Derived from the size of the corpus."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of attention weights dropped while training."""
    norm: Literal["pre", "post"] = "pre"
    """A norm before each part of a block, or after it as published."""
    norm_kind: NormName = "layer"
    """Over the features of a position (`layer`; `rms` keeps their mean) or the positions of a `batch`."""
    positions: PositionName = "sinusoidal"
    """How order is told: added to embeddings, or to the heads of self-attention (see `jumok models`)."""
    places: int = Field(1024, ge=2, le=1_000_000)
    """How many places learned positions know, source and target counted. The other kinds have no end."""
    tied: bool = True
    """One matrix for embeddings and output (for target and output, if vocabularies differ)."""


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
    """Folder of an `encoder-only` model, whose pieces, sizes and weights the encoder begins with."""


class RecurrentSettings(Settings):
    task: ClassVar[Task] = "translate"
    family: Literal["recurrent"] = "recurrent"
    """The family of the model."""
    size: Size = "auto"
    """The one dial: sets the widths and depths below. `auto` picks from the corpus and says why."""
    cell: Literal["rnn", "lstm", "gru"] = "gru"
    """What a step is made of: a plain tanh layer, a long short-term memory or a gated recurrent unit."""
    encoder_layers: int = Field(1, ge=1, le=16)
    """Recurrent layers of the encoder."""
    decoder_layers: int = Field(1, ge=1, le=16)
    """Recurrent layers of the decoder."""
    width: int = Field(256, ge=8, le=8192)
    """Width of the states; a bidirectional encoder gives half of it to each direction."""
    embedding: int = Field(256, ge=8, le=8192)
    """Width of the embeddings and of what predicts the next piece."""
    bidirectional: bool = True
    """The encoder reads both ways."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of activations dropped while training. Derived from the size of the corpus."""
    tied: bool = True
    """One matrix for both embeddings and the output (for target and output, if vocabularies differ)."""
    attention: AttentionSettings = AttentionSettings(kind="bahdanau")
    """Mechanism of the attention to the source; `none` leaves the decoder with the encoder's last state."""
    order: Literal["auto", "before", "after"] = "auto"
    """Whether the decoder attends before its step (Bahdanau) or after it (Luong); `auto`: as the mechanism's
    paper does."""
    input_feeding: bool = False
    """Feed what was attended to into the next step as well (Luong et al. 2015, section 3.3)."""


class DecoderOnlySettings(BlockSettings):
    family: Literal["decoder-only"] = "decoder-only"
    """The family of the model."""
    task: Literal["translate", "language-model"] = "translate"
    """Write the translation of a source, or go on with a text. Derived: pairs or plain text are given."""
    layers: int = Field(8, ge=1, le=128)
    """Blocks of the one stack that reads source and target."""
    attention: AttentionSettings = AttentionSettings()
    """Mechanism of the masked self-attention."""


class EncoderOnlySettings(BlockSettings):
    task: ClassVar[Task] = "masked"
    family: Literal["encoder-only"] = "encoder-only"
    """The family of the model."""
    layers: int = Field(4, ge=1, le=128)
    """Blocks of the encoder."""
    attention: AttentionSettings = AttentionSettings()
    """Mechanism of the self-attention, which sees both sides."""


FAMILIES: dict[str, type[Settings]] = {
    "transformer": TransformerSettings,
    "recurrent": RecurrentSettings,
    "decoder-only": DecoderOnlySettings,
    "encoder-only": EncoderOnlySettings,
}


def _family(model: Any) -> str:
    """Which family settings belong to; those that name none are a Transformer's."""
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


class TrainingSettings(Settings):
    steps: int | None = Field(None, ge=1)
    """Stop after this many updates."""
    epochs: float | None = Field(None, gt=0)
    """Stop after this many passes over the corpus."""
    minutes: float | None = Field(None, gt=0)
    """Stop after about this many minutes. A short measurement turns them into steps, stored with the run."""
    batch_tokens: int = Field(4096, ge=16)
    """Target pieces of a batch, padding counted. Derived from the size of the corpus."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are added up into one update."""
    learning_rate: float = Field(1e-3, gt=0)
    """Peak learning rate. Derived from the width."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Adam's β₂: how much of its average of squared gradients an update leaves. Derived from its pieces."""
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    """After the warm-up: the paper's inverse square root, a cosine to zero at the last step, or constant."""
    warmup: int = Field(1000, ge=0)
    """Updates over which the learning rate rises to its peak."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability mass taken from the right piece and spread over all."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay of Adam (AdamW); 0 is plain Adam."""
    clip: float = Field(1.0, ge=0)
    """Largest norm of a gradient; 0 does not clip."""
    ema: float = Field(0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is validated and kept; 0 keeps none."""
    average: int = Field(1, ge=1, le=50)
    """The model is the average of this many checkpoints; 1 keeps the best one as it is."""
    validate_every: int = Field(500, ge=1)
    """Updates between two validations (each also saves a checkpoint)."""
    stop_on: Literal["chrf", "bleu", "loss"] = "chrf"
    """Score on the validation set that decides which checkpoint is best and when to stop."""
    patience: int = Field(10, ge=0)
    """Stop when the score has not improved for this many validations; 0 never stops early."""
    longest: int = Field(200, ge=4)
    """Pairs with more pieces than this on either side are skipped, and counted."""
    held_out: int = Field(1000, ge=0)
    """Pairs held out for validation where no validation set is given (at most a tenth of the corpus)."""
    processes: int = Field(1, ge=1, le=256)
    """Processes that share every update, a thread each; 1: this one with all its threads. Measured where
    minutes are set."""
    seed: int = Field(1, ge=0)
    """Every random number is a function of this seed and the step."""


class SearchSettings(Settings):
    beam: int = Field(4, ge=1, le=64)
    """Hypotheses kept at each step; 1 is greedy."""
    patience_factor: float = Field(2.0, gt=0, le=64)
    """The search of a sentence ends when `beam` times this many translations are finished."""
    length_penalty: float = 1.0
    """A score is log p / length^penalty."""
    coverage_penalty: float = Field(0.0, ge=0)
    """Weight of Google's coverage penalty (Wu et al. 2016, eq. 14): source words left unattended cost."""
    no_repeat: int = Field(0, ge=0)
    """No n-gram of this many pieces occurs twice in a translation; 0 does not guard."""
    longest: float = Field(3.0, gt=0, le=1000)
    """A translation has at most this many times the pieces of its source, plus 10. Derived from the pairs."""


class Recipe(Settings):
    languages: LanguageSettings = LanguageSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = TransformerSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()


def make_recipe(settings: dict[str, Any] | None = None, **flat: Any) -> Recipe:
    """A recipe from nested settings and `section.name=value` overrides; None means "not set".

    >>> make_recipe({"model": {"size": "tiny"}}, **{"training.minutes": 45}).training.minutes
    45.0
    """
    nested = copy.deepcopy(settings or {})
    for path, value in flat.items():
        section, _, name = path.partition(".")
        if value is not None and isinstance(nested.setdefault(section, {}), dict):
            nested[section][name] = value
    try:
        return Recipe.model_validate(nested)
    except ValidationError as error:
        raise RecipeError(_explain(error)) from None


def read_recipe(path: Path) -> dict[str, Any]:
    """The settings of a `recipe.toml`, not yet checked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"There is no recipe at {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not a TOML file: {error}.") from None


def write_recipe(recipe: Recipe) -> str:
    """The recipe as TOML, each setting under its explanation. Settings that are None are left out."""
    lines: list[str] = []
    for section, settings in recipe:
        lines.append(f"[{section}]")
        lines.extend(_toml_lines(settings))
        lines.append("")
    return "\n".join(lines)


def flatten(recipe: Recipe, *, only_set: bool = False) -> dict[str, Any]:
    """`section.name` → value, of all settings or of those that were set."""
    return {
        f"{section}.{name}": value
        for section, settings in recipe
        for name, value in settings.model_dump().items()
        if not only_set or name in settings.model_fields_set
    }


def setting_names() -> list[str]:
    """`section.name` of every setting that there is, those of all families together."""
    sections: list[tuple[str, type[BaseModel]]] = [
        (section, type(settings)) for section, settings in Recipe() if section != "model"
    ]
    every = [*sections, *(("model", family) for family in FAMILIES.values())]
    return list(dict.fromkeys(f"{section}.{name}" for section, kind in every for name in kind.model_fields))


def differences(asked: Recipe, stored: Recipe) -> list[tuple[str, Any, Any]]:
    """The settings that were asked for by name and differ from the stored ones: (name, asked, stored)."""
    have = flatten(stored)
    return [
        (name, value, have.get(name))
        for name, value in flatten(asked, only_set=True).items()
        if value != have.get(name)
    ]


def _toml_lines(settings: Settings) -> list[str]:
    lines: list[str] = []
    for name, info in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value is not None:
            lines.append(f"# {' '.join((info.description or '').split())}")
            lines.append(f"{name} = {_toml(value)}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, BaseModel):
        inside = ", ".join(f"{name} = {_toml(item)}" for name, item in value if item is not None)
        return f"{{ {inside} }}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON escapes are TOML escapes; TOML alone also refuses a bare DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _explain(error: ValidationError) -> str:
    """All faults at once, one a line, unknown names with the nearest known one."""
    lines = ["The recipe cannot be used:"]
    for fault in error.errors():
        path = [str(part) for part in fault["loc"]]
        section, name = _settings_at(path[:-1]), ".".join(_without_family(path))
        if fault["type"] == "extra_forbidden":
            lines.append(f"  {name}: there is no such setting.{nearest(path[-1], section.model_fields)}")
        elif fault["type"] == "union_tag_invalid":
            family = _family(fault["input"])
            known = ", ".join(FAMILIES)
            lines.append(
                f"  model.family: there is no {family!r}.{nearest(family, FAMILIES)} There are: {known}."
            )
        else:
            lines.append(f"  {name}: {fault['msg']}. Received: {fault['input']!r}")
    return "\n".join(lines)


def _without_family(path: list[str]) -> list[str]:
    """pydantic names the family behind `model`; nobody writes it there."""
    return [
        part for place, part in enumerate(path) if (path[0], place) != ("model", 1) or part not in FAMILIES
    ]


def _settings_at(path: list[str]) -> type[BaseModel]:
    """The class of the settings that stand at a path such as ["model", "transformer"]."""
    settings: type[BaseModel] = Recipe
    for part in path:
        annotation = settings.model_fields[part].annotation if part in settings.model_fields else None
        candidates = [FAMILIES.get(part), annotation, *get_args(annotation)]
        settings = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), settings)
    return settings
