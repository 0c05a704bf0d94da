"""Yes-no questions, and questions with "what", "who", "where", "when", "why" and "how".

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from collections import Counter

from jumok.datasets.english_korean import action_tables
from jumok.datasets.english_korean.clauses import (
    KOREAN_MANNER_RANK,
    KOREAN_OBJECT_RANK,
    KOREAN_PLACE_RANK,
    KOREAN_TIME_RANK,
    OBJECT_RANK,
    UNRANKED,
    Action,
    Clause,
    Complement,
    any_action,
    going_action,
    make_clause,
    pick_tense,
    place_complement,
    place_particle,
    time_of_action,
)
from jumok.datasets.english_korean.hangul import attach
from jumok.datasets.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE, Verb
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    person_phrase,
    person_subject,
    subject_phrase,
)
from jumok.datasets.english_korean.patterns.descriptions import (
    final_ending,
    person_and_state,
    thing_and_adjective,
)
from jumok.datasets.english_korean.patterns.frames import frame_action, frames_of, read_frames
from jumok.datasets.english_korean.patterns.identities import copula_eojeols
from jumok.datasets.english_korean.patterns.modes import POSSIBLE_ACTIONS, WANTED_ACTIONS
from jumok.datasets.english_korean.patterns.sentence import make_question
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word
from jumok.datasets.english_korean.verb_phrases import COPULA

_TENSES = ("present", "present", "past", "future")
_EVENT_TENSES = ("past", "past", "future")


def _question_tense(scene: Scene, verb: Verb) -> str:
    """Return a tense in which people ask about an action. The present is only for habits and states."""
    return pick_tense(scene, verb, _TENSES if verb.is_habitual else _EVENT_TENSES)


def _tense_of_where_when_why(scene: Scene, action: Action) -> str:
    """Return a tense in which people ask where, when or why: nobody asks "where do you eat an egg"."""
    entry = action.entry
    is_regular = entry is None or bool(entry.classes & {"study", "sport", "meal", "instrument", "place"})
    is_regular = is_regular or action.verb.is_repeatable
    return pick_tense(scene, action.verb, _TENSES if is_regular else _EVENT_TENSES)


def does_somebody(scene: Scene) -> Sentence:
    """Do you like cats?"""
    action = any_action(scene)
    tense = _question_tense(scene, action.verb)
    # "Will you open the door?" is a request and not a question, so "you" is excluded.
    would_be_request = tense == "future" and (action.verb, action.entry) not in _PLANS
    if would_be_request:
        scene.used.add("you")
    clause = make_clause(
        scene,
        action,
        tense=tense,
        question=True,
        p_negative=0.0,
        p_time=0.3,
        p_place=0.2,
        p_you=0.0 if would_be_request else 0.4,
    )
    return make_question(scene, clause)


_PLANS = frozenset(
    (verb, entry) for verb, entries in read_frames(action_tables.PLANS) for entry in entries or (None,)
)


def can_somebody(scene: Scene) -> Sentence:
    """Can you play the piano?"""
    clause = make_clause(
        scene,
        frame_action(scene, POSSIBLE_ACTIONS),
        tense="present",
        question=True,
        p_negative=0.0,
        mode="can",
        p_you=0.5,
    )
    return make_question(scene, clause)


def does_somebody_want(scene: Scene) -> Sentence:
    """Do you want to watch a movie?"""
    clause = make_clause(
        scene,
        frame_action(scene, WANTED_ACTIONS),
        tense="present",
        question=True,
        p_negative=0.0,
        mode="want",
        p_you=0.5,
    )
    return make_question(scene, clause)


def is_it_adjective(scene: Scene) -> Sentence:
    """Is the soup hot? Are you tired?"""
    subject, adjective = (
        thing_and_adjective(scene) if scene.chance(0.5) else person_and_state(scene, p_you=0.4, question=True)
    )
    return make_question(
        scene, Clause(subject, adjective, tense=scene.pick(("present", "present", "past")), question=True)
    )


def what(scene: Scene) -> Sentence:
    """What did Minsu buy at the market?"""
    verb = scene.pick(_WHAT_VERBS)
    subject = subject_phrase(scene, verb, question=True, p_you=0.35)
    subject.definite = True  # "what does a lion eat" asks about lions
    word = Word("what")
    unknown = "어디를" if verb.forms.base == "visit" else "무엇을"
    complements = [Complement([], [Eojeol(unknown, (word,))], OBJECT_RANK, KOREAN_OBJECT_RANK)]
    tense = _question_tense(scene, verb)
    if verb.places and scene.chance(0.4):
        complements.append(place_complement(scene, verb, verb.places))
    if scene.chance(0.3):
        complements += time_of_action(scene, Action(verb, []), tense)
    sentence = make_question(scene, Clause(subject, verb, complements, tense=tense, question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


_KOREAN_VERBS_PER_ENGLISH = Counter(
    english
    for english, _ in {
        ((verb.forms.base, verb.after), verb.stem) for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION)
    }
)
# Verbs with one translation. Other verbs have a translation per object, and "what" does not name an object.
_WHAT_VERBS = tuple(
    verb
    for verb in TRANSITIVE
    if _KOREAN_VERBS_PER_ENGLISH[verb.forms.base, verb.after] == 1
    and not {"on", "off"} & set(verb.after)  # not "turn on on Sunday"
    and verb.variety > 2  # "what did you finish" has one answer
    and verb.forms.base not in ("speak", "build", "catch", "throw", "raise", "clean", "bite", "chase")
    and not any(entry.classes & {"person", "elder"} for entry in verb.objects)
)
_WHOM_VERBS = tuple(
    verb for verb in TRANSITIVE if verb.forms.base in ("love", "help", "meet", "trust", "invite", "miss")
)


def whom(scene: Scene) -> Sentence:
    """Whom did you meet yesterday?"""
    verb = scene.pick(_WHOM_VERBS)
    subject = person_subject(scene, verb.subjects, p_you=0.4, exclude_first_person=True)
    word = Word("whom")
    tense = pick_tense(scene, verb, _TENSES)
    complements = [Complement([], [Eojeol("누구를", (word,))], OBJECT_RANK, KOREAN_OBJECT_RANK)]
    if scene.chance(0.5):
        complements += time_of_action(scene, Action(verb, []), tense)
    sentence = make_question(scene, Clause(subject, verb, complements, tense=tense, question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


def who(scene: Scene) -> Sentence:
    """Who broke the window?"""
    word = Word("who")
    subject = NounPhrase([word], "누구", (word,))
    subject.definite = False
    action = any_action(scene)
    tense = _question_tense(scene, action.verb)
    clause = make_clause(scene, action, subject, tense=tense, p_negative=0.0, p_time=0.2, p_place=0.2)
    return Sentence(clause.statement(), clause.korean(final_ending(scene, question=True), "이"), "?")


def where(scene: Scene) -> Sentence:
    """Where did you buy the bag?"""
    word = Word("where")
    if scene.chance(0.3):
        verb = scene.pick(_GO_AND_LIVE)
        tense = pick_tense(scene, verb, _TENSES)
        complements = [Complement([], [Eojeol("어디에", (word,))], OBJECT_RANK, KOREAN_OBJECT_RANK)]
    else:
        action = frame_action(scene, _ACTIONS_WITH_PLACE)
        verb, tense = action.verb, _tense_of_where_when_why(scene, action)
        unknown = attach("어디", place_particle(verb))
        complements = [
            *action.complements,
            Complement([], [Eojeol(unknown, (word,))], OBJECT_RANK, KOREAN_PLACE_RANK),
        ]
    subject = subject_phrase(scene, verb, question=True, p_you=0.4)
    subject.definite = True
    sentence = make_question(scene, Clause(subject, verb, complements, tense=tense, question=True))
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


_GO_AND_LIVE = tuple(verb for verb in MOTION if verb.forms.base in ("go", "live"))
_GO = tuple(verb for verb in MOTION if verb.forms.base == "go")
_ACTIONS_WITH_PLACE = frames_of(
    tuple(
        verb
        for verb in (*TRANSITIVE, *INTRANSITIVE)
        if len(verb.places) > 2
        and verb.forms.base not in ("wait", "raise", "cry", "laugh", "choose", "throw", "pick")
    )
)


def when(scene: Scene) -> Sentence:
    """When will your mother come home?"""
    return _adverbial_question(scene, "when", "언제")


def why(scene: Scene) -> Sentence:
    """Why did he sell the car?"""
    return _adverbial_question(scene, "why", "왜")


def _adverbial_question(scene: Scene, english: str, korean: str) -> Sentence:
    word = Word(english)
    action = frame_action(scene, _QUESTIONED_ACTIONS)
    tense = _tense_of_where_when_why(scene, action)
    clause = make_clause(scene, action, tense=tense, question=True, p_negative=0.0, p_you=0.4)
    clause.complements = [
        *clause.complements,
        Complement([], [Eojeol(korean, (word,))], UNRANKED, KOREAN_TIME_RANK),
    ]
    sentence = make_question(scene, clause)
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


_QUESTIONED_ACTIONS = tuple(
    frame
    for frame in WANTED_ACTIONS
    if frame.verb.forms.base
    not in ("live", "raise", "sit", "receive", "collect", "speak", "wait", "get", "finish")
)


def how(scene: Scene) -> Sentence:
    """How do you go to school?"""
    word = Word("how")
    action = going_action(scene, scene.pick(_GO))
    tense = scene.pick(_TENSES)
    clause = make_clause(scene, action, tense=tense, question=True, p_negative=0.0, p_you=0.4)
    clause.complements = [
        *clause.complements,
        Complement([], [Eojeol("어떻게", (word,))], UNRANKED, KOREAN_MANNER_RANK),
    ]
    sentence = make_question(scene, clause)
    return Sentence([word, *sentence.words], sentence.eojeols, "?")


def who_is(scene: Scene) -> Sentence:
    """Who is that tall man?"""
    word = Word("who")
    subject = person_phrase(
        scene,
        scene.pick_new(_PERSONS_OUTSIDE_THE_FAMILY),
        p_adjective=0.4,
        p_indefinite=0.0,
        is_pointed_at=True,
    )
    clause = Clause(subject, COPULA, question=True)
    unknown = NounPhrase([word], "누구", (word,))
    korean = copula_eojeols(subject, unknown, clause, final_ending(scene, question=True))
    return Sentence([word, *clause.question()], korean, "?")


_PERSONS_OUTSIDE_THE_FAMILY = tuple(
    entry
    for verb in TRANSITIVE
    if verb.forms.base == "help"
    for entry in dict.fromkeys(verb.objects)
    if entry.form == "count" and "kin" not in entry.classes
)
