"""Progressive, ability, wish, obligation, permission, commands and proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.datasets.english_korean.clauses import (
    STATIVE,
    Action,
    Clause,
    going_action,
    intransitive_action,
    make_clause,
    place_complement,
    time_complement,
    transitive_action,
)
from jumok.datasets.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE, human_verbs
from jumok.datasets.english_korean.noun_phrases import NounPhrase, person_subject, pronoun_subject
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Scene, Sentence, Word

if TYPE_CHECKING:
    from jumok.datasets.english_korean.lexicon import Verb

# Volitional verbs: nobody decides to know, to lose or to laugh.
_NON_VOLITIONAL = STATIVE | {"lose", "break", "receive", "laugh", "cry", "catch"}
VOLITIONAL = tuple(
    verb for verb in TRANSITIVE if verb.human_subject and verb.forms.base not in _NON_VOLITIONAL
)
_VOLITIONAL_INTRANSITIVE = tuple(
    verb for verb in INTRANSITIVE if verb.human_subject and verb.forms.base not in _NON_VOLITIONAL
)
_VOLITIONAL_MOTION = tuple(verb for verb in MOTION if verb.human_subject and verb.forms.base != "arrive")

# Verbs of actions that last.
_NOT_LASTING = STATIVE | {"find", "finish", "receive", "catch", "wear", "lose", "break", "get", "invite"}
LASTING = tuple(verb for verb in TRANSITIVE if verb.forms.base not in _NOT_LASTING)
LASTING_INTRANSITIVE = tuple(verb for verb in INTRANSITIVE if verb.forms.base not in _NOT_LASTING)

_PASTIMES = human_verbs(
    "read watch listen cook bake draw sing swim walk run dance travel exercise learn study ride drive "
    "collect raise plant eat drink make teach write play"
)
_EXPERIENCES = human_verbs(
    "eat drink read watch ride drive raise make bake learn teach visit meet fix draw plant sing write play"
)
_BEGINNINGS = human_verbs(
    "read write study learn teach practice cook clean draw collect build raise make eat listen sing cry "
    "laugh walk run dance work exercise play"
)
_SKILLS = human_verbs("drive ride swim dance bake cook make fix speak use draw raise play")


def action_of(scene: Scene, verb: Verb, *, generic: bool = False) -> Action:
    """Return the verb, with an object if it is transitive."""
    return (
        transitive_action(scene, verb, generic=generic) if verb.objects else intransitive_action(scene, verb)
    )


def voluntary_action(scene: Scene) -> Action:
    """Return an action that people can want, have to do or be asked to do."""
    draw = scene.random()
    if draw < 0.7:
        return transitive_action(scene, scene.pick(VOLITIONAL))
    if draw < 0.85:
        return intransitive_action(scene, scene.pick(_VOLITIONAL_INTRANSITIVE))
    return going_action(scene, scene.pick(_VOLITIONAL_MOTION))


def progressive(scene: Scene) -> Sentence:
    """My cousin is reading a book in the library."""
    verb = scene.pick(LASTING if scene.chance(0.75) else LASTING_INTRANSITIVE)
    tense = scene.pick(("present", "present", "past"))
    clause = make_clause(
        scene,
        action_of(scene, verb),
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
        make_clause(scene, voluntary_action(scene), tense=tense, mode="can", p_negative=0.35, p_you=0.05),
    )


def somebody_wants(scene: Scene) -> Sentence:
    """She wants to go to Korea."""
    action = voluntary_action(scene)
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
        make_clause(scene, voluntary_action(scene), tense=tense, mode="must", p_negative=0.2, p_you=0.12),
    )


def somebody_may(scene: Scene) -> Sentence:
    """You may open the window."""
    action = voluntary_action(scene)
    subject = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return make_statement(
        scene, make_clause(scene, action, subject, tense="present", mode="may", p_negative=0.0)
    )


def somebody_must_not(scene: Scene) -> Sentence:
    """You must not open the box."""
    action = voluntary_action(scene)
    subject = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return make_statement(
        scene, make_clause(scene, action, subject, tense="present", mode="forbidden", p_negative=0.0)
    )


def somebody_decided(scene: Scene) -> Sentence:
    """They decided to move to Busan."""
    return make_statement(
        scene, make_clause(scene, voluntary_action(scene), tense="past", mode="decide", p_negative=0.0)
    )


def somebody_began(scene: Scene) -> Sentence:
    """The child began to cry."""
    action = action_of(scene, scene.pick(_BEGINNINGS))
    return make_statement(
        scene, make_clause(scene, action, tense="past", mode="begin", p_negative=0.0, p_time=0.3)
    )


def somebody_likes_doing(scene: Scene) -> Sentence:
    """My grandfather likes listening to music."""
    action = action_of(scene, scene.pick(_PASTIMES), generic=True)
    return make_statement(scene, make_clause(scene, action, tense="present", mode="enjoy", p_negative=0.2))


def somebody_is_going_to(scene: Scene) -> Sentence:
    """I am going to buy a new camera tomorrow."""
    clause = make_clause(scene, voluntary_action(scene), tense="present", mode="intend", p_negative=0.0)
    if scene.chance(0.5):
        clause.complements = [*clause.complements, time_complement(scene, "future")]
    return make_statement(scene, clause)


def somebody_has_done(scene: Scene) -> Sentence:
    """I have never eaten kimchi."""
    action = action_of(scene, scene.pick(_EXPERIENCES))
    return make_statement(
        scene, make_clause(scene, action, tense="present", mode="experience", p_negative=0.5)
    )


def somebody_knows_how(scene: Scene) -> Sentence:
    """He knows how to swim."""
    action = action_of(scene, scene.pick(_SKILLS), generic=True)
    return make_statement(scene, make_clause(scene, action, tense="present", mode="skill", p_negative=0.3))


def _implied_subject() -> NounPhrase:
    """Return the implied subject of a command or proposal."""
    subject = NounPhrase([], "", ())
    subject.agreement = "plural"
    subject.dropped = True
    return subject


def command(scene: Scene) -> Sentence:
    """Open the door. Do not open the door."""
    action = _requested_action(scene)
    subject = _implied_subject()
    complements = action.complements
    if action.verb.places and action.verb.adpositions == ("", "") and scene.chance(0.3):
        complements = [*complements, place_complement(scene, action.verb)]
    if scene.chance(0.3):
        complements = [*complements, time_complement(scene, "future")]
    if scene.chance(0.3):
        clause = Clause(subject, action.verb, complements, negative=True)
        final = "polite command" if scene.polite else "command"
        return Sentence(clause.predicate_english(), clause.korean(final))
    subject.honorific = scene.polite  # 드세요, not 먹어요
    clause = Clause(subject, action.verb, complements)
    return Sentence(clause.predicate_english(), clause.korean("polite" if scene.polite else "command"))


def _requested_action(scene: Scene) -> Action:
    """Return an action that can be requested; its object is not "you"."""
    scene.used.add("you")
    draw = scene.random()
    if draw < 0.7:
        return transitive_action(scene, scene.pick(_REQUESTED))
    if draw < 0.85:
        return intransitive_action(scene, scene.pick(_VOLITIONAL_INTRANSITIVE))
    return going_action(scene, scene.pick(_REQUESTED_MOTION))


_REQUESTED = tuple(
    verb for verb in VOLITIONAL if verb.forms.base not in ("learn", "meet", "wear", "build", "raise")
)
_REQUESTED_MOTION = tuple(
    verb for verb in _VOLITIONAL_MOTION if verb.forms.base in ("go", "come", "return", "sit")
)


def proposal(scene: Scene) -> Sentence:
    """Let's go home."""
    scene.used.update(("I", "you"))
    action = voluntary_action(scene)
    clause = Clause(_implied_subject(), action.verb, action.complements)
    if scene.chance(0.4):
        clause.complements = [*clause.complements, time_complement(scene, "future")]
    lets = Word("let's")
    clause.link(lets)
    korean = clause.korean("polite proposal" if scene.polite else "proposal")
    return Sentence([lets, *clause.predicate_english()], korean)


def somebody_wants_somewhere(scene: Scene) -> Sentence:
    """I wanted to study at the library."""
    verb = scene.pick(_VERBS_WITH_PLACES)
    scene.used.add("you")
    action = action_of(scene, verb)
    subject = person_subject(scene, verb.subjects)
    tense = scene.pick(("present", "past"))
    return make_statement(
        scene, make_clause(scene, action, subject, tense=tense, mode="want", p_negative=0.15, p_place=1.0)
    )


_VERBS_WITH_PLACES = tuple(verb for verb in (*VOLITIONAL, *_VOLITIONAL_INTRANSITIVE) if verb.places)
