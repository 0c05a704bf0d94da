"""All sentence patterns with their weights, in the order that the generator uses.

The order is part of the corpus: another order gives other sentences. Add new patterns at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jumok.datasets.english_korean.patterns import (
    belongings,
    descriptions,
    embedding,
    identities,
    linking,
    modes,
    places,
    questions,
    statements,
    triple,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.datasets.english_korean.scene import Scene, Sentence


class Pattern(NamedTuple):
    """A function that builds one sentence from a scene, and its relative frequency."""

    weight: float
    build: Callable[[Scene], Sentence]

    @property
    def name(self) -> str:
        return self.build.__name__.replace("_", " ")


_TABLE = (
    Pattern(5, descriptions.thing_is_adjective),
    Pattern(2.5, descriptions.person_is_adjective),
    Pattern(1.5, descriptions.comparison),
    Pattern(1, descriptions.superlative),
    Pattern(1, descriptions.somebody_looks),
    Pattern(1, descriptions.something_becomes),
    Pattern(0.8, descriptions.it_rains),
    Pattern(0.8, descriptions.the_weather_is),
    Pattern(2.5, identities.somebody_is_something),
    Pattern(1, identities.somebody_becomes_something),
    Pattern(1.5, identities.this_is),
    Pattern(2, places.there_is),
    Pattern(1.2, places.there_is_no),
    Pattern(1.5, places.there_are_counted_things),
    Pattern(2, places.a_thing_is_somewhere),
    Pattern(1.5, places.a_person_is_somewhere),
    Pattern(2, belongings.somebody_has),
    Pattern(1.2, belongings.somebody_has_counted_things),
    Pattern(1.2, belongings.somebody_needs),
    Pattern(1, belongings.where_is_it),
    Pattern(1, belongings.how_many),
    Pattern(0.8, belongings.whose),
    Pattern(3, modes.progressive),
    Pattern(2.5, modes.somebody_can),
    Pattern(2.5, modes.somebody_wants),
    Pattern(2, modes.somebody_has_to),
    Pattern(1, modes.somebody_may),
    Pattern(1, modes.somebody_must_not),
    Pattern(1, modes.somebody_decided),
    Pattern(1, modes.somebody_began),
    Pattern(1.2, modes.somebody_likes_doing),
    Pattern(1.2, modes.somebody_is_going_to),
    Pattern(1, modes.somebody_has_done),
    Pattern(1, modes.somebody_knows_how),
    Pattern(3.5, modes.command),
    Pattern(2, modes.proposal),
    Pattern(1, modes.somebody_wants_somewhere),
    Pattern(1.5, linking.and_then),
    Pattern(0.9, linking.and_another_subject),
    Pattern(0.9, linking.but_another_subject),
    Pattern(0.6, linking.likes_but_not),
    Pattern(0.7, linking.state_but),
    Pattern(0.7, linking.state_so),
    Pattern(0.7, linking.because),
    Pattern(0.6, linking.it_rained_so),
    Pattern(0.7, linking.if_it_rains),
    Pattern(0.6, linking.if_state),
    Pattern(0.7, linking.if_then),
    Pattern(0.9, linking.when_then),
    Pattern(0.6, linking.before_clause),
    Pattern(0.6, linking.after_clause),
    Pattern(0.6, linking.while_clause),
    Pattern(0.9, linking.going_in_order_to),
    Pattern(1.2, embedding.the_thing_that),
    Pattern(0.9, embedding.somebody_knows_the_person_who),
    Pattern(0.9, embedding.the_person_who_does),
    Pattern(0.6, embedding.somebody_handles_the_thing_that),
    Pattern(0.9, embedding.somebody_thinks),
    Pattern(0.6, embedding.somebody_hopes),
    Pattern(3, questions.does_somebody),
    Pattern(1, questions.can_somebody),
    Pattern(1, questions.does_somebody_want),
    Pattern(2.5, questions.is_it_adjective),
    Pattern(2, questions.what),
    Pattern(1, questions.whom),
    Pattern(1.5, questions.who),
    Pattern(1.5, questions.where),
    Pattern(1.5, questions.when),
    Pattern(1.5, questions.why),
    Pattern(0.8, questions.how),
    Pattern(0.8, questions.who_is),
    Pattern(2, statements.intransitive_statement),
    Pattern(2, statements.intransitive_with_place),
    Pattern(1.5, statements.intransitive_with_time),
    Pattern(6, statements.transitive_statement),
    Pattern(4, statements.transitive_with_time),
    Pattern(3.8, statements.transitive_with_place),
    Pattern(2, statements.action_with_manner),
    Pattern(2, statements.time_comes_first),
    Pattern(2, statements.action_with_frequency),
    Pattern(1, statements.action_with_never),
    Pattern(3, statements.somebody_goes),
    Pattern(1.5, statements.somebody_goes_by_vehicle),
    Pattern(1.5, statements.somebody_goes_with_somebody),
    Pattern(1.8, statements.transitive_with_companion),
    Pattern(1, statements.somebody_walks_from_to),
    Pattern(2, statements.somebody_gives),
    Pattern(2.5, statements.counted_objects),
    Pattern(1.5, statements.measured_objects),
    Pattern(1, statements.transitive_with_tool),
    Pattern(1.5, statements.two_objects),
    Pattern(1, statements.somebody_also_does),
    Pattern(1, statements.only_this_object),
    Pattern(1.5, statements.somebody_is_wearing),
    Pattern(1, statements.two_people_do),
    Pattern(0.6, triple.three_people),
    Pattern(0.7, triple.rain_so_and),
    Pattern(0.7, triple.if_and),
    Pattern(0.7, triple.wanted_but_rain_so),
    Pattern(0.6, triple.when_two_people),
    Pattern(0.6, triple.person_who_but_person_who),
)

PATTERNS = {pattern.name: pattern for pattern in _TABLE}
