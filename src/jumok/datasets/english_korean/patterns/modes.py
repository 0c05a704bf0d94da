"""Being under way, ability, wish, duty, permission, commands and proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.corpus.english_korean.clauses import (
    STATIVE,
    Action,
    Clause,
    act,
    going,
    intransitive,
    place_of,
    time_for,
    transitive,
)
from jumok.corpus.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE, human_verbs
from jumok.corpus.english_korean.noun_phrases import NounPhrase, pronoun_subject, someone
from jumok.corpus.english_korean.patterns.registry import pattern, state
from jumok.corpus.english_korean.scene import Scene, Sentence, Word

if TYPE_CHECKING:
    from jumok.corpus.english_korean.lexicon import Verb

# What can be wanted, decided and asked for: nobody decides to know, to lose or to laugh.
_UNWANTED = STATIVE | {"lose", "break", "receive", "laugh", "cry", "catch"}
WILLED = tuple(verb for verb in TRANSITIVE if verb.people and verb.forms.base not in _UNWANTED)
_WILLED_INTRANSITIVE = tuple(
    verb for verb in INTRANSITIVE if verb.people and verb.forms.base not in _UNWANTED
)
_WILLED_MOTION = tuple(verb for verb in MOTION if verb.people and verb.forms.base != "arrive")

# What goes on for a while.
_SHORT = STATIVE | {"find", "finish", "receive", "catch", "wear", "lose", "break", "get", "invite"}
LASTING = tuple(verb for verb in TRANSITIVE if verb.forms.base not in _SHORT)
LASTING_INTRANSITIVE = tuple(verb for verb in INTRANSITIVE if verb.forms.base not in _SHORT)

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


def doing(scene: Scene, verb: Verb, *, generic: bool = False) -> Action:
    """The verb with its object if it has one."""
    return transitive(scene, verb, generic=generic) if verb.objects else intransitive(scene, verb)


def deed(scene: Scene) -> Action:
    """Something that one may want, have to do or be told to do."""
    draw = scene.random()
    if draw < 0.7:
        return transitive(scene, scene.pick(WILLED))
    if draw < 0.85:
        return intransitive(scene, scene.pick(_WILLED_INTRANSITIVE))
    return going(scene, scene.pick(_WILLED_MOTION))


@pattern(3)
def something_is_under_way(scene: Scene) -> Sentence:
    """My cousin is reading a book in the library."""
    verb = scene.pick(LASTING if scene.chance(0.75) else LASTING_INTRANSITIVE)
    tense = scene.pick(("present", "present", "past"))
    clause = act(
        scene,
        doing(scene, verb),
        tense=tense,
        mode="progressive",
        negative=0.12,
        place=0.4,
        indefinite=0.15,
    )
    return state(scene, clause)


@pattern(2.5)
def somebody_can(scene: Scene) -> Sentence:
    """I can speak Korean."""
    tense = scene.pick(("present", "present", "past"))
    return state(scene, act(scene, deed(scene), tense=tense, mode="can", negative=0.35, you=0.05))


@pattern(2.5)
def somebody_wants(scene: Scene) -> Sentence:
    """She wants to go to Korea."""
    action = deed(scene)
    scene.used.add("you")  # only you know what you want: one asks rather than states it
    tense = scene.pick(("present", "present", "past"))
    return state(scene, act(scene, action, tense=tense, mode="want", negative=0.25, place=0.2))


@pattern(2)
def somebody_has_to(scene: Scene) -> Sentence:
    """We have to clean the room."""
    tense = scene.pick(("present", "present", "past"))
    return state(scene, act(scene, deed(scene), tense=tense, mode="must", negative=0.2, you=0.12))


@pattern(1)
def somebody_may(scene: Scene) -> Sentence:
    """You may open the window."""
    action = deed(scene)
    doer = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return state(scene, act(scene, action, doer, tense="present", mode="may", negative=0.0))


@pattern(1)
def somebody_must_not(scene: Scene) -> Sentence:
    """You must not open the box."""
    action = deed(scene)
    doer = pronoun_subject(scene, "you") if scene.chance(0.7) else None
    return state(scene, act(scene, action, doer, tense="present", mode="forbidden", negative=0.0))


@pattern(1)
def somebody_decided(scene: Scene) -> Sentence:
    """They decided to move to Busan."""
    return state(scene, act(scene, deed(scene), tense="past", mode="decide", negative=0.0))


@pattern(1)
def somebody_began(scene: Scene) -> Sentence:
    """The child began to cry."""
    action = doing(scene, scene.pick(_BEGINNINGS))
    return state(scene, act(scene, action, tense="past", mode="begin", negative=0.0, time=0.3))


@pattern(1.2)
def somebody_likes_doing(scene: Scene) -> Sentence:
    """My grandfather likes listening to music."""
    action = doing(scene, scene.pick(_PASTIMES), generic=True)
    return state(scene, act(scene, action, tense="present", mode="enjoy", negative=0.2))


@pattern(1.2)
def somebody_is_going_to(scene: Scene) -> Sentence:
    """I am going to buy a new camera tomorrow."""
    clause = act(scene, deed(scene), tense="present", mode="intend", negative=0.0)
    if scene.chance(0.5):
        clause.complements = [*clause.complements, time_for(scene, "future")]
    return state(scene, clause)


@pattern(1)
def somebody_has_done(scene: Scene) -> Sentence:
    """I have never eaten kimchi."""
    action = doing(scene, scene.pick(_EXPERIENCES))
    return state(scene, act(scene, action, tense="present", mode="experience", negative=0.5))


@pattern(1)
def somebody_knows_how(scene: Scene) -> Sentence:
    """He knows how to swim."""
    action = doing(scene, scene.pick(_SKILLS), generic=True)
    return state(scene, act(scene, action, tense="present", mode="skill", negative=0.3))


def _hearer() -> NounPhrase:
    """The unnamed person who is told or asked to do something."""
    doer = NounPhrase([], "", ())
    doer.agreement = "plural"
    doer.dropped = True
    return doer


@pattern(3.5)
def command(scene: Scene) -> Sentence:
    """Open the door. Do not open the door."""
    action = _order(scene)
    doer = _hearer()
    complements = action.complements
    if action.verb.places and action.verb.joint == ("", "") and scene.chance(0.3):
        complements = [*complements, place_of(scene, action.verb)]
    if scene.chance(0.3):
        complements = [*complements, time_for(scene, "future")]
    if scene.chance(0.3):
        clause = Clause(doer, action.verb, complements, negative=True)
        final = "polite command" if scene.polite else "command"
        return Sentence(clause.predicate_english(), clause.korean(final))
    doer.respected = scene.polite  # 드세요 rather than 먹어요
    clause = Clause(doer, action.verb, complements)
    return Sentence(clause.predicate_english(), clause.korean("polite" if scene.polite else "command"))


def _order(scene: Scene) -> Action:
    """An action one may ask for. Nobody's "you" is its object."""
    scene.used.add("you")
    draw = scene.random()
    if draw < 0.7:
        return transitive(scene, scene.pick(_ORDERED))
    if draw < 0.85:
        return intransitive(scene, scene.pick(_WILLED_INTRANSITIVE))
    return going(scene, scene.pick(_ORDERED_MOTION))


