"""Predicates on both sides: tense, negation, respect, and the helpers that modes such as "can" bring.

English falls into three runs, because a subject or an adverb may stand between them: `front` (the auxiliary),
`middle` (not, never) and `main`. Korean is a row of eojeols. The pieces on both sides carry roles ("verb",
"not", "will", "helper" …) by which a sentence links them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from jumok.corpus.english_korean.conjugation import Stem, conjugate, honour, stem
from jumok.corpus.english_korean.english import BE, VerbForms, verb_forms
from jumok.corpus.english_korean.lexicon import Adjective, Verb

__all__ = [
    "ANY_ROLE",
    "BECOMES",
    "COPULA",
    "LOCATED",
    "MODES",
    "NEEDED",
    "OWNED",
    "RAINS",
    "SNOWS",
    "Mode",
    "Piece",
    "Slot",
    "english_predicate",
    "korean_predicate",
]


class Piece(NamedTuple):
    """An English word of a predicate and its role."""

    text: str
    role: str


# The last word of a predicate possibly stands for each of its English words.
ANY_ROLE = ("any",)


class Slot(NamedTuple):
    """A Korean word of a predicate and the roles it surely and possibly stands for."""

    text: str
    sure: tuple[str, ...]
    possible: tuple[str, ...]


English = tuple[tuple[Piece, ...], tuple[Piece, ...], tuple[Piece, ...]]


@dataclass(frozen=True, eq=False, slots=True)
class Mode:
    """What may be done to a predicate beside tense and negation: "can", "want to", being under way …

    English: a `modal` (can, could), or an inflected `helper` with its `joint` ("to"), then the main verb in
    `form`. Korean: the main verb with the ending `join`, the words `between`, and the stem that goes on.
    `negative` is a stem that is negative by itself; without it 지 않다 is used. `honours` says which of the
    two verbs takes -시-.
    """

    name: str
    modal: tuple[str, str] = ("", "")
    helper: VerbForms | None = None
    joint: tuple[str, ...] = ()
    form: str = "base"
    join: str = ""
    between: tuple[str, ...] = ()
    stem: Stem | None = None
    negative: Stem | None = None
    honours: str = "main"
    respectful: Stem | None = None


_BE = VerbForms("be", "is", "was", "been", "being")
_HAVE = verb_forms("have/had")
_EXISTS, _LACKS = stem("있다"), stem("없다")
_REMAINS = Stem("계시", "verb", respectful=True)
_DO = stem("하다")

_ALL_MODES = (
    Mode("simple"),
    Mode(
        "progressive",
        helper=_BE,
        form="gerund",
        join="고",
        stem=_EXISTS,
        honours="helper",
        respectful=_REMAINS,
    ),
    Mode("can", modal=("can", "could"), join="으ㄹ", between=("수",), stem=_EXISTS, negative=_LACKS),
    Mode("may", modal=("may", "may"), join="어도", stem=stem("되다")),
    Mode("forbidden", modal=("must", "must"), join="으면", between=("안",), stem=stem("되다")),
    Mode("must", helper=_HAVE, joint=("to",), join="어야", stem=_DO),
    Mode("intend", helper=_BE, joint=("going", "to"), join="으려고", stem=_DO, honours="helper"),
    Mode("decide", helper=verb_forms("decide"), joint=("to",), join="기로", stem=_DO, honours="helper"),
    Mode(
        "want",
        helper=verb_forms("want"),
        joint=("to",),
        join="고",
        stem=stem("싶다", "adjective"),
        honours="helper",
    ),
    Mode(
        "begin",
        helper=verb_forms("begin/began"),
        joint=("to",),
        join="기",
        stem=stem("시작하다"),
        honours="helper",
    ),
    Mode(
        "enjoy",
        helper=verb_forms("like"),
        form="gerund",
        join="는",
        between=("것을",),
        stem=stem("좋아하다"),
        honours="helper",
    ),
    Mode(
        "experience",
        helper=_HAVE,
        form="participle",
        join="으ㄴ",
        between=("적이",),
        stem=_EXISTS,
        negative=_LACKS,
        honours="helper",
    ),
    Mode(
        "skill",
        helper=verb_forms("know/knew"),
        joint=("how", "to"),
        join="으ㄹ",
        between=("줄",),
        stem=stem("알다"),
        negative=stem("모르다:르"),
        honours="helper",
    ),
    Mode("look", helper=verb_forms("look"), join="어", stem=stem("보이다"), honours="helper"),
    Mode("become", helper=verb_forms("become/became"), join="어지", honours="helper"),
)
MODES = {mode.name: mode for mode in _ALL_MODES}

LOCATED = Verb(_BE, (), _EXISTS, (), _REMAINS, frozenset(), True, (), key="be located")
OWNED = Verb(_HAVE, (), _EXISTS, (), None, frozenset(), True, (), key="have")
NEEDED = Verb(
    verb_forms("need"), (), stem("필요하다", "adjective"), (), None, frozenset(), True, (), key="need"
)
RAINS = Verb(verb_forms("rain"), (), stem("오다"), ("비가",), None, frozenset(), False, (), key="rain")
SNOWS = Verb(verb_forms("snow"), (), stem("오다"), ("눈이",), None, frozenset(), False, (), key="snow")
BECOMES = Verb(
    verb_forms("become/became/become"), (), stem("되다"), (), None, frozenset(), True, (), key="become"
)
COPULA = Verb(_BE, (), _EXISTS, (), None, frozenset(), True, (), key="be")

# Verbs whose negation is another verb.
_OPPOSITES = {"있": _LACKS, "알": stem("모르다:르")}

# What belongs to the verb without a meaning of its own: "to" in "listen to".
_PREPOSITIONS = frozenset({"to", "for", "at"})


@cache
def english_predicate(
    lexeme: Verb | Adjective, mode: Mode, tense: str, negative: bool, agreement: str, question: bool
) -> English:
    """The three English runs of a predicate: (does) (not) (listen to)."""
    middle = (Piece("not", "not"),) if negative else ()
    if mode.modal[0]:
        return _modal_predicate(lexeme, mode, tense, negative)
    finite, role, rest = _finite_verb(lexeme, mode)
    if tense == "future":
        return (Piece("will", "will"),), middle, (Piece(finite.base, role), *rest)
    if finite is _BE:
        return (Piece(BE[tense, agreement], role),), middle, rest
    if mode.name == "experience":
        never = (Piece("never", "not"),) if negative else ()
        return (Piece(_inflected(finite, "present", agreement), role),), never, rest
    if negative or question:
        auxiliary = "did" if tense == "past" else "does" if agreement == "third" else "do"
        return (Piece(auxiliary, "auxiliary"),), middle, (Piece(finite.base, role), *rest)
    return (), (), (Piece(_inflected(finite, tense, agreement), role), *rest)


def _modal_predicate(lexeme: Verb | Adjective, mode: Mode, tense: str, negative: bool) -> English:
    modal = mode.modal[tense == "past"]
    main = _main_words(lexeme, "base")
    if modal == "can" and negative:
        return (Piece("cannot", "helper"),), (), main
    is_negative = negative or mode.name == "forbidden"
    return (Piece(modal, "helper"),), (Piece("not", "not"),) if is_negative else (), main


def _finite_verb(lexeme: Verb | Adjective, mode: Mode) -> tuple[VerbForms, str, tuple[Piece, ...]]:
    """The verb that is inflected, its role, and the words that follow it."""
    if mode.helper is not None:
        joint = tuple(Piece(word, _JOINT_ROLES.get(word, "joint")) for word in mode.joint)
        role = "auxiliary" if mode.name == "intend" else "helper"
        return mode.helper, role, joint + _main_words(lexeme, mode.form)
    if isinstance(lexeme, Adjective):
        return _BE, "be", (Piece(lexeme.english, "verb"),)
    role = "be" if lexeme is COPULA else "verb"
    return lexeme.forms, role, _following(lexeme)


_JOINT_ROLES = {"how": "between", "going": "helper"}


def _main_words(lexeme: Verb | Adjective, form: str) -> tuple[Piece, ...]:
    if isinstance(lexeme, Adjective):
        return (Piece(lexeme.english, "verb"),)
    return (Piece(str(getattr(lexeme.forms, form)), "verb"), *_following(lexeme))


def _following(lexeme: Verb) -> tuple[Piece, ...]:
    return tuple(Piece(word, "joint" if word in _PREPOSITIONS else "verb") for word in lexeme.after)


def _inflected(forms: VerbForms, tense: str, agreement: str) -> str:
    if tense == "past":
        return forms.past
    return forms.third if agreement == "third" else forms.base


@cache
def korean_predicate(
    lexeme: Verb | Adjective,
    mode: Mode,
    tense: str,
    negative: bool,
    respected: bool,
    near: bool,
    final: str,
) -> tuple[Slot, ...]:
    """The eojeols of a predicate: 가지 않을 것이다. `near` is the first or second person.

    `final` names what the last word does: a statement or question (polite or not), or a link to a clause.
    """
    base, before, roles = lexeme.stem, lexeme.before, _VERB
    replaced = respected and lexeme.respectful is not None and mode.name not in ("look", "become")
    if negative and mode.name == "simple" and base.text in _OPPOSITES and not replaced:
        base, roles, negative = _OPPOSITES[base.text], ("verb", "not"), False
    if replaced and lexeme.respectful is not None:
        base, before = lexeme.respectful, ()
    elif respected and mode.honours == "main":
        base = honour(base)
    slots = [Slot(text, _VERB, ()) for text in before]
    if mode.name != "simple":
        joined, base, roles, negative = _with_helper(base, mode, negative, respected, near)
        slots += joined
    if negative and final in _PROHIBITIONS:
        return (
            *slots,
            Slot(conjugate(base, "지"), roles, ("joint",)),
            Slot(_PROHIBITIONS[final], ("not",), ANY_ROLE),
        )
    if negative:
        slots.append(Slot(conjugate(base, "지"), roles, ("joint",)))
        base, roles = Stem("않", "verb" if base.kind == "verb" else "adjective"), ("not",)
    slots += _finish(base, roles, final, tense)
    return tuple(slots)


_VERB: tuple[str, ...] = ("verb",)
_PROHIBITIONS = {"command": "마라", "polite command": "마세요"}
_HELPER: tuple[str, ...] = ("helper",)
_WISHES = stem("하다")
_ALLOWED = stem("되다")


def _with_helper(
    base: Stem, mode: Mode, negative: bool, respected: bool, near: bool
) -> tuple[list[Slot], Stem, tuple[str, ...], bool]:
    """The main verb joined to a helper; then the stem that goes on, its roles, and whether to negate it."""
    if mode.stem is None:  # 추워지다: helper and adjective are one word
        changed = Stem(conjugate(base, mode.join), "verb")
        return [], honour(changed) if respected else changed, ("verb", "helper"), negative
    if mode.name == "must" and negative:  # need not: 가지 않아도 된다
        slots = [Slot(conjugate(base, "지"), _VERB, ("joint",)), Slot("않아도", ("not",), ("verb",))]
        return slots, _ALLOWED, ("helper",), False
    slots = [Slot(conjugate(base, mode.join), _VERB, ("joint", "auxiliary"))]
    slots += [Slot(text, _BETWEEN[text], ("verb", "helper", "joint")) for text in mode.between]
    helper, roles = mode.stem, _HELPER
    if mode.name == "want" and not near:  # only the speaker and the hearer know: 가고 싶다, 가고 싶어 한다
        slots.append(Slot("싶어", ("helper",), ("verb", "joint")))
        helper = _WISHES
    if negative and mode.negative is not None:
        helper, roles, negative = mode.negative, ("helper", "not"), False
    if respected and mode.honours == "helper":
        helper = mode.respectful or honour(helper)
    return slots, helper, roles, negative


_BETWEEN = {"수": ("helper",), "안": ("not",), "것을": ("verb",), "적이": ("helper",), "줄": ("between",)}

# What the last word does, and its ending in each tense; a second part is a word of its own.
_FINALS: dict[str, dict[str, tuple[str, str]]] = {
    "statement": {"present": ("ㄴ다", ""), "past": ("어ㅆ다", ""), "future": ("으ㄹ", "것이다")},
    "polite": {"present": ("어요", ""), "past": ("어ㅆ어요", ""), "future": ("으ㄹ", "거예요")},
    "question": {"present": ("니", ""), "past": ("어ㅆ니", ""), "future": ("으ㄹ", "거니")},
    "quote": {"present": ("ㄴ다고", ""), "past": ("어ㅆ다고", ""), "future": ("으ㄹ", "거라고")},
    "and": {"present": ("고", ""), "past": ("어ㅆ고", "")},
    "but": {"present": ("지만", ""), "past": ("어ㅆ지만", "")},
    "then": {"present": ("고", ""), "past": ("고", ""), "future": ("고", "")},
    "if": {"present": ("으면", "")},
    "so": {"present": ("어서", ""), "past": ("어서", ""), "future": ("어서", "")},
    "when": {"present": ("으ㄹ", "때"), "past": ("어ㅆ을", "때")},
    "before": {"present": ("기", "전에"), "past": ("기", "전에")},
    "after": {"present": ("으ㄴ", "후에"), "past": ("으ㄴ", "후에")},
    "while": {"present": ("으면서", ""), "past": ("으면서", "")},
    "purpose": {"present": ("으러", "")},
    "relative": {"present": ("는", ""), "past": ("으ㄴ", ""), "future": ("으ㄹ", "")},
    "hope": {"present": ("기를", "")},
    "command": {"present": ("어라", "")},
    "polite command": {"present": ("으세요", "")},
    "proposal": {"present": ("자", "")},
    "polite proposal": {"present": ("어요", "")},
}


def _finish(base: Stem, roles: tuple[str, ...], final: str, tense: str) -> list[Slot]:
    """Put the last ending on."""
    ending, word = _FINALS[final][tense]
    if final == "relative" and tense == "past" and base.kind != "verb":
        ending = "어ㅆ던"
    if not word:
        return [Slot(conjugate(base, ending), roles, ANY_ROLE)]
    role = "will" if tense == "future" else "link"
    return [Slot(conjugate(base, ending), roles, ("joint",)), Slot(word, (role,), ANY_ROLE)]
