"""Two clauses with a conjunction: and, but, so, because, if, when, before, after, while, in order to."""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    KOREAN_OBJECT_RANK,
    OBJECT_RANK,
    Action,
    Clause,
    Complement,
    going_action,
    intransitive_action,
    make_clause,
    time_complement,
    transitive_action,
)
from jumok.datasets.english_korean.lexicon import MOTION, STATES, TRANSITIVE, Adjective, human_verbs, nouns_of
from jumok.datasets.english_korean.noun_phrases import NounPhrase, pronoun_subject, thing_phrase
from jumok.datasets.english_korean.patterns.descriptions import final_ending, weather_clause
from jumok.datasets.english_korean.patterns.modes import LASTING, LASTING_INTRANSITIVE, action_of
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words

# Verbs that show their tense, unlike "read": the tense of one clause must not depend on the other.
_TENSED_TRANSITIVE = tuple(
    verb for verb in LASTING if verb.human_subject and verb.forms.base != verb.forms.past
)
_TENSED_INTRANSITIVE = tuple(
    verb for verb in LASTING_INTRANSITIVE if verb.human_subject and verb.forms.base != "play"
)


def tensed_action(scene: Scene) -> Action:
    """Return an action whose English verb shows its tense."""
    draw = scene.random()
    if draw < 0.68:
        return transitive_action(scene, scene.pick_new(_TENSED_TRANSITIVE))
    if draw < 0.84:
        return intransitive_action(scene, scene.pick_new(_TENSED_INTRANSITIVE))
    return going_action(scene, scene.pick(_GO_COME_RETURN))


_GO_COME_RETURN = tuple(
    verb for verb in MOTION if verb.human_subject and verb.forms.base in ("go", "come", "return")
)
_GO_COME = tuple(verb for verb in _GO_COME_RETURN if verb.forms.base != "return")


def repeated_subject(subject: NounPhrase) -> NounPhrase:
    """Return the subject of a second clause: English repeats a pronoun, Korean does not."""
    repeated = NounPhrase([Word(word.text) for word in subject.english], subject.last_word, ())
    repeated.agreement, repeated.first_or_second_person, repeated.honorific = (
        subject.agreement,
        subject.first_or_second_person,
        subject.honorific,
    )
    return repeated


def shared_topic(subject: NounPhrase, repeated: NounPhrase) -> list[Eojeol]:
    """Return the Korean topic, with possible links to the repeated subject."""
    eojeols = subject.topic()
    if eojeols:
        last = eojeols[-1]
        eojeols[-1] = Eojeol(last.text, last.sure, [*last.possible, *repeated.english])
    return eojeols


def random_pronoun(scene: Scene, *, you: bool = False) -> NounPhrase:
    """Return a pronoun as a subject that can be repeated."""
    names = (
        ("I", "I", "he", "she", "we", "they", "you")
        if you and not scene.polite
        else ("I", "I", "he", "she", "we", "they")
    )
    return pronoun_subject(scene, scene.pick(names))


# Verbs that fit each place: people go to the library and read there.
_DONE_AT = {
    place: tuple(
        verb
        for verb in (*_TENSED_TRANSITIVE, *_TENSED_INTRANSITIVE)
        if place in verb.places and "adult" not in verb.subjects and "young" not in verb.subjects
    )
    for place in nouns_of("destination")
}
_GOALS = tuple(place for place, verbs in _DONE_AT.items() if verbs)


def movement_and_action(scene: Scene) -> tuple[Action, Action]:
    """Return a movement to a place, and an action there."""
    goal = scene.pick_new(_GOALS)
    return going_action(scene, scene.pick(_GO_COME), goal), action_of(scene, scene.pick(_DONE_AT[goal]))


def consecutive_actions(scene: Scene, *, tense: str = "") -> tuple[Clause, Clause, Word, list[Eojeol]]:
    """Return two consecutive actions of one person, "and", and the Korean of the first.

    The Korean conjunction is 가서 after a movement to the place of the second action, otherwise 고.
    """
    is_going = scene.chance(0.4)
    first_action, second_action = (
        movement_and_action(scene) if is_going else (stationary_action(scene), stationary_action(scene))
    )
    first = make_clause(scene, first_action, tense=tense, p_negative=0.0)
    second = Clause(first.subject, second_action.verb, second_action.complements, tense=first.tense)
    if first.tense == "future":  # "will go and sleep": they share "will"
        second.front = []
        second.roles["will"] = first.roles["will"]
    joining = Word("and")
    first.link(joining)
    return first, second, joining, first.korean("so" if is_going else "then")


