"""Predicates in both languages: tense, negation, honorifics, and the auxiliaries of modes such as "can".

English has three parts, because a subject or an adverb may be between them: `front` (the auxiliary or a form
of "be"), `middle` (not, never) and `main`. Korean is a sequence of eojeols. The words of both languages have
roles ("verb", "not", "will", "helper", "how" …) by which they are aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from jumok.datasets.english_korean import predicates
from jumok.datasets.english_korean.conjugation import Stem, conjugate, stem, with_honorific
from jumok.datasets.english_korean.english import BE, VerbForms, verb_forms
from jumok.datasets.english_korean.lexicon import Adjective, Verb


class RoleWord(NamedTuple):
    """An English word of a predicate and its role."""

    text: str
    role: str


# The last eojeol of a predicate has possible links to all of its English words.
ANY_ROLE = ("any",)


class RoleEojeol(NamedTuple):
    """A Korean word of a predicate and the roles of its sure and possible links."""

    text: str
    sure: tuple[str, ...]
    possible: tuple[str, ...]


EnglishParts = tuple[tuple[RoleWord, ...], tuple[RoleWord, ...], tuple[RoleWord, ...]]


@dataclass(frozen=True, eq=False, slots=True)
class Mode:
    """A mode of the predicate besides tense and negation: "can", "want to", the progressive …

    English: a `modal`, in the present and in the past (can, could), or an inflected `helper` with its
    `connector` ("to"), then the main verb in `form`. Korean: the main verb with the ending `join`, the words
    `between`, and the auxiliary `stem`. "become" has no `stem`: `join` makes one word of both verbs
    (추워지다). `negative` is an inherently negative stem; without it, 지 않다 is used. `honorific_on` says
    which of the two verbs takes -시-: "main" or "helper". `honorific_stem` replaces `stem` with -시-.
    """

    name: str
    modal: tuple[str, str] = ("", "")
    helper: VerbForms | None = None
    connector: tuple[str, ...] = ()
    form: str = "base"
    join: str = ""
    between: tuple[str, ...] = ()
    stem: Stem | None = None
    negative: Stem | None = None
    honorific_on: str = "main"
    honorific_stem: Stem | None = None


_BE = VerbForms("be", "is", "was", "been", "being")
_HAVE = verb_forms("have/had")
_EXISTS, _LACKS = stem("있다"), stem("없다")
_EXISTS_HONORIFIC = Stem("계시", "verb", honorific=True)
_DO = stem("하다")

_ALL_MODES = (
    Mode("simple"),
    Mode(
        "progressive",
        helper=_BE,
        form="gerund",
        join="고",
        stem=_EXISTS,
        honorific_on="helper",
        honorific_stem=_EXISTS_HONORIFIC,
    ),
    Mode("can", modal=("can", "could"), join="으ㄹ", between=("수",), stem=_EXISTS, negative=_LACKS),
    Mode("may", modal=("may", "may"), join="어도", stem=stem("되다")),
    Mode("forbidden", modal=("must", "must"), join="으면", between=("안",), stem=stem("되다")),
    Mode("must", helper=_HAVE, connector=("to",), join="어야", stem=_DO),
    Mode("intend", helper=_BE, connector=("going", "to"), join="으려고", stem=_DO, honorific_on="helper"),
    Mode(
        "decide", helper=verb_forms("decide"), connector=("to",), join="기로", stem=_DO, honorific_on="helper"
    ),
    Mode(
        "want",
        helper=verb_forms("want"),
        connector=("to",),
        join="고",
        stem=stem("싶다", "adjective"),
        honorific_on="helper",
    ),
    Mode(
        "begin",
        helper=verb_forms("begin/began"),
        connector=("to",),
        join="기",
        stem=stem("시작하다"),
        honorific_on="helper",
    ),
    Mode(
        "enjoy",
        helper=verb_forms("like"),
        form="gerund",
        join="는",
        between=("것을",),
        stem=stem("좋아하다"),
        honorific_on="helper",
    ),
    Mode(
        "experience",
        helper=_HAVE,
        form="participle",
        join="으ㄴ",
        between=("적이",),
        stem=_EXISTS,
        negative=_LACKS,
        honorific_on="helper",
    ),
    Mode(
        "skill",
        helper=verb_forms("know/knew"),
        connector=("how", "to"),
        join="으ㄹ",
        between=("줄",),
        stem=stem("알다"),
        negative=stem("모르다:르"),
        honorific_on="helper",
    ),
    Mode("look", helper=verb_forms("look"), join="어", stem=stem("보이다"), honorific_on="helper"),
    Mode("become", helper=verb_forms("become/became"), join="어지", honorific_on="helper"),
)
MODES = {mode.name: mode for mode in _ALL_MODES}

LOCATION_VERB = Verb(_BE, (), _EXISTS, (), _EXISTS_HONORIFIC, frozenset(), True, (), key="be located")
POSSESSION_VERB = Verb(_HAVE, (), _EXISTS, (), None, frozenset(), True, (), key="have")
NEED_VERB = Verb(
    verb_forms("need"), (), stem("필요하다", "adjective"), (), None, frozenset(), True, (), key="need"
)
RAIN_VERB = Verb(verb_forms("rain"), (), stem("오다"), ("비가",), None, frozenset(), False, (), key="rain")
SNOW_VERB = Verb(verb_forms("snow"), (), stem("오다"), ("눈이",), None, frozenset(), False, (), key="snow")
BECOME_VERB = Verb(
    verb_forms("become/became/become"), (), stem("되다"), (), None, frozenset(), True, (), key="become"
)
# Only its English is used: `copula_eojeols` makes the Korean 이다, so the stem is a placeholder.
COPULA = Verb(_BE, (), _EXISTS, (), None, frozenset(), True, (), key="be")

# Text of a stem → the stem of another verb, which is its negation.
_OPPOSITES = {"있": _LACKS, "알": stem("모르다:르")}

# Prepositions that belong to the verb and have no translation: "to" in "listen to".
_PREPOSITIONS = frozenset({"to", "for", "at"})


@cache
def english_predicate(
    lexeme: Verb | Adjective, mode: Mode, tense: str, negative: bool, agreement: str, question: bool
) -> EnglishParts:
    """Return the three English parts of a predicate: (does) (not) (listen to)."""
    middle = (RoleWord("not", "not"),) if negative else ()
    if mode.modal[0]:
        return _modal_predicate(lexeme, mode, tense, negative)
    finite, role, rest = _finite_verb(lexeme, mode)
    if tense == "future":
        return (RoleWord("will", "will"),), middle, (RoleWord(finite.base, role), *rest)
    if finite is _BE:
        return (RoleWord(BE[tense, agreement], role),), middle, rest
    if mode.name == "experience":
        never = (RoleWord("never", "not"),) if negative else ()
        return (RoleWord(_inflect(finite, "present", agreement), role),), never, rest
    if negative or question:
        auxiliary = "did" if tense == "past" else "does" if agreement == "third" else "do"
        return (RoleWord(auxiliary, "auxiliary"),), middle, (RoleWord(finite.base, role), *rest)
    return (), (), (RoleWord(_inflect(finite, tense, agreement), role), *rest)


def _modal_predicate(lexeme: Verb | Adjective, mode: Mode, tense: str, negative: bool) -> EnglishParts:
    modal = mode.modal[tense == "past"]
    main = _main_words(lexeme, "base")
    if modal == "can" and negative:
        return (RoleWord("cannot", "helper"),), (), main
    is_negative = negative or mode.name == "forbidden"
    return (RoleWord(modal, "helper"),), (RoleWord("not", "not"),) if is_negative else (), main


def _finite_verb(lexeme: Verb | Adjective, mode: Mode) -> tuple[VerbForms, str, tuple[RoleWord, ...]]:
    """Return the finite verb, its role, and the words after it."""
    if mode.helper is not None:
        connector = tuple(RoleWord(word, _CONNECTOR_ROLES.get(word, "connector")) for word in mode.connector)
        role = "auxiliary" if mode.name == "intend" else "helper"
        return mode.helper, role, connector + _main_words(lexeme, mode.form)
    if isinstance(lexeme, Adjective):
        return _BE, "be", (RoleWord(lexeme.english, "verb"),)
    role = "be" if lexeme is COPULA else "verb"
    return lexeme.forms, role, _words_after(lexeme)


_CONNECTOR_ROLES = {"how": "how", "going": "helper"}


def _main_words(lexeme: Verb | Adjective, form: str) -> tuple[RoleWord, ...]:
    if isinstance(lexeme, Adjective):
        return (RoleWord(lexeme.english, "verb"),)
    return (RoleWord(str(getattr(lexeme.forms, form)), "verb"), *_words_after(lexeme))


def _words_after(lexeme: Verb) -> tuple[RoleWord, ...]:
    return tuple(RoleWord(word, "connector" if word in _PREPOSITIONS else "verb") for word in lexeme.after)


def _inflect(forms: VerbForms, tense: str, agreement: str) -> str:
    if tense == "past":
        return forms.past
    return forms.third if agreement == "third" else forms.base


@cache
def korean_predicate(
    lexeme: Verb | Adjective,
    mode: Mode,
    tense: str,
    negative: bool,
    honorific: bool,
    first_or_second_person: bool,
    final: str,
) -> tuple[RoleEojeol, ...]:
    """Return the eojeols of a predicate: 가지 않을 것이다.

    `final` says what the final ending is for: a key of `_FINALS`, such as "statement", "polite" or "if".
    """
    base, before, roles = lexeme.stem, lexeme.before, _VERB
    is_suppletive = honorific and lexeme.honorific_stem is not None and mode.name not in ("look", "become")
    if negative and mode.name == "simple" and base.text in _OPPOSITES and not is_suppletive:
        base, roles, negative = _OPPOSITES[base.text], ("verb", "not"), False
    if is_suppletive and lexeme.honorific_stem is not None:
        base, before = lexeme.honorific_stem, ()
    elif _main_verb_is_honorific(honorific, mode, negative, final):
        base = with_honorific(base)
    eojeols = [RoleEojeol(text, _VERB, ()) for text in before]
    if mode.name != "simple":
        main_eojeols, base, roles, negative = _with_helper(
            base, mode, negative, honorific, first_or_second_person
        )
        eojeols += main_eojeols
    if negative and final in _PROHIBITIONS:
        return (
            *eojeols,
            RoleEojeol(conjugate(base, "지"), roles, ("connector",)),
            RoleEojeol(_PROHIBITIONS[final], ("not",), ANY_ROLE),
        )
    if negative:
        eojeols.append(RoleEojeol(conjugate(base, "지"), roles, ("connector",)))
        base = _with_negation(base, honorific, is_simple=mode.name == "simple")
        roles = ("not",)
    eojeols += _finish(base, roles, final, tense)
    return tuple(eojeols)


def _main_verb_is_honorific(honorific: bool, mode: Mode, negative: bool, final: str) -> bool:
    """Return whether the main verb takes -시-. Another verb takes it in 가지 않으신다 and 만나러 오신다."""
    is_on_negation = negative and mode.name in ("simple", "must")
    return honorific and mode.honorific_on == "main" and not is_on_negation and final != "purpose"


def _with_negation(base: Stem, honorific: bool, *, is_simple: bool) -> Stem:
    """Return 않다, or 못하다 after verbs whose negation is inability.

    If `honorific` is true, the negation takes -시-, unless `base` already has -시-.
    """
    if is_simple and f"{base.text}다" in _INABILITY:
        negation = Stem("못하", "verb")
    else:
        negation = Stem("않", "verb" if base.kind == "verb" else "adjective")
    return with_honorific(negation) if honorific and not base.honorific else negation


_INABILITY = frozenset(predicates.INABILITY.split())
_VERB: tuple[str, ...] = ("verb",)
_PROHIBITIONS = {"command": "마라", "polite command": "마세요"}
_HELPER: tuple[str, ...] = ("helper",)
_AUXILIARY_OF_WANT = stem("하다")
_AUXILIARY_OF_NEED_NOT = stem("되다")


def _with_helper(
    base: Stem, mode: Mode, negative: bool, honorific: bool, first_or_second_person: bool
) -> tuple[list[RoleEojeol], Stem, tuple[str, ...], bool]:
    """Return the main verb's eojeols, the stem that takes the ending, its roles, and whether to negate it."""
    if mode.stem is None:  # 추워지다: helper and adjective are one word
        changed = Stem(conjugate(base, mode.join), "verb")
        return [], with_honorific(changed) if honorific else changed, ("verb", "helper"), negative
    if mode.name == "must" and negative:  # need not: 가지 않아도 된다
        need_not = _with_negation(base, honorific, is_simple=False)
        eojeols = [
            RoleEojeol(conjugate(base, "지"), _VERB, ("connector",)),
            RoleEojeol(conjugate(need_not, "어도"), ("not",), ("verb",)),
        ]
        return eojeols, _AUXILIARY_OF_NEED_NOT, ("helper",), False
    eojeols = [RoleEojeol(conjugate(base, mode.join), _VERB, ("connector", "auxiliary"))]
    eojeols += [
        RoleEojeol(text, _ROLES_BETWEEN[text], ("verb", "helper", "connector")) for text in mode.between
    ]
    helper, roles = mode.stem, _HELPER
    if mode.name == "want" and not first_or_second_person:  # a third person: 가고 싶어 한다
        eojeols.append(RoleEojeol("싶어", ("helper",), ("verb", "connector")))
        helper = _AUXILIARY_OF_WANT
    if negative and mode.negative is not None:
        helper, roles, negative = mode.negative, ("helper", "not"), False
    if honorific and mode.honorific_on == "helper" and (mode.honorific_stem or not negative):
        helper = mode.honorific_stem or with_honorific(helper)
    return eojeols, helper, roles, negative


# The roles of the words in `Mode.between`.
_ROLES_BETWEEN = {"수": ("helper",), "안": ("not",), "것을": ("verb",), "적이": ("helper",), "줄": ("how",)}

# What the final ending is for → tense → the ending, and the separate word that follows it, or "".
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


def _finish(base: Stem, roles: tuple[str, ...], final: str, tense: str) -> list[RoleEojeol]:
    """Return the last eojeols, with the final ending."""
    ending, word = _FINALS[final][tense]
    if final == "relative" and tense == "past" and base.kind != "verb":
        ending = "어ㅆ던"
    if not word:
        return [RoleEojeol(conjugate(base, ending), roles, ANY_ROLE)]
    role = "will" if tense == "future" else "conjunction"
    return [RoleEojeol(conjugate(base, ending), roles, ("connector",)), RoleEojeol(word, (role,), ANY_ROLE)]
