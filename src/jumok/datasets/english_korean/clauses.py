"""Clauses: a subject, a predicate and what stands with it, in English and in Korean order.

English puts complements after the verb (object, manner, place, time), Korean before it (time, place, object,
manner). Each complement carries its rank in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from jumok.corpus.english_korean.lexicon import (
    DEGREES,
    FREQUENCIES,
    GIVING,
    INTRANSITIVE,
    MOTION,
    TIMES,
    TRANSITIVE,
    Adjective,
    Expression,
    Noun,
    Verb,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import (
    NounPhrase,
    human,
    place_phrase,
    pronoun_object,
    subject,
    thing,
)
from jumok.corpus.english_korean.scene import Eojeol, Scene, Word, words
from jumok.corpus.english_korean.verb_phrases import ANY_ROLE, MODES, english_predicate, korean_predicate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

__all__ = [
    "COMPANION",
    "MANNER",
    "OBJECT",
    "PLACE",
    "STATIVE",
    "TIME",
    "TIMES_BY_TENSE",
    "Action",
    "Clause",
    "Complement",
    "act",
    "any_action",
    "companion",
    "degree",
    "expression",
    "frequency",
    "giving",
    "going",
    "how",
    "intransitive",
    "manner",
    "object_of",
    "place_of",
    "time_for",
    "transitive",
]

OBJECT, MANNER, PLACE, COMPANION, TIME = 10, 20, 30, 40, 50


class Complement(NamedTuple):
    """Words of a clause beside subject and predicate, with their rank in each language."""

    english: list[Word]
    korean: list[Eojeol]
    english_rank: int
    korean_rank: int


def _english_rank(complement: Complement) -> int:
    return complement.english_rank


def _korean_rank(complement: Complement) -> int:
    return complement.korean_rank


class Action(NamedTuple):
    """What is done: a verb with its complements, before anybody does it."""

    verb: Verb
    complements: list[Complement]


class Clause:
    """A subject with a predicate. English is fixed when it is made; Korean waits for its final ending."""

    __slots__ = (
        "adverb",
        "complements",
        "front",
        "lexeme",
        "main",
        "middle",
        "mode",
        "negative",
        "roles",
        "subject",
        "tense",
    )

    def __init__(
        self,
        doer: NounPhrase,
        lexeme: Verb | Adjective,
        complements: Sequence[Complement] = (),
        *,
        tense: str = "present",
        negative: bool = False,
        mode: str = "simple",
        question: bool = False,
        adverb: Complement | None = None,
    ) -> None:
        self.subject = doer
        self.lexeme = lexeme
        self.complements = complements
        self.mode = MODES[mode]
        self.tense = tense
        self.negative = negative
        self.adverb = adverb
        roles: dict[str, list[Word]] = {}
        self.roles = roles
        self.front: list[Word] = []
        self.middle: list[Word] = []
        self.main: list[Word] = []
        front, middle, main = english_predicate(lexeme, self.mode, tense, negative, doer.agreement, question)
        for pieces, run in ((front, self.front), (middle, self.middle), (main, self.main)):
            for text, role in pieces:
                word = Word(text)
                run.append(word)
                if role in roles:
                    roles[role].append(word)
                else:
                    roles[role] = [word]
        if doer.dropped:
            roles["subject"] = doer.english

    def link(self, *linking: Word) -> None:
        """Conjunctions and relative pronouns live in the ending of the predicate."""
        self.roles.setdefault("link", []).extend(linking)

    def predicate_english(self) -> list[Word]:
        """The predicate without its subject: does not often eat apples at home."""
        adverb = self.adverb.english if self.adverb else []
        return [*self.front, *self.middle, *adverb, *self.main, *self.after()]

    def after(self) -> list[Word]:
        """The English words after the verb."""
        complements = self.complements
        if len(complements) > 1:
            complements = sorted(complements, key=_english_rank)
        return [word for complement in complements for word in complement.english]

    def statement(self) -> list[Word]:
        """English as a statement."""
        return self.subject.english + self.predicate_english()

    def question(self) -> list[Word]:
        """English as a question: the auxiliary first."""
        adverb = self.adverb.english if self.adverb else []
        return [*self.front, *self.subject.english, *self.middle, *adverb, *self.main, *self.after()]

    def korean_complements(self) -> list[Eojeol]:
        """The Korean words between subject and predicate."""
        complements = [*self.complements, self.adverb] if self.adverb else self.complements
        if len(complements) > 1:
            complements = sorted(complements, key=_korean_rank)
        return [eojeol for complement in complements for eojeol in complement.korean]

    def korean_predicate(self, final: str) -> list[Eojeol]:
        """The Korean predicate with the ending that `final` names."""
        doer, roles = self.subject, self.roles
        slots = korean_predicate(
            self.lexeme, self.mode, self.tense, self.negative, doer.respected, doer.near, final
        )
        everything = [word for linked in roles.values() for word in linked]
        eojeols = []
        for text, sure_roles, possible_roles in slots:
            if len(sure_roles) == 1:
                sure: Sequence[Word] = roles.get(sure_roles[0], ())
            else:
                sure = [word for role in sure_roles for word in roles.get(role, ())]
            possible: Sequence[Word] = everything
            if possible_roles is not ANY_ROLE:
                possible = [word for role in possible_roles for word in roles.get(role, ())]
            eojeols.append(Eojeol(text, sure, possible))
        return eojeols

    def korean(self, final: str, particle: str = "은") -> list[Eojeol]:
        """The whole clause in Korean; `particle` is the subject's, "" leaves the subject out."""
        doer = self.subject
        if not particle:
            return self.korean_complements() + self.korean_predicate(final)
        first = doer.topic() if particle == "은" else doer.korean(particle)
        return first + self.korean_complements() + self.korean_predicate(final)