def stationary_action(scene: Scene) -> Action:
    """Return an action that is not a movement."""
    return action_of(
        scene, scene.pick_new(_TENSED_TRANSITIVE if scene.chance(0.75) else _TENSED_INTRANSITIVE)
    )


def and_then(scene: Scene) -> Sentence:
    """I went home and slept."""
    first, second, joining, opening = consecutive_actions(scene)
    korean = opening + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), joining, *second.predicate_english()], korean)


def two_clauses(scene: Scene, tense: str) -> tuple[Clause, Clause]:
    """Return two clauses with different subjects."""
    first = make_clause(scene, tensed_action(scene), tense=tense, p_negative=0.12)
    second = make_clause(scene, tensed_action(scene), tense=tense, p_negative=0.12)
    return first, second


def and_another_subject(scene: Scene) -> Sentence:
    """I drink coffee, and Minsu drinks tea."""
    first, second = two_clauses(scene, scene.pick(("present", "past")))
    comma, joining = words([",", "and"])
    first.link(joining)
    korean = first.korean("and") + second.korean(final_ending(scene))
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


def but_another_subject(scene: Scene) -> Sentence:
    """My friend went home, but I worked at the office."""
    first, second = two_clauses(scene, scene.pick(("present", "past")))
    comma, joining = words([",", "but"])
    first.link(joining)
    korean = first.korean("but") + second.korean(final_ending(scene))
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


def likes_but_not(scene: Scene) -> Sentence:
    """I like dogs, but I do not like cats."""
    subject = random_pronoun(scene, you=True)
    verb = _LIKE
    liked = scene.pick_new(_LIKABLE)
    disliked = scene.pick_new(_SIMILAR[liked])
    scene.note_combination(verb, liked)
    scene.note_combination(verb, disliked)
    liked_phrase = thing_phrase(scene, liked, generic=True)
    disliked_phrase = thing_phrase(scene, disliked, generic=True)
    repeated = repeated_subject(subject)
    first = Clause(
        subject,
        verb,
        [Complement(liked_phrase.english, liked_phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)],
    )
    second = Clause(
        repeated,
        verb,
        [Complement(disliked_phrase.english, disliked_phrase.korean("은"), OBJECT_RANK, KOREAN_OBJECT_RANK)],
        negative=True,
    )
    comma, joining = words([",", "but"])
    first.link(joining)
    korean = (
        shared_topic(subject, repeated) + first.korean("but", "") + second.korean(final_ending(scene), "")
    )
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


_LIKE = next(verb for verb in TRANSITIVE if verb.forms.base == "like")
_LIKABLE = tuple(
    entry for entry in dict.fromkeys(_LIKE.objects) if not entry.classes & {"melody", "film", "text"}
)


_SIMILAR = {
    entry: tuple(other for other in _LIKABLE if other is not entry and other.classes & entry.classes)
    for entry in _LIKABLE
}


# Effects of a state: verbs for what people then do, and for what they then do not do.
_CONSEQUENCES = {
    "tired": ("sleep rest", "exercise study run walk work clean cook dance"),
    "busy": ("", "watch play travel rest meet listen sleep exercise"),
    "sick": ("rest sleep", "work exercise swim study drive"),
    "hungry": ("eat cook bake", "study work exercise clean"),
    "thirsty": ("drink pour", "run sing dance walk"),
    "happy": ("laugh sing dance hug", "cry"),
    "sad": ("cry listen hug", "laugh dance sing eat"),
    "lonely": ("cry raise meet invite", "laugh sing"),
}


_EFFECTS = {
    state: tuple(human_verbs(names) for names in _CONSEQUENCES[state.english])
    for state in STATES
    if state.english in _CONSEQUENCES
}
_STATES_WITH_EFFECT = tuple(_EFFECTS)
DONE_IN_BAD_WEATHER = human_verbs("watch listen clean cook bake rest sleep study draw make write")
NOT_DONE_IN_BAD_WEATHER = human_verbs("swim run walk exercise ride plant travel")


