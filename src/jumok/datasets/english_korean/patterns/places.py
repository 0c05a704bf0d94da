"""Where somebody or something is: under the table, at the hospital."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import Clause, Complement, time_for
from jumok.corpus.english_korean.lexicon import RELATIONS, Expression, Noun, nouns_of
from jumok.corpus.english_korean.noun_phrases import (
    NounPhrase,
    counted,
    indefinite,
    place_phrase,
    someone,
    thing,
)
from jumok.corpus.english_korean.patterns.descriptions import PERSON, ending
from jumok.corpus.english_korean.patterns.registry import pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.corpus.english_korean.verb_phrases import LOCATED

# (relation, what is related to what): small things lie in bags, trees stand in front of schools.
_SCENES = tuple(
    (next(entry for entry in RELATIONS if entry.key == relation), nouns_of(grounds), nouns_of(figures))
    for relation, grounds, figures in (
        ("in", "=bag =box", "portable small fruit =book =newspaper =letter"),
        ("in", "=refrigerator", "fruit vegetable drink =egg =cake =meat =kimchi =fish"),
        (
            "on",
            "surface",
            "dish fruit portable =book =newspaper =letter =report =clock =computer =flower =cake =bread",
        ),
        ("on", "surface =chair", "pet clothes =bag =doll =toy"),
        ("under", "surface =chair =tree", "pet =ball =box =bag =shoes =toy =mouse"),
        ("behind", "furniture =door =tree =car =house", "pet =ball =box =umbrella =guitar"),
        ("in front of", "landmark =house", "vehicle pet =tree =bicycle =chair farmed"),
        (
            "next to",
            "furniture =window =door =house landmark",
            "=chair =tree =flower =bag =bicycle =clock pet",
        ),
    )
)


def located(scene: Scene) -> tuple[Complement, Noun]:
    """A place described by a relation ("under the desk"), and something that may be there."""
    relation, grounds, figures = scene.pick(_SCENES)
    ground = scene.pick_new(grounds)
    return beside(relation, ground), scene.pick_new(figures)


def beside(relation: Expression, ground: Noun) -> Complement:
    """under the desk, 책상 밑에."""
    lead = words(relation.english)
    head = words(ground.english)
    the = [Word("the")] if ground.has_article or "place" in ground.classes else []
    korean = [Eojeol(ground.korean, head, the), Eojeol(relation.korean[0] + "에", lead)]
    return Complement([*lead, *the, *head], korean, 30, 30)


@pattern(2.5)
def there_is(scene: Scene) -> Sentence:
    """There is a cat under the table."""
    where, entry = located(scene)
    phrase = indefinite(scene, entry, adjective=0.2)
    question = scene.chance(0.25)
    tense = scene.pick(("present", "present", "past"))
    clause = Clause(phrase, LOCATED, tense=tense)
    there = Word("there")
    clause.link(there)
    final = ending(scene, question=question)
    korean = where.korean + phrase.korean("이") + clause.korean_predicate(final)
    if question:
        return Sentence([*clause.front, there, *phrase.english, *where.english], korean, "?")
    return Sentence([there, *clause.front, *phrase.english, *where.english], korean)


@pattern(1.2)
def there_is_no(scene: Scene) -> Sentence:
    """There is no milk in the refrigerator."""
    where, entry = located(scene)
    phrase = bare(entry)
    clause = Clause(phrase, LOCATED, tense=scene.pick(("present", "past")), negative=True)
    there, no = words(["there", "no"])
    clause.roles["not"] = [no]
    clause.link(there)
    korean = where.korean + phrase.korean("이") + clause.korean_predicate(ending(scene))
    return Sentence([there, *clause.front, no, *phrase.english, *where.english], korean)


def bare(entry: Noun) -> NounPhrase:
    """The noun alone: milk, key, shoes."""
    head = words(entry.english)
    phrase = NounPhrase(head, entry.korean, head)
    if entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


@pattern(1.5)
def there_are_so_many(scene: Scene) -> Sentence:
    """There are three books on the desk."""
    where, entry = located(scene)
    while entry.form != "count":
        where, entry = located(scene)
    phrase = counted(scene, entry)
    clause = Clause(phrase, LOCATED, tense=scene.pick(("present", "present", "past")))
    there = Word("there")
    clause.link(there)
    korean = where.korean + floated(phrase) + clause.korean_predicate(ending(scene))
    return Sentence([there, *clause.front, *phrase.english, *where.english], korean)


def floated(phrase: NounPhrase) -> list[Eojeol]:
    """With 있다 the particle stands on the noun and the number follows: 책이 두 권."""
    first, number = phrase.before
    subject = NounPhrase(list(first.sure), first.text, first.sure)
    return [*subject.korean("이"), number, Eojeol(phrase.text, phrase.sure, phrase.possible)]


@pattern(2)
def a_thing_is_somewhere(scene: Scene) -> Sentence:
    """The key is in the bag."""
    where, entry = located(scene)
    doer = thing(scene, entry, adjective=0.15, definite=True)
    clause = Clause(
        doer, LOCATED, [where], tense=scene.pick(("present", "past")), negative=scene.chance(0.25)
    )
    return state(scene, clause)


@pattern(1.5)
def a_person_is_somewhere(scene: Scene) -> Sentence:
    """My grandmother is at the hospital."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_WHEREABOUTS)
    phrase = place_phrase(entry, entry.preposition)
    where = Complement(phrase.english, phrase.korean("에"), 30, 30)
    tense = scene.pick(("present", "past", "future"))
    complements = [where, time_for(scene, tense)] if scene.chance(0.3) else [where]
    clause = Clause(doer, LOCATED, complements, tense=tense, negative=scene.chance(0.2))
    return state(scene, clause)


_WHEREABOUTS = tuple(entry for entry in nouns_of("place") if entry.key not in ("river", "sea"))