def expression(entry: Expression, english_rank: int, korean_rank: int) -> Complement:
    """An adverb or a time. Every Korean word of it stands for the whole English expression."""
    english = words(entry.english)
    return Complement(english, _expression_eojeols(entry, english), english_rank, korean_rank)


_FUNCTION_WORDS = frozenset({"in", "the", "at", "on", "an", "a"})


def _expression_eojeols(entry: Expression, english: list[Word]) -> list[Eojeol]:
    """Link word by word where both sides have as many content words, else all to all."""
    content = [word for word in english if word.text not in _FUNCTION_WORDS]
    function = [word for word in english if word.text in _FUNCTION_WORDS]
    if len(content) == len(entry.korean):
        return [Eojeol(text, (word,), function) for text, word in zip(entry.korean, content, strict=True)]
    if len(entry.korean) == 1:
        return [Eojeol(entry.korean[0], content, function)]
    return [Eojeol(text, content, function) for text in entry.korean]


TIMES_BY_TENSE = {
    tense: tuple(entry for entry in TIMES if entry.tenses & {tense, "habit" if tense == "present" else tense})
    for tense in ("past", "present", "future")
}


def time_for(scene: Scene, tense: str) -> Complement:
    """A time that goes with this tense. Nobody says that breakfast is eaten in the morning."""
    entry = scene.pick_new(TIMES_BY_TENSE[tense])
    while entry in _DAY_PARTS and not _MEALS.isdisjoint(scene.used):
        entry = scene.pick_new(TIMES_BY_TENSE[tense])
    return expression(entry, TIME, 10)


_MEALS = frozenset(nouns_of("meal"))
_DAY_PARTS = frozenset(
    entry for entry in TIMES if entry.korean[-1] in ("아침에", "저녁에", "밤에", "오후에", "어젯밤에", "아침")
)


def frequency(scene: Scene) -> Complement:
    """always, often …: before the verb in English, first in Korean."""
    return expression(scene.pick(FREQUENCIES), 0, 5)


def degree(scene: Scene) -> Complement:
    """very, really …: right before the adjective in both languages."""
    return expression(scene.pick(DEGREES), 0, 90)


