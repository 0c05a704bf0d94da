"""What somebody or something is, is like, has, and where it is."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import OBJECT, Clause, Complement, degree, expression, time_for
from jumok.corpus.english_korean.conjugation import Stem, conjugate, copula, honour
from jumok.corpus.english_korean.lexicon import (
    ADJECTIVES,
    CHARACTERS,
    DEGREES,
    RELATIONS,
    STATES,
    Adjective,
    Expression,
    Noun,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import (
    NounPhrase,
    counted,
    human,
    indefinite,
    owned,
    place_phrase,
    someone,
    thing,
)
from jumok.corpus.english_korean.patterns.registry import ask, pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.corpus.english_korean.verb_phrases import BECOMES, COPULA, LOCATED, NEEDED, OWNED, RAINS, SNOWS

PERSON = frozenset({"person"})


def ending(scene: Scene, *, question: bool = False) -> str:
    """How a main clause ends."""
    if scene.polite:
        return "polite"
    return "question" if question else "statement"


# --- adjectives ---------------------------------------------------------------------------------------------


def described_thing(scene: Scene, adjective: Adjective | None = None) -> tuple[NounPhrase, Adjective]:
    """A thing and an adjective that may be said of it."""
    adjective = adjective or scene.pick(ADJECTIVES)
    entry = scene.pick_new(adjective.things)
    scene.combine(adjective, entry)
    scene.used.add(adjective)
    return _definite(scene, entry), adjective


def feeling(scene: Scene, *, you: float = 0.0, question: bool = False) -> tuple[NounPhrase, Adjective]:
    """A person and how he or she is."""
    adjective = scene.pick(STATES if scene.chance(0.6) else _GENERAL_CHARACTERS)
    return someone(scene, PERSON, you=you, others=question), adjective


_GENERAL_CHARACTERS = tuple(entry for entry in CHARACTERS if entry.english != "famous")


@pattern(6)
def a_thing_is_like_this(scene: Scene) -> Sentence:
    """The apple is very sweet."""
    doer, adjective = described_thing(scene)
    negative = scene.chance(0.2)
    tense = scene.pick(("present", "present", "present", "past"))
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    return state(scene, Clause(doer, adjective, tense=tense, negative=negative, adverb=adverb))


@pattern(3)
def a_person_is_like_this(scene: Scene) -> Sentence:
    """I am tired today."""
    doer, adjective = feeling(scene, you=0.08)
    tense = scene.pick(("present", "present", "past"))
    negative = scene.chance(0.2)
    adverb = personal_degree(scene) if not negative and scene.chance(0.35) else None
    is_state = adjective in STATES
    when = [time_for(scene, tense)] if is_state and scene.chance(0.35) else []
    return state(scene, Clause(doer, adjective, when, tense=tense, negative=negative, adverb=adverb))


def personal_degree(scene: Scene) -> Complement:
    """very and really: nobody is "too healthy"."""
    return expression(scene.pick(DEGREES[:2]), 0, 90)


@pattern(1.5)
def compared(scene: Scene) -> Sentence:
    """The dog is bigger than the cat."""
    comparative, adjective = scene.pick(_COMPARATIVES)
    first = scene.pick_new(adjective.things)
    second = scene.pick_new(_COMPARABLE[adjective, first] or adjective.things)
    scene.combine(adjective, first)
    doer, other = _definite(scene, first), _definite(scene, second)
    clause = Clause(doer, adjective, tense=scene.pick(("present", "present", "past")))
    head = words(comparative.split())
    than = Word("than")
    clause.roles["verb"] = [head[-1]]
    more = Eojeol("더", (head[0],))
    korean = [*doer.topic(), *other.korean("보다", (than,)), *clause.korean_predicate(ending(scene))]
    korean.insert(len(korean) - 1, more)
    return Sentence([*doer.english, *clause.front, *head, than, *other.english], korean)


def _definite(scene: Scene, entry: Noun) -> NounPhrase:
    return (
        human(scene, entry)
        if "person" in entry.classes
        else thing(scene, entry, adjective=0.0, definite=True)
    )


_COMPARATIVE_FORMS = {
    "big": "bigger", "small": "smaller", "long": "longer", "short": "shorter", "heavy": "heavier",
    "light": "lighter", "fast": "faster", "slow": "slower", "cheap": "cheaper", "clean": "cleaner",
    "sweet": "sweeter", "easy": "easier", "quiet": "quieter", "bright": "brighter", "dark": "darker",
    "pretty": "prettier", "cute": "cuter", "expensive": "more expensive", "delicious": "more delicious",
    "difficult": "more difficult", "interesting": "more interesting", "important": "more important",
    "beautiful": "more beautiful", "spacious": "more spacious", "strong": "stronger", "kind": "kinder",
    "smart": "smarter", "tall": "taller", "diligent": "more diligent", "brave": "braver",
}  # fmt: skip
_COMPARATIVES = tuple(
    (_COMPARATIVE_FORMS[entry.english], entry)
    for entry in (*ADJECTIVES, *CHARACTERS)
    if entry.english in _COMPARATIVE_FORMS
)


# What may be held against what: things that have a class in common.
_COMPARABLE = {
    (adjective, first): tuple(
        second
        for second in dict.fromkeys(adjective.things)
        if second is not first and first.classes & second.classes
    )
    for _, adjective in _COMPARATIVES
    for first in dict.fromkeys(adjective.things)
}


@pattern(1)
def the_most(scene: Scene) -> Sentence:
    """This is the most expensive camera."""
    adjective = scene.pick(_SUPERLATIVES)
    entry = scene.pick_new(_SHOWABLE[adjective])
    scene.combine(adjective, entry)
    pointing, korean = scene.pick(_POINTERS)
    first, verb, the, most, quality = words([pointing, "is", "the", "most", adjective.english])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "ㄴ다")
    eojeols = [
        Eojeol(korean + "은", (first,)),
        Eojeol("가장", (most,), (the,)),
        Eojeol(conjugate(adjective.stem, "는"), (quality,)),
        Eojeol(text, head, (verb, the)),
    ]
    return Sentence([first, verb, the, most, quality, *head], eojeols)


_LONG_ADJECTIVES = tuple(
    entry for entry in ADJECTIVES if _COMPARATIVE_FORMS.get(entry.english, "").startswith("more ")
)
_SHOWABLE = {
    adjective: tuple(
        entry
        for entry in adjective.things
        if entry.form == "count" and not entry.classes & {"person", "place"}
    )
    for adjective in _LONG_ADJECTIVES
}
_SUPERLATIVES = tuple(adjective for adjective, things in _SHOWABLE.items() if things)
_POINTERS = (("this", "이것"), ("that", "저것"))


@pattern(1)
def somebody_looks(scene: Scene) -> Sentence:
    """The nurse looks tired."""
    adjective = scene.pick(STATES)
    doer = someone(scene, PERSON, others=True)
    tense = scene.pick(("present", "past"))
    adverb = personal_degree(scene) if scene.chance(0.4) else None
    clause = Clause(doer, adjective, tense=tense, mode="look")
    if adverb is None:
        return state(scene, clause)
    english = [*doer.english, clause.main[0], *adverb.english, *clause.main[1:]]
    clause.adverb = Complement([], adverb.korean, 0, 90)
    return Sentence(english, clause.korean(ending(scene)))


@pattern(1)
def something_becomes(scene: Scene) -> Sentence:
    """The room became dark."""
    adjective = scene.pick(_CHANGING)
    if adjective in ADJECTIVES:
        doer, _ = described_thing(scene, adjective)
    else:
        doer = someone(scene, PERSON)
    return state(scene, Clause(doer, adjective, tense=scene.pick(("past", "past", "future")), mode="become"))


_CHANGES = frozenset(
    (
        "happy",
        "sad",
        "busy",
        "healthy",
        "lonely",
        "dirty",
        "clean",
        "dark",
        "bright",
        "quiet",
        "noisy",
        "warm",
    )
)
_CHANGING = tuple(entry for entry in (*ADJECTIVES, *STATES) if entry.english in _CHANGES)


# --- weather ------------------------------------------------------------------------------------------------


def raining(
    scene: Scene, tense: str, *, time: float = 0.0, place: float = 0.0, question: bool = False
) -> Clause:
    """It rains; Korean says that rain comes."""
    it = NounPhrase([Word("it")], "", ())
    it.dropped = True
    complements = []
    if scene.chance(place):
        region = place_phrase(scene.pick_new(_REGIONS), "in")
        complements.append(Complement(region.english, region.korean("에"), 30, 30))
    if scene.chance(time):
        complements.append(time_for(scene, tense))
    return Clause(it, scene.pick((RAINS, SNOWS)), complements, tense=tense, question=question)


_REGIONS = nouns_of("region")


@pattern(1)
def it_rains(scene: Scene) -> Sentence:
    """It rained in Seoul yesterday."""
    tense = scene.pick(("present", "past", "future"))
    return state(scene, raining(scene, tense, time=0.8, place=0.4))


@pattern(1)
def the_weather_is(scene: Scene) -> Sentence:
    """The weather is cold today."""
    the, weather = words(["the", "weather"])
    phrase = NounPhrase([the, weather], "날씨", (weather,))
    phrase.possible = (the,)
    adjective = scene.pick(_WEATHER)
    tense = scene.pick(("present", "past"))
    when = [time_for(scene, tense)] if scene.chance(0.7) else []
    negative = scene.chance(0.2)
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    clause = Clause(phrase, adjective, when, tense=tense, negative=negative, adverb=adverb)
    early = [eojeol for complement in when for eojeol in complement.korean]
    late = list(adverb.korean) if adverb else []
    korean = [*early, *phrase.korean("이"), *late, *clause.korean_predicate(ending(scene))]
    return Sentence(clause.statement(), korean)


_WEATHER = (
    *(entry for entry in ADJECTIVES if entry.stem.text in ("덥", "춥", "따뜻하", "좋")),
    Adjective("bad", Stem("나쁘", "adjective"), (), None, (), "bad"),
    Adjective("cool", Stem("시원하", "adjective"), (), None, (), "cool"),
)


# --- being something ----------------------------------------------------------------------------------------

_COPULA_ENDINGS = {
    ("statement", "present"): "ㄴ다",
    ("statement", "past"): "어ㅆ다",
    ("polite", "present"): "어요",
    ("polite", "past"): "어ㅆ어요",
    ("question", "present"): "니",
    ("question", "past"): "어ㅆ니",
}
_IS_NOT = Stem("아니", "adjective", "아니")


def being(doer: NounPhrase, complement: NounPhrase, clause: Clause, final: str) -> list[Eojeol]:
    """The Korean of "X is Y": Y이다, or Y가 아니다."""
    suffix = _COPULA_ENDINGS[final, clause.tense]
    extra = [*clause.roles["be"], *doer.english] if doer.dropped else clause.roles["be"]
    if clause.negative:
        is_not = honour(_IS_NOT) if doer.respected else _IS_NOT
        last = Eojeol(conjugate(is_not, suffix), clause.roles["not"], extra)
        return [*doer.topic(), *complement.korean("이"), last]
    text = copula(complement.text, suffix, doer.respected)
    possible = [*complement.possible, *extra]
    return [*doer.topic(), *complement.before, Eojeol(text, complement.sure, possible)]


@pattern(2.5)
def somebody_is_something(scene: Scene) -> Sentence:
    """My younger sister is a nurse."""
    doer = someone(scene, PERSON, you=0.05)
    entry = scene.pick_new(_JOBS)
    complement = profession(scene, entry, doer)
    tense = scene.pick(("present", "present", "past"))
    clause = Clause(doer, COPULA, tense=tense, negative=scene.chance(0.25))
    english = [*clause.statement(), *complement.english]
    return Sentence(english, being(doer, complement, clause, ending(scene)))


def profession(scene: Scene, entry: Noun, doer: NounPhrase) -> NounPhrase:
    """a nurse, a famous singer; after a plural "singers", which Korean leaves unmarked."""
    if doer.agreement == "plural" and doer.english[0].text != "you":
        head = words(entry.plural)
        return NounPhrase(head, entry.korean, head)
    return indefinite(scene, entry, adjective=0.25)


_JOBS = nouns_of("job")


@pattern(1)
def somebody_becomes_something(scene: Scene) -> Sentence:
    """Minsu wants to become a doctor."""
    doer = someone(scene, PERSON)
    complement = profession(scene, scene.pick_new(_JOBS), doer)
    mode = scene.pick(("simple", "want"))
    tense = scene.pick(("past", "future")) if mode == "simple" else scene.pick(("present", "past"))
    what = Complement(complement.english, complement.korean("이"), OBJECT, 60)
    return state(scene, Clause(doer, BECOMES, [what], tense=tense, mode=mode))


@pattern(1.5)
def this_is(scene: Scene) -> Sentence:
    """This is my bag."""
    pointing, korean = scene.pick(_POINTERS)
    word = Word(pointing)
    doer = NounPhrase([word], korean, (word,))
    entry = scene.pick_new(_SHOWN)
    complement = owned(scene, entry) if scene.chance(0.5) else indefinite(scene, entry, adjective=0.25)
    if complement.agreement == "plural":
        word.text = "these" if pointing == "this" else "those"
        doer.text += "들"
        doer.agreement = "plural"
    clause = Clause(doer, COPULA, negative=scene.chance(0.25))
    question = scene.chance(0.25) and not clause.negative
    eojeols = being(doer, complement, clause, ending(scene, question=question))
    if question:
        return Sentence([*clause.front, *doer.english, *complement.english], eojeols, "?")
    return Sentence([*clause.statement(), *complement.english], eojeols)


_SHOWN = nouns_of("goods portable small drawn shown")


# --- being somewhere ----------------------------------------------------------------------------------------

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


# --- having and needing -------------------------------------------------------------------------------------


@pattern(2)
def somebody_has(scene: Scene) -> Sentence:
    """I have a camera."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_OWNED_THINGS)
    phrase = indefinite(scene, entry, adjective=0.25)
    what = Complement(phrase.english, phrase.korean("이"), OBJECT, 60)
    negative, tense = scene.chance(0.3), scene.pick(("present", "present", "past"))
    return state(scene, Clause(doer, OWNED, [what], tense=tense, negative=negative))


