"""Sentences with three clauses.

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import Clause, make_clause, time_complement
from jumok.datasets.english_korean.patterns.descriptions import final_ending, weather_clause
from jumok.datasets.english_korean.patterns.embedding import person_with_relative_clause
from jumok.datasets.english_korean.patterns.frames import fitting_subject, frame_action
from jumok.datasets.english_korean.patterns.linking import (
    INDOORS,
    NEXT_DAYS,
    OUTDOORS,
    clauses_on_a_topic,
    consecutive_actions,
    contrasting_clauses,
    indoor_actions,
    moment_and_lasting_actions,
    random_pronoun,
    repeated_subject,
    shared_topic,
)
from jumok.datasets.english_korean.scene import Scene, Sentence, words


def three_people(scene: Scene) -> Sentence:
    """I drink coffee, Minsu drinks tea, and Yuna drinks milk."""
    first, second, third = clauses_on_a_topic(scene, 3)
    comma, second_comma, conjunction = words([",", ",", "and"])
    second.link(conjunction)
    english = [*first.statement(), comma, *second.statement(), second_comma, conjunction, *third.statement()]
    return Sentence(english, first.korean("and") + second.korean("and") + third.korean(final_ending(scene)))


def rain_so_and(scene: Scene) -> Sentence:
    """It rained yesterday, so I cleaned the house and listened to music."""
    scene.used.add("you")
    cause = weather_clause(scene, "past", p_time=0.5)
    first_action, second_action = indoor_actions(scene)
    first = make_clause(scene, first_action, tense="past", p_negative=0.0, p_manner=0.0)
    second = Clause(first.subject, second_action.verb, second_action.complements, tense="past")
    comma, conjunction, then = words([",", "so", "and"])
    cause.link(conjunction)
    first.link(then)
    english = [
        *cause.statement(),
        comma,
        conjunction,
        *first.statement(),
        then,
        *second.english_without_subject(),
    ]
    return Sentence(
        english, cause.korean("so") + first.korean("then") + second.korean(final_ending(scene), "")
    )


def if_and(scene: Scene) -> Sentence:
    """If it rains tomorrow, I will go home and play the piano."""
    conjunction, comma = words(["if", ","])
    condition = weather_clause(scene, "present")
    if scene.chance(0.7):
        condition.complements = time_complement(scene, "future", NEXT_DAYS)
    condition.link(conjunction)
    first, second, then, first_korean = consecutive_actions(scene, tense="future", is_bad_weather=True)
    english = [
        conjunction,
        *condition.statement(),
        comma,
        *first.statement(),
        then,
        *second.english_without_subject(),
    ]
    return Sentence(english, condition.korean("if") + first_korean + second.korean(final_ending(scene), ""))


def wanted_but_rain_so(scene: Scene) -> Sentence:
    """I wanted to go to the park, but it rained, so I watched a movie at home."""
    subject = random_pronoun(scene)
    wanted = frame_action(scene, OUTDOORS)
    wish = make_clause(scene, wanted, subject, tense="past", mode="want", p_negative=0.0, p_place=0.4)
    obstacle = weather_clause(scene, "past")
    repeated = repeated_subject(subject)
    result = make_clause(
        scene, frame_action(scene, INDOORS), repeated, tense="past", p_negative=0.0, p_manner=0.0
    )
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
    when_word, comma, second_comma, and_word = words(["when", ",", ",", "and"])
    moment, lasting = moment_and_lasting_actions(scene, 2)
    first = make_clause(scene, moment, tense="past", p_negative=0.0, p_manner=0.0)
    first.link(when_word)
    second, third = (
        make_clause(
            scene, action, fitting_subject(scene, action), tense="past", mode="progressive", p_negative=0.0
        )
        for action in lasting
    )
    second.link(and_word)
    english = [
        when_word,
        *first.statement(),
        comma,
        *second.statement(),
        second_comma,
        and_word,
        *third.statement(),
    ]
    return Sentence(
        english, first.korean("when", "이") + second.korean("and") + third.korean(final_ending(scene))
    )


def person_who_but_person_who(scene: Scene) -> Sentence:
    """The man who lives in Seoul likes coffee, but the woman who works at the bank likes tea."""
    first, second = contrasting_clauses(scene, person_with_relative_clause)
    comma, conjunction = words([",", "but"])
    first.link(conjunction)
    english = [*first.statement(), comma, conjunction, *second.statement()]
    return Sentence(english, first.korean("but") + second.korean(final_ending(scene)))
