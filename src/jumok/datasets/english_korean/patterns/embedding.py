"""Relative clauses, and clauses after "think" and "hope".

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean import action_tables, predicates
from jumok.datasets.english_korean.clauses import (
    KOREAN_OBJECT_RANK,
    OBJECT_RANK,
    Action,
    Clause,
    Complement,
    going_action,
    make_clause,
    pick_tense,
    time_of_action,
)
from jumok.datasets.english_korean.conjugation import stem
from jumok.datasets.english_korean.english import verb_forms
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    INTRANSITIVE,
    MOTION,
    Adjective,
    Noun,
    Verb,
    human_verbs,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    ONE_PERSON,
    THAT_USED,
    THIRD_PERSON_MENTIONED,
    NounPhrase,
    person_subject,
)
from jumok.datasets.english_korean.patterns.descriptions import (
    PERSON,
    final_ending,
    thing_and_adjective,
    weather_clause,
)
from jumok.datasets.english_korean.patterns.frames import frame_action, read_frames
from jumok.datasets.english_korean.patterns.linking import without_ambiguous_tense
from jumok.datasets.english_korean.scene import Scene, Sentence, Word, words


def _thing_with_relative_clause(scene: Scene, verb: Verb, entry: Noun) -> NounPhrase:
    """Return a thing with a relative clause: the book that I bought yesterday, 내가 어제 산 책."""
    scene.used.update((entry, THAT_USED, "he", "she"))  # "he wore the hat that he bought" would need 자기
    scene.note_combination(verb, entry)
    subject = person_subject(scene, verb.subjects)
    complements = time_of_action(scene, Action(verb, [], entry), "past") if scene.chance(0.3) else []
    clause = Clause(subject, verb, complements, tense="past")
    the, that = words(["the", "that"])
    head = words(entry.english)
    clause.link(that)
    phrase = NounPhrase([the, *head, that, *clause.statement()], entry.korean, head)
    phrase.possible = (the,)
    phrase.before = clause.korean("relative", "이")
    if entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


_RELATIVE_VERBS = human_verbs(
    "buy make draw borrow bring choose sell read write receive fix bake find lose cook watch wear send"
)
_RELATIVE_THINGS = tuple(
    (verb, entry)
    for verb in _RELATIVE_VERBS
    for entry in verb.objects
    if not entry.classes & {"meal", "study", "animal"}
)


def _adjectives_after(verb: Verb, entry: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that fit an object of this verb: a cake that somebody bakes has no price."""
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if entry in adjective.things
        and (not verb.is_creation or adjective.english in predicates.ADJECTIVES_OF_CREATIONS.split())
        and adjective.english not in ("fresh", "hot", "cold")
        and not (adjective.english == "warm" and "food" in entry.classes)
    )


_DESCRIBED_THINGS = tuple(
    (verb, entry, adjectives)
    for verb, entry in _RELATIVE_THINGS
    if (adjectives := _adjectives_after(verb, entry))
)


def person_with_relative_clause(scene: Scene) -> NounPhrase:
    """Return a person with a relative clause: the man who lives in Seoul, 서울에 사는 남자."""
    entry = scene.pick_new(_PEOPLE_WITH_RELATIVE_CLAUSE)
    the, who_word = words(["the", "who"])
    head = words(entry.english)
    phrase = NounPhrase([], entry.korean, head)
    phrase.possible = (the,)
    scene.used.add(THIRD_PERSON_MENTIONED)
    clause = _relative_clause_of(scene, phrase, has_job="job" in entry.classes)
    clause.link(who_word)
    phrase.english = [the, *head, who_word, *clause.english_without_subject()]
    phrase.before = clause.korean("relative", "")
    return phrase


def _relative_clause_of(scene: Scene, subject: NounPhrase, *, has_job: bool) -> Clause:
    draw = scene.random()
    if draw < 0.3:
        return make_clause(scene, going_action(scene, _LIVE), subject, tense="present", p_negative=0.0)
    if draw < 0.5 and not has_job:  # not "the nurse who works at the bank"
        return make_clause(scene, Action(_WORK, []), subject, tense="present", p_negative=0.0, p_place=1.0)
    if draw < 0.75:
        action = frame_action(scene, _HABITS, generic=True)
        return make_clause(scene, action, subject, tense="present", p_negative=0.0)
    return make_clause(scene, frame_action(scene, _PAST_DEEDS), subject, tense="past", p_negative=0.0)


_LIVE = next(verb for verb in MOTION if verb.forms.base == "live")
_WORK = next(verb for verb in INTRANSITIVE if verb.forms.base == "work")
_HABITS = read_frames(
    "study; raise; draw; collect; play sport; play instrument; like food drink sport animal; hate "
    "food drink sport animal; speak; "
    "learn; write =novel; ride =bicycle"
)
_PAST_DEEDS = read_frames(
    "buy =car =house =camera =computer =book =picture; find; help; break =window =cup; fix; sell =car =house "
    "=bicycle; write =novel =letter; bake; meet name; invite name; draw =picture; lose; borrow; send "
    "=letter =gift"
)
_PEOPLE_WITH_RELATIVE_CLAUSE = nouns_of("job =man =woman")


