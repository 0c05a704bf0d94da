"""Clauses: a subject, a predicate and complements, in English and in Korean order.

English puts complements after the verb (object, manner, place, time), Korean before it (time, place, object,
manner). Each complement has a rank in both languages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from jumok.datasets.english_korean import predicates
from jumok.datasets.english_korean.lexicon import (
    DEGREES,
    FREQUENCIES,
    GIVING,
    INTRANSITIVE,
    MANNERS,
    MOTION,
    TENSES,
    TIMES,
    TRANSITIVE,
    Adjective,
    Expression,
    Noun,
    Verb,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    HER_IS_RECIPIENT,
    ONE_PERSON,
    SPECIFIC_THING,
    UNOWNED_CLASSES,
    NounPhrase,
    person_phrase,
    place_phrase,
    pronoun_object,
    subject_phrase,
    thing_phrase,
)
from jumok.datasets.english_korean.scene import Eojeol, Scene, Word, words
from jumok.datasets.english_korean.verb_phrases import ANY_ROLE, MODES, english_predicate, korean_predicate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

# Ranks in English word order: complements with lower ranks come first.
OBJECT_RANK = 10
MANNER_RANK = 20
PLACE_RANK = 30
COMPANION_RANK = 40
TIME_RANK = 50
# Ranks in Korean word order.
KOREAN_FREQUENCY_RANK = 5
KOREAN_TIME_RANK = 10
KOREAN_COMPANY_RANK = 15  # 혼자 (alone), 함께 (together)
KOREAN_COMPANION_RANK = 20
KOREAN_PLACE_RANK = 30
KOREAN_RECIPIENT_RANK = 40
KOREAN_MEANS_RANK = 50
KOREAN_OBJECT_RANK = 60
KOREAN_MANNER_RANK = 70
KOREAN_DEGREE_RANK = 90
UNRANKED = 0  # the complement has no words in that language, or is an adverb with a fixed position


class Complement(NamedTuple):
    """Words of a clause other than subject and predicate, with their rank in each language."""

    english: list[Word]
    korean: list[Eojeol]
    english_rank: int
    korean_rank: int


def _english_rank(complement: Complement) -> int:
    return complement.english_rank


def _korean_rank(complement: Complement) -> int:
    return complement.korean_rank


class Action(NamedTuple):
    """A verb with its complements, without a subject.

    `entry` is the noun of its object or goal, if the times and places of the clause must fit this noun.
    """

    verb: Verb
    complements: list[Complement]
    entry: Noun | None = None


class Clause:
    """A subject, a predicate (`lexeme` is its verb or adjective) and complements.

    The English predicate is built at creation, in the parts `front`, `middle` and `main` (see
    `verb_phrases.py`). The Korean predicate is built by methods with the parameter `final`, a key of
    `verb_phrases._FINALS`, which says what its ending is for. `roles` maps each role to the English words
    that have the role. Patterns may change complements and roles afterwards.
    """

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
        subject: NounPhrase,
        lexeme: Verb | Adjective,
        complements: Sequence[Complement] = (),
        *,
        tense: str = "present",
        negative: bool = False,
        mode: str = "simple",
        question: bool = False,
        adverb: Complement | None = None,
    ) -> None:
        self.subject = subject
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
        front, middle, main = english_predicate(
            lexeme, self.mode, tense, negative, subject.agreement, question
        )
        for role_words, part in ((front, self.front), (middle, self.middle), (main, self.main)):
            for text, role in role_words:
                word = Word(text)
                part.append(word)
                if role in roles:
                    roles[role].append(word)
                else:
                    roles[role] = [word]
        if subject.dropped:
            roles["subject"] = subject.english

    def link(self, *conjunctions: Word) -> None:
        """Align these words, such as a conjunction or "that", with the end of the Korean predicate."""
        self.roles.setdefault("conjunction", []).extend(conjunctions)

    def english_without_subject(self) -> list[Word]:
        """Return the English clause without its subject: does not often eat apples at home."""
        adverb = self.adverb.english if self.adverb else []
        return [*self.front, *self.middle, *adverb, *self.main, *self.english_complements()]

    def english_complements(self) -> list[Word]:
        """Return the English words of the complements, which follow the verb."""
        complements = self.complements
        if len(complements) > 1:
            complements = sorted(complements, key=_english_rank)
        return [word for complement in complements for word in complement.english]

    def statement(self) -> list[Word]:
        """Return the English statement."""
        return self.subject.english + self.english_without_subject()

    def question(self) -> list[Word]:
        """Return the English question, with the auxiliary first."""
        adverb = self.adverb.english if self.adverb else []
        return [
            *self.front,
            *self.subject.english,
            *self.middle,
            *adverb,
            *self.main,
            *self.english_complements(),
        ]

    def korean_complements(self) -> list[Eojeol]:
        """Return the Korean words between subject and predicate."""
        complements = [*self.complements, self.adverb] if self.adverb else self.complements
        if len(complements) > 1:
            complements = sorted(complements, key=_korean_rank)
        return [eojeol for complement in complements for eojeol in complement.korean]

    def korean_predicate(self, final: str) -> list[Eojeol]:
        """Return the Korean predicate with the ending that `final` stands for."""
        subject, roles = self.subject, self.roles
        role_eojeols = korean_predicate(
            self.lexeme,
            self.mode,
            self.tense,
            self.negative,
            subject.honorific,
            subject.first_or_second_person,
            final,
        )
        all_words = [word for role_words in roles.values() for word in role_words]
        eojeols = []
        for text, sure_roles, possible_roles in role_eojeols:
            if len(sure_roles) == 1:
                sure: Sequence[Word] = roles.get(sure_roles[0], ())
            else:
                sure = [word for role in sure_roles for word in roles.get(role, ())]
            possible: Sequence[Word] = all_words
            if possible_roles is not ANY_ROLE:
                possible = [word for role in possible_roles for word in roles.get(role, ())]
            eojeols.append(Eojeol(text, sure, possible))
        return eojeols

    def korean(self, final: str, particle: str = "은") -> list[Eojeol]:
        """Return the Korean clause, with this particle after the subject.

        The particle 은 stands for 이 if the subject is indefinite. "" omits the subject.
        """
        subject = self.subject
        if not particle:
            return self.korean_complements() + self.korean_predicate(final)
        first = subject.topic() if particle == "은" else subject.korean(particle)
        return first + self.korean_complements() + self.korean_predicate(final)


def expression_complement(entry: Expression, english_rank: int, korean_rank: int) -> Complement:
    """Return an adverb or a time as a complement."""
    english = words(entry.english)
    return Complement(english, _expression_eojeols(entry, english), english_rank, korean_rank)


_FUNCTION_WORDS = frozenset({"in", "the", "at", "on", "an", "a"})


def _expression_eojeols(entry: Expression, english: list[Word]) -> list[Eojeol]:
    """Return the Korean words of an expression, aligned with its English words.

    If English has as many content words as Korean has words, they are aligned one by one. Otherwise, every
    Korean word is aligned with every content word.
    """
    content_words = [word for word in english if word.text not in _FUNCTION_WORDS]
    function_words = [word for word in english if word.text in _FUNCTION_WORDS]
    if len(content_words) == len(entry.korean):
        return [
            Eojeol(text, (word,), function_words)
            for text, word in zip(entry.korean, content_words, strict=True)
        ]
    return [Eojeol(text, content_words, function_words) for text in entry.korean]


TIMES_BY_TENSE = {
    tense: tuple(entry for entry in TIMES if entry.tenses & {tense, "habit" if tense == "present" else tense})
    for tense in TENSES
}
# Kinds of times at which people do something regularly.
HABITUAL_KINDS = frozenset({"everyday", "mornings", "weekly"})


@cache
def fitting_times(kinds: frozenset[str], tense: str, *, is_meal: bool = False) -> tuple[Expression, ...]:
    """Return the times of these kinds that fit the tense.

    A meal takes no part of the day, to avoid "breakfast in the morning". In the present, a time such as "in
    the morning" means a habit, so the verb must be one that people do regularly. "Today" then fits only
    states and movements: their `kinds` contain "now". No time in the table has the kind "now".
    """
    if tense == "present":
        kinds = (kinds if kinds & HABITUAL_KINDS else kinds & {"spring", "winter", "now"}) - {"day"}
        kinds |= {"day"} if "now" in kinds else frozenset()
    return tuple(
        entry
        for entry in TIMES_BY_TENSE[tense]
        if entry.kind in kinds and not (is_meal and entry in _DAY_PARTS)
    )


def time_complement(scene: Scene, tense: str, kinds: frozenset[str]) -> list[Complement]:
    """Return a list with one time of these kinds that fits this tense, or an empty list if there is none."""
    times = fitting_times(kinds, tense, is_meal=not _MEALS.isdisjoint(scene.used))
    if not times:
        return []
    return [expression_complement(scene.pick_new(times), TIME_RANK, KOREAN_TIME_RANK)]


def time_of_action(scene: Scene, action: Action, tense: str) -> list[Complement]:
    """Return a list with one time that fits the action and the tense, or an empty list."""
    return time_complement(scene, tense, time_kinds_of(scene, action, tense))


def time_kinds_of(scene: Scene, action: Action, tense: str) -> frozenset[str]:
    """Return the kinds of times that fit an action. The tense of a command is ""."""
    verb, entry = action.verb, action.entry
    kinds = verb.times
    if entry is not None and verb.forms.base in ("go", "come"):
        kinds = _FAR_KINDS if entry.classes & {"region", "town"} else _NEAR_KINDS
        if entry.key in ("home", "school", "office", "company"):
            kinds |= {"everyday"}
    if verb.forms.base == "return":
        kinds = _FAR_KINDS if entry is not None and "region" in entry.classes else kinds
    if tense == "present" and SPECIFIC_THING in scene.used and not verb.is_repeatable:
        return _NO_KINDS
    return kinds & _DAYS if _LATE_OR_EARLY & scene.used else kinds


_NO_KINDS: frozenset[str] = frozenset()
_DAYS = frozenset({"day", "weekday", "everyday", "weekly"})  # "late next month" means the end of that month
_FAR_KINDS = frozenset({"day", "week", "weekday", "year", "now"})
_NEAR_KINDS = frozenset({"hour", "day", "part", "morning", "weekday", "weekly", "now"})
_MEALS = frozenset(nouns_of("meal"))
_DAY_PARTS = frozenset(
    entry for entry in TIMES if entry.korean[-1] in ("아침에", "저녁에", "밤에", "오후에", "어젯밤에", "아침")
)


def frequency(scene: Scene, verb: Verb) -> Complement:
    """Return an adverb such as "always": before the verb in English, directly after the subject in Korean."""
    options_for_people = FREQUENCIES if verb.objects else _FREQUENCIES_WITHOUT_USUALLY
    options = options_for_people if verb.human_subject else _FREQUENCIES_FOR_ANIMALS
    return expression_complement(scene.pick(options), UNRANKED, KOREAN_FREQUENCY_RANK)


# "She usually runs" does not say in which cases she does not run.
_FREQUENCIES_WITHOUT_USUALLY = tuple(entry for entry in FREQUENCIES if entry.key != "usually")
_FREQUENCIES_FOR_ANIMALS = tuple(entry for entry in FREQUENCIES if entry.key in ("often", "sometimes"))


def degree(scene: Scene, adjective: Adjective) -> Complement:
    """Return an adverb such as "very". It is directly before the adjective in both languages."""
    options = DEGREES if adjective.english in _COMPLAINTS else DEGREES[:2]
    return expression_complement(scene.pick(options), UNRANKED, KOREAN_DEGREE_RANK)


_COMPLAINTS = frozenset(predicates.COMPLAINTS.split())


@cache
def _fitting_manners(verb: Verb, *, takes_any_manner: bool, is_plural: bool) -> tuple[Expression, ...]:
    """Return the adverbs of manner that fit.

    "alone" does not fit a plural subject. If `takes_any_manner` is false, only "alone", "early" and "hard"
    fit: "he decided to dance well" is not natural.
    """
    return tuple(
        entry
        for entry in verb.manners
        if not (entry is ALONE and is_plural)
        and (takes_any_manner or entry.key in ("alone", "early", "hard"))
    )


def adverb_complement(scene: Scene, entry: Expression) -> Complement:
    """Return an adverb of manner. In Korean, 혼자 comes early, and other adverbs directly before the verb."""
    scene.used.add(entry)
    korean_rank = KOREAN_COMPANY_RANK if entry is ALONE else KOREAN_MANNER_RANK
    return expression_complement(entry, MANNER_RANK, korean_rank)


ALONE = next(entry for entry in MANNERS if entry.key == "alone")
_LATE_OR_EARLY = frozenset(entry for entry in MANNERS if entry.key in ("late", "early"))


def place_complement(scene: Scene, verb: Verb, places: Sequence[Noun]) -> Complement:
    """Return a complement with one of these places, which must fit the verb."""
    entry = scene.pick_new(places)
    phrase = place_phrase(entry, entry.preposition)
    return Complement(phrase.english, phrase.korean(place_particle(verb)), PLACE_RANK, KOREAN_PLACE_RANK)


def place_particle(verb: Verb) -> str:
    """Return the particle of the verb's place: 집에서 자다, 정원에 심다, 일본을 여행하다."""
    return _PLACE_PARTICLES.get(verb.stem.text, "에서")