def effect_of(
    scene: Scene, state: Adjective | None, subject: NounPhrase | None, tense: str, *, contrary: bool = False
) -> Clause:
    """Return what somebody does or does not do in a state (or in bad weather), or contrary to it."""
    done, not_done = (DONE_IN_BAD_WEATHER, NOT_DONE_IN_BAD_WEATHER) if state is None else _EFFECTS[state]
    positive = bool(done) and scene.chance(0.6)
    verb = scene.pick(done if positive else not_done)
    negative = positive if contrary else not positive
    return make_clause(scene, action_of(scene, verb), subject, tense=tense, p_negative=float(negative))


def state_and_effect(
    scene: Scene, joining: Word, *, tense: str, contrary: bool = False, effect_tense: str = ""
) -> tuple[Clause, Clause, list[Eojeol]]:
    """Return a state, its effect on the same person, and their topic: 나는 피곤해서 집에서 쉬었다."""
    subject = random_pronoun(scene)
    state = scene.pick(_STATES_WITH_EFFECT)
    first = Clause(subject, state, tense=tense)
    first.link(joining)
    repeated = repeated_subject(subject)
    return (
        first,
        effect_of(scene, state, repeated, effect_tense or tense, contrary=contrary),
        shared_topic(subject, repeated),
    )


def state_but(scene: Scene) -> Sentence:
    """He was sick, but he went to school."""
    comma, joining = words([",", "but"])
    tense = scene.pick(("present", "past"))
    first, second, topic = state_and_effect(scene, joining, tense=tense, contrary=True)
    korean = topic + first.korean("but", "") + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


def state_so(scene: Scene) -> Sentence:
    """I was tired, so I went home."""
    comma, joining = words([",", "so"])
    first, second, topic = state_and_effect(scene, joining, tense=scene.pick(("present", "past")))
    korean = topic + first.korean("so", "") + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


def because(scene: Scene) -> Sentence:
    """Because it rained, we did not play soccer."""
    joining, comma = words(["because", ","])
    tense = scene.pick(("present", "past"))
    if scene.chance(0.5):
        cause = weather_clause(scene, tense)
        cause.link(joining)
        effect = effect_of(scene, None, None, tense)
        korean = cause.korean("so") + effect.korean(final_ending(scene))
    else:
        cause, effect, topic = state_and_effect(scene, joining, tense=tense)
        korean = topic + cause.korean("so", "") + effect.korean(final_ending(scene), "")
    return Sentence([joining, *cause.statement(), comma, *effect.statement()], korean)


def it_rained_so(scene: Scene) -> Sentence:
    """It snowed yesterday, so I cleaned the house."""
    cause = weather_clause(scene, "past", p_time=0.6)
    effect = effect_of(scene, None, None, "past")
    comma, joining = words([",", "so"])
    cause.link(joining)
    korean = cause.korean("so") + effect.korean(final_ending(scene))
    return Sentence([*cause.statement(), comma, joining, *effect.statement()], korean)


def if_it_rains(scene: Scene) -> Sentence:
    """If it rains tomorrow, I will clean the house."""
    joining, comma = words(["if", ","])
    condition = weather_clause(scene, "present")
    if scene.chance(0.6):
        condition.complements = [time_complement(scene, "future")]
    condition.link(joining)
    result = effect_of(scene, None, None, "future")
    korean = condition.korean("if") + result.korean(final_ending(scene))
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


def if_state(scene: Scene) -> Sentence:
    """If I am tired, I will rest at home."""
    joining, comma = words(["if", ","])
    condition, result, topic = state_and_effect(scene, joining, tense="present", effect_tense="future")
    korean = topic + condition.korean("if", "") + result.korean(final_ending(scene), "")
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


def if_then(scene: Scene) -> Sentence:
    """If Minsu comes to Seoul, we will play soccer."""
    joining, comma = words(["if", ","])
    mode, tense = scene.pick(
        (("simple", "future"), ("simple", "future"), ("can", "present"), ("must", "present"))
    )
    condition = make_clause(scene, tensed_action(scene), tense="present", p_negative=0.2, p_you=0.2)
    condition.link(joining)
    result = make_clause(scene, tensed_action(scene), tense=tense, mode=mode, p_negative=0.2)
    korean = condition.korean("if", "이") + result.korean(final_ending(scene))
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


