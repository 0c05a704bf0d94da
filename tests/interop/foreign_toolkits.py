"""Make models with transformers and Marian, and compute with them the numbers that jumok must reproduce.

This program runs in a separate environment with transformers, torch, sentencepiece, numpy, pymarian and, for
`run`, ctranslate2. The environment does not need jumok:

    python foreign_toolkits.py make OUT PAIRS.tsv [--size tiny]     write five models, as folders and as zips
    python foreign_toolkits.py answer OUT PAIRS.tsv                 print the toolkits' answers as JSON
    python foreign_toolkits.py run EXPORT PAIRS.tsv                 print their answers for an export of jumok

The models are classic and tc-big of transformers, marian (the weights of classic in Marian's format, without
answers of its own), marian-trained (tokenized before Marian) and marian-built-in (with Marian's own
SentencePiece); Marian trains the last two. The tiny models and their
answers (--lines 20) are stored beside the tests. test_foreign_toolkits.py makes the full models if
JUMOK_TOOLKITS is the path of the environment's Python.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

CODES = (">>ko<<", ">>ja<<")
ODD_TEXTS = (
    "Where is it?",
    "Où est-il ?",
    "naïve  ﬁle…",
    "日本 A１",
    ">>ko<< I go home.",
    "I >>ko<< go home.",
    "—–|●" * 5,
)
# Each size is: width, width of the feed-forward network, heads, layers, number of SentencePiece pieces.
SIZES = {
    "tiny": (16, 32, 2, 1, 540),
    "full": (64, 128, 4, 2, 600),
}
MAX_TOKENS = 30


def learn_sentencepiece(lines: list[str], num_pieces: int, *, rule: str, marian: bool = False) -> bytes:
    """Train a SentencePiece model with the normalisation rule `rule`.

    If `marian` is true, the model has Marian's ids (`</s>` 0, `<unk>` 1).
    """
    import sentencepiece

    ids = {"unk_id": 1, "eos_id": 0, "bos_id": -1, "pad_id": -1} if marian else {}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=num_pieces,
        character_coverage=1.0,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        num_threads=1,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


def write_tokenizer(
    folder: Path, rows: list[list[str]], num_pieces: int, style: str, rule: str
) -> dict[str, int]:
    """Write source.spm, target.spm and vocab.json. As in real models, vocab.json has no rare pieces."""
    import sentencepiece

    counts: collections.Counter[str] = collections.Counter()
    for side, name in enumerate(("source.spm", "target.spm")):
        data = learn_sentencepiece([row[side] for row in rows], num_pieces, rule=rule)
        (folder / name).write_bytes(data)
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        counts.update(piece for row in rows for piece in processor.encode(row[side], out_type=str))
    frequent = [piece for piece, count in counts.most_common() if count > 2 and piece != "<unk>"]
    names = ["</s>", "<unk>", *frequent, *CODES]
    if style == "tc-big":  # such models have an ordinary token <s>, and an order in which </s> is not 0
        names = sorted([*names, "<s>"], key=lambda piece: (piece.strip("▁<>/"), piece))
    vocabulary = {piece: id_ for id_, piece in enumerate([*names, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    languages = (
        {"source_lang": "eng", "target_lang": "ko"}
        if style == "tc-big"
        else {"source_lang": "en", "target_lang": "ko"}
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**languages, "tokenizer_class": "MarianTokenizer"})
    )
    return vocabulary


def make_marian_mt(folder: Path, rows: list[list[str]], size: str, style: str, rule: str, steps: int) -> Any:
    """Write a MarianMT model, and return its weights, vocabulary and config.

    `style` is "classic" or "tc-big", two generations of OPUS-MT. The model is trained a little, so that its
    searches end.
    """
    import torch
    from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True)
    width, hidden, heads, layers, num_pieces = SIZES[size]
    vocabulary = write_tokenizer(folder, rows, num_pieces, style, rule)
    pad, end = vocabulary["<pad>"], vocabulary["</s>"]
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=len(vocabulary),
        decoder_vocab_size=len(vocabulary),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        max_position_embeddings=512,
        activation_function="relu" if style == "tc-big" else "swish",
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=end,
        bos_token_id=0,
        forced_eos_token_id=end,
        decoder_start_token_id=pad,
    )
    model = MarianMTModel(config)
    model.final_logits_bias = 0.3 * torch.randn(1, len(vocabulary))
    model.final_logits_bias[:, pad] = 0
    tokenizer = MarianTokenizer.from_pretrained(folder)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0)
    order = torch.randint(len(rows), (steps, 32), generator=torch.Generator().manual_seed(2))
    for step, indices in enumerate(order.tolist()):
        pairs = [rows[index] for index in indices]
        batch = tokenizer(
            [p[0] for p in pairs], text_target=[p[1] for p in pairs], return_tensors="pt", padding=True
        )
        batch["labels"][batch["labels"] == pad] = -100
        optimiser.param_groups[0]["lr"] = 5e-3 * min((step + 1) / 30, 1 - step / steps)
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():
            model.model.shared.weight[pad] = 0  # decoding begins with a zero vector
    model.eval().half().float()  # rounded to float16, so that all stored formats have the same numbers
    model.generation_config = GenerationConfig(
        bad_words_ids=[[pad]],
        num_beams=4,
        max_length=512,
        decoder_start_token_id=pad,
        eos_token_id=end,
        forced_eos_token_id=end,
        pad_token_id=pad,
        **({"renormalize_logits": True} if style == "tc-big" else {}),
    )
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.half().save_pretrained(folder)
    if style == "tc-big":  # such models are pickled PyTorch files, with a copy of the shared matrix
        (folder / "model.safetensors").unlink()
        # The position tables are left out, because transformers would read them in half precision.
        without_positions = {name: tensor.half() for name, tensor in state.items() if "embed_" not in name}
        torch.save(without_positions, folder / "pytorch_model.bin")
    (folder / "README.md").write_text(
        "---\nlicense: cc-by-4.0\n---\n\n# A model of the tests\n", encoding="utf-8"
    )
    return state, vocabulary, config


def write_marian(
    folder: Path, state: dict[str, Any], vocabulary: dict[str, int], config: Any, tokenizer: Path
) -> None:
    """Write these weights in the layout of an OPUS-MT zip, without <pad>, which Marian does not have.

    `tokenizer` is the folder of the SentencePiece models. preprocess.sh would create a file, if it were run.
    """
    import numpy

    folder.mkdir(parents=True)
    pad = vocabulary["<pad>"]
    arrays = {
        "Wemb": state["model.shared.weight"][:pad].numpy(),
        "decoder_ff_logit_out_b": state["final_logits_bias"][:, :pad].numpy(),
    }
    parts = {"fc1": "ffn_{}1", "fc2": "ffn_{}2", "final_layer_norm": "ffn_ffn_ln_{}"}
    for transformers_name, marian in (("self_attn", "self"), ("encoder_attn", "context")):
        parts |= {f"{transformers_name}.{letter}_proj": f"{marian}_{{}}{letter}" for letter in "qkv"}
        parts |= {
            f"{transformers_name}.out_proj": f"{marian}_{{}}o",
            f"{transformers_name}_layer_norm": f"{marian}_Wo_ln_{{}}",
        }
    for side in ("encoder", "decoder"):
        for layer in range(config.encoder_layers):
            for transformers_name, marian in parts.items():
                for kind in ("weight", "bias"):
                    tensor = state.get(f"model.{side}.layers.{layer}.{transformers_name}.{kind}")
                    if tensor is None:
                        continue
                    suffix = {"weight": "W", "bias": "b"}[kind]
                    if "norm" in transformers_name:
                        suffix = {"weight": "scale", "bias": "bias"}[kind]
                    name = f"{side}_l{layer + 1}_{marian.format(suffix)}"
                    arrays[name] = numpy.atleast_2d(tensor.numpy().T)
    options = {
        "type": "transformer",
        "dim-emb": config.d_model,
        "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers,
        "transformer-heads": config.encoder_attention_heads,
        "transformer-dim-ffn": config.encoder_ffn_dim,
        "transformer-ffn-activation": config.activation_function,
        "transformer-ffn-depth": 2,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-postprocess": "dan",
        "tied-embeddings-all": "true",
        "version": "v1.9.0",
    }
    text = "".join(f"{name}: {value}\n" for name, value in options.items()) + 'transformer-preprocess: ""\n'
    arrays["special:model.yml"] = numpy.frombuffer(text.encode() + b"\0" * 5, dtype=numpy.int8)
    with (folder / "opus.npz").open("wb") as file:
        numpy.savez(file, **arrays)
    lines = [
        f"{json.dumps(piece, ensure_ascii=False)}: {id_}\n" for piece, id_ in vocabulary.items() if id_ < pad
    ]
    (folder / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    (folder / "decoder.yml").write_text(
        "relative-paths: true\nmodels:\n  - opus.npz\nvocabs:\n  - opus.vocab.yml\n  - opus.vocab.yml\n"
        "beam-size: 4\nnormalize: 1\n"
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    (folder / "preprocess.sh").write_text(
        "#!/bin/sh\ntouch RAN\nsed -e 's/，/,/g' | spm_encode\n", encoding="utf-8"
    )
    (folder / "LICENSE").write_text("Attribution 4.0 International\n")


def train_marian(
    folder: Path, rows: list[list[str]], size: str, rule: str, steps: int, *, built_in: bool
) -> None:
    """Train a model with Marian, either with its built-in SentencePiece or with a vocabulary file."""
    import sentencepiece
    from pymarian import Trainer

    folder.mkdir(parents=True)
    width, hidden, heads, layers, num_pieces = SIZES[size]
    texts = [[row[side] for row in rows] for side in (0, 1)]
    if built_in:
        vocabulary = folder / "vocab.spm"
        vocabulary.write_bytes(learn_sentencepiece(texts[0] + texts[1], num_pieces, rule=rule, marian=True))
        lines = texts
    else:
        vocabulary, lines = folder / "opus.vocab.yml", []
        for side, name in enumerate(("source.spm", "target.spm")):
            (folder / name).write_bytes(learn_sentencepiece(texts[side], num_pieces, rule=rule))
            processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
            lines.append([" ".join(processor.encode(text, out_type=str)) for text in texts[side]])
        counts = collections.Counter(piece for side in lines for line in side for piece in line.split())
        names = ["</s>", "<unk>", *(piece for piece, _ in counts.most_common())]
        entries = [f"{json.dumps(piece, ensure_ascii=False)}: {id_}\n" for id_, piece in enumerate(names)]
        vocabulary.write_text("".join(entries), encoding="utf-8")
    for name, side in zip(("train.source", "train.target"), lines, strict=True):
        (folder / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    Trainer(
        f"--type transformer --model {folder}/model.npz --vocabs {vocabulary} {vocabulary} "
        f"--train-sets {folder}/train.source {folder}/train.target "
        f"--dim-emb {width} --enc-depth {layers} --dec-depth {layers} "
        f"--transformer-heads {heads} --transformer-dim-ffn {hidden} --transformer-ffn-activation swish "
        "--transformer-postprocess dan --tied-embeddings-all --learn-rate 0.005 --lr-warmup 50 "
        "--optimizer-params 0.9 0.98 1e-9 --clip-norm 1 --mini-batch 32 --maxi-batch 20 "
        f"--after-batches {steps} --save-freq {steps} "
        "--cpu-threads 1 --workspace 512 --seed 1 --overwrite --quiet"
    ).train()
    (folder / "decoder.yml").write_text(
        f"relative-paths: true\nmodels: [model.npz]\nvocabs: [{vocabulary.name}, {vocabulary.name}]\n"
        "beam-size: 4\nnormalize: 1\n"
    )
    for name in (
        "train.source",
        "train.target",
        "model.npz.optimizer.npz",
        "model.npz.progress.yml",
        "model.npz.yml",
    ):
        (folder / name).unlink(missing_ok=True)
    (folder / "model.npz.decoder.yml").unlink(missing_ok=True)  # it names paths of this machine


def pack(folder: Path) -> None:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}", (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def make(out: Path, pairs: Path, size: str) -> None:
    # Line 0 is the header.
    rows = [line.split("\t")[:2] for line in pairs.read_text(encoding="utf-8").splitlines()[1:2001]]
    rule, steps = "identity" if size == "tiny" else "nmt_nfkc", 300
    for style in ("classic", "tc-big"):
        state, vocabulary, config = make_marian_mt(out / style, rows, size, style, rule, steps)
        if style == "classic":
            write_marian(out / "marian", state, vocabulary, config, out / style)
    train_marian(out / "marian-trained", rows, size, rule, 200, built_in=False)
    train_marian(out / "marian-built-in", rows, size, rule, 200, built_in=True)
    for folder in [path for path in out.iterdir() if path.is_dir()]:
        pack(folder)


def answer_transformers(folder: Path, rows: list[list[str]], num_lines: int) -> dict[str, Any]:
    """Return the tokens of the first `num_lines` sources and of `ODD_TEXTS`, the logits of four pairs, and
    translations of at most 40 sources.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = [row[0] for row in rows[:num_lines]] + list(ODD_TEXTS)
    answers: dict[str, Any] = {"texts": texts}
    answers["tokens"] = [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"][:-1]) for text in texts]
    # Logits are stored for about 60 tokens. An export of jumok renames a second token <s> to <unused:s>.
    names = [name for name in tokenizer.encoder if name not in ("<pad>", "<unused:s>")]
    answers["columns"] = names[:: max(1, len(names) // 60)]
    columns = [tokenizer.encoder[name] for name in answers["columns"]]
    answers["logits"] = []
    for source, target in rows[:4]:
        ids = tokenizer(text_target=target)["input_ids"][:-1]
        with torch.inference_mode():
            batch = tokenizer(source, return_tensors="pt")
            begin = torch.tensor([[model.config.decoder_start_token_id, *ids]])
            logits = model(**batch, decoder_input_ids=begin).logits[0][:, columns]
        answers["logits"].append([source, target, [[round(x, 6) for x in row] for row in logits.tolist()]])
    sources = [row[0] for row in rows[: min(num_lines, 40)]]
    for name, options in {
        "greedy": {"num_beams": 1},
        "beam": {"num_beams": 4, "early_stopping": True},
    }.items():
        with torch.inference_mode():
            batch = tokenizer(sources, return_tensors="pt", padding=True)
            generated = model.generate(**batch, max_length=MAX_TOKENS + 2, **options).tolist()
        special = {tokenizer.pad_token_id, tokenizer.eos_token_id}
        answers[name] = [
            tokenizer.convert_ids_to_tokens([i for i in row if i not in special]) for row in generated
        ]
    return answers


def answer_marian(folder: Path, rows: list[list[str]], *, built_in: bool) -> dict[str, Any]:
    """Return Marian's translations of 30 lines, and the log-probability of each token.

    If `built_in` is true, Marian tokenizes, and the translations are texts. Otherwise, they are tokens
    separated by spaces.
    """
    import sentencepiece
    from pymarian import Translator

    vocabulary = folder / ("vocab.spm" if built_in else "opus.vocab.yml")
    options = {"beam_size": 4, "normalize": 1, "cpu_threads": 1, "quiet": True, "word_scores": True}
    translator = Translator(models=str(folder / "model.npz"), vocabs=[str(vocabulary)] * 2, **options)
    texts = [row[0] for row in rows[:30]]
    if built_in:
        lines = texts
    else:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
        lines = [" ".join(processor.encode(text, out_type=str)) for text in texts]
    answers = []
    for text, line in zip(texts, translator.translate(lines), strict=True):
        translation, _, scores = line.partition(" ||| WordScores= ")
        answers.append([text, translation, [float(score) for score in scores.split()]])
    return {"translations": answers}


def run_export(folder: Path, rows: list[list[str]], num_lines: int) -> dict[str, Any]:
    """Return the answers of transformers for an export, and the translations of CTranslate2."""
    import tempfile

    import ctranslate2

    answers = answer_transformers(folder, rows, num_lines)
    if json.loads((folder / "config.json").read_text())["model_type"] == "blenderbot":
        return answers  # CTranslate2 has no converter for Blenderbot
    with tempfile.TemporaryDirectory() as temporary:
        converted = Path(temporary) / "converted"
        ctranslate2.converters.TransformersConverter(str(folder)).convert(str(converted))
        translator = ctranslate2.Translator(str(converted), intra_threads=1)
        sources = [[*tokens, "</s>"] for tokens in answers["tokens"][: len(answers["greedy"])]]
        results = translator.translate_batch(sources, beam_size=1, max_decoding_length=MAX_TOKENS)
        answers["converted"] = [result.hypotheses[0] for result in results]
    return answers


def answer(out: Path, pairs: Path, num_lines: int) -> dict[str, Any]:
    # `make` trained the models on the pairs before these.
    rows = [line.split("\t")[:2] for line in pairs.read_text(encoding="utf-8").splitlines()[2001:]]
    answers = {style: answer_transformers(out / style, rows, num_lines) for style in ("classic", "tc-big")}
    answers["marian-trained"] = answer_marian(out / "marian-trained", rows, built_in=False)
    answers["marian-built-in"] = answer_marian(out / "marian-built-in", rows, built_in=True)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("make", "answer", "run"))
    parser.add_argument("out", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--size", choices=tuple(SIZES), default="full")
    parser.add_argument("--lines", type=int, default=900)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    if options.task == "make":
        make(options.out, options.pairs, options.size)
        return
    if options.task == "run":
        lines = options.pairs.read_text(encoding="utf-8").splitlines()[1:]
        answers = run_export(options.out, [line.split("\t")[:2] for line in lines], options.lines)
    else:
        answers = answer(options.out, options.pairs, options.lines)
    json.dump(answers, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