_OWNED_THINGS = nouns_of("goods pet portable =money =younger_brother =friend =cousin =son =daughter =horse")


@pattern(1.2)
def somebody_has_so_many(scene: Scene) -> Sentence:
    """My friend has two cats."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_COUNTED_THINGS)
    phrase = counted(scene, entry)
    what = Complement(phrase.english, floated(phrase), OBJECT, 60)
    return state(scene, Clause(doer, OWNED, [what], tense=scene.pick(("present", "present", "past"))))


_COUNTED_THINGS = tuple(
    entry for entry in _OWNED_THINGS if entry.form == "count" and "kin" not in entry.classes
)


@pattern(1.2)
def somebody_needs(scene: Scene) -> Sentence:
    """I need an umbrella."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_NEEDED_THINGS)
    phrase = indefinite(scene, entry, adjective=0.25)
    what = Complement(phrase.english, phrase.korean("이"), OBJECT, 60)
    tense = scene.pick(("present", "present", "past", "future"))
    return state(scene, Clause(doer, NEEDED, [what], tense=tense, negative=scene.chance(0.25)))


_NEEDED_THINGS = nouns_of(
    "used clothes furniture portable =money =medicine =water =car =bicycle =friend =doctor"
)


@pattern(1)
def where_is_it(scene: Scene) -> Sentence:
    """Where is my key?"""
    where = Word("where")
    if scene.chance(0.5):
        doer = thing(scene, scene.pick_new(_LOST_THINGS), adjective=0.2, definite=True)
    else:
        doer = someone(scene, PERSON, you=0.1, others=True)
    clause = Clause(doer, LOCATED, [Complement([], [Eojeol("어디에", (where,))], 0, 30)], question=True)
    sentence = ask(scene, clause)
    return Sentence([where, *sentence.words], sentence.eojeols, "?")


