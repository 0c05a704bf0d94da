"""Sentences with three clauses."""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import Clause, make_clause
from jumok.datasets.english_korean.patterns.descriptions import final_ending, weather_clause
from jumok.datasets.english_korean.patterns.embedding import person_who
from jumok.datasets.english_korean.patterns.linking import (
    DONE_IN_BAD_WEATHER,
    NOT_DONE_IN_BAD_WEATHER,
    consecutive_actions,
    lasting_action,
    momentary_action,
    random_pronoun,
    repeated_subject,
    shared_topic,
    tensed_action,
)
from jumok.datasets.english_korean.patterns.modes import action_of
from jumok.datasets.english_korean.scene import Scene, Sentence, words


def three_people(scene: Scene) -> Sentence:
    """I drink coffee, Minsu drinks tea, and Yuna drinks milk."""
    tense = scene.pick(("present", "past"))
    first, second, third = (
        make_clause(scene, tensed_action(scene), tense=tense, p_negative=0.05) for _ in range(3)
    )
    comma, second_comma, joining = words([",", ",", "and"])
    second.link(joining)
    english = [*first.statement(), comma, *second.statement(), second_comma, joining, *third.statement()]
    return Sentence(english, first.korean("and") + second.korean("and") + third.korean(final_ending(scene)))


def rain_so_and(scene: Scene) -> Sentence:
    """It rained yesterday, so I cleaned the house and listened to music."""
    cause = weather_clause(scene, "past", p_time=0.5)
    first_action, second_action = (action_of(scene, scene.pick_new(DONE_IN_BAD_WEATHER)) for _ in range(2))
    first = make_clause(scene, first_action, tense="past", p_negative=0.0)
    second = Clause(first.subject, second_action.verb, second_action.complements, tense="past")
    comma, joining, then = words([",", "so", "and"])
    cause.link(joining)
    first.link(then)
    english = [*cause.statement(), comma, joining, *first.statement(), then, *second.predicate_english()]
    return Sentence(
        english, cause.korean("so") + first.korean("then") + second.korean(final_ending(scene), "")
    )


def if_and(scene: Scene) -> Sentence:
    """If you come to Seoul, I will make bread and play the piano."""
    joining, comma = words(["if", ","])
    if scene.chance(0.3):
        condition = weather_clause(scene, "present")
    else:
        condition = make_clause(scene, tensed_action(scene), tense="present", p_negative=0.1, p_you=0.3)
    condition.link(joining)
    first, second, then, first_korean = consecutive_actions(scene, tense="future")
    english = [joining, *condition.statement(), comma, *first.statement(), then, *second.predicate_english()]
    return Sentence(
        english, condition.korean("if", "이") + first_korean + second.korean(final_ending(scene), "")
    )


def wanted_but_rain_so(scene: Scene) -> Sentence:
    """I wanted to go to the park, but it rained, so I watched a movie at home."""
    subject = random_pronoun(scene)
    verb = scene.pick(NOT_DONE_IN_BAD_WEATHER)
    wish = make_clause(
        scene, action_of(scene, verb), subject, tense="past", mode="want", p_negative=0.0, p_place=0.4
    )
    obstacle = weather_clause(scene, "past")
    repeated = repeated_subject(subject)
    indoors = action_of(scene, scene.pick_new(DONE_IN_BAD_WEATHER))
    result = make_clause(scene, indoors, repeated, tense="past", p_negative=0.0)
    comma, but, second_comma, so = words([",", "but", ",", "so"])
    wish.link(but)
    obstacle.link(so)
    english = [*wish.statement(), comma, but, *obstacle.statement(), second_comma, so, *result.statement()]
    korean = (
        shared_topic(subject, repeated)
        + wish.korean("but", "")
        + obstacle.korean("so")
        + result.korean(final_ending(scene), "")
    )
    return Sentence(english, korean)


def when_two_people(scene: Scene) -> Sentence:
    """When I came home, my mother was making bread, and my younger brother was sleeping."""
    joining, comma, second_comma, conjunction = words(["when", ",", ",", "and"])
    first = make_clause(scene, momentary_action(scene), tense="past", p_negative=0.0)
    first.link(joining)
    second, third = (
        make_clause(scene, lasting_action(scene), tense="past", mode="progressive", p_negative=0.0)
        for _ in range(2)
    )
    second.link(conjunction)
    english = [
        joining,
        *first.statement(),
        comma,
        *second.statement(),
        second_comma,
        conjunction,
        *third.statement(),
    ]
    return Sentence(
        english, first.korean("when", "이") + second.korean("and") + third.korean(final_ending(scene))
    )


def person_who_but_person_who(scene: Scene) -> Sentence:
    """The man who lives in Seoul likes coffee, but the woman who works at the bank likes tea."""
    tense = scene.pick(("present", "past"))
    first = make_clause(scene, tensed_action(scene), person_who(scene), tense=tense, p_negative=0.1)
    second = make_clause(scene, tensed_action(scene), person_who(scene), tense=tense, p_negative=0.1)
    comma, joining = words([",", "but"])
    first.link(joining)
    english = [*first.statement(), comma, joining, *second.statement()]
    return Sentence(english, first.korean("but") + second.korean(final_ending(scene)))