# Things are planted and built at a place (에). People walk along and travel through a place (을).
_PLACE_PARTICLES = {"심": "에", "짓": "에", "걷": "을", "여행하": "을"}


def places_of(action: Action) -> tuple[Noun, ...]:
    """Return the places that fit an action and its object; none for a movement, which has a goal."""
    verb, entry = action.verb, action.entry
    if verb.adpositions != ("", ""):
        return ()
    return verb.places if entry is None else verb.object_places.get(entry, verb.places)


def companion_complement(scene: Scene) -> Complement:
    """Return a companion: with my friend, 내 친구와. (내 친구와 함께 would be "together with".)"""
    phrase = person_phrase(scene, scene.pick_new(_COMPANIONS), p_indefinite=0.0)
    lead = Word("with")
    return Complement(
        [lead, *phrase.english], phrase.korean("과", (lead,)), COMPANION_RANK, KOREAN_COMPANION_RANK
    )


_COMPANIONS = nouns_of("kin name =student =child")
_RECIPIENTS = nouns_of("person elder")
_RECIPIENTS_OF_TOYS = nouns_of("little name =son =daughter =younger_brother =younger_sister")
_HUMAN = frozenset({"person", "elder"})
# Verbs with objects that do not mean a particular thing: "play the piano", "watch television".
_UNSPECIFIC_OBJECTS = frozenset(
    (base, entry)
    for bases, specification in (
        ("play learn practice", "instrument"),
        ("watch listen", "=television =radio"),
    )
    for base in bases.split()
    for entry in nouns_of(specification)
)
# Verbs (by their base form) whose object takes no adjective, because a quality of the thing does not matter.
_VERBS_WITH_PLAIN_OBJECT = frozenset(
    {"wash", "clean", "break", "pour", "wait", "finish", "visit", "close", "chase", "bite"}
)
# Verbs that can have a recipient. After them, "her" in "her money" would be read as the recipient.
_VERBS_WITH_RECIPIENT = frozenset({"send", "bring", "show", "give", "buy", "pour", "teach", "write"})
# Verbs whose object has no possessor in the sentence: "I borrow my book" makes no sense.
_VERBS_WITH_UNOWNED_OBJECT = frozenset({"wear", "buy", "sell", "choose", "need", "borrow", "receive"})