_LOST_THINGS = nouns_of("portable small goods")


@pattern(1)
def how_many(scene: Scene) -> Sentence:
    """How many books do you have?"""
    doer = someone(scene, PERSON, you=0.5, others=True)
    entry = scene.pick_new(_COUNTED_THINGS)
    how, many = words(["how", "many"])
    head = words(entry.plural)
    noun_phrase = NounPhrase(head, entry.korean, head)
    korean = [
        *noun_phrase.korean("이"),
        Eojeol("몇", (how, many)),
        Eojeol(entry.counter, (many,), [how, *head]),
    ]
    clause = Clause(doer, OWNED, [Complement([], korean, 0, 60)], question=True)
    sentence = ask(scene, clause)
    return Sentence([how, many, *head, *sentence.words], sentence.eojeols, "?")


@pattern(0.8)
def whose(scene: Scene) -> Sentence:
    """Whose umbrella is this?"""
    pointing, korean = scene.pick(_POINTERS)
    entry = scene.pick_new(_COUNTED_SHOWN)
    owner, verb, this = words(["whose", "is", pointing])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "니")
    eojeols = [Eojeol(korean + "은", (this,)), Eojeol("누구의", (owner,)), Eojeol(text, head, (verb,))]
    return Sentence([owner, *head, verb, this], eojeols, "?")


_COUNTED_SHOWN = tuple(entry for entry in _SHOWN if entry.form == "count")
