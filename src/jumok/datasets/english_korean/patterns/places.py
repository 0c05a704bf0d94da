"""Location: "under the table", "at the hospital".

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    KOREAN_PLACE_RANK,
    PLACE_RANK,
    Clause,
    Complement,
    time_complement,
)
from jumok.datasets.english_korean.lexicon import RELATIONS, Expression, Noun, nouns_of
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    counted_phrase,
    indefinite_phrase,
    person_subject,
    place_phrase,
    thing_phrase,
)
from jumok.datasets.english_korean.patterns.descriptions import PERSON, final_ending
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.datasets.english_korean.verb_phrases import LOCATION_VERB

# A relation, its grounds and its figures. A figure is a thing that can be in, on or near a ground: small
# things are in bags, cars are in front of schools.
_RELATED_NOUNS = tuple(
    (next(entry for entry in RELATIONS if entry.key == relation), nouns_of(grounds), nouns_of(figures))
    for relation, grounds, figures in (
        (
            "in",
            "=bag =box",
            "=glasses =ring =phone =camera =key =wallet =pencil =ticket =book =newspaper "
            "=letter =umbrella =photo =map =money",
        ),
        (
            "in",
            "=box",
            "fruit =shoes =toy =doll =ball =cup =hat =dish =spoon =knife =gloves =socks "
            "=clock =boots =potato",
        ),
        ("in", "=refrigerator", "fruit drink =carrot =tomato =egg =cake =meat =kimchi =fish"),
        (
            "on",
            "=table =desk",
            "dish fruit portable =letter =report =computer =flower =cake =bread =radio "
            "=pencil =map =gift =photo =picture =spoon =knife =clock =sandwich =cookie =television",
        ),
        (
            "on",
            "=bed =chair",
            "=dog =cat clothes_cloth =bag =doll =toy =book =newspaper =guitar =umbrella =camera",
        ),
        ("under", "=table =desk =bed =chair", "=dog =cat =ball =box =bag =shoes =toy"),
        ("under", "=tree", "=dog =cat =rabbit =chair =bicycle =ball =cow =horse"),
        ("behind", "=door =bed =desk", "=cat =dog =ball =box =umbrella =guitar =bag"),
        ("behind", "=house =tree =car", "=dog =cat =bicycle =ball =chair"),
        ("in front of", "landmark =house", "=car =bus =taxi =bicycle =tree =dog =cat =chair"),
        (
            "next to",
            "furniture =window =door",
            "=chair =flower =bag =clock =cat =dog =umbrella =box =television =guitar =violin "
            "=piano =radio =table",
        ),
        ("next to", "landmark =house", "=tree =bicycle =car =bus"),
    )
)


def place_and_thing(scene: Scene) -> tuple[Complement, Noun]:
    """Return a place that a relation describes ("under the desk"), and a thing that can be there."""
    relation, grounds, figures = scene.pick(_RELATED_NOUNS)
    ground = scene.pick_new(grounds)
    return relation_complement(relation, ground), scene.pick_new(figures)


def relation_complement(relation: Expression, ground: Noun) -> Complement:
    """Return "under the desk", 책상 밑에."""
    lead = words(relation.english)
    head = words(ground.english)
    the = [Word("the")] if ground.has_article or "place" in ground.classes else []
    korean = [Eojeol(ground.korean, head, the), Eojeol(relation.korean[0] + "에", lead)]
    return Complement([*lead, *the, *head], korean, PLACE_RANK, KOREAN_PLACE_RANK)


def there_is(scene: Scene) -> Sentence:
    """There is a cat under the table."""
    location, entry = place_and_thing(scene)
    is_cooled = location.english[-1].text == "refrigerator"  # nothing in a refrigerator is hot
    phrase = indefinite_phrase(scene, entry, p_adjective=0.0 if is_cooled else 0.2)
    question = scene.chance(0.25)
    tense = scene.pick(("present", "present", "past"))
    clause = Clause(phrase, LOCATION_VERB, tense=tense)
    there = Word("there")
    clause.link(there)
    final = final_ending(scene, question=question)
    korean = location.korean + phrase.korean("이") + clause.korean_predicate(final)
    if question:
        return Sentence([*clause.front, there, *phrase.english, *location.english], korean, "?")
    return Sentence([there, *clause.front, *phrase.english, *location.english], korean)


def there_is_no(scene: Scene) -> Sentence:
    """There is no milk in the refrigerator."""
    location, entry = place_and_thing(scene)
    phrase = bare_noun(entry)
    clause = Clause(phrase, LOCATION_VERB, tense=scene.pick(("present", "past")), negative=True)
    there, no = words(["there", "no"])
    clause.roles["not"] = [no]
    clause.link(there)
    korean = location.korean + phrase.korean("이") + clause.korean_predicate(final_ending(scene))
    return Sentence([there, *clause.front, no, *phrase.english, *location.english], korean)


def bare_noun(entry: Noun) -> NounPhrase:
    """Return the noun without a determiner: milk, key, shoes."""
    head = words(entry.english)
    phrase = NounPhrase(head, entry.korean, head)
    if entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


def there_are_counted_things(scene: Scene) -> Sentence:
    """There are three books on the desk."""
    location, entry = place_and_thing(scene)
    while entry.form != "count":
        location, entry = place_and_thing(scene)
    phrase = counted_phrase(scene, entry, few=5)
    clause = Clause(phrase, LOCATION_VERB, tense=scene.pick(("present", "present", "past")))
    there = Word("there")
    clause.link(there)
    korean = location.korean + floating_quantifier(phrase) + clause.korean_predicate(final_ending(scene))
    return Sentence([there, *clause.front, *phrase.english, *location.english], korean)


def floating_quantifier(phrase: NounPhrase) -> list[Eojeol]:
    """Return a `counted_phrase` as 있다 requires: the noun with its particle, then the number: 책이 두 권."""
    first, number = phrase.before
    subject = NounPhrase(list(first.sure), first.text, first.sure)
    return [*subject.korean("이"), number, Eojeol(phrase.last_word, phrase.sure, phrase.possible)]


def a_thing_is_somewhere(scene: Scene) -> Sentence:
    """The key is in the bag."""
    location, entry = place_and_thing(scene)
    subject = thing_phrase(scene, entry, p_adjective=0.15, definite=True)
    clause = Clause(
        subject, LOCATION_VERB, [location], tense=scene.pick(("present", "past")), negative=scene.chance(0.25)
    )
    return make_statement(scene, clause)


def a_person_is_somewhere(scene: Scene) -> Sentence:
    """My grandmother is at the hospital."""
    subject = person_subject(scene, PERSON)
    entry = scene.pick_new(_PLACES_OF_PEOPLE)
    phrase = place_phrase(entry, entry.preposition)
    location = Complement(phrase.english, phrase.korean("에"), PLACE_RANK, KOREAN_PLACE_RANK)
    tense = scene.pick(("present", "past", "future"))
    kinds = _TIMES_IN_TOWNS_AND_REGIONS if entry.classes & {"region", "town"} else _TIMES_AT_PLACES_NEARBY
    when = time_complement(scene, tense, kinds) if scene.chance(0.3) else []
    complements = [location, *when]
    clause = Clause(subject, LOCATION_VERB, complements, tense=tense, negative=scene.chance(0.2))
    return make_statement(scene, clause)


_PLACES_OF_PEOPLE = tuple(entry for entry in nouns_of("place") if entry.key not in ("river", "sea"))
# Kinds of times at which people are in a country or city, and at which they are at a place nearby.
_TIMES_IN_TOWNS_AND_REGIONS = frozenset({"day", "week", "year", "now"})
_TIMES_AT_PLACES_NEARBY = frozenset({"day", "morning", "night", "hour", "part", "weekday", "now"})