def object_phrase(
    scene: Scene, verb: Verb, entry: Noun | None = None, *, generic: bool = False
) -> NounPhrase:
    """Return the object of a verb. If `generic` is true, the object means a kind of thing ("reads books")."""
    entry = entry or scene.pick_new(verb.objects)
    if "person" in entry.classes and scene.chance(0.25):
        pronoun = _object_pronoun(scene)
        if pronoun is not None:
            return pronoun
    scene.note_combination(verb, entry)
    if entry.classes & _HUMAN:
        return person_phrase(scene, entry)
    if entry.form == "count" and (verb.forms.base == "wear" or "off" in verb.after):  # take off, turn off
        scene.used.add(ONE_PERSON)
    if verb.forms.base in _VERBS_WITH_RECIPIENT:
        scene.used.add(HER_IS_RECIPIENT)
    is_generic_object = verb.has_generic_object and not entry.classes & {"melody", "film", "text"}
    is_unspecific = (verb.forms.base, entry) in _UNSPECIFIC_OBJECTS
    return thing_phrase(
        scene,
        entry,
        p_adjective=0.0 if verb.forms.base in _VERBS_WITH_PLAIN_OBJECT else 0.22,
        generic=generic or is_generic_object or is_unspecific or _is_sold_food(verb, entry),
        definite=verb.forms.base in ("understand", "remember", "forget"),
        may_have_possessor=_takes_owned_object(verb),
        created=verb.is_creation,
    )


