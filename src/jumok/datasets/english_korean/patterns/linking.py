"""Two clauses side by side: and, but, so, because, if, when, before, after, while, in order to."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import (
    OBJECT,
    Action,
    Clause,
    Complement,
    act,
    going,
    intransitive,
    time_for,
    transitive,
)
from jumok.corpus.english_korean.lexicon import (
    MOTION,
    STATES,
    TRANSITIVE,
    Adjective,
    human_verbs,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import NounPhrase, pronoun_subject, thing
from jumok.corpus.english_korean.patterns.descriptions import ending, raining
from jumok.corpus.english_korean.patterns.modes import LASTING, LASTING_INTRANSITIVE, doing
from jumok.corpus.english_korean.patterns.registry import pattern
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words

# "read" does not show its tense, so clauses that lean on each other's tense leave it to the first one.
_CLEAR = tuple(verb for verb in LASTING if verb.people and verb.forms.base != verb.forms.past)
_CLEAR_INTRANSITIVE = tuple(
    verb for verb in LASTING_INTRANSITIVE if verb.people and verb.forms.base != "play"
)


def deed(scene: Scene) -> Action:
    """Something people do whose English shows its tense."""
    draw = scene.random()
    if draw < 0.68:
        return transitive(scene, scene.pick_new(_CLEAR))
    if draw < 0.84:
        return intransitive(scene, scene.pick_new(_CLEAR_INTRANSITIVE))
    return going(scene, scene.pick(_MOVES))


_MOVES = tuple(verb for verb in MOTION if verb.people and verb.forms.base in ("go", "come", "return"))


def again(doer: NounPhrase) -> NounPhrase:
    """The same subject once more: a pronoun is repeated in English, and not in Korean."""
    repeated = NounPhrase([Word(word.text) for word in doer.english], doer.text, ())
    repeated.agreement, repeated.near, repeated.respected = doer.agreement, doer.near, doer.respected
    return repeated


def echoed(doer: NounPhrase, repeated: NounPhrase) -> list[Eojeol]:
    """The topic, which stands for the second mention too."""
    eojeols = doer.topic()
    if eojeols:
        last = eojeols[-1]
        eojeols[-1] = Eojeol(last.text, last.sure, [*last.possible, *repeated.english])
    return eojeols


def a_pronoun(scene: Scene, *, you: bool = False) -> NounPhrase:
    """A subject that can be repeated."""
    names = (
        ("I", "I", "he", "she", "we", "they", "you")
        if you and not scene.polite
        else ("I", "I", "he", "she", "we", "they")
    )
    return pronoun_subject(scene, scene.pick(names))


# What people do at each place, so that one goes to the library and reads there.
_DONE_AT = {
    place: tuple(
        verb
        for verb in (*_CLEAR, *_CLEAR_INTRANSITIVE)
        if place in verb.places and "adult" not in verb.subjects and "young" not in verb.subjects
    )
    for place in nouns_of("destination")
}
_GOALS = tuple(place for place, verbs in _DONE_AT.items() if verbs)


def going_and(scene: Scene) -> tuple[Action, Action]:
    """A movement to a place, and something that is done there."""
    goal = scene.pick_new(_GOALS)
    return going(scene, scene.pick(_MOVES[:2]), goal), doing(scene, scene.pick(_DONE_AT[goal]))


def then_also(scene: Scene, *, tense: str = "") -> tuple[Clause, Clause, Word, list[Eojeol]]:
    """Two things done one after the other by the same person, and their Korean up to the last predicate.

    Having gone somewhere one does something there: 가서; otherwise 고.
    """
    is_going = scene.chance(0.4)
    one, other = going_and(scene) if is_going else (stationary(scene), stationary(scene))
    first = act(scene, one, tense=tense, negative=0.0)
    second = Clause(first.subject, other.verb, other.complements, tense=first.tense)
    if first.tense == "future":  # "will go and sleep": they share "will"
        second.front = []
        second.roles["will"] = first.roles["will"]
    joining = Word("and")
    first.link(joining)
    return first, second, joining, first.korean("so" if is_going else "then")


def stationary(scene: Scene) -> Action:
    """Something people do that is no movement."""
    return doing(scene, scene.pick_new(_CLEAR if scene.chance(0.75) else _CLEAR_INTRANSITIVE))


@pattern(1.5)
def and_then(scene: Scene) -> Sentence:
    """I went home and slept."""
    first, second, joining, opening = then_also(scene)
    korean = opening + second.korean(ending(scene), "")
    return Sentence([*first.statement(), joining, *second.predicate_english()], korean)


def two_people(scene: Scene, tense: str) -> tuple[Clause, Clause]:
    """Two clauses with different subjects."""
    first = act(scene, deed(scene), tense=tense, negative=0.12)
    second = act(scene, deed(scene), tense=tense, negative=0.12)
    return first, second


@pattern(0.9)
def and_the_other(scene: Scene) -> Sentence:
    """I drink coffee, and Minsu drinks tea."""
    first, second = two_people(scene, scene.pick(("present", "past")))
    comma, joining = words([",", "and"])
    first.link(joining)
    korean = first.korean("and") + second.korean(ending(scene))
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


@pattern(0.9)
def but_the_other(scene: Scene) -> Sentence:
    """My friend went home, but I worked at the office."""
    first, second = two_people(scene, scene.pick(("present", "past")))
    comma, joining = words([",", "but"])
    first.link(joining)
    korean = first.korean("but") + second.korean(ending(scene))
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


@pattern(0.6)
def likes_but_not(scene: Scene) -> Sentence:
    """I like dogs, but I do not like cats."""
    doer = a_pronoun(scene, you=True)
    verb = _LIKE
    liked = scene.pick_new(_LIKABLE)
    disliked = scene.pick_new(_ALIKE[liked])
    scene.combine(verb, liked)
    scene.combine(verb, disliked)
    one, other = thing(scene, liked, generic=True), thing(scene, disliked, generic=True)
    repeated = again(doer)
    first = Clause(doer, verb, [Complement(one.english, one.korean("을"), OBJECT, 60)])
    second = Clause(
        repeated, verb, [Complement(other.english, other.korean("은"), OBJECT, 60)], negative=True
    )
    comma, joining = words([",", "but"])
    first.link(joining)
    korean = echoed(doer, repeated) + first.korean("but", "") + second.korean(ending(scene), "")
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


_LIKE = next(verb for verb in TRANSITIVE if verb.forms.base == "like")
_LIKABLE = tuple(
    entry for entry in dict.fromkeys(_LIKE.objects) if not entry.classes & {"melody", "film", "text"}
)


_ALIKE = {
    entry: tuple(other for other in _LIKABLE if other is not entry and other.classes & entry.classes)
    for entry in _LIKABLE
}


# What follows from a state: what people then do, and what they then do not do.
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
_IN_BAD_WEATHER = (
    "watch listen clean cook bake rest sleep study draw make write",
    "swim run walk exercise ride plant travel",
)


_EFFECTS = {
    state: tuple(human_verbs(names) for names in _CONSEQUENCES[state.english])
    for state in STATES
    if state.english in _CONSEQUENCES
}
_EFFECTIVE = tuple(_EFFECTS)
WEATHER_EFFECTS = tuple(human_verbs(names) for names in _IN_BAD_WEATHER)


def effect_of(
    scene: Scene, state: Adjective | None, doer: NounPhrase | None, tense: str, *, contrary: bool = False
) -> Clause:
    """What somebody does or does not do in a state (or in bad weather), or contrary to it."""
    done, left_undone = WEATHER_EFFECTS if state is None else _EFFECTS[state]
    positive = bool(done) and scene.chance(0.6)
    verb = scene.pick(done if positive else left_undone)
    negative = positive if contrary else not positive
    return act(scene, doing(scene, verb), doer, tense=tense, negative=float(negative))


def stated(
    scene: Scene, joining: Word, *, tense: str, contrary: bool = False, later: str = ""
) -> tuple[Clause, Clause, list[Eojeol]]:
    """A state and what follows from it, said of the same person: 나는 피곤해서 집에서 쉬었다."""
    doer = a_pronoun(scene)
    state = scene.pick(_EFFECTIVE)
    first = Clause(doer, state, tense=tense)
    first.link(joining)
    repeated = again(doer)
    return first, effect_of(scene, state, repeated, later or tense, contrary=contrary), echoed(doer, repeated)


@pattern(0.7)
def tired_but(scene: Scene) -> Sentence:
    """He was sick, but he went to school."""
    comma, joining = words([",", "but"])
    tense = scene.pick(("present", "past"))
    first, second, topic = stated(scene, joining, tense=tense, contrary=True)
    korean = topic + first.korean("but", "") + second.korean(ending(scene), "")
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


@pattern(0.7)
def tired_so(scene: Scene) -> Sentence:
    """I was tired, so I went home."""
    comma, joining = words([",", "so"])
    first, second, topic = stated(scene, joining, tense=scene.pick(("present", "past")))
    korean = topic + first.korean("so", "") + second.korean(ending(scene), "")
    return Sentence([*first.statement(), comma, joining, *second.statement()], korean)


@pattern(0.7)
def because(scene: Scene) -> Sentence:
    """Because it rained, we did not play soccer."""
    joining, comma = words(["because", ","])
    tense = scene.pick(("present", "past"))
    if scene.chance(0.5):
        cause = raining(scene, tense)
        cause.link(joining)
        effect = effect_of(scene, None, None, tense)
        korean = cause.korean("so") + effect.korean(ending(scene))
    else:
        cause, effect, topic = stated(scene, joining, tense=tense)
        korean = topic + cause.korean("so", "") + effect.korean(ending(scene), "")
    return Sentence([joining, *cause.statement(), comma, *effect.statement()], korean)


@pattern(0.6)
def it_rained_so(scene: Scene) -> Sentence:
    """It snowed yesterday, so I cleaned the house."""
    cause = raining(scene, "past", time=0.6)
    effect = effect_of(scene, None, None, "past")
    comma, joining = words([",", "so"])
    cause.link(joining)
    korean = cause.korean("so") + effect.korean(ending(scene))
    return Sentence([*cause.statement(), comma, joining, *effect.statement()], korean)


@pattern(0.7)
def if_it_rains(scene: Scene) -> Sentence:
    """If it rains tomorrow, I will clean the house."""
    joining, comma = words(["if", ","])
    condition = raining(scene, "present")
    if scene.chance(0.6):
        condition.complements = [time_for(scene, "future")]
    condition.link(joining)
    result = effect_of(scene, None, None, "future")
    korean = condition.korean("if") + result.korean(ending(scene))
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


@pattern(0.6)
def if_tired(scene: Scene) -> Sentence:
    """If I am tired, I will rest at home."""
    joining, comma = words(["if", ","])
    condition, result, topic = stated(scene, joining, tense="present", later="future")
    korean = topic + condition.korean("if", "") + result.korean(ending(scene), "")
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


@pattern(0.7)
def if_then(scene: Scene) -> Sentence:
    """If Minsu comes to Seoul, we will play soccer."""
    joining, comma = words(["if", ","])
    mode, tense = scene.pick(
        (("simple", "future"), ("simple", "future"), ("can", "present"), ("must", "present"))
    )
    condition = act(scene, deed(scene), tense="present", negative=0.2, you=0.2)
    condition.link(joining)
    result = act(scene, deed(scene), tense=tense, mode=mode, negative=0.2)
    korean = condition.korean("if", "이") + result.korean(ending(scene))
    return Sentence([joining, *condition.statement(), comma, *result.statement()], korean)


def moment(scene: Scene) -> Action:
    """Something that happens at a moment: somebody comes home, opens the door."""
    if scene.chance(0.5):
        return going(scene, scene.pick(_ARRIVING))
    return doing(scene, scene.pick(_MOMENTS))


def activity(scene: Scene) -> Action:
    """Something that goes on meanwhile."""
    return doing(scene, scene.pick_new(_ACTIVITIES))


_ARRIVING = tuple(verb for verb in MOTION if verb.people and verb.forms.base in ("come", "arrive", "return"))
_MOMENTS = human_verbs("open close turn get find break drop finish")
_ACTIVITIES = human_verbs(
    "read watch listen cook bake clean write draw study sleep rest cry laugh dance exercise eat drink wash "
    "practice play fix make work swim wait use"
)


@pattern(0.9)
def when_then(scene: Scene) -> Sentence:
    """When I came home, my mother was making bread."""
    joining, comma = words(["when", ","])
    first = act(scene, moment(scene), tense="past", negative=0.0)
    first.link(joining)
    second = act(scene, activity(scene), tense="past", mode="progressive", negative=0.0, place=0.3)
    korean = first.korean("when", "이") + second.korean(ending(scene))
    return Sentence([joining, *first.statement(), comma, *second.statement()], korean)


@pattern(0.6)
def before_that(scene: Scene) -> Sentence:
    """Before I sleep, I drink milk."""
    return _ordered(scene, "before")


@pattern(0.6)
def after_that(scene: Scene) -> Sentence:
    """After we ate dinner, we watched a movie."""
    return _ordered(scene, "after")


def _ordered(scene: Scene, word: str) -> Sentence:
    joining, comma = words([word, ","])
    doer, tense = a_pronoun(scene), scene.pick(("present", "past"))
    first = act(scene, deed(scene), doer, tense=tense, negative=0.0)
    first.link(joining)
    repeated = again(doer)
    second = act(scene, deed(scene), repeated, tense=tense, negative=0.0)
    korean = echoed(doer, repeated) + first.korean(word, "") + second.korean(ending(scene), "")
    return Sentence([joining, *first.statement(), comma, *second.statement()], korean)


@pattern(0.6)
def meanwhile(scene: Scene) -> Sentence:
    """She listens to music while she cooks."""
    joining = Word("while")
    doer, tense = a_pronoun(scene), scene.pick(("present", "past"))
    main = act(scene, doing(scene, scene.pick(_ALONG)), doer, tense=tense, negative=0.0)
    repeated = again(doer)
    side = act(scene, doing(scene, scene.pick(_BUSY)), repeated, tense=tense, negative=0.0)
    side.link(joining)
    korean = echoed(doer, repeated) + side.korean("while", "") + main.korean(ending(scene), "")
    return Sentence([*main.statement(), joining, *side.statement()], korean)


_ALONG = human_verbs("listen sing drink laugh cry eat")
_BUSY = human_verbs("cook clean study walk work wait exercise drive draw bake make write wash")


@pattern(0.9)
def going_in_order_to(scene: Scene) -> Sentence:
    """I went to the market to buy vegetables."""
    verb, places = scene.pick(_PURPOSES)
    goal = scene.pick_new(places)
    action = doing(scene, verb)
    main = act(scene, going(scene, scene.pick(_MOVES[:2]), goal), negative=0.1)
    aim = Clause(again(main.subject), verb, action.complements)
    to, base = Word("to"), Word(verb.forms.base)
    aim.roles["verb"] = [base, *aim.roles["verb"][1:]]
    aim.link(to)
    purpose = aim.korean_complements() + aim.korean_predicate("purpose")
    korean = [*main.subject.topic(), *purpose, *main.korean(ending(scene), "")]
    return Sentence([*main.statement(), to, base, *aim.main[1:], *aim.after()], korean)


_PURPOSES = tuple(
    (verb, tuple(place for place in verb.places if place in _DONE_AT))
    for verb in human_verbs(
        "buy study meet watch learn read eat drink take sing play draw sleep exercise swim rest"
    )
    if any(place in _DONE_AT for place in verb.places)
)