def momentary_action(scene: Scene) -> Action:
    """Return a momentary action: coming home, opening the door."""
    if scene.chance(0.5):
        return going_action(scene, scene.pick(_ARRIVING_VERBS))
    return action_of(scene, scene.pick(_MOMENTARY_VERBS))


def lasting_action(scene: Scene) -> Action:
    """Return an action that lasts."""
    return action_of(scene, scene.pick_new(_LASTING_VERBS))


_ARRIVING_VERBS = tuple(
    verb for verb in MOTION if verb.human_subject and verb.forms.base in ("come", "arrive", "return")
)
_MOMENTARY_VERBS = human_verbs("open close turn get find break drop finish")
_LASTING_VERBS = human_verbs(
    "read watch listen cook bake clean write draw study sleep rest cry laugh dance exercise eat drink wash "
    "practice play fix make work swim wait use"
)


def when_then(scene: Scene) -> Sentence:
    """When I came home, my mother was making bread."""
    joining, comma = words(["when", ","])
    first = make_clause(scene, momentary_action(scene), tense="past", p_negative=0.0)
    first.link(joining)
    second = make_clause(
        scene, lasting_action(scene), tense="past", mode="progressive", p_negative=0.0, p_place=0.3
    )
    korean = first.korean("when", "이") + second.korean(final_ending(scene))
    return Sentence([joining, *first.statement(), comma, *second.statement()], korean)


def before_clause(scene: Scene) -> Sentence:
    """Before I sleep, I drink milk."""
    return _before_or_after(scene, "before")


def after_clause(scene: Scene) -> Sentence:
    """After we ate dinner, we watched a movie."""
    return _before_or_after(scene, "after")


def _before_or_after(scene: Scene, word: str) -> Sentence:
    joining, comma = words([word, ","])
    subject, tense = random_pronoun(scene), scene.pick(("present", "past"))
    first = make_clause(scene, tensed_action(scene), subject, tense=tense, p_negative=0.0)
    first.link(joining)
    repeated = repeated_subject(subject)
    second = make_clause(scene, tensed_action(scene), repeated, tense=tense, p_negative=0.0)
    korean = shared_topic(subject, repeated) + first.korean(word, "") + second.korean(final_ending(scene), "")
    return Sentence([joining, *first.statement(), comma, *second.statement()], korean)


def while_clause(scene: Scene) -> Sentence:
    """She listens to music while she cooks."""
    joining = Word("while")
    subject, tense = random_pronoun(scene), scene.pick(("present", "past"))
    main = make_clause(scene, action_of(scene, scene.pick(_MAIN_VERBS)), subject, tense=tense, p_negative=0.0)
    repeated = repeated_subject(subject)
    side = make_clause(
        scene, action_of(scene, scene.pick(_SIDE_VERBS)), repeated, tense=tense, p_negative=0.0
    )
    side.link(joining)
    korean = shared_topic(subject, repeated) + side.korean("while", "") + main.korean(final_ending(scene), "")
    return Sentence([*main.statement(), joining, *side.statement()], korean)


_MAIN_VERBS = human_verbs("listen sing drink laugh cry eat")
_SIDE_VERBS = human_verbs("cook clean study walk work wait exercise drive draw bake make write wash")


def going_in_order_to(scene: Scene) -> Sentence:
    """I went to the market to buy vegetables."""
    verb, places = scene.pick(_PURPOSES)
    goal = scene.pick_new(places)
    action = action_of(scene, verb)
    main = make_clause(scene, going_action(scene, scene.pick(_GO_COME), goal), p_negative=0.1)
    aim = Clause(repeated_subject(main.subject), verb, action.complements)
    to, base = Word("to"), Word(verb.forms.base)
    aim.roles["verb"] = [base, *aim.roles["verb"][1:]]
    aim.link(to)
    purpose = aim.korean_complements() + aim.korean_predicate("purpose")
    korean = [*main.subject.topic(), *purpose, *main.korean(final_ending(scene), "")]
    return Sentence([*main.statement(), to, base, *aim.main[1:], *aim.words_after_verb()], korean)


_PURPOSES = tuple(
    (verb, tuple(place for place in verb.places if place in _DONE_AT))
    for verb in human_verbs(
        "buy study meet watch learn read eat drink take sing play draw sleep exercise swim rest"
    )
    if any(place in _DONE_AT for place in verb.places)
)
