"""Statements with one action.

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    ALONE,
    COMPANION_RANK,
    HABITUAL_KINDS,
    KOREAN_COMPANY_RANK,
    KOREAN_MANNER_RANK,
    KOREAN_MEANS_RANK,
    KOREAN_OBJECT_RANK,
    KOREAN_PLACE_RANK,
    MANNER_RANK,
    OBJECT_RANK,
    PLACE_RANK,
    UNRANKED,
    Action,
    Clause,
    Complement,
    adverb_complement,
    companion_complement,
    fitting_times,
    giving_action,
    going_action,
    intransitive_action,
    make_clause,
    object_phrase,
    pick_tense,
    time_of_action,
    transitive_action,
)
from jumok.datasets.english_korean.hangul import attach
from jumok.datasets.english_korean.lexicon import (
    INTRANSITIVE,
    MANNERS,
    MOTION,
    TRANSITIVE,
    Noun,
    Verb,
    human_verbs,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    MEASURABLE_NOUNS,
    ONE_PERSON,
    NounPhrase,
    counted_phrase,
    indefinite_phrase,
    measured_phrase,
    person_subject,
    place_phrase,
    subject_phrase,
    thing_phrase,
)
from jumok.datasets.english_korean.patterns.frames import Frame, frame_action, frames_of, read_frames
from jumok.datasets.english_korean.patterns.linking import SIMILAR
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word


def intransitive_statement(scene: Scene) -> Sentence:
    """The girl laughs loudly."""
    return make_statement(
        scene, make_clause(scene, intransitive_action(scene), p_negative=0.2, p_indefinite=0.15)
    )


def intransitive_with_place(scene: Scene) -> Sentence:
    """Minsu swims in the sea."""
    verb = scene.pick(_INTRANSITIVE_WITH_PLACES)
    return make_statement(
        scene,
        make_clause(scene, intransitive_action(scene, verb), p_place=1.0, p_time=0.3, p_indefinite=0.15),
    )


def intransitive_with_time(scene: Scene) -> Sentence:
    """I will exercise tomorrow."""
    return make_statement(scene, make_clause(scene, intransitive_action(scene), p_time=1.0))


def transitive_statement(scene: Scene) -> Sentence:
    """She reads a book."""
    return make_statement(
        scene, make_clause(scene, transitive_action(scene), p_negative=0.2, p_indefinite=0.15)
    )


def transitive_with_time(scene: Scene) -> Sentence:
    """I bought a hat yesterday."""
    return make_statement(scene, make_clause(scene, transitive_action(scene), p_time=1.0))


def transitive_with_place(scene: Scene) -> Sentence:
    """We eat lunch at the restaurant."""
    return make_statement(
        scene,
        make_clause(scene, transitive_action(scene, scene.pick(_VERBS_WITH_PLACES)), p_place=1.0, p_time=0.3),
    )


def action_with_manner(scene: Scene) -> Sentence:
    """My father drives the car slowly."""
    entry, frames = scene.pick(_FRAMES_BY_MANNER)
    action = frame_action(scene, frames)
    verb = action.verb
    if entry is ALONE:
        scene.used.add(ONE_PERSON)
    subject = subject_phrase(scene, verb)
    complements = [] if verb.forms.base == "get" else action.complements
    action = Action(verb, [*complements, adverb_complement(scene, entry)], action.entry)
    return make_statement(scene, make_clause(scene, action, subject, p_negative=0.0, p_time=0.25))


def time_comes_first(scene: Scene) -> Sentence:
    """Yesterday, I met my friend at the park."""
    action = transitive_action(scene, scene.pick(_TIMED_VERBS))
    tense = pick_tense(scene, action.verb, ("past", "past", "future"))
    clause = make_clause(scene, action, tense=tense, p_place=0.3)
    (when,) = time_of_action(scene, action, tense)
    comma = Word(",")
    ending = "polite" if scene.polite else "statement"
    return Sentence([*when.english, comma, *clause.statement()], when.korean + clause.korean(ending))


def action_with_frequency(scene: Scene) -> Sentence:
    """I often drink coffee in the morning."""
    scene.used.add("you")
    verb = scene.pick(_REPEATED_TRANSITIVE if scene.chance(0.7) else _REPEATED_INTRANSITIVE)
    is_generic = not verb.is_repeatable or scene.chance(0.3)
    action = (
        transitive_action(scene, verb, generic=is_generic)
        if verb.objects
        else intransitive_action(scene, verb)
    )
    clause = make_clause(scene, action, tense="present", p_often=1.0, p_negative=0.0, p_place=0.25)
    return make_statement(scene, clause)


def action_with_never(scene: Scene) -> Sentence:
    """He never eats meat."""
    scene.used.add("you")
    verb, entries = scene.pick(_AVOIDED_ACTIONS)
    subject = subject_phrase(scene, verb)
    phrase = object_phrase(scene, verb, scene.pick_new(entries), generic=True)
    never = Word("never")
    # The English verb is affirmative; Korean negates it and adds 전혀.
    positive = Clause(subject, verb)
    negative = Clause(
        subject, verb, [Complement([], phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)], negative=True
    )
    negative.roles = {**positive.roles, "not": [never]}
    negative.adverb = Complement([], [Eojeol("전혀", (never,))], UNRANKED, KOREAN_MANNER_RANK)
    korean = negative.korean("polite" if scene.polite else "statement")
    return Sentence([*subject.english, never, *positive.main, *phrase.english], korean)


def somebody_goes(scene: Scene) -> Sentence:
    """I go to school every day."""
    return make_statement(
        scene, make_clause(scene, going_action(scene, scene.pick(MOTION)), p_time=0.5, p_manner=0.15)
    )


def somebody_goes_by_vehicle(scene: Scene) -> Sentence:
    """My mother goes to the market by bus."""
    verb = scene.pick(_GO_AND_COME)
    vehicles, places = scene.pick(_VEHICLES_AND_GOALS)
    entry = scene.pick_new(tuple(place for place in places if place in verb.places))
    scene.note_combination(verb, entry)
    goal = place_phrase(entry, "to")
    by, vehicle = Word("by"), scene.pick_new(vehicles)
    word = Word(vehicle.english[0])
    complements = [
        Complement(goal.english, goal.korean("에"), OBJECT_RANK, KOREAN_OBJECT_RANK),
        Complement(
            [by, word],
            [Eojeol(attach(vehicle.korean, "으로"), (word,), (by,))],
            COMPANION_RANK,
            KOREAN_MEANS_RANK,
        ),
    ]
    return make_statement(scene, make_clause(scene, Action(verb, complements, entry), p_time=0.25))


def somebody_goes_with_somebody(scene: Scene) -> Sentence:
    """He went to the park with Minsu."""
    action = going_action(scene, scene.pick(_GO_AND_COME))
    subject = person_subject(scene, action.verb.subjects)
    action = Action(action.verb, [*action.complements, companion_complement(scene)], action.entry)
    return make_statement(scene, make_clause(scene, action, subject, p_time=0.25))


def transitive_with_companion(scene: Scene) -> Sentence:
    """I played tennis with my younger sister."""
    action = frame_action(scene, _JOINT_ACTIONS)
    subject = person_subject(scene, action.verb.subjects)
    action = Action(action.verb, [*action.complements, companion_complement(scene)], action.entry)
    return make_statement(scene, make_clause(scene, action, subject, p_place=0.2, p_time=0.2))


def somebody_walks_from_to(scene: Scene) -> Sentence:
    """I walked from home to the station."""
    verb = scene.pick(_WALKING_VERBS)
    start, goal = scene.pick_new(_STARTS), scene.pick_new(_GOALS)
    departure, arrival = place_phrase(start, "from"), place_phrase(goal, "")
    to = Word("to")
    way = [
        Complement(departure.english, departure.korean("에서"), OBJECT_RANK, KOREAN_PLACE_RANK),
        Complement(
            [to, *arrival.english], arrival.korean("까지", (to,)), OBJECT_RANK + 1, KOREAN_PLACE_RANK + 1
        ),
    ]
    return make_statement(
        scene, make_clause(scene, Action(verb, way), person_subject(scene, verb.subjects), p_time=0.3)
    )


def somebody_gives(scene: Scene) -> Sentence:
    """I gave a flower to my mother."""
    return make_statement(scene, make_clause(scene, giving_action(scene), p_time=0.25))


def counted_objects(scene: Scene) -> Sentence:
    """Yuna bought three apples."""
    verb, entry = scene.pick(_VERBS_WITH_COUNTED_OBJECT)
    scene.note_combination(verb, entry)
    phrase = counted_phrase(scene, entry, 4 if verb.forms.base == "eat" else 10)
    complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    tense = pick_tense(scene, verb, ("past", "past", "future"))
    return make_statement(
        scene,
        make_clause(scene, Action(verb, [complement], entry), tense=tense, p_negative=0.0, p_time=0.25),
    )


def measured_objects(scene: Scene) -> Sentence:
    """I drank two cups of coffee."""
    verb, entry = scene.pick(_VERBS_WITH_MEASURED_OBJECT)
    scene.note_combination(verb, entry)
    phrase = measured_phrase(scene, entry)
    complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    tense = pick_tense(scene, verb, ("past", "past", "future"))
    return make_statement(
        scene,
        make_clause(scene, Action(verb, [complement], entry), tense=tense, p_negative=0.0, p_time=0.25),
    )


def transitive_with_tool(scene: Scene) -> Sentence:
    """I wrote a letter with a pencil."""
    verb, objects, tools = scene.pick(_VERBS_WITH_OBJECTS_AND_TOOLS)
    entry = scene.pick_new(objects)
    phrase = object_phrase(scene, verb, entry)
    tool = indefinite_phrase(scene, scene.pick_new(tools), p_adjective=0.2)
    lead = Word("with")
    tool_complement = Complement(
        [lead, *tool.english], tool.korean("으로", (lead,)), PLACE_RANK, KOREAN_MEANS_RANK
    )
    object_complement = Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    action = Action(verb, [object_complement, tool_complement], entry)
    return make_statement(scene, make_clause(scene, action, p_time=0.2))


def two_objects(scene: Scene) -> Sentence:
    """I bought bread and milk."""
    verb, entries = scene.pick(_VERBS_WITH_TWO_OBJECTS)
    first_entry = scene.pick_new(entries)
    second_entry = scene.pick_new(tuple(entry for entry in SIMILAR[first_entry] if entry in entries))
    first, second = _one_of_two(scene, verb, first_entry), _one_of_two(scene, verb, second_entry)
    conjunction = Word("and")
    both_objects = Complement(
        [*first.english, conjunction, *second.english],
        first.korean("과", (conjunction,)) + second.korean("을"),
        OBJECT_RANK,
        KOREAN_OBJECT_RANK,
    )
    action = Action(verb, [both_objects])
    return make_statement(scene, make_clause(scene, action, p_negative=0.0, p_time=0.2))


def _one_of_two(scene: Scene, verb: Verb, entry: Noun) -> NounPhrase:
    """Return one of two objects: "a hat", "milk", "the piano", "dogs"."""
    if verb.has_generic_object or verb.forms.base in ("study", "learn", "sell"):
        return object_phrase(scene, verb, entry, generic=True)
    scene.note_combination(verb, entry)
    return indefinite_phrase(scene, entry, p_adjective=0.0 if verb.is_creation else 0.15)


def somebody_also_does(scene: Scene) -> Sentence:
    """Minsu also likes cats."""
    action = transitive_action(scene)
    tense = pick_tense(scene, action.verb, ("present", "past") if action.verb.is_habitual else ("past",))
    clause = make_clause(scene, action, tense=tense, p_negative=0.0)
    also = Word("also")
    subject = clause.subject
    ending = "polite" if scene.polite else "statement"
    english = [*subject.english, also, *clause.main, *clause.english_complements()]
    korean = _also_subject(subject, also) + clause.korean(ending, "")
    return Sentence(english, korean)


def _also_subject(subject: NounPhrase, also: Word) -> list[Eojeol]:
    return subject.korean("께서도" if subject.honorific else "도", (also,))


def only_this_object(scene: Scene) -> Sentence:
    """I only drink water."""
    scene.used.add("you")
    verb, entries = scene.pick(_EXCLUSIVE_ACTIONS)
    subject = subject_phrase(scene, verb)
    phrase = object_phrase(scene, verb, scene.pick_new(entries), generic=True)
    only = Word("only")
    complement = Complement(phrase.english, phrase.korean("만", (only,)), OBJECT_RANK, KOREAN_OBJECT_RANK)
    adverb = Complement([only], [], UNRANKED, UNRANKED)
    return make_statement(scene, Clause(subject, verb, [complement], adverb=adverb))


def somebody_is_wearing(scene: Scene) -> Sentence:
    """The woman is wearing a red hat."""
    verb = scene.pick(_WEARING_VERBS)
    entry = scene.pick_new(verb.objects)
    phrase = thing_phrase(scene, entry, p_adjective=0.6, may_have_possessor=False)
    if entry.form == "count":
        scene.used.add(ONE_PERSON)
    subject = person_subject(scene, verb.subjects)
    action = Action(verb, [Complement(phrase.english, phrase.korean("을"), OBJECT_RANK, KOREAN_OBJECT_RANK)])
    tense = scene.pick(("present", "present", "past"))
    return make_statement(
        scene, make_clause(scene, action, subject, tense=tense, mode="progressive", p_negative=0.0)
    )


def two_people_do(scene: Scene) -> Sentence:
    """Minsu and Yuna play soccer together."""
    action = frame_action(scene, _JOINT_ACTIONS)
    first, second = scene.pick_new(_NAMES), scene.pick_new(_NAMES)
    first_word, conjunction, second_word, together = (
        Word(first.english[0]),
        Word("and"),
        Word(second.english[0]),
        Word("together"),
    )
    subject = NounPhrase([first_word, conjunction, second_word], second.korean, (second_word,))
    subject.before = [Eojeol(attach(first.korean, "과"), (first_word,), (conjunction,))]
    subject.agreement = "plural"
    jointly = Complement([together], [Eojeol("함께", (together,))], MANNER_RANK, KOREAN_COMPANY_RANK)
    return make_statement(
        scene,
        make_clause(
            scene, Action(action.verb, [*action.complements, jointly], action.entry), subject, p_time=0.2
        ),
    )


_VERBS_WITH_PLACES = tuple(verb for verb in TRANSITIVE if verb.places)
_INTRANSITIVE_WITH_PLACES = tuple(verb for verb in INTRANSITIVE if verb.places)
_TIMED_VERBS = tuple(
    verb
    for verb in TRANSITIVE
    if all(fitting_times(verb.times, tense, is_meal=True) for tense in ("past", "future"))
)
# Actions that are frequent, but have no regular times.
_FREQUENT_VERBS = frozenset({"laugh", "cry", "get", "buy"})
_REPEATED_TRANSITIVE, _REPEATED_INTRANSITIVE = (
    tuple(
        verb
        for verb in verbs
        if (verb.times & HABITUAL_KINDS and "year" not in verb.times) or verb.forms.base in _FREQUENT_VERBS
    )
    for verbs in (TRANSITIVE, INTRANSITIVE)
)
_FRAMES_BY_MANNER = tuple(
    (
        manner,
        tuple(
            Frame(verb, tuple(place for place in entries if "region" not in place.classes))
            if verb.forms.base in ("go", "come")  # "early" and "late" fit only near places
            else Frame(verb, entries)
            for verb, entries in frames_of((*TRANSITIVE, *INTRANSITIVE, *MOTION))
            if manner in verb.manners
        ),
    )
    for manner in MANNERS
)
# Actions for "He never eats meat", and actions for "I only drink water".
_AVOIDED_ACTIONS = read_frames(
    "eat food =breakfast; drink =beer =coffee =tea =milk =juice; watch; wear =skirt =dress =hat "
    "=coat =gloves =glasses =boots; clean; bake; cook; "
    "sing; ride; listen_to =music =radio =news; study; write =letter =email; use =knife =map "
    "=computer; "
    "drive; take/타다 =airplane =taxi =boat; play team =tennis; buy =meat =beer =chocolate =newspaper =fish"
)
_EXCLUSIVE_ACTIONS = read_frames(
    "eat food; drink; watch =movie =news; listen_to =music =news; sell food =book =car =flower =shoes =hat; "
    "buy food; write =novel =letter; teach; study; learn; play team =tennis; play instrument; like; "
    "take/타다 =bus =subway =train =taxi; draw animal =flower =tree; raise; trust name kin; bake"
)
_JOINT_ACTIONS = read_frames(
    "eat; drink; study; watch; listen_to; make homemade; cook; bake; clean; practice; sing; play "
    "sport; play instrument; buy; plant; "
    "prepare; learn; draw; wash; visit; take/타다; move/옮기다; carry"
)
_VERBS_WITH_TWO_OBJECTS = tuple(
    (verb, entries)
    for verb in human_verbs("eat drink buy sell study learn like hate make wash bring draw cook bake choose")
    if len(
        entries := tuple(
            entry for entry in verb.objects if any(other in verb.objects for other in SIMILAR.get(entry, ()))
        )
    )
    > 2
)
_WALKING_VERBS = human_verbs("walk run")
_WEARING_VERBS = human_verbs("wear")
_GO_AND_COME = tuple(verb for verb in MOTION if verb.forms.base in ("go", "come"))
_VEHICLES_AND_GOALS = (
    (
        nouns_of("=bus =train =taxi =subway =bicycle =car"),
        nouns_of("landmark =home =airport =company =office =beach"),
    ),
    (nouns_of("=airplane"), nouns_of("=Japan =Korea =America =Seoul")),
    (nouns_of("=boat"), nouns_of("=Japan =Busan")),
    (nouns_of("=bus =train =car"), nouns_of("=Seoul =Busan =city =beach =mountain")),
)
_GOALS = nouns_of("landmark")  # not home: "to home" is not English
_STARTS = (*nouns_of("=home"), *_GOALS)
_NAMES = nouns_of("name")
_VERBS_WITH_COUNTED_OBJECT = tuple(
    (verb, entry)
    for verb in human_verbs(
        "eat buy sell draw borrow read receive write make move break plant choose find wash carry "
        "bring bake raise send meet invite fix"
    )
    for entry in dict.fromkeys(verb.objects)
    if entry.form == "count" and not entry.classes & {"elder", "kin", "place"}
)
_VERBS_WITH_MEASURED_OBJECT = tuple(
    (verb, entry)
    for verb in human_verbs("eat drink buy sell pour")
    for entry in MEASURABLE_NOUNS
    if entry in verb.objects
)
_VERBS_WITH_OBJECTS_AND_TOOLS = tuple(
    (verb, tuple(entry for entry in nouns_of(objects) if entry in verb.objects), nouns_of(tools))
    for base, objects, tools in (
        ("write", "=letter", "=pencil"),
        ("write", "=email =report =novel =letter", "=computer"),
        ("draw", "drawn animal", "=pencil"),
        ("eat", "=rice =soup =cake", "=spoon"),
        ("take", "=photo", "=camera =phone"),
    )
    for verb in human_verbs(base)
    if set(nouns_of(objects)) & set(verb.objects)
)
