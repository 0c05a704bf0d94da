"""Clauses inside clauses: who, that, and what people think and hope."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import (
    OBJECT,
    Action,
    Clause,
    Complement,
    act,
    going,
    time_for,
)
from jumok.corpus.english_korean.conjugation import stem
from jumok.corpus.english_korean.english import verb_forms
from jumok.corpus.english_korean.lexicon import (
    ADJECTIVES,
    INTRANSITIVE,
    MOTION,
    TRANSITIVE,
    Noun,
    Verb,
    human_verbs,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import CONJUNCTION, SINGULAR, NounPhrase, someone
from jumok.corpus.english_korean.patterns.descriptions import PERSON, described_thing, ending, raining
from jumok.corpus.english_korean.patterns.linking import activity, deed
from jumok.corpus.english_korean.patterns.modes import doing
from jumok.corpus.english_korean.patterns.registry import pattern
from jumok.corpus.english_korean.scene import Scene, Sentence, Word, words


def thing_that_somebody(scene: Scene, verb: Verb, entry: Noun) -> NounPhrase:
    """the book that I bought yesterday, 내가 어제 산 책."""
    scene.used.update((entry, CONJUNCTION))
    scene.combine(verb, entry)
    doer = someone(scene, verb.subjects)
    complements = [time_for(scene, "past")] if scene.chance(0.3) else []
    clause = Clause(doer, verb, complements, tense="past")
    the, that = words(["the", "that"])
    head = words(entry.english)
    clause.link(that)
    phrase = NounPhrase([the, *head, that, *clause.statement()], entry.korean, head)
    phrase.possible = (the,)
    phrase.before = clause.korean("relative", "이")
    if entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


_SAID_OF = {
    entry: tuple(adjective for adjective in ADJECTIVES if entry in adjective.things)
    for verb in TRANSITIVE
    for entry in verb.objects
}
_RELATIVE_VERBS = human_verbs(
    "buy make draw borrow bring choose sell read write receive fix bake find lose cook watch wear send"
)
_RELATIVE_THINGS = tuple(
    (verb, entry)
    for verb in _RELATIVE_VERBS
    for entry in verb.objects
    if _SAID_OF[entry] and not entry.classes & {"meal", "study"}
)


def person_who(scene: Scene) -> NounPhrase:
    """the man who lives in Seoul, 서울에 사는 남자."""
    entry = scene.pick_new(_RELATED_PEOPLE)
    the, who_word = words(["the", "who"])
    head = words(entry.english)
    phrase = NounPhrase([], entry.korean, head)
    phrase.possible = (the,)
    scene.used.add(SINGULAR)
    clause = _relative_of(scene, phrase, has_job="job" in entry.classes)
    clause.link(who_word)
    phrase.english = [the, *head, who_word, *clause.predicate_english()]
    phrase.before = clause.korean("relative", "")
    return phrase


def _relative_of(scene: Scene, doer: NounPhrase, *, has_job: bool) -> Clause:
    draw = scene.random()
    if draw < 0.25:
        return act(scene, going(scene, _LIVE), doer, tense="present", negative=0.0)
    if draw < 0.4 and not has_job:
        return act(scene, Action(_WORK, []), doer, tense="present", negative=0.0, place=1.0)
    if draw < 0.6:
        return act(
            scene, doing(scene, scene.pick(_HABITS), generic=True), doer, tense="present", negative=0.0
        )
    if draw < 0.8:
        return act(scene, activity(scene), doer, tense="present", mode="progressive", negative=0.0)
    return act(scene, doing(scene, scene.pick(_PAST_DEEDS)), doer, tense="past", negative=0.0)


_LIVE = next(verb for verb in MOTION if verb.forms.base == "live")
_WORK = next(verb for verb in INTRANSITIVE if verb.forms.base == "work")
_HABITS = human_verbs("teach study sell raise bake draw collect play like hate speak write")
_PAST_DEEDS = human_verbs("buy make draw find help break sing fix sell write bake meet invite open bring")
_RELATED_PEOPLE = nouns_of("job =man =woman")


@pattern(1.2)
def the_thing_that(scene: Scene) -> Sentence:
    """The book that I read yesterday is interesting."""
    verb, entry = scene.pick(_RELATIVE_THINGS)
    phrase = thing_that_somebody(scene, verb, entry)
    adjective = scene.pick(_SAID_OF[entry])
    scene.combine(adjective, entry)
    clause = Clause(phrase, adjective, tense=scene.pick(("present", "past")), negative=scene.chance(0.15))
    return Sentence(clause.statement(), clause.korean(ending(scene)))


@pattern(0.9)
def somebody_knows_the_one_who(scene: Scene) -> Sentence:
    """I know the man who lives in Seoul."""
    verb, tenses = scene.pick(_ACQUAINTED)
    doer = someone(scene, verb.subjects)
    phrase = person_who(scene)
    what = Complement(phrase.english, phrase.korean("을"), OBJECT, 60)
    clause = act(scene, Action(verb, [what]), doer, tense=scene.pick(tenses), negative=0.15)
    return Sentence(clause.statement(), clause.korean(ending(scene)))


_ACQUAINTED = (
    *((verb, ("present", "past")) for verb in human_verbs("know remember trust love")),
    *((verb, ("past", "future")) for verb in human_verbs("meet help invite")),
)


@pattern(0.9)
def the_one_who_does(scene: Scene) -> Sentence:
    """The woman who works at the bank likes coffee."""
    doer = person_who(scene)
    clause = act(scene, deed(scene), doer, negative=0.1)
    return Sentence(clause.statement(), clause.korean(ending(scene)))


@pattern(0.6)
def somebody_does_it_with_the_thing_that(scene: Scene) -> Sentence:
    """I lost the umbrella that my father bought."""
    verb = scene.pick(_HANDLING)
    making, entry = scene.pick(_HANDLED[verb])
    phrase = thing_that_somebody(scene, making, entry)
    doer = someone(scene, verb.subjects)
    scene.combine(verb, entry)
    what = Complement(phrase.english, phrase.korean("을"), OBJECT, 60)
    clause = Clause(doer, verb, [what], tense=scene.pick(("past", "future")))
    return Sentence(clause.statement(), clause.korean(ending(scene)))


_HANDLING = human_verbs("lose find sell use eat break fix wear wash move")
_HANDLED = {
    verb: tuple(
        (making, entry)
        for making, entry in _RELATIVE_THINGS
        if entry in verb.objects
        and making.forms.base in ("buy", "make", "borrow", "bring", "choose", "bake", "receive")
    )
    for verb in _HANDLING
}


# --- thinking and hoping ------------------------------------------------------------------------------------


@pattern(0.9)
def somebody_thinks(scene: Scene) -> Sentence:
    """I think that the movie is interesting."""
    thinker = someone(scene, PERSON)
    scene.used.add(CONJUNCTION)
    doer, adjective = described_thing(scene)
    inner = Clause(doer, adjective, tense="present", negative=scene.chance(0.2))
    that = Word("that")
    inner.link(that)
    outer = Clause(thinker, _THINK, tense="present", negative=False)
    korean = [*thinker.topic(), *inner.korean("quote", "이"), *outer.korean(ending(scene), "")]
    return Sentence([*outer.statement(), that, *inner.statement()], korean)


@pattern(0.6)
def somebody_hopes(scene: Scene) -> Sentence:
    """I hope that it snows tomorrow."""
    thinker = someone(scene, PERSON)
    scene.used.add(CONJUNCTION)
    that = Word("that")
    if scene.chance(0.3):
        inner = raining(scene, "present")
    else:
        inner = act(scene, deed(scene), tense="present", negative=0.1)
    inner.link(that)
    outer = Clause(thinker, _HOPE, tense="present")
    korean = [*thinker.topic(), *inner.korean("hope", "이"), *outer.korean(ending(scene), "")]
    return Sentence([*outer.statement(), that, *inner.statement()], korean)


_THINK = Verb(verb_forms("think/thought"), (), stem("생각하다"), (), None, frozenset(), True, (), key="think")
_HOPE = Verb(verb_forms("hope"), (), stem("바라다"), (), None, frozenset(), True, (), key="hope")