def _takes_owned_object(verb: Verb) -> bool:
    return verb.forms.base not in _VERBS_WITH_UNOWNED_OBJECT and "off" not in verb.after


def may_be_owned(verb: Verb, entry: Noun) -> bool:
    """Return whether the object of a verb can have a possessor: "I lost Minsu's umbrella"."""
    return _takes_owned_object(verb) and not entry.classes & UNOWNED_CLASSES


def _is_sold_food(verb: Verb, entry: Noun) -> bool:
    """Return whether a seller means the kind: farmers sell potatoes, not this potato."""
    return verb.forms.base == "sell" and bool(entry.classes & {"food", "drink"})


def _object_pronoun(scene: Scene) -> NounPhrase | None:
    """Return "me", "you", "him", "her" or "them".

    Return None if the person is already mentioned, or for "you" in polite style, which has no 너.
    """
    name = scene.pick(("I", "he", "she", "they", "you"))
    unavailable = (
        name in scene.used or (name == "I" and "we" in scene.used) or (name == "you" and scene.polite)
    )
    return None if unavailable else pronoun_object(scene, name)


def transitive_action(
    scene: Scene, verb: Verb | None = None, entry: Noun | None = None, *, generic: bool = False
) -> Action:
    """Return a transitive verb with its object."""
    verb = verb or scene.pick(TRANSITIVE)
    entry = entry or scene.pick_new(verb.objects)
    phrase = object_phrase(scene, verb, entry, generic=generic)
    complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    return Action(verb, [complement], entry)


