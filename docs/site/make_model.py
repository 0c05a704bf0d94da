"""Write static/model.js, the model of the interactive figures and of live.html, from a model folder.

    python docs/site/make_model.py runs/demo/model

The committed file has the model of `make demo`: a Transformer, English to Korean, with weights in eight bits.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import jumok
from jumok.analysis.live_file import pack_model
from jumok.storage.model_folder import read_card

OUT = Path(__file__).parent / "static" / "model.js"


def write_model(folder: Path, out: Path) -> None:
    translator = jumok.load(folder, engine="torch")
    packed = pack_model(translator, read_card(folder).recipe.model, quantization="int8")
    model = {"description": packed.description, "weights": base64.b64encode(packed.weights).decode("ascii")}
    out.write_text(
        f"window.jumokModel={json.dumps(model, ensure_ascii=False, separators=(',', ':'))};\n", "utf-8"
    )


if __name__ == "__main__":
    write_model(Path(sys.argv[1]), OUT)
