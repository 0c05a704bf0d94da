"""Sentences of three clauses."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import (
    Clause,
    act,
)
from jumok.corpus.english_korean.patterns.descriptions import ending, raining
from jumok.corpus.english_korean.patterns.embedding import person_who
from jumok.corpus.english_korean.patterns.linking import (
    WEATHER_EFFECTS,
    a_pronoun,
    activity,
    again,
    deed,
    echoed,
    moment,
    then_also,
)
from jumok.corpus.english_korean.patterns.modes import doing
from jumok.corpus.english_korean.patterns.registry import pattern
from jumok.corpus.english_korean.scene import Scene, Sentence, words


@pattern(0.6)
def three_people(scene: Scene) -> Sentence:
    """I drink coffee, Minsu drinks tea, and Yuna drinks milk."""
    tense = scene.pick(("present", "past"))
    first, second, third = (act(scene, deed(scene), tense=tense, negative=0.05) for _ in range(3))
    comma, later, joining = words([",", ",", "and"])
    second.link(joining)
    english = [*first.statement(), comma, *second.statement(), later, joining, *third.statement()]
    return Sentence(english, first.korean("and") + second.korean("and") + third.korean(ending(scene)))


@pattern(0.7)
def rain_so_and(scene: Scene) -> Sentence:
    """It rained yesterday, so I cleaned the house and listened to music."""
    cause = raining(scene, "past", time=0.5)
    one, other = (doing(scene, scene.pick_new(WEATHER_EFFECTS[0])) for _ in range(2))
    first = act(scene, one, tense="past", negative=0.0)
    second = Clause(first.subject, other.verb, other.complements, tense="past")
    comma, joining, then = words([",", "so", "and"])
    cause.link(joining)
    first.link(then)
    english = [*cause.statement(), comma, joining, *first.statement(), then, *second.predicate_english()]
    return Sentence(english, cause.korean("so") + first.korean("then") + second.korean(ending(scene), ""))


@pattern(0.7)
def if_and(scene: Scene) -> Sentence:
    """If you come to Seoul, I will make bread and play the piano."""
    joining, comma = words(["if", ","])
    if scene.chance(0.3):
        condition = raining(scene, "present")
    else:
        condition = act(scene, deed(scene), tense="present", negative=0.1, you=0.3)
    condition.link(joining)
    first, second, then, opening = then_also(scene, tense="future")
    english = [joining, *condition.statement(), comma, *first.statement(), then, *second.predicate_english()]
    return Sentence(english, condition.korean("if", "이") + opening + second.korean(ending(scene), ""))


@pattern(0.7)
def wanted_but_rain_so(scene: Scene) -> Sentence:
    """I wanted to go to the park, but it rained, so I watched a movie at home."""
    doer = a_pronoun(scene)
    verb = scene.pick(WEATHER_EFFECTS[1])
    wish = act(scene, doing(scene, verb), doer, tense="past", mode="want", negative=0.0, place=0.4)
    obstacle = raining(scene, "past")
    repeated = again(doer)
    indoors = doing(scene, scene.pick_new(WEATHER_EFFECTS[0]))
    result = act(scene, indoors, repeated, tense="past", negative=0.0)
    comma, but, later, so = words([",", "but", ",", "so"])
    wish.link(but)
    obstacle.link(so)
    english = [*wish.statement(), comma, but, *obstacle.statement(), later, so, *result.statement()]
    korean = (
        echoed(doer, repeated)
        + wish.korean("but", "")
        + obstacle.korean("so")
        + result.korean(ending(scene), "")
    )
    return Sentence(english, korean)


@pattern(0.6)
def when_two_people(scene: Scene) -> Sentence:
    """When I came home, my mother was making bread, and my younger brother was sleeping."""
    joining, comma, later, conjunction = words(["when", ",", ",", "and"])
    first = act(scene, moment(scene), tense="past", negative=0.0)
    first.link(joining)
    second, third = (
        act(scene, activity(scene), tense="past", mode="progressive", negative=0.0) for _ in range(2)
    )
    second.link(conjunction)
    english = [
        joining,
        *first.statement(),
        comma,
        *second.statement(),
        later,
        conjunction,
        *third.statement(),
    ]
    return Sentence(english, first.korean("when", "이") + second.korean("and") + third.korean(ending(scene)))


@pattern(0.6)
def one_who_but_one_who(scene: Scene) -> Sentence:
    """The man who lives in Seoul likes coffee, but the woman who works at the bank likes tea."""
    tense = scene.pick(("present", "past"))
    first = act(scene, deed(scene), person_who(scene), tense=tense, negative=0.1)
    second = act(scene, deed(scene), person_who(scene), tense=tense, negative=0.1)
    comma, joining = words([",", "but"])
    first.link(joining)
    english = [*first.statement(), comma, joining, *second.statement()]
    return Sentence(english, first.korean("but") + second.korean(ending(scene)))