def intransitive_action(scene: Scene, verb: Verb | None = None) -> Action:
    """Return an intransitive verb. "get up" takes a manner: people get up early or late."""
    verb = verb or scene.pick(INTRANSITIVE)
    needs_manner = verb.forms.base == "get"
    return Action(verb, [adverb_complement(scene, scene.pick(verb.manners))] if needs_manner else [])


def going_action(scene: Scene, verb: Verb | None = None, goal: Noun | None = None) -> Action:
    """Return a verb of movement or rest with its place."""
    verb = verb or scene.pick(_HUMAN_MOTION)
    entry = goal or scene.pick_new(verb.places)
    preposition, particle = verb.adpositions
    if preposition in ("in", "at") and entry.preposition:
        preposition = entry.preposition
    scene.note_combination(verb, entry)
    phrase = place_phrase(entry, preposition)
    complement = Complement(phrase.english, phrase.korean(particle), OBJECT_RANK, KOREAN_OBJECT_RANK)
    return Action(verb, [complement], entry)


def giving_action(scene: Scene) -> Action:
    """Return a verb of giving with gift and recipient. If the recipient is an elder, the verb is humble."""
    verb = scene.pick(GIVING)
    entry = scene.pick_new(verb.objects)
    gift = object_phrase(scene, verb, entry)
    recipients = _RECIPIENTS_OF_TOYS if entry.key in ("toy", "doll") else _RECIPIENTS
    recipient = person_phrase(scene, scene.pick_new(recipients), p_indefinite=0.0)
    if recipient.honorific and verb.humble is not None:
        verb = verb.humble
    to = Word("to")
    return Action(
        verb,
        [
            Complement(gift.english, gift.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK),
            Complement(
                [to, *recipient.english],
                recipient.korean("에게", (to,)),
                OBJECT_RANK + 1,
                KOREAN_RECIPIENT_RANK,
            ),
        ],
    )


def any_action(scene: Scene) -> Action:
    """Return any action of people."""
    draw = scene.random()
    if draw < 0.68:
        return transitive_action(scene, scene.pick(_HUMAN_TRANSITIVE))
    if draw < 0.84:
        return intransitive_action(scene, scene.pick(_HUMAN_INTRANSITIVE))
    return going_action(scene)


class Chances(TypedDict, total=False):
    """Probability of each optional part of a clause, and of a subject that is "you" or indefinite.

    A probability that is not given is 0, except `p_manner`, which is 0.25 for an action without complements.
    """

    p_manner: float
    p_place: float
    p_often: float
    p_time: float
    p_you: float
    p_indefinite: float


