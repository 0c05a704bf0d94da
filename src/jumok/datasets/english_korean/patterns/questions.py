"""Questions: yes or no, what, who, where, when, why and how."""

from __future__ import annotations

from collections import Counter

from jumok.corpus.english_korean.clauses import (
    OBJECT,
    STATIVE,
    Clause,
    Complement,
    act,
    any_action,
    going,
    intransitive,
    place_of,
    time_for,
    transitive,
)
from jumok.corpus.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE
from jumok.corpus.english_korean.noun_phrases import NounPhrase, human, someone, subject
from jumok.corpus.english_korean.patterns.descriptions import described_thing, ending, feeling
from jumok.corpus.english_korean.patterns.identities import being
from jumok.corpus.english_korean.patterns.modes import deed
from jumok.corpus.english_korean.patterns.registry import ask, pattern
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word
from jumok.corpus.english_korean.verb_phrases import COPULA

_TENSES = ("present", "present", "past", "future")


@pattern(3)
def does_somebody(scene: Scene) -> Sentence:
    """Do you like cats?"""
    clause = act(
        scene,
        any_action(scene),
        tense=scene.pick(_TENSES),
        question=True,
        negative=0.0,
        time=0.3,
        place=0.2,
        you=0.4,
    )
    return ask(scene, clause)


@pattern(1)
def can_somebody(scene: Scene) -> Sentence:
    """Can you play the piano?"""
    clause = act(scene, deed(scene), tense="present", question=True, negative=0.0, mode="can", you=0.5)
    return ask(scene, clause)


@pattern(1)
def does_somebody_want(scene: Scene) -> Sentence:
    """Do you want to watch a movie?"""
    clause = act(scene, deed(scene), tense="present", question=True, negative=0.0, mode="want", you=0.5)
    return ask(scene, clause)


@pattern(2.5)
def is_it_like_this(scene: Scene) -> Sentence:
    """Is the soup hot? Are you tired?"""
    doer, adjective = described_thing(scene) if scene.chance(0.5) else feeling(scene, you=0.4, question=True)
    return ask(
        scene, Clause(doer, adjective, tense=scene.pick(("present", "present", "past")), question=True)
    )


@pattern(2)
def what(scene: Scene) -> Sentence:
    """What did Minsu buy at the market?"""
    verb = scene.pick(_PLAIN_VERBS)
    doer = subject(scene, verb, question=True, you=0.35)
    word = Word("what")
    complements = [Complement([], [Eojeol("무엇을", (word,))], OBJECT, 60)]
    tense = scene.pick(_TENSES)
    if verb.places and scene.chance(0.4):
        complements.append(place_of(scene, verb))
    if scene.chance(0.3):
        complements.append(time_for(scene, tense))
    sentence = ask(scene, Clause(doer, verb, complements, tense=tense, question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


_SHARED_ENGLISH = Counter(
    base_after
    for base_after, _ in {
        ((verb.forms.base, verb.after), verb.stem) for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION)
    }
)
_PLAIN_VERBS = tuple(
    verb
    for verb in TRANSITIVE
    if _SHARED_ENGLISH[verb.forms.base, verb.after] == 1
    and "on" not in verb.after  # not "turn on on Sunday"
    and not any(entry.classes & {"person", "elder"} for entry in verb.objects)
)
_WHOM_VERBS = tuple(
    verb for verb in TRANSITIVE if verb.forms.base in ("love", "help", "meet", "trust", "invite", "miss")
)


@pattern(1)
def whom(scene: Scene) -> Sentence:
    """Whom did you meet yesterday?"""
    verb = scene.pick(_WHOM_VERBS)
    doer = someone(scene, verb.subjects, you=0.4, others=True)
    word = Word("whom")
    tense = scene.pick(_TENSES)
    complements = [Complement([], [Eojeol("누구를", (word,))], OBJECT, 60)]
    if verb.forms.base not in STATIVE and scene.chance(0.5):
        complements.append(time_for(scene, tense))
    sentence = ask(scene, Clause(doer, verb, complements, tense=tense, question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


@pattern(1.5)
def who(scene: Scene) -> Sentence:
    """Who broke the window?"""
    word = Word("who")
    doer = NounPhrase([word], "누구", (word,))
    doer.definite = False
    clause = act(scene, any_action(scene), doer, tense=scene.pick(_TENSES), negative=0.0, time=0.2, place=0.2)
    return Sentence(clause.statement(), clause.korean(ending(scene, question=True), "이"), "?")


@pattern(1.5)
def where(scene: Scene) -> Sentence:
    """Where did you buy the bag?"""
    word = Word("where")
    if scene.chance(0.3):
        verb = scene.pick(_GOING)
        complements = [Complement([], [Eojeol("어디에", (word,))], OBJECT, 60)]
    else:
        verb = scene.pick(_PLACED)
        action = transitive(scene, verb) if verb.objects else intransitive(scene, verb)
        complements = [*action.complements, Complement([], [Eojeol("어디에서", (word,))], OBJECT, 30)]
    doer = subject(scene, verb, question=True, you=0.4)
    sentence = ask(scene, Clause(doer, verb, complements, tense=scene.pick(_TENSES), question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


_GOING = tuple(verb for verb in MOTION if verb.forms.base in ("go", "live"))
_PLACED = tuple(verb for verb in (*TRANSITIVE, *INTRANSITIVE) if len(verb.places) > 2)


@pattern(1.5)
def when(scene: Scene) -> Sentence:
    """When will your mother come home?"""
    return _asked_with(scene, "when", "언제", 10)


@pattern(1.5)
def why(scene: Scene) -> Sentence:
    """Why did he sell the car?"""
    return _asked_with(scene, "why", "왜", 10)


def _asked_with(scene: Scene, english: str, korean: str, rank: int) -> Sentence:
    word = Word(english)
    action = deed(scene)
    clause = act(scene, action, tense=scene.pick(_TENSES), question=True, negative=0.0, you=0.4)
    clause.complements = [*clause.complements, Complement([], [Eojeol(korean, (word,))], 0, rank)]
    sentence = ask(scene, clause)
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


@pattern(0.8)
def how(scene: Scene) -> Sentence:
    """How do you go to school?"""
    word = Word("how")
    action = going(scene, scene.pick(_GOING[:1]))
    clause = act(scene, action, tense=scene.pick(_TENSES), question=True, negative=0.0, you=0.4)
    clause.complements = [*clause.complements, Complement([], [Eojeol("어떻게", (word,))], 0, 70)]
    sentence = ask(scene, clause)
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


@pattern(0.8)
def who_is(scene: Scene) -> Sentence:
    """Who is that tall man?"""
    word = Word("who")
    doer = human(scene, scene.pick_new(_STRANGERS), adjective=0.4, indefinite=0.0)
    clause = Clause(doer, COPULA, tense=scene.pick(("present", "past")), question=True)
    unknown = NounPhrase([word], "누구", (word,))
    korean = being(doer, unknown, clause, ending(scene, question=True))
    return Sentence([word, *clause.question()], korean, "?")


_STRANGERS = tuple(
    entry
    for verb in TRANSITIVE
    if verb.forms.base == "help"
    for entry in dict.fromkeys(verb.objects)
    if entry.form == "count" and "kin" not in entry.classes
)