_ORDERED = tuple(
    verb for verb in WILLED if verb.forms.base not in ("learn", "meet", "wear", "build", "raise")
)
_ORDERED_MOTION = tuple(verb for verb in _WILLED_MOTION if verb.forms.base in ("go", "come", "return", "sit"))


@pattern(2)
def proposal(scene: Scene) -> Sentence:
    """Let's go home."""
    scene.used.update(("I", "you"))
    action = deed(scene)
    clause = Clause(_hearer(), action.verb, action.complements)
    if scene.chance(0.4):
        clause.complements = [*clause.complements, time_for(scene, "future")]
    lets = Word("let's")
    clause.link(lets)
    korean = clause.korean("polite proposal" if scene.polite else "proposal")
    return Sentence([lets, *clause.predicate_english()], korean)


@pattern(1)
def somebody_wants_somewhere(scene: Scene) -> Sentence:
    """I wanted to study at the library."""
    verb = scene.pick(_PLACED)
    scene.used.add("you")
    action = doing(scene, verb)
    doer = someone(scene, verb.subjects)
    tense = scene.pick(("present", "past"))
    return state(scene, act(scene, action, doer, tense=tense, mode="want", negative=0.15, place=1.0))


_PLACED = tuple(verb for verb in (*WILLED, *_WILLED_INTRANSITIVE) if verb.places)