def make_clause(
    scene: Scene,
    action: Action,
    subject: NounPhrase | None = None,
    *,
    tense: str = "",
    p_negative: float = 0.15,
    mode: str = "simple",
    question: bool = False,
    **chances: Unpack[Chances],
) -> Clause:
    """Return a clause with a subject and an action; `p_…` are probabilities.

    Without `subject` or `tense`, one that fits is drawn. Only a clause with a definite subject is negated.
    """
    verb = action.verb
    if not tense and subject and subject.english[0].text == "you" and not question:
        tense = pick_tense(scene, verb, ("present", "past"))  # nobody tells people what they will do
    tense = tense or pick_tense(scene, verb)
    if tense == "present" and not verb.human_subject and not verb.is_habitual:
        tense = "past"  # "a bird sits on the bed" is not a general truth about birds
    p_you, p_indefinite = chances.get("p_you", 0.0), chances.get("p_indefinite", 0.0)
    if tense == "present" and mode == "simple":
        p_indefinite = 0.0  # "a scientist sleeps" is an odd sentence
    if tense == "future" and mode == "simple" and not question:
        scene.used.add("you")
    subject = subject or subject_phrase(
        scene, verb, p_you=p_you, p_indefinite=p_indefinite, question=question
    )
    is_negative = subject.definite and scene.chance(p_negative)
    takes_any_manner = mode in ("simple", "progressive") and not question
    manners = _fitting_manners(
        verb, takes_any_manner=takes_any_manner, is_plural=subject.agreement == "plural"
    )
    if is_negative or mode == "skill":
        manners = ()
    complements, adverb = _optional_parts(scene, action, manners, tense, chances)
    clause_tense = tense
    if mode == "simple" and tense == "present":
        subject.definite = True  # "a bird sleeps" is a truth about all birds, so the subject is a topic: 새는
    if mode == "simple" and tense == "present" and verb.forms.base == verb.forms.past and not is_negative:
        clause_tense = _unambiguous_tense(subject, complements, adverb, question)
    return Clause(
        subject,
        verb,
        complements,
        tense=clause_tense,
        negative=is_negative,
        mode=mode,
        question=question,
        adverb=adverb,
    )


def pick_tense(scene: Scene, verb: Verb, tenses: tuple[str, ...] = ()) -> str:
    """Return one of these tenses that fits the verb. By default, the present is rare for events."""
    tenses = tenses or (_HABIT_TENSES if verb.is_habitual else _EVENT_TENSES)
    if verb.tenses is not TENSES:
        tenses = tuple(tense for tense in tenses if tense in verb.tenses) or verb.tenses
    return scene.pick(tenses)


def _optional_parts(
    scene: Scene, action: Action, manners: tuple[Expression, ...], tense: str, chances: Chances
) -> tuple[list[Complement], Complement | None]:
    """Return the complements of an action together with optional complements, and an optional adverb."""
    verb, complements = action.verb, action.complements
    # An action without complements sometimes has a manner: "she dances alone" and not only "she dances".
    p_manner, p_place = chances.get("p_manner", 0.0 if complements else 0.25), chances.get("p_place", 0.0)
    p_often, p_time = chances.get("p_often", 0.0), chances.get("p_time", 0.0)
    if p_manner and manners and scene.chance(p_manner):
        complements = [*complements, adverb_complement(scene, scene.pick(manners))]
    if p_place and scene.chance(p_place):
        places = places_of(action)
        complements = [*complements, place_complement(scene, verb, places)] if places else complements
    if p_often and tense == "present" and scene.chance(p_often):
        return complements, frequency(scene, verb)
    if p_time and scene.chance(p_time):
        complements = [*complements, *time_of_action(scene, action, tense)]
    return complements, None


_HABIT_TENSES = ("present", "present", "past", "past", "future")
_EVENT_TENSES = ("present", "past", "past", "past", "future", "future")
_HABIT_WORDS = frozenset({"every", "weekends"})


def _unambiguous_tense(
    subject: NounPhrase, complements: Sequence[Complement], adverb: Complement | None, question: bool
) -> str:
    """Return the tense of a verb such as "read", whose present and past look the same.

    It is "past", unless the clause shows the present: "she reads", "do you read …?", "I read … every day".
    """
    is_habitual = adverb is not None or any(
        word.text in _HABIT_WORDS for complement in complements for word in complement.english
    )
    return "present" if question or is_habitual or subject.agreement == "third" else "past"


_HUMAN_TRANSITIVE = tuple(verb for verb in TRANSITIVE if verb.human_subject)
_HUMAN_INTRANSITIVE = tuple(verb for verb in INTRANSITIVE if verb.human_subject)
_HUMAN_MOTION = tuple(
    verb for verb in MOTION if verb.human_subject and verb.forms.base not in ("live", "sit")
)