def the_thing_that(scene: Scene) -> Sentence:
    """The book that I read yesterday is interesting."""
    verb, entry, adjectives = scene.pick(_DESCRIBED_THINGS)
    phrase = _thing_with_relative_clause(scene, verb, entry)
    adjective = scene.pick(adjectives)
    scene.note_combination(adjective, entry)
    is_gone = verb.forms.base in ("sell", "send", "lose")
    tense = "past" if is_gone else scene.pick(("present", "past"))
    clause = Clause(phrase, adjective, tense=tense, negative=scene.chance(0.15))
    return Sentence(clause.statement(), clause.korean(final_ending(scene)))


def somebody_knows_the_person_who(scene: Scene) -> Sentence:
    """I know the man who lives in Seoul."""
    verb, tenses = scene.pick(_ACQUAINTANCE_VERBS)
    if "future" in tenses:
        scene.used.add("you")  # nobody tells people whom they will meet
    subject = person_subject(scene, verb.subjects)
    phrase = person_with_relative_clause(scene)
    object_complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    clause = make_clause(
        scene, Action(verb, [object_complement]), subject, tense=scene.pick(tenses), p_negative=0.15
    )
    return Sentence(clause.statement(), clause.korean(final_ending(scene)))


_ACQUAINTANCE_VERBS = (
    *((verb, ("present", "past")) for verb in human_verbs("know remember trust love")),
    *((verb, ("past", "future")) for verb in human_verbs("meet help invite")),
)


def the_person_who_does(scene: Scene) -> Sentence:
    """The woman who works at the bank likes coffee."""
    subject = person_with_relative_clause(scene)
    action = frame_action(scene, _ACTIONS_OF_DESCRIBED_PEOPLE)
    clause = make_clause(scene, action, subject, p_negative=0.1)
    return Sentence(clause.statement(), clause.korean(final_ending(scene)))


_ACTIONS_OF_DESCRIBED_PEOPLE = without_ambiguous_tense(read_frames(action_tables.ACTIONS_OF_DESCRIBED_PEOPLE))


def somebody_handles_the_thing_that(scene: Scene) -> Sentence:
    """I lost the umbrella that my father bought."""
    verb = scene.pick(_HANDLING_VERBS)
    relative_verb, entry = scene.pick(_HANDLED_THINGS[verb])
    phrase = _thing_with_relative_clause(scene, relative_verb, entry)
    tense = pick_tense(scene, verb, ("past", "future"))
    if tense == "future":
        scene.used.add("you")
    if verb.forms.base == "wear" and entry.form == "count":
        scene.used.add(ONE_PERSON)
    subject = person_subject(scene, verb.subjects)
    scene.note_combination(verb, entry)
    object_complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    clause = Clause(subject, verb, [object_complement], tense=tense)
    return Sentence(clause.statement(), clause.korean(final_ending(scene)))


_HANDLING_VERBS = human_verbs("lose find sell use eat break fix wear wash move")
_HANDLED_THINGS = {
    verb: tuple(
        (relative_verb, entry)
        for relative_verb, entry in _RELATIVE_THINGS
        if entry in verb.objects
        and not (verb.forms.base == "sell" and "food" in entry.classes)
        and relative_verb.forms.base in ("buy", "make", "borrow", "bring", "choose", "bake", "receive")
    )
    for verb in _HANDLING_VERBS
}


# --- thinking and hoping ------------------------------------------------------------------------------------


def somebody_thinks(scene: Scene) -> Sentence:
    """I think that the movie is interesting."""
    scene.used.update((THAT_USED, "you"))
    thinker = person_subject(scene, PERSON)
    subject, adjective = thing_and_adjective(scene, scene.pick(_OPINION_ADJECTIVES))
    inner = Clause(subject, adjective, tense="present", negative=scene.chance(0.2))
    that = Word("that")
    inner.link(that)
    outer = Clause(thinker, _THINK, tense="present", negative=False)
    korean = [*thinker.topic(), *inner.korean("quote", "이"), *outer.korean(final_ending(scene), "")]
    return Sentence([*outer.statement(), that, *inner.statement()], korean)


_OPINION_ADJECTIVES = tuple(entry for entry in ADJECTIVES if entry.english in predicates.OPINIONS.split())


def somebody_hopes(scene: Scene) -> Sentence:
    """I hope that it snows tomorrow."""
    scene.used.update((THAT_USED, "you"))
    hoping_person = person_subject(scene, PERSON)
    that = Word("that")
    if scene.chance(0.3):
        inner = weather_clause(scene, "present")
    else:
        inner = make_clause(scene, frame_action(scene, _HOPED_ACTIONS), tense="present", p_negative=0.0)
    inner.link(that)
    outer = Clause(hoping_person, _HOPE, tense="present")
    korean = [*hoping_person.topic(), *inner.korean("hope", "이"), *outer.korean(final_ending(scene), "")]
    return Sentence([*outer.statement(), that, *inner.statement()], korean)


_HOPED_ACTIONS = without_ambiguous_tense(read_frames(action_tables.HOPED_ACTIONS))
_THINK = Verb(verb_forms("think/thought"), (), stem("생각하다"), (), None, frozenset(), True, (), key="think")
_HOPE = Verb(verb_forms("hope"), (), stem("바라다"), (), None, frozenset(), True, (), key="hope")