def manner(scene: Scene, verb: Verb) -> Complement:
    """How it is done, in a way that suits the verb."""
    return how(scene.pick(verb.manners))


def how(entry: Expression) -> Complement:
    """An adverb of manner. 혼자 stands early in Korean, the others right before the verb."""
    return expression(entry, MANNER, 15 if entry.korean[0] == "혼자" else 70)


def place_of(scene: Scene, verb: Verb) -> Complement:
    """Where it is done."""
    entry = scene.pick_new(verb.places)
    phrase = place_phrase(entry, entry.preposition)
    return Complement(phrase.english, phrase.korean(_PLACE_PARTICLES.get(verb.stem.text, "에서")), PLACE, 30)


# What is planted or built stays there: 정원에 심다, 서울에 짓다.
_PLACE_PARTICLES = {"심": "에", "짓": "에"}


def companion(scene: Scene) -> Complement:
    """With whom: with my friend, 내 친구와 함께 would say "together"; 와 alone says "with"."""
    phrase = human(scene, scene.pick_new(_COMPANIONS), indefinite=0.0)
    lead = Word("with")
    return Complement([lead, *phrase.english], phrase.korean("과", (lead,)), COMPANION, 20)


_COMPANIONS = nouns_of("kin name =student =child")
_RECEIVERS = nouns_of("person elder")
_HUMAN = frozenset({"person", "elder"})
_GENERIC_VERBS = frozenset({"like", "hate"})


def object_of(scene: Scene, verb: Verb, entry: Noun | None = None, *, generic: bool = False) -> NounPhrase:
    """Somebody or something the verb is done to; `generic` speaks of the kind ("reads books")."""
    entry = entry or scene.pick_new(verb.objects)
    if "person" in entry.classes and scene.chance(0.25):
        pronoun = _object_pronoun(scene)
        if pronoun is not None:
            return pronoun
    scene.combine(verb, entry)
    if entry.classes & _HUMAN:
        return human(scene, entry)
    kind = verb.forms.base in _GENERIC_VERBS and not entry.classes & {"melody", "film", "text"}
    is_dressing = verb.forms.base == "wear" or "off" in verb.after  # one's own clothes
    return thing(scene, entry, generic=generic or kind, owned_by_others=not is_dressing)


def _object_pronoun(scene: Scene) -> NounPhrase | None:
    """me, him, her, them, unless they were mentioned; "you" only where Korean may say 너."""
    name = scene.pick(("I", "he", "she", "they", "you"))
    taken = name in scene.used or (name == "I" and "we" in scene.used) or (name == "you" and scene.polite)
    return None if taken else pronoun_object(scene, name)


def transitive(scene: Scene, verb: Verb | None = None, *, generic: bool = False) -> Action:
    """Something is done to something."""
    verb = verb or scene.pick(TRANSITIVE)
    phrase = object_of(scene, verb, generic=generic)
    return Action(verb, [Complement(phrase.english, phrase.korean("을"), OBJECT, 60)])


def intransitive(scene: Scene, verb: Verb | None = None) -> Action:
    """Something is done."""
    return Action(verb or scene.pick(INTRANSITIVE), [])


def going(scene: Scene, verb: Verb | None = None, goal: Noun | None = None) -> Action:
    """A movement or a stay, with its place."""
    verb = verb or scene.pick(_HUMAN_MOTION)
    entry = goal or scene.pick_new(verb.places)
    preposition, particle = verb.joint
    if preposition in ("in", "at") and entry.preposition:
        preposition = entry.preposition
    scene.combine(verb, entry)
    phrase = place_phrase(entry, preposition)
    return Action(verb, [Complement(phrase.english, phrase.korean(particle), OBJECT, 60)])


