"""The order of the pages: the course in teaching order, then all other pages by section."""

from __future__ import annotations

__all__ = ["COURSE", "ENGLISH_ONLY", "SECTIONS"]

COURSE = (
    "before-attention",
    "sequence-to-sequence",
    "additive",
    "luong",
    "look-up",
    "self-attention",
    "scaled-dot",
    "multi-head",
    "masks",
    "positions",
    "block",
    "decoder-and-training",
    "cost",
    "efficient",
    "linear",
    "restricted",
    "local",
    "offspring",
    "graph",
)
"""Pages of docs/explain in teaching order: each page builds on the pages before it."""

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Course", "강의", ("explain/index", *(f"explain/{page}" for page in COURSE))),
    (
        "Beside the course",
        "더 읽을거리",
        ("explain/classic-examples", "explain/common-mistakes", "explain/tools", "explain/out-of-scope"),
    ),
    (
        "Guides",
        "안내서",
        ("tutorial", "texts", "documents", "pictures", "page", "models", "serve", "scale", "quality"),
    ),
    ("Reference", "참고 자료", ("python", "explanation-format", "engines", "performance")),
    ("Project", "프로젝트", ("design", "renames", "log")),
)
"""For each section: its caption in English, its caption in Korean, and its pages."""

ENGLISH_ONLY = {"python": "파이썬 (영어)", "renames": "이름 변경 (영어)", "log": "기록 (영어)"}
"""Pages that exist in English only, with their names in the Korean navigation."""
