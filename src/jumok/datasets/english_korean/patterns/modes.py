"""Progressive, ability, wish, obligation, permission, commands and proposals.

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean import action_tables, predicates
from jumok.datasets.english_korean.clauses import (
    Clause,
    make_clause,
    place_complement,
    places_of,
    time_complement,
    time_kinds_of,
    time_of_action,
)
from jumok.datasets.english_korean.lexicon import INTRANSITIVE, TRANSITIVE
from jumok.datasets.english_korean.noun_phrases import NounPhrase, pronoun_subject
from jumok.datasets.english_korean.patterns.frames import (
    fitting_subject,
    frame_action,
    frames_of,
    read_frames,
)
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Scene, Sentence, Word

_MOMENTARY = "find finish receive catch wear lose break get invite collect turn choose borrow"
# Verbs of states and moments, which have no progressive.
NOT_LASTING_VERBS = frozenset(f"{predicates.STATIVE_VERBS} {_MOMENTARY}".split())
_LASTING_TRANSITIVE = frames_of(
    tuple(verb for verb in TRANSITIVE if verb.forms.base not in NOT_LASTING_VERBS)
)
_LASTING_INTRANSITIVE = frames_of(
    tuple(verb for verb in INTRANSITIVE if verb.forms.base not in NOT_LASTING_VERBS)
)
WANTED_ACTIONS, POSSIBLE_ACTIONS = (
    read_frames(action_tables.WANTED_ACTIONS),
    read_frames(action_tables.POSSIBLE_ACTIONS),
)
_INTENDED_ACTIONS = tuple(frame for frame in WANTED_ACTIONS if frame.verb.forms.base != "speak")
_OBLIGATORY_ACTIONS, _PERMITTED_ACTIONS, _FORBIDDEN_ACTIONS, _REQUESTED_ACTIONS, _PROPOSED_ACTIONS = (
    read_frames(table)
    for table in (
        action_tables.OBLIGATORY_ACTIONS,
        action_tables.PERMITTED_ACTIONS,
        action_tables.FORBIDDEN_ACTIONS,
        action_tables.REQUESTED_ACTIONS,
        action_tables.PROPOSED_ACTIONS,
    )
)
_PASTIMES, _EXPERIENCES, _SKILLS, _BEGUN_ACTIONS = (
    read_frames(table)
    for table in (
        action_tables.PASTIMES,
        action_tables.EXPERIENCES,
        action_tables.SKILLS,
        action_tables.BEGUN_ACTIONS,
    )
)


def progressive(scene: Scene) -> Sentence:
    """My cousin is reading a book in the library."""
    tense = scene.pick(("present", "present", "past"))
    clause = make_clause(
        scene,
        frame_action(scene, _LASTING_TRANSITIVE if scene.chance(0.75) else _LASTING_INTRANSITIVE),
        tense=tense,
        mode="progressive",
        p_negative=0.12,
        p_place=0.4,
        p_indefinite=0.15,
    )
    return make_statement(scene, clause)


def somebody_can(scene: Scene) -> Sentence:
    """I can speak Korean."""
    tense = scene.pick(("present", "present", "past"))
    return make_statement(
        scene,
        make_clause(
            scene, frame_action(scene, POSSIBLE_ACTIONS), tense=tense, mode="can", p_negative=0.35, p_you=0.05
        ),
    )


def somebody_wants(scene: Scene) -> Sentence:
    """She wants to go to Korea."""
    action = frame_action(scene, WANTED_ACTIONS)
    scene.used.add("you")  # people ask "do you want", they do not state "you want"
    tense = scene.pick(("present", "present", "past"))
    return make_statement(
        scene, make_clause(scene, action, tense=tense, mode="want", p_negative=0.25, p_place=0.2)
    )


def somebody_has_to(scene: Scene) -> Sentence:
    """We have to clean the room."""
    tense = scene.pick(("present", "present", "past"))
    return make_statement(
        scene,
        make_clause(
            scene,
            frame_action(scene, _OBLIGATORY_ACTIONS),
            tense=tense,
            mode="must",
            p_negative=0.2,
            p_you=0.12,
        ),
    )


def somebody_may(scene: Scene) -> Sentence:
    """You may open the window."""
    action = frame_action(scene, _PERMITTED_ACTIONS)
    subject = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return make_statement(
        scene, make_clause(scene, action, subject, tense="present", mode="may", p_negative=0.0)
    )


def somebody_must_not(scene: Scene) -> Sentence:
    """You must not open the box."""
    action = frame_action(scene, _FORBIDDEN_ACTIONS)
    subject = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return make_statement(
        scene, make_clause(scene, action, subject, tense="present", mode="forbidden", p_negative=0.0)
    )


def somebody_decided(scene: Scene) -> Sentence:
    """They decided to move to Busan."""
    scene.used.add("you")
    return make_statement(
        scene,
        make_clause(
            scene, frame_action(scene, _INTENDED_ACTIONS), tense="past", mode="decide", p_negative=0.0
        ),
    )


def somebody_began(scene: Scene) -> Sentence:
    """The child began to cry."""
    scene.used.add("you")
    action = frame_action(scene, _BEGUN_ACTIONS)
    clause = make_clause(scene, action, tense="past", mode="begin", p_negative=0.0)
    if scene.chance(0.3):
        # "began to build a house last year", "began to cook an hour ago"
        kinds = time_kinds_of(scene, action, "past")
        kinds &= _LONG_TIMES if "year" in kinds else _SHORT_TIMES
        clause.complements = [*clause.complements, *time_complement(scene, "past", kinds)]
    return make_statement(scene, clause)


_LONG_TIMES = frozenset({"week", "year"})
_SHORT_TIMES = frozenset({"hour", "day", "part", "morning", "night"})


def somebody_likes_doing(scene: Scene) -> Sentence:
    """My grandfather likes listening to music."""
    scene.used.add("you")
    action = frame_action(scene, _PASTIMES, generic=True)
    return make_statement(scene, make_clause(scene, action, tense="present", mode="enjoy", p_negative=0.2))


def somebody_is_going_to(scene: Scene) -> Sentence:
    """I am going to buy a new camera tomorrow."""
    scene.used.add("you")
    action = frame_action(scene, _INTENDED_ACTIONS)
    clause = make_clause(scene, action, tense="present", mode="intend", p_negative=0.0)
    if scene.chance(0.5):
        clause.complements = [*clause.complements, *time_of_action(scene, action, "future")]
    return make_statement(scene, clause)


def somebody_has_done(scene: Scene) -> Sentence:
    """I have never eaten kimchi."""
    scene.used.add("you")
    action = frame_action(scene, _EXPERIENCES, generic=True)
    return make_statement(
        scene, make_clause(scene, action, tense="present", mode="experience", p_negative=0.5)
    )


def somebody_knows_how(scene: Scene) -> Sentence:
    """He knows how to swim."""
    action = frame_action(scene, _SKILLS, generic=True)
    return make_statement(scene, make_clause(scene, action, tense="present", mode="skill", p_negative=0.3))


def _implied_subject() -> NounPhrase:
    """Return the implied subject of a command or proposal."""
    subject = NounPhrase([], "", ())
    subject.agreement = "plural"
    subject.dropped = True
    return subject


def command(scene: Scene) -> Sentence:
    """Open the door. Do not open the door."""
    scene.used.add("you")  # nobody says "help you"
    is_negative = scene.chance(0.3)
    action = frame_action(scene, _FORBIDDEN_ACTIONS if is_negative else _REQUESTED_ACTIONS)
    subject = _implied_subject()
    complements = action.complements
    places = places_of(action)
    if places and scene.chance(0.3):
        complements = [*complements, place_complement(scene, action.verb, places)]
    if scene.chance(0.3) and action.verb.forms.base not in _MISHAPS:
        complements = [
            *complements,
            *time_complement(scene, "future", time_kinds_of(scene, action, "") & _SOON),
        ]
    if is_negative:
        clause = Clause(subject, action.verb, complements, negative=True)
        final = "polite command" if scene.polite else "command"
        return Sentence(clause.english_without_subject(), clause.korean(final))
    subject.honorific = scene.polite  # 드세요, not 먹어요
    clause = Clause(subject, action.verb, complements)
    return Sentence(clause.english_without_subject(), clause.korean("polite" if scene.polite else "command"))


_MISHAPS = frozenset({"break", "lose", "forget"})
_SOON = frozenset({"day", "night", "part", "weekday"})


def proposal(scene: Scene) -> Sentence:
    """Let's go home."""
    scene.used.update(("I", "you"))
    action = frame_action(scene, _PROPOSED_ACTIONS)
    clause = Clause(_implied_subject(), action.verb, action.complements)
    if scene.chance(0.4):
        clause.complements = [*clause.complements, *time_of_action(scene, action, "future")]
    lets = Word("let's")
    clause.link(lets)
    korean = clause.korean("polite proposal" if scene.polite else "proposal")
    return Sentence([lets, *clause.english_without_subject()], korean)


def somebody_wants_somewhere(scene: Scene) -> Sentence:
    """I wanted to study at the library."""
    scene.used.add("you")
    action = frame_action(scene, _WANTED_ACTIONS_WITH_PLACE)
    subject = fitting_subject(scene, action)
    tense = scene.pick(("present", "past"))
    return make_statement(
        scene, make_clause(scene, action, subject, tense=tense, mode="want", p_negative=0.15, p_place=1.0)
    )


_WANTED_ACTIONS_WITH_PLACE = tuple(
    frame for frame in WANTED_ACTIONS if frame.verb.places and not frame.verb.adpositions[0]
)
