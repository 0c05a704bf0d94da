"""Two clauses with a conjunction: and, but, so, because, if, when, before, after, while, in order to.

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.datasets.english_korean import action_tables, comparisons
from jumok.datasets.english_korean.clauses import (
    KOREAN_OBJECT_RANK,
    OBJECT_RANK,
    Action,
    Clause,
    Complement,
    going_action,
    make_clause,
    time_complement,
    transitive_action,
)
from jumok.datasets.english_korean.lexicon import (
    INTRANSITIVE,
    MOTION,
    STATES,
    TRANSITIVE,
    Adjective,
    Noun,
    human_verbs,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    HIS_OR_HER_USED,
    SPECIFIC_THING,
    THIRD_PERSON_MENTIONED,
    NounPhrase,
    person_subject,
    pronoun_subject,
    thing_phrase,
)
from jumok.datasets.english_korean.patterns.descriptions import final_ending, weather_clause
from jumok.datasets.english_korean.patterns.frames import (
    Frame,
    Frames,
    fitting_subject,
    frame_action,
    read_frames,
    read_rows,
)
from jumok.datasets.english_korean.patterns.modes import NOT_LASTING_VERBS
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_GO_COME = tuple(verb for verb in MOTION if verb.human_subject and verb.forms.base in ("go", "come"))


def without_ambiguous_tense(frames: Frames) -> Frames:
    """Return the actions whose verb shows its tense, unlike "read"."""
    return tuple(frame for frame in frames if frame.verb.forms.base != frame.verb.forms.past)


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
    names = ["I", "I", "we", "they"]
    if HIS_OR_HER_USED not in scene.used:
        names += ["he", "she"]  # otherwise "he … his" might need 자기
    if you and not scene.polite:
        names.append("you")
    return pronoun_subject(scene, scene.pick(names))


def _actions_at(place: Noun) -> Frames:
    """Return what people do at a place: they go to the library and study there."""
    frames = []
    for verb in (*TRANSITIVE, *INTRANSITIVE):
        if "person" not in verb.subjects or verb.forms.base in (
            *NOT_LASTING_VERBS,
            "raise",
            "read",
            "build",
            "travel",
        ):
            continue
        entries = tuple(
            entry for entry in verb.objects if place in verb.object_places[entry] and entry.key != "novel"
        )
        if entries or (not verb.objects and place in verb.places):
            frames.append(Frame(verb, entries))
    return tuple(frames)


ACTIONS_AT = {place: actions for place in nouns_of("destination") if (actions := _actions_at(place))}
_GOALS = tuple(ACTIONS_AT)
INDOOR_GOALS = nouns_of("=home =library =cafe")
_SEQUENCES = read_rows(action_tables.SEQUENCES)
# "After I wear a hat" is not natural English, unlike "After I put on a hat".
_TIMED_SEQUENCES = tuple(row for row in _SEQUENCES if row[0][0].verb.forms.base != "wear")


def movement_and_action(scene: Scene, goals: tuple[Noun, ...] = _GOALS) -> tuple[Action, Action]:
    """Return a movement to a place, and an action there."""
    goal = scene.pick_new(goals)
    verb = scene.pick(tuple(verb for verb in _GO_COME if goal in verb.places))
    return going_action(scene, verb, goal), frame_action(scene, ACTIONS_AT[goal])


def actions_in_turn(scene: Scene, rows: tuple[tuple[Frames, ...], ...] = _SEQUENCES) -> tuple[Action, Action]:
    """Return two actions, the second of which follows the first in time."""
    earlier, later = scene.pick(rows)
    return frame_action(scene, earlier), frame_action(scene, later)


def _tense_of(scene: Scene, actions: Sequence[Action], tenses: tuple[str, ...]) -> str:
    """Return a tense that fits all actions; a habit has no specific object (not "he moves this desk")."""
    tense = scene.pick(tenses)
    is_strange = any(tense not in action.verb.tenses for action in actions)
    return "past" if is_strange or (tense == "present" and SPECIFIC_THING in scene.used) else tense


def consecutive_actions(
    scene: Scene, *, tense: str = "", is_bad_weather: bool = False
) -> tuple[Clause, Clause, Word, list[Eojeol]]:
    """Return the clauses of two consecutive actions of one person, "and", and the Korean of the first clause.

    The Korean conjunction is 서 if the second action needs the first (가서, 만나서, 사서), otherwise 고.
    """
    scene.used.add("you")
    is_going = scene.chance(0.4)
    if is_going:
        first_action, second_action = movement_and_action(scene, INDOOR_GOALS if is_bad_weather else _GOALS)
    else:
        first_action, second_action = (indoor_actions if is_bad_weather else actions_in_turn)(scene)
    subject = fitting_subject(scene, first_action, second_action)
    actions = (first_action, second_action)
    tense = tense or _tense_of(scene, actions, ("present", "past", "past", "future"))
    first = make_clause(scene, first_action, subject, tense=tense, p_negative=0.0, p_manner=0.0)
    second = Clause(first.subject, second_action.verb, second_action.complements, tense=first.tense)
    if first.tense == "future":  # "will go and sleep": they share "will"
        second.front = []
        second.roles["will"] = first.roles["will"]
    conjunction = Word("and")
    first.link(conjunction)
    is_needed = is_going or first_action.verb.forms.base in ("meet", "buy")
    return first, second, conjunction, first.korean("so" if is_needed else "then")


def and_then(scene: Scene) -> Sentence:
    """I went home and slept."""
    first, second, conjunction, opening = consecutive_actions(scene)
    korean = opening + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), conjunction, *second.english_without_subject()], korean)


_TOPICS = tuple(without_ambiguous_tense(frames) for (frames,) in read_rows(action_tables.TOPICS))


def clauses_on_a_topic(scene: Scene, count: int) -> list[Clause]:
    """Return clauses with different subjects about one topic, in one tense."""
    scene.used.add("you")
    topic = scene.pick(_TOPICS)
    actions = [frame_action(scene, topic) for _ in range(count)]
    tense = _tense_of(scene, actions, ("present", "past"))
    return [make_clause(scene, action, tense=tense, p_negative=0.0) for action in actions]


def and_another_subject(scene: Scene) -> Sentence:
    """I drink coffee, and Minsu drinks tea."""
    first, second = clauses_on_a_topic(scene, 2)
    comma, conjunction = words([",", "and"])
    first.link(conjunction)
    korean = first.korean("and") + second.korean(final_ending(scene))
    return Sentence([*first.statement(), comma, conjunction, *second.statement()], korean)


def but_another_subject(scene: Scene) -> Sentence:
    """My friend worked, but I slept. Minsu drank coffee, but I drank tea."""
    first, second = contrasting_clauses(scene)
    comma, conjunction = words([",", "but"])
    first.link(conjunction)
    korean = first.korean("but") + second.korean(final_ending(scene))
    return Sentence([*first.statement(), comma, conjunction, *second.statement()], korean)


def contrasting_clauses(
    scene: Scene, make_subject: Callable[[Scene], NounPhrase] | None = None
) -> list[Clause]:
    """Return clauses about two people: work and leisure, or one verb with two similar objects."""
    scene.used.add("you")
    if make_subject:
        scene.used.add(THIRD_PERSON_MENTIONED)
    if scene.chance(0.4):
        first_frames, second_frames = scene.pick(_CONTRASTS)
        actions = [frame_action(scene, first_frames), frame_action(scene, second_frames)]
    else:
        verb, entries = scene.pick(_SIMILAR_OBJECTS)
        first = scene.pick_new(entries)
        second = scene.pick_new(tuple(entry for entry in SIMILAR[first] if entry in entries))
        actions = [transitive_action(scene, verb, entry) for entry in (first, second)]
    tense = _tense_of(scene, actions, ("present", "past"))
    return [
        make_clause(
            scene,
            action,
            make_subject(scene) if make_subject else None,
            tense=tense,
            p_negative=0.0,  # not "I went to school, but she did not go to the park"
        )
        for action in actions
    ]


def likes_but_not(scene: Scene) -> Sentence:
    """I like dogs, but I do not like cats."""
    subject = random_pronoun(scene, you=True)
    verb = _LIKE
    liked = scene.pick_new(_LIKABLE)
    disliked = scene.pick_new(SIMILAR[liked])
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
    comma, conjunction = words([",", "but"])
    first.link(conjunction)
    korean = (
        shared_topic(subject, repeated) + first.korean("but", "") + second.korean(final_ending(scene), "")
    )
    return Sentence([*first.statement(), comma, conjunction, *second.statement()], korean)


_LIKE = next(verb for verb in TRANSITIVE if verb.forms.base == "like")
# Things of one kind: people say that they like dogs but not cats.
SIMILAR: dict[Noun, tuple[Noun, ...]] = {}
for _line in comparisons.KINDS.strip().splitlines():
    _kind = nouns_of(" ".join(f"={name}" for name in _line.split()))
    for _entry in _kind:
        _others = tuple(other for other in _kind if other is not _entry)
        SIMILAR[_entry] = tuple(dict.fromkeys((*SIMILAR.get(_entry, ()), *_others)))
_SIMILAR_OBJECTS = tuple(
    (verb, entries)
    for verb in human_verbs(
        "eat drink buy study learn teach like hate cook bake play practice watch choose draw raise visit "
        "ride wash sing listen sell clean"
    )
    if verb.forms.base != verb.forms.past
    and "young" not in verb.subjects
    and len(
        entries := tuple(
            entry
            for entry in dict.fromkeys(verb.objects)
            if any(other in verb.objects for other in SIMILAR.get(entry, ()))
        )
    )
    > 1
)
_CONTRASTS = tuple(
    tuple(
        without_ambiguous_tense(tuple(f for f in frames if "young" not in f.verb.subjects)) for frames in row
    )
    for row in read_rows(action_tables.CONTRASTS)
)
_LIKABLE = tuple(
    entry
    for entry in dict.fromkeys(_LIKE.objects)
    if entry in SIMILAR and not entry.classes & {"melody", "film", "text", "heard"}
)


_EFFECTS: dict[Adjective, tuple[Frames, Frames]] = {}
for _line in action_tables.EFFECTS_OF_STATES.strip().splitlines():
    _name, _done, _not_done = _line.split("|")
    _state = next(entry for entry in STATES if entry.english == _name.strip())
    _EFFECTS[_state] = (read_frames(_done), read_frames(_not_done))
_STATES_WITH_EFFECT = tuple(_EFFECTS)
INDOORS, OUTDOORS = read_frames(action_tables.INDOORS), read_frames(action_tables.OUTDOORS)
_INDOORS_AWAKE = tuple(frame for frame in INDOORS if frame.verb.forms.base not in ("sleep", "rest"))


def indoor_actions(scene: Scene) -> tuple[Action, Action]:
    """Return two different things that people do at home."""
    first, second = scene.pick(_INDOORS_AWAKE), scene.pick(INDOORS)
    while second.verb.forms.base == first.verb.forms.base:
        second = scene.pick(INDOORS)
    return frame_action(scene, (first,)), frame_action(scene, (second,))


def effect_of(
    scene: Scene, state: Adjective | None, subject: NounPhrase | None, tense: str, *, contrary: bool = False
) -> Clause:
    """Return a clause about what somebody does or does not do because of a state.

    The state None is bad weather. If `contrary` is true, the clause denies the effect: "I was tired, but I
    worked", "I was tired, but I did not sleep".
    """
    scene.used.add("you")
    done, not_done = (INDOORS, OUTDOORS) if state is None else _EFFECTS[state]
    positive = bool(done) and scene.chance(0.6)
    action = frame_action(scene, done if positive else not_done)
    negative = positive if contrary else not positive
    subject = subject or fitting_subject(scene, action)
    return make_clause(scene, action, subject, tense=tense, p_negative=float(negative), p_manner=0.0)


def state_and_effect(
    scene: Scene, conjunction: Word, *, tense: str, contrary: bool = False, effect_tense: str = ""
) -> tuple[Clause, Clause, list[Eojeol]]:
    """Return a state, its effect on the same person, and their topic: 나는 피곤해서 집에서 쉬었다."""
    subject = random_pronoun(scene)
    state = scene.pick(_STATES_WITH_EFFECT)
    while contrary and state.english == "happy":
        state = scene.pick(_STATES_WITH_EFFECT)
    first = Clause(subject, state, tense=tense)
    first.link(conjunction)
    repeated = repeated_subject(subject)
    return (
        first,
        effect_of(scene, state, repeated, effect_tense or tense, contrary=contrary),
        shared_topic(subject, repeated),
    )


def state_but(scene: Scene) -> Sentence:
    """He was sick, but he went to school."""
    comma, conjunction = words([",", "but"])
    tense = scene.pick(("present", "past"))
    first, second, topic = state_and_effect(scene, conjunction, tense=tense, contrary=True)
    korean = topic + first.korean("but", "") + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), comma, conjunction, *second.statement()], korean)


def state_so(scene: Scene) -> Sentence:
    """I was tired, so I went home."""
    comma, conjunction = words([",", "so"])
    first, second, topic = state_and_effect(scene, conjunction, tense=scene.pick(("present", "past")))
    korean = topic + first.korean("so", "") + second.korean(final_ending(scene), "")
    return Sentence([*first.statement(), comma, conjunction, *second.statement()], korean)


def because(scene: Scene) -> Sentence:
    """Because it rained, we did not play soccer."""
    conjunction, comma = words(["because", ","])
    tense = scene.pick(("present", "past"))
    if scene.chance(0.5):
        cause = weather_clause(scene, tense)
        cause.link(conjunction)
        effect = effect_of(scene, None, None, tense)
        korean = cause.korean("so") + effect.korean(final_ending(scene))
    else:
        cause, effect, topic = state_and_effect(scene, conjunction, tense=tense)
        korean = topic + cause.korean("so", "") + effect.korean(final_ending(scene), "")
    return Sentence([conjunction, *cause.statement(), comma, *effect.statement()], korean)


def it_rained_so(scene: Scene) -> Sentence:
    """It snowed yesterday, so I cleaned the house."""
    cause = weather_clause(scene, "past", p_time=0.6)
    effect = effect_of(scene, None, None, "past")
    comma, conjunction = words([",", "so"])
    cause.link(conjunction)
    korean = cause.korean("so") + effect.korean(final_ending(scene))
    return Sentence([*cause.statement(), comma, conjunction, *effect.statement()], korean)


def if_it_rains(scene: Scene) -> Sentence:
    """If it rains tomorrow, I will clean the house."""
    conjunction, comma = words(["if", ","])
    condition = weather_clause(scene, "present")
    if scene.chance(0.6):
        condition.complements = time_complement(scene, "future", NEXT_DAYS)
    condition.link(conjunction)
    result = effect_of(scene, None, None, "future")
    korean = condition.korean("if") + result.korean(final_ending(scene))
    return Sentence([conjunction, *condition.statement(), comma, *result.statement()], korean)


def if_state(scene: Scene) -> Sentence:
    """If I am tired, I will rest at home."""
    conjunction, comma = words(["if", ","])
    condition, result, topic = state_and_effect(scene, conjunction, tense="present", effect_tense="future")
    korean = topic + condition.korean("if", "") + result.korean(final_ending(scene), "")
    return Sentence([conjunction, *condition.statement(), comma, *result.statement()], korean)


NEXT_DAYS = frozenset({"day", "night", "weekday"})


def if_then(scene: Scene) -> Sentence:
    """If Minsu comes to Seoul, we will prepare dinner."""
    conjunction, comma = words(["if", ","])
    is_same_person = scene.chance(0.5)
    row = scene.pick(_CONSEQUENCES if is_same_person else _REWARDS)
    conditions, results = row
    condition_action, result_action = frame_action(scene, conditions), frame_action(scene, results)
    p_negative = float(not is_same_person and scene.chance(0.2))  # negate both clauses or neither
    if is_same_person:
        first_subject = random_pronoun(scene)
        second_subject = repeated_subject(first_subject)
    else:
        pool = _CHILDREN if row is _REWARDS[0] else _FAMILY
        first_subject = person_subject(
            scene, condition_action.verb.subjects, p_you=0.2, exclude_first_person=True, pool=pool
        )
        scene.used.add("you")  # nobody tells people what they will do
        second_subject = person_subject(scene, result_action.verb.subjects, pool=_FAMILY)
    condition = make_clause(
        scene, condition_action, first_subject, tense="present", p_negative=p_negative, p_manner=0.0
    )
    condition.link(conjunction)
    result = make_clause(
        scene, result_action, second_subject, tense="future", p_negative=p_negative, p_manner=0.0
    )
    english = [conjunction, *condition.statement(), comma, *result.statement()]
    if is_same_person:
        korean = shared_topic(first_subject, second_subject) + condition.korean("if", "")
        return Sentence(english, korean + result.korean(final_ending(scene), ""))
    return Sentence(english, condition.korean("if", "이") + result.korean(final_ending(scene)))


_FAMILY = nouns_of("kin")
_CHILDREN = nouns_of("=son =daughter =younger_brother =younger_sister =child =boy =girl")
_REWARDS = read_rows(action_tables.REWARDS)  # the first row is about children
_CONSEQUENCES = read_rows(action_tables.CONSEQUENCES)


def moment_and_lasting_actions(scene: Scene, count: int) -> tuple[Action, list[Action]]:
    """Return a momentary action and `count` actions that last meanwhile: coming home, sleeping.

    After an arrival, these are actions at the place of arrival.
    """
    scene.used.add("you")
    if scene.chance(0.6):
        goal = scene.pick_new(_ARRIVALS)
        verb = scene.pick(tuple(verb for verb in _ARRIVING_VERBS if goal in verb.places))
        return going_action(scene, verb, goal), [frame_action(scene, _LASTING_AT[goal]) for _ in range(count)]
    return frame_action(scene, _MOMENTS), [frame_action(scene, LASTING_ACTIONS) for _ in range(count)]


_ARRIVING_VERBS = tuple(
    verb for verb in MOTION if verb.human_subject and verb.forms.base in ("come", "arrive", "return")
)
_ARRIVALS = nouns_of("=home =school =office =company =library =park =cafe =restaurant =hotel =beach")
_AT_WORK = read_frames("work; write =report =email; drink =coffee =tea; use =computer; clean =office")
LASTING_ACTIONS = read_frames(action_tables.LASTING_ACTIONS)
_AT_HOTELS = read_frames("sleep; rest; eat =breakfast =dinner; wait; drink =coffee =tea =beer")
_LASTING_BY_PLACE = {"home": LASTING_ACTIONS, "office": _AT_WORK, "company": _AT_WORK, "hotel": _AT_HOTELS}
_LASTING_AT = {place: _LASTING_BY_PLACE.get(place.key) or ACTIONS_AT[place] for place in _ARRIVALS}
_MOMENTS = read_frames(action_tables.MOMENTS)


def when_then(scene: Scene) -> Sentence:
    """When I came home, my mother was making bread."""
    conjunction, comma = words(["when", ","])
    moment, (lasting,) = moment_and_lasting_actions(scene, 1)
    first = make_clause(scene, moment, tense="past", p_negative=0.0, p_manner=0.0)
    first.link(conjunction)
    subject = fitting_subject(scene, lasting)
    second = make_clause(
        scene, lasting, subject, tense="past", mode="progressive", p_negative=0.0, p_manner=0.0
    )
    korean = first.korean("when", "이") + second.korean(final_ending(scene))
    return Sentence([conjunction, *first.statement(), comma, *second.statement()], korean)


def before_clause(scene: Scene) -> Sentence:
    """Before I sleep, I drink milk."""
    return _before_or_after(scene, "before")


def after_clause(scene: Scene) -> Sentence:
    """After we ate dinner, we watched a movie."""
    return _before_or_after(scene, "after")


def _before_or_after(scene: Scene, word: str) -> Sentence:
    conjunction, comma = words([word, ","])
    earlier, later = actions_in_turn(scene, _TIMED_SEQUENCES)
    side_action, main_action = (later, earlier) if word == "before" else (earlier, later)
    subject = random_pronoun(scene)
    tense = _tense_of(scene, (earlier, later), ("present", "past"))
    first = make_clause(scene, side_action, subject, tense=tense, p_negative=0.0, p_manner=0.0)
    first.link(conjunction)
    repeated = repeated_subject(subject)
    second = make_clause(scene, main_action, repeated, tense=tense, p_negative=0.0, p_manner=0.0)
    korean = shared_topic(subject, repeated) + first.korean(word, "") + second.korean(final_ending(scene), "")
    return Sentence([conjunction, *first.statement(), comma, *second.statement()], korean)


def while_clause(scene: Scene) -> Sentence:
    """She listens to music while she cooks."""
    conjunction = Word("while")
    main_frames, side_frames = scene.pick(_WHILE)
    main_action, side_action = frame_action(scene, main_frames), frame_action(scene, side_frames)
    subject, tense = random_pronoun(scene), scene.pick(("present", "past"))
    main = make_clause(scene, main_action, subject, tense=tense, p_negative=0.0, p_manner=0.0)
    repeated = repeated_subject(subject)
    side = make_clause(scene, side_action, repeated, tense=tense, p_negative=0.0, p_manner=0.0)
    side.link(conjunction)
    korean = shared_topic(subject, repeated) + side.korean("while", "") + main.korean(final_ending(scene), "")
    return Sentence([*main.statement(), conjunction, *side.statement()], korean)


_WHILE = read_rows(action_tables.WHILE)


def going_in_order_to(scene: Scene) -> Sentence:
    """I went to the market to buy vegetables."""
    goal = scene.pick_new(_PURPOSEFUL_GOALS)
    action = frame_action(scene, _PURPOSES[goal])
    verb = scene.pick(tuple(verb for verb in _GO_COME if goal in verb.places))
    main = make_clause(scene, going_action(scene, verb, goal), p_negative=0.1)
    aim = Clause(repeated_subject(main.subject), action.verb, action.complements)
    to, base = Word("to"), Word(action.verb.forms.base)
    aim.roles["verb"] = [base, *aim.roles["verb"][1:]]
    aim.link(to)
    purpose = aim.korean_complements() + aim.korean_predicate("purpose")
    korean = [*main.subject.topic(), *purpose, *main.korean(final_ending(scene), "")]
    return Sentence([*main.statement(), to, base, *aim.main[1:], *aim.english_complements()], korean)


_PURPOSE_VERBS = human_verbs(
    "buy study meet watch learn eat drink take sing play draw sleep exercise swim rest"
)
_PURPOSES = {
    place: purposes
    for place, frames in ACTIONS_AT.items()
    if (purposes := tuple(frame for frame in frames if frame.verb in _PURPOSE_VERBS))
}
_PURPOSEFUL_GOALS = tuple(_PURPOSES)
