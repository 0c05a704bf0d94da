"""Noun phrases in both languages: pronouns, determiners, adjectives, numbers, possessors, subjects.

Korean has no articles. The difference between "a" and "the" shows in the subject's particle. A definite
subject of a main clause is the topic of the clause (은/는). An indefinite subject is new information (이/가).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from jumok.datasets.english_korean import predicates
from jumok.datasets.english_korean.english import article
from jumok.datasets.english_korean.hangul import attach
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    NOUNS,
    NUMBERS,
    TRAITS,
    Adjective,
    Noun,
    Verb,
    is_listed,
    nouns_of,
)
from jumok.datasets.english_korean.scene import Eojeol, Scene, Word, words

if TYPE_CHECKING:
    from collections.abc import Sequence


class NounPhrase:
    """English words, and Korean words. The last Korean word takes a particle.

    `before` are the Korean words before the last one. `sure` and `possible` are the English words with which
    the last Korean word is aligned.
    """

    __slots__ = (
        "agreement",
        "before",
        "definite",
        "dropped",
        "english",
        "first_or_second_person",
        "honorific",
        "last_word",
        "possible",
        "sure",
    )

    def __init__(self, english: list[Word], last_word: str, sure: Sequence[Word]) -> None:
        self.english = english
        self.last_word = last_word  # Korean, without its particle
        self.sure = sure
        self.possible: Sequence[Word] = ()
        self.before: list[Eojeol] = []
        self.agreement = "third"  # of the verb: "first" (am), "third" (is) or "plural" (are)
        self.honorific = False  # 께서 and -시-
        self.first_or_second_person = False  # affects "want": 싶다 or 싶어 하다
        self.dropped = False  # Korean omits it: a polite "you", "it" of the weather, the subject of a command
        self.definite = True

    def korean(self, particle: str, particle_words: Sequence[Word] = ()) -> list[Eojeol]:
        """Return the Korean words with a particle after the last word.

        `particle_words` are the English words that the particle translates.
        """
        if self.dropped:
            return []
        possible = [*self.possible, *particle_words] if particle_words else self.possible
        text = attach(self.last_word, particle, self.honorific) if particle else self.last_word
        return [*self.before, Eojeol(text, self.sure, possible)]

    def topic(self) -> list[Eojeol]:
        """Return the phrase as the subject of a main clause."""
        return self.korean("은" if self.definite else "이")


class Pronoun(NamedTuple):
    """A personal pronoun: its English cases, and its Korean in plain and polite style."""

    subject: str
    object: str
    possessive: str
    plain: str
    polite: str
    agreement: str


PRONOUNS = {
    "I": Pronoun("I", "me", "my", "나", "저", "first"),
    "you": Pronoun("you", "you", "your", "너", "", "plural"),
    "he": Pronoun("he", "him", "his", "그", "그", "third"),
    "she": Pronoun("she", "her", "her", "그녀", "그녀", "third"),
    "we": Pronoun("we", "us", "our", "우리", "우리", "plural"),
    "they": Pronoun("they", "them", "their", "그들", "그들", "plural"),
}


def pronoun_subject(scene: Scene, name: str) -> NounPhrase:
    """Return a pronoun as a subject. Polite style omits "you" and uses an honorific verb."""
    pronoun = PRONOUNS[name]
    scene.used.add(name)
    if name in ("he", "she"):
        scene.used.add(THIRD_PERSON_MENTIONED)
    word = Word(pronoun.subject)
    phrase = NounPhrase([word], pronoun.polite if scene.polite else pronoun.plain, (word,))
    phrase.agreement = pronoun.agreement
    phrase.first_or_second_person = name in ("I", "we", "you")
    if name == "you" and scene.polite:
        phrase.dropped = phrase.honorific = True
    return phrase


def pronoun_object(scene: Scene, name: str) -> NounPhrase:
    """Return a pronoun as an object."""
    pronoun = PRONOUNS[name]
    scene.used.add(name)
    word = Word(pronoun.object)
    return NounPhrase([word], pronoun.polite if scene.polite else pronoun.plain, (word,))


# Noun → adjectives that can precede the noun. `_CREATED_DESCRIPTIONS` is for a thing that is being created.
_DESCRIPTIONS: dict[Noun, tuple[Adjective, ...]] = {
    entry: tuple(
        adjective
        for adjective in (*ADJECTIVES, *TRAITS, *ATTRIBUTES)
        if entry in adjective.things
        and not is_listed(predicates.PREDICATIVE, adjective.english, adjective.stem)
    )
    for entry in NOUNS
}
_CREATED_DESCRIPTIONS = {
    entry: tuple(
        adjective
        for adjective in adjectives
        if adjective.english in predicates.ADJECTIVES_OF_CREATIONS.split()
    )
    for entry, adjectives in _DESCRIPTIONS.items()
}


def optional_adjective(
    scene: Scene, entry: Noun, probability: float, *, created: bool = False
) -> tuple[list[Word], list[Eojeol]]:
    """Return an adjective before the noun with this probability, otherwise nothing."""
    options = (_CREATED_DESCRIPTIONS if created else _DESCRIPTIONS)[entry]
    if not options or not scene.chance(probability):
        return [], []
    return _attributive_adjective(scene, entry, scene.pick_new(options))


def _attributive_adjective(
    scene: Scene, entry: Noun, adjective: Adjective
) -> tuple[list[Word], list[Eojeol]]:
    """Return an adjective in its form before a noun."""
    scene.note_combination(adjective, entry)
    word = Word(adjective.english)
    korean = [Eojeol(text, (word,)) for text in adjective.before]
    return [word], [*korean, Eojeol(adjective.attributive, (word,))]


def _possessor(scene: Scene, entry: Noun) -> tuple[list[Word], list[Eojeol]]:
    """Return "my", "his", "our", "Minsu's" … in both languages.

    For what a family or another group shares (class `ours`), "my" is 우리 instead of 내.
    """
    draw = scene.random()
    if draw < 0.25:
        name = str(scene.pick_new(_NAMES).english[0])
        word = Word(f"{name}'s")
        return [word], [Eojeol(_KOREAN_NAME[name] + "의", (word,))]
    name = "I" if draw < 0.65 else scene.pick(_POSSESSORS)
    if name == "she" and HER_IS_RECIPIENT in scene.used:
        name = "he"
    if name in ("he", "she"):
        if THIRD_PERSON_MENTIONED in scene.used:
            name = "I"  # "Minsu … his" may need 자기
        else:
            scene.used.add(HIS_OR_HER_USED)
    if (name == "you" and scene.polite) or (name == "we" and not entry.classes & _SHARED):
        name = "I"  # a polite sentence cannot say 네; "our" (우리) needs a thing that people share
    pronoun = PRONOUNS[name]
    word = Word(pronoun.possessive)
    if name == "I" and "ours" in entry.classes:
        return [word], [Eojeol("우리", (word,))]
    korean = attach(pronoun.polite if scene.polite else pronoun.plain, "의")
    return [word], [Eojeol(korean, (word,))]


_SHARED = frozenset({"kin", "ours", "elder"})
_POSSESSORS = ("he", "she", "we", "you", "he", "she")
_NAMES = nouns_of("name")
_KOREAN_NAME = {entry.english[0]: entry.korean for entry in _NAMES}
_DEMONSTRATIVES = {"this": "이", "that": "저"}
_PLURAL_DEMONSTRATIVES = {"these": "이", "those": "저"}


def _assemble(
    entry: Noun,
    determiner: tuple[list[Word], list[Eojeol]],
    description: tuple[list[Word], list[Eojeol]],
    *,
    plural: bool = False,
    plural_suffix: bool = False,
) -> NounPhrase:
    """Assemble determiner, adjective and noun; `plural_suffix` adds 들."""
    head = words(entry.plural if plural else entry.english)
    (determiner_words, determiner_korean), (adjective_words, adjective_korean) = determiner, description
    noun = entry.korean + "들" if plural_suffix else entry.korean
    phrase = NounPhrase([*determiner_words, *adjective_words, *head], noun, head)
    if len(adjective_korean) > 1:  # 키가 큰 is a clause: 키가 큰 이 간호사
        phrase.before = adjective_korean + determiner_korean
    else:
        phrase.before = determiner_korean + adjective_korean
    if not determiner_korean:
        phrase.possible = determiner_words  # "the" and "a" have no Korean word
    phrase.honorific = "elder" in entry.classes
    if plural or entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


# Entries of `Scene.used`, besides the words that the sentence has used.
THIRD_PERSON_MENTIONED, HIS_OR_HER_USED, THAT_USED = "a third person", "his or her", "that"
ONE_PERSON = "one person"  # the subject is singular: two people do not wear one hat
HER_IS_RECIPIENT = "her money"  # in "send her money", "her" would be the recipient and not a possessive
SPECIFIC_THING = "a specific thing"  # such as "this apple": nobody eats this apple every day

# Classes of things without a possessor such as "my" or "Minsu's".
UNOWNED_CLASSES = frozenset(
    {
        "film",
        "wild",
        "tiny",
        "shut",
        "heard",
        "plant",
        "food",
        "grain",
        "drink",
        "duty",
        "medicine",
        "transit",
        "found",
    }
)
# Classes of things that people mostly have one of, so the plural is not used.
_ALWAYS_SINGULAR = frozenset(
    {
        "furniture",
        "vehicle",
        "mount",
        "mended",
        "device",
        "instrument",
        "worn_body",
        "worn_head",
        "worn_finger",
    }
)
# Classes of nouns without a determiner; of nouns with "a" or "the"; of nouns with "the".
_BARE = frozenset({"meal", "sport", "study"})
_ONLY_ARTICLES = frozenset({"transit"})
_ONLY_DEFINITE = frozenset({"definite", "place"})
_GENERIC_WITH_THE = frozenset({"definite", "place", "instrument"})  # "play the piano", "listen to the radio"


def thing_phrase(
    scene: Scene,
    entry: Noun,
    *,
    p_adjective: float = 0.22,
    generic: bool = False,
    definite: bool = False,
    may_have_possessor: bool = True,
    created: bool = False,
) -> NounPhrase:
    """Return a thing with a determiner that fits it, and with the probability `p_adjective` an adjective.

    If `generic` is true, the phrase means the kind ("cats", "bread"), as after "like". If `definite` is true,
    the phrase does not begin with "a". If `may_have_possessor` is false, it does not begin with "my". If
    `created` is true, the thing is being created: the phrase does not begin with "this", and a countable
    thing has no possessor either.
    """
    scene.used.add(entry)
    if entry.form == "name":
        return _assemble(entry, ([], []), ([], []))
    if generic:
        if entry.classes & _GENERIC_WITH_THE or entry.key == "radio":
            return _assemble(entry, ([Word("the")], []), ([], []))
        is_plural = entry.form == "count" and entry.key != "television"
        return _assemble(entry, ([], []), ([], []), plural=is_plural)
    description: tuple[list[Word], list[Eojeol]] = ([], [])
    if not entry.classes & _BARE:
        description = optional_adjective(scene, entry, p_adjective, created=created)
    can_be_owned = may_have_possessor and not entry.classes & UNOWNED_CLASSES
    if entry.form != "count":
        return _uncounted_phrase(scene, entry, description, definite, can_be_owned)
    if entry.classes & _ONLY_DEFINITE:
        return _assemble(entry, ([Word("the")], []), description)
    draw = scene.random()
    p_indefinite = 0.34 if not created else 1.0 if description[0] or "animal" in entry.classes else 0.85
    if not definite and draw < p_indefinite:
        return _with_indefinite_article(entry, description)
    scene.used.add(SPECIFIC_THING)
    if draw < 0.62 or created or entry.classes & _ONLY_ARTICLES:
        return _assemble(entry, ([Word("the")], []), description)
    if draw < 0.78 and can_be_owned:
        return _assemble(entry, _possessor(scene, entry), description)
    if draw < 0.90:
        return _assemble(entry, _demonstrative(scene, _DEMONSTRATIVES), description)
    if entry.classes & _ALWAYS_SINGULAR:
        return _assemble(entry, ([Word("the")], []), description)
    if draw < 0.95:
        determiner = _demonstrative(scene, _PLURAL_DEMONSTRATIVES)
        return _assemble(entry, determiner, description, plural=True, plural_suffix=True)
    is_animal = "animal" in entry.classes
    return _assemble(entry, ([Word("the")], []), description, plural=True, plural_suffix=is_animal)


def _with_indefinite_article(entry: Noun, description: tuple[list[Word], list[Eojeol]]) -> NounPhrase:
    first = description[0][0].text if description[0] else entry.english[0]
    phrase = _assemble(entry, ([Word(article(first))], []), description)
    phrase.definite = False
    return phrase


def _demonstrative(scene: Scene, table: dict[str, str]) -> tuple[list[Word], list[Eojeol]]:
    english, korean = scene.pick(tuple(table.items()))
    if english == "that" and THAT_USED in scene.used:
        english, korean = "this", table["this"]  # not "I think that that book …"
    word = Word(english)
    return [word], [Eojeol(korean, (word,))]


def _uncounted_phrase(
    scene: Scene,
    entry: Noun,
    description: tuple[list[Word], list[Eojeol]],
    definite: bool,
    can_be_owned: bool,
) -> NounPhrase:
    """Return "bread", "the bread" or "my shoes": a mass noun or a noun in the plural, which takes no "a"."""
    draw = scene.random()
    is_definite = definite or "definite" in entry.classes
    if entry.classes & _BARE or (draw < 0.5 and not is_definite):
        return _assemble(entry, ([], []), description)
    scene.used.add(SPECIFIC_THING)
    if draw < 0.75 or not can_be_owned:
        return _assemble(entry, ([Word("the")], []), description)
    return _assemble(entry, _possessor(scene, entry), description)


def person_phrase(
    scene: Scene,
    entry: Noun,
    *,
    p_adjective: float = 0.1,
    p_indefinite: float = 0.0,
    is_pointed_at: bool = False,
) -> NounPhrase:
    """Return a person: a name, "my mother", "the kind nurse", "the students".

    If `is_pointed_at` is true, "the" is translated by 그, as if the speaker points at the person.
    """
    scene.used.add(entry)
    if entry.form == "name":
        return _assemble(entry, ([], []), ([], []))
    if "kin" in entry.classes:
        return _assemble(entry, _possessor(scene, entry), ([], []))
    if "elder" in entry.classes:
        determiner = ([Word("the")], []) if scene.chance(0.5) else _possessor(scene, entry)
        return _assemble(entry, determiner, ([], []))
    description = optional_adjective(scene, entry, p_adjective)
    draw = scene.random()
    if draw < p_indefinite:
        return _with_indefinite_article(entry, description)
    if draw < 0.25:
        return _assemble(entry, _demonstrative(scene, _DEMONSTRATIVES), description)
    plural = draw < 0.45 and ONE_PERSON not in scene.used
    the = Word("the")
    # 여자 alone means any woman. "The woman" is 그 여자.
    korean = [Eojeol("그", (the,))] if is_pointed_at or entry.key in ("man", "woman") else []
    return _assemble(entry, ([the], korean), description, plural=plural, plural_suffix=plural)


_ELDERS = nouns_of("elder")


@cache
def _people(subjects: frozenset[str]) -> tuple[Noun, ...]:
    """Return the nouns for people of these classes, without elders."""
    return tuple(entry for entry in nouns_of(" ".join(subjects)) if "elder" not in entry.classes)


def person_subject(
    scene: Scene,
    subjects: frozenset[str],
    *,
    p_you: float = 0.0,
    p_indefinite: float = 0.0,
    exclude_first_person: bool = False,
    pool: tuple[Noun, ...] = (),
) -> NounPhrase:
    """Return a person as a subject: a pronoun, a name, or a noun.

    The noun comes from `pool` or, if `pool` is empty, from all nouns for people that fit `subjects`.
    `p_you` and `p_indefinite` are the probabilities of "you" and "a". `exclude_first_person` excludes "I" and
    "we", for example from questions, because people do not ask about their own actions.
    """
    if p_you and scene.chance(p_you):
        return pronoun_subject(scene, "you")
    draw = scene.random()
    if "female" in subjects and HIS_OR_HER_USED not in scene.used:
        return _female_subject(scene, exclude_first_person)
    if HIS_OR_HER_USED in scene.used:
        name = _unused_pronoun(scene, exclude_first_person, _PRONOUNS_EXCEPT_HE_AND_SHE)
        return pronoun_subject(scene, name)
    if draw < 0.46:
        name = _unused_pronoun(scene, exclude_first_person, _COMMON_PRONOUNS)
        if name in ("he", "she"):
            scene.used.add(THIRD_PERSON_MENTIONED)
        return pronoun_subject(scene, name)
    scene.used.add(THIRD_PERSON_MENTIONED)
    if draw < 0.60:
        return person_phrase(scene, scene.pick_new(_NAMES))
    if pool:
        return person_phrase(scene, scene.pick_new(pool))
    if draw < 0.72 and "young" not in subjects:
        return person_phrase(scene, scene.pick_new(_ELDERS))
    return person_phrase(scene, scene.pick_new(_people(subjects)), p_indefinite=p_indefinite)


def _female_subject(scene: Scene, exclude_first_person: bool) -> NounPhrase:
    """Return a female person or "I" as a subject, as for wearing a skirt."""
    name = _unused_pronoun(scene, exclude_first_person, ("I", "she", "she"))
    if scene.chance(0.5) and name != "they":  # "they" is returned if all are mentioned
        return pronoun_subject(scene, name)
    scene.used.add(THIRD_PERSON_MENTIONED)
    return person_phrase(scene, scene.pick_new(_WOMEN))


_WOMEN = nouns_of("female")
_COMMON_PRONOUNS = ("I", "I", "I", "he", "he", "she", "she", "we", "we", "they", "you")
_PRONOUNS_EXCEPT_HE_AND_SHE = ("I", "I", "we", "they", "you")


def _unused_pronoun(scene: Scene, exclude_first_person: bool, names: tuple[str, ...]) -> str:
    """Return one of these pronouns that is not mentioned yet; in polite style, never "you".

    If eight draws find none, return "they", or "I" if the subject must be one person.
    """
    used = scene.used
    for _ in range(8):
        name = scene.pick(names)
        if name in used or (name == "you" and scene.polite):
            continue
        if name in ("I", "we") and (exclude_first_person or "I" in used or "we" in used):
            continue
        if name in ("he", "she") and THIRD_PERSON_MENTIONED in used:
            continue  # "Minsu …, and he" leaves open whether he is Minsu
        if name in ("we", "they") and ONE_PERSON in used:
            continue
        return name
    return "they" if ONE_PERSON not in used or exclude_first_person else "I"


def subject_phrase(
    scene: Scene,
    verb: Verb,
    *,
    p_you: float = 0.0,
    p_indefinite: float = 0.0,
    question: bool = False,
) -> NounPhrase:
    """Return a subject that fits the verb: a person, or an animal or thing among its actors."""
    if not verb.human_subject:
        return thing_phrase(scene, scene.pick_new(verb.actors), p_adjective=0.2 if p_indefinite else 0.0)
    return person_subject(
        scene, verb.subjects, p_you=p_you, p_indefinite=p_indefinite, exclude_first_person=question
    )


# Classes of things of which people rarely have more than three.
_FEW = frozenset(
    {"vehicle", "driven", "mount", "furniture", "used", "mended", "instrument", "pet", "farmed", "container",
     "worn_body", "worn_head", "worn_finger", "writing", "fragile", "film", "wild", "few"}
)  # fmt: skip


def counted_phrase(scene: Scene, entry: Noun, maximum: int = 10, *, few: int = 3) -> NounPhrase:
    """Return a noun with a number: two books, 책 두 권.

    The number is at most `maximum`, or at most `few` for things of `_FEW`.
    """
    scene.used.add(entry)
    number = scene.pick(NUMBERS[: few if entry.classes & _FEW else maximum])
    plural = number.english[0] != "one"
    number_word = Word(number.english[0])
    head = words(entry.plural if plural else entry.english)
    phrase = NounPhrase([number_word, *head], entry.counter, (number_word,))
    phrase.before = [Eojeol(entry.korean, head), Eojeol(number.korean[0], (number_word,))]
    phrase.possible = head
    phrase.agreement = "plural" if plural else "third"
    phrase.definite = False
    return phrase


# Korean counter → English measure words of mass nouns and of nouns that are always plural.
_MEASURES = {
    "잔": ("glass", "glasses"),
    "켤레": ("pair", "pairs"),
    "벌": ("pair", "pairs"),
    "그릇": ("bowl", "bowls"),
}
_IN_CUPS = frozenset({"coffee", "tea"})
MEASURABLE_NOUNS = tuple(
    entry for entry in NOUNS if entry.form in ("mass", "plural") and entry.counter in _MEASURES
)


def measured_phrase(scene: Scene, entry: Noun) -> NounPhrase:
    """Return a noun with a number of cups, glasses, bowls or pairs: two cups of coffee, 커피 두 잔."""
    scene.used.add(entry)
    number = scene.pick(NUMBERS[:5])
    singular, plural = ("cup", "cups") if entry.key in _IN_CUPS else _MEASURES[entry.counter]
    is_singular = number.english[0] == "one"
    number_word, measure, of = words([number.english[0], singular if is_singular else plural, "of"])
    head = words(entry.english)
    phrase = NounPhrase([number_word, measure, of, *head], entry.counter, (measure,))
    phrase.before = [Eojeol(entry.korean, head), Eojeol(number.korean[0], (number_word,))]
    phrase.possible = (of,)
    phrase.agreement = "third" if is_singular else "plural"
    phrase.definite = False
    return phrase


def place_phrase(entry: Noun, preposition: str = "") -> NounPhrase:
    """Return a place, after this English preposition if it is not empty: "at home", "to the library"."""
    lead = words([preposition] if preposition else [])
    if entry.key == "home" and preposition in ("to", "for"):
        lead = []  # "go home"
    the = [Word("the")] if entry.has_article else []
    head = words(entry.english)
    phrase = NounPhrase([*lead, *the, *head], entry.korean, head)
    phrase.possible = [*lead, *the]
    return phrase


def indefinite_phrase(
    scene: Scene, entry: Noun, *, p_adjective: float = 0.0, created: bool = False, plural: bool = False
) -> NounPhrase:
    """Return an indefinite phrase: a book, an old bag, milk, red shoes.

    If `created` is true, the thing is being created, so it is not called old. If `plural` is true, return
    "books" instead of "a book". The Korean is the same.
    """
    scene.used.add(entry)
    description = optional_adjective(scene, entry, p_adjective, created=created)
    if entry.form == "count" and not plural:
        return _with_indefinite_article(entry, description)
    phrase = _assemble(entry, ([], []), description, plural=plural)
    phrase.definite = False
    return phrase


def owned_phrase(scene: Scene, entry: Noun, *, p_adjective: float = 0.15) -> NounPhrase:
    """Return a thing with its possessor: my bag, Minsu's old bicycle."""
    scene.used.add(entry)
    return _assemble(entry, _possessor(scene, entry), optional_adjective(scene, entry, p_adjective))


def demonstrated_phrase(scene: Scene, entry: Noun, english: str) -> NounPhrase:
    """Return "this bag" or "that bag"."""
    scene.used.add(entry)
    word = Word(english)
    return _assemble(entry, ([word], [Eojeol(_DEMONSTRATIVES[english], (word,))]), ([], []))


def the_phrase(scene: Scene, entry: Noun, *, p_adjective: float) -> NounPhrase:
    """Return "the bag" or "the old bag"."""
    scene.used.add(entry)
    return _assemble(entry, ([Word("the")], []), optional_adjective(scene, entry, p_adjective))