def giving(scene: Scene, verb: Verb | None = None) -> Action:
    """Something goes to somebody; an elder is given things with a humble verb."""
    verb = verb or scene.pick(GIVING)
    gift = object_of(scene, verb)
    receiver = human(scene, scene.pick_new(_RECEIVERS), indefinite=0.0)
    if receiver.respected and verb.humble is not None:
        verb = verb.humble
    to = Word("to")
    return Action(
        verb,
        [
            Complement(gift.english, gift.korean("을"), OBJECT, 60),
            Complement([to, *receiver.english], receiver.korean("에게", (to,)), OBJECT + 1, 40),
        ],
    )


def any_action(scene: Scene) -> Action:
    """Something that people do."""
    draw = scene.random()
    if draw < 0.68:
        return transitive(scene, scene.pick(_HUMAN_TRANSITIVE))
    if draw < 0.84:
        return intransitive(scene, scene.pick(_HUMAN_INTRANSITIVE))
    return going(scene)


class Chances(TypedDict, total=False):
    """How probable each optional part of a clause is; 0 where nothing is said."""

    manners: float
    place: float
    often: float
    time: float


def act(
    scene: Scene,
    action: Action,
    doer: NounPhrase | None = None,
    *,
    tense: str = "",
    negative: float = 0.15,
    mode: str = "simple",
    question: bool = False,
    you: float = 0.0,
    indefinite: float = 0.0,
    **chances: Unpack[Chances],
) -> Clause:
    """A clause in which somebody does an action; the numbers are probabilities."""
    verb = action.verb
    doer = doer or subject(scene, verb, you=you, indefinite=indefinite, question=question)
    tense = tense or scene.pick(_TENSES)
    is_negative = scene.chance(negative)
    complements, adverb = _with_options(scene, action, tense, is_negative, chances)
    clause_tense = tense
    if mode == "simple" and tense == "present" and verb.forms.base == verb.forms.past and not is_negative:
        clause_tense = _unambiguous(doer, complements, adverb, question)
    return Clause(
        doer,
        verb,
        complements,
        tense=clause_tense,
        negative=is_negative,
        mode=mode,
        question=question,
        adverb=adverb,
    )


def _with_options(
    scene: Scene, action: Action, tense: str, is_negative: bool, chances: Chances
) -> tuple[list[Complement], Complement | None]:
    """The complements of an action with those drawn for it, and an adverb where one was drawn."""
    verb, complements = action
    manners, place = chances.get("manners", 0.0), chances.get("place", 0.0)
    often, time = chances.get("often", 0.0), chances.get("time", 0.0)
    if verb.forms.base in _TIMELESS:
        time = place = often = 0.0
    if not complements and not manners:
        manners = 0.25  # "she dances alone" rather than always "she dances"
    if manners and verb.manners and not is_negative and scene.chance(manners):
        complements = [*complements, manner(scene, verb)]
    if place and verb.places and verb.joint == ("", "") and scene.chance(place):
        complements = [*complements, place_of(scene, verb)]
    if often and tense == "present" and not is_negative and scene.chance(often):
        return complements, frequency(scene)
    if time and scene.chance(time):
        complements = [*complements, time_for(scene, tense)]
    return complements, None


# Verbs of knowing and feeling name no course of events.
STATIVE = frozenset({"know", "like", "hate", "love", "trust", "miss", "understand", "remember", "forget"})
_TIMELESS = STATIVE | {"live"}
_TENSES = ("present", "present", "past", "past", "future")
_HABIT_WORDS = frozenset({"every", "weekends"})


def _unambiguous(
    doer: NounPhrase, complements: Sequence[Complement], adverb: Complement | None, question: bool
) -> str:
    """ "I read a book" is a past unless something says otherwise."""
    marked = adverb is not None or any(
        word.text in _HABIT_WORDS for complement in complements for word in complement.english
    )
    return "present" if question or marked or doer.agreement == "third" else "past"


_HUMAN_TRANSITIVE = tuple(verb for verb in TRANSITIVE if verb.people)
_HUMAN_INTRANSITIVE = tuple(verb for verb in INTRANSITIVE if verb.people)
_HUMAN_MOTION = tuple(verb for verb in MOTION if verb.people)
