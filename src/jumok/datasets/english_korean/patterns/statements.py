"""Simple statements about what somebody does."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import (
    COMPANION,
    MANNER,
    OBJECT,
    PLACE,
    Action,
    Clause,
    Complement,
    act,
    companion,
    giving,
    going,
    how,
    intransitive,
    object_of,
    time_for,
    transitive,
)
from jumok.corpus.english_korean.hangul import attach
from jumok.corpus.english_korean.lexicon import (
    INTRANSITIVE,
    MANNERS,
    MOTION,
    TRANSITIVE,
    human_verbs,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import (
    MEASURABLE,
    NounPhrase,
    counted,
    indefinite,
    measured,
    place_phrase,
    someone,
    subject,
    thing,
)
from jumok.corpus.english_korean.patterns.registry import pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word


@pattern(2)
def somebody_does(scene: Scene) -> Sentence:
    """The girl laughs loudly."""
    return state(scene, act(scene, intransitive(scene), negative=0.2, indefinite=0.15))


@pattern(2)
def somebody_does_somewhere(scene: Scene) -> Sentence:
    """Minsu swims in the sea."""
    verb = scene.pick(_PLACED_INTRANSITIVE)
    return state(scene, act(scene, intransitive(scene, verb), place=1.0, time=0.3, indefinite=0.15))


@pattern(1.5)
def somebody_does_sometime(scene: Scene) -> Sentence:
    """I will exercise tomorrow."""
    return state(scene, act(scene, intransitive(scene), time=1.0))


@pattern(6)
def something_is_done(scene: Scene) -> Sentence:
    """She reads a book."""
    return state(scene, act(scene, transitive(scene), negative=0.2, indefinite=0.15))


@pattern(3)
def something_is_done_sometime(scene: Scene) -> Sentence:
    """I bought a hat yesterday."""
    return state(scene, act(scene, transitive(scene), time=1.0))


@pattern(3)
def something_is_done_somewhere(scene: Scene) -> Sentence:
    """We eat lunch at the restaurant."""
    return state(scene, act(scene, transitive(scene, scene.pick(_PLACED)), place=1.0, time=0.3))


@pattern(2)
def something_is_done_somehow(scene: Scene) -> Sentence:
    """My father drives the car slowly."""
    entry, verbs = scene.pick(_BY_MANNER)
    verb = scene.pick(verbs)
    if verb.objects:
        action = transitive(scene, verb)
    else:
        action = going(scene, verb) if verb.joint[0] else intransitive(scene, verb)
    somehow = how(entry)
    return state(scene, act(scene, Action(verb, [*action.complements, somehow]), negative=0.0, time=0.25))


@pattern(1.5)
def time_comes_first(scene: Scene) -> Sentence:
    """Yesterday, I met my friend at the park."""
    tense = scene.pick(("past", "future"))
    clause = act(scene, transitive(scene), tense=tense, place=0.3)
    when = time_for(scene, tense)
    comma = Word(",")
    ending = "polite" if scene.polite else "statement"
    return Sentence([*when.english, comma, *clause.statement()], when.korean + clause.korean(ending))


@pattern(2)
def something_is_often_done(scene: Scene) -> Sentence:
    """I often drink coffee in the morning."""
    action = transitive(scene) if scene.chance(0.7) else intransitive(scene)
    clause = act(scene, action, tense="present", often=1.0, negative=0.0, place=0.25)
    return state(scene, clause)


@pattern(1)
def something_is_never_done(scene: Scene) -> Sentence:
    """He never eats meat."""
    verb = scene.pick(_HABITUAL)
    doer = subject(scene, verb)
    phrase = object_of(scene, verb, generic=True)
    never = Word("never")
    # English stays affirmative, Korean negates the verb and says 전혀.
    positive = Clause(doer, verb)
    negative = Clause(doer, verb, [Complement([], phrase.korean("을"), OBJECT, 60)], negative=True)
    negative.roles = {**positive.roles, "not": [never]}
    negative.adverb = Complement([], [Eojeol("전혀", (never,))], 0, 70)
    korean = negative.korean("polite" if scene.polite else "statement")
    return Sentence([*doer.english, never, *positive.main, *phrase.english], korean)


@pattern(3)
def somebody_goes(scene: Scene) -> Sentence:
    """I go to school every day."""
    return state(scene, act(scene, going(scene, scene.pick(MOTION)), time=0.5, manners=0.15))


@pattern(1.5)
def somebody_goes_by_vehicle(scene: Scene) -> Sentence:
    """My mother goes to the market by bus."""
    verb = scene.pick(_TRAVELS)
    vehicles, places = scene.pick(_JOURNEYS)
    entry = scene.pick_new(places)
    scene.combine(verb, entry)
    goal = place_phrase(entry, "to")
    by, vehicle = Word("by"), scene.pick_new(vehicles)
    word = Word(vehicle.english[0])
    complements = [
        Complement(goal.english, goal.korean("에"), OBJECT, 60),
        Complement([by, word], [Eojeol(attach(vehicle.korean, "으로"), (word,), (by,))], COMPANION, 50),
    ]
    return state(scene, act(scene, Action(verb, complements), time=0.25))


@pattern(1.5)
def somebody_goes_with_somebody(scene: Scene) -> Sentence:
    """He went to the park with Minsu."""
    action = going(scene, scene.pick(_TRAVELS))
    doer = someone(scene, action.verb.subjects)
    action = Action(action.verb, [*action.complements, companion(scene)])
    return state(scene, act(scene, action, doer, time=0.25))


@pattern(1.5)
def something_is_done_with_somebody(scene: Scene) -> Sentence:
    """I played tennis with my younger sister."""
    action = transitive(scene, scene.pick(_SHARED))
    doer = someone(scene, action.verb.subjects)
    action = Action(action.verb, [*action.complements, companion(scene)])
    return state(scene, act(scene, action, doer, place=0.2, time=0.2))


@pattern(1)
def somebody_walks_from_to(scene: Scene) -> Sentence:
    """I walked from home to the station."""
    verb = scene.pick(_COVERING)
    start, goal = scene.pick_new(_ENDS), scene.pick_new(_ENDS[1:])
    departure, arrival = place_phrase(start, "from"), place_phrase(goal, "")
    to = Word("to")
    way = [
        Complement(departure.english, departure.korean("에서"), OBJECT, 30),
        Complement([to, *arrival.english], arrival.korean("까지", (to,)), OBJECT + 1, 31),
    ]
    return state(scene, act(scene, Action(verb, way), someone(scene, verb.subjects), time=0.3))


@pattern(2)
def something_is_given(scene: Scene) -> Sentence:
    """I gave a flower to my mother."""
    return state(scene, act(scene, giving(scene), time=0.25))


@pattern(2.5)
def things_are_counted(scene: Scene) -> Sentence:
    """Yuna bought three apples."""
    verb, entry = scene.pick(_COUNTED)
    scene.combine(verb, entry)
    phrase = counted(scene, entry)
    action = Action(verb, [Complement(phrase.english, phrase.korean("을"), OBJECT, 60)])
    return state(scene, act(scene, action, tense=scene.pick(("past", "future")), negative=0.0, time=0.25))


@pattern(1.5)
def things_are_measured(scene: Scene) -> Sentence:
    """I drank two cups of coffee."""
    verb, entry = scene.pick(_MEASURED)
    scene.combine(verb, entry)
    phrase = measured(scene, entry)
    action = Action(verb, [Complement(phrase.english, phrase.korean("을"), OBJECT, 60)])
    return state(scene, act(scene, action, tense=scene.pick(("past", "future")), negative=0.0, time=0.25))


@pattern(1)
def something_is_done_with_a_tool(scene: Scene) -> Sentence:
    """I wrote a letter with a pencil."""
    verb, objects, tools = scene.pick(_TOOLS)
    phrase = object_of(scene, verb, scene.pick_new(objects))
    tool = indefinite(scene, scene.pick_new(tools), adjective=0.2)
    lead = Word("with")
    using = Complement([lead, *tool.english], tool.korean("으로", (lead,)), PLACE, 50)
    what = Complement(phrase.english, phrase.korean("을"), OBJECT, 60)
    return state(scene, act(scene, Action(verb, [what, using]), time=0.2))


@pattern(1.5)
def two_things_together(scene: Scene) -> Sentence:
    """I bought bread and milk."""
    verb = scene.pick(_JOINING)
    first, second = object_of(scene, verb), object_of(scene, verb)
    joining = Word("and")
    both = Complement(
        [*first.english, joining, *second.english],
        first.korean("과", (joining,)) + second.korean("을"),
        OBJECT,
        60,
    )
    return state(scene, act(scene, Action(verb, [both]), place=0.2, time=0.2))


@pattern(1)
def somebody_also_does(scene: Scene) -> Sentence:
    """Minsu also likes cats."""
    clause = act(scene, transitive(scene), tense=scene.pick(("present", "past")), negative=0.0)
    also = Word("also")
    doer = clause.subject
    ending = "polite" if scene.polite else "statement"
    english = [*doer.english, also, *clause.main, *clause.after()]
    korean = _respectful_too(doer, also) + clause.korean(ending, "")
    return Sentence(english, korean)


def _respectful_too(doer: NounPhrase, also: Word) -> list[Eojeol]:
    return doer.korean("께서도" if doer.respected else "도", (also,))


@pattern(1)
def only_this_is_done(scene: Scene) -> Sentence:
    """I only drink water."""
    verb = scene.pick(_HABITUAL)
    doer = subject(scene, verb)
    phrase = object_of(scene, verb, generic=scene.chance(0.6))
    only = Word("only")
    complement = Complement(phrase.english, phrase.korean("만", (only,)), OBJECT, 60)
    adverb = Complement([only], [], 0, 5)
    return state(scene, Clause(doer, verb, [complement], adverb=adverb))


@pattern(1.5)
def somebody_is_wearing(scene: Scene) -> Sentence:
    """The woman is wearing a red hat."""
    verb = scene.pick(_WEARING)
    doer = someone(scene, verb.subjects)
    phrase = thing(scene, scene.pick_new(verb.objects), adjective=0.6, owned_by_others=False)
    action = Action(verb, [Complement(phrase.english, phrase.korean("을"), OBJECT, 60)])
    tense = scene.pick(("present", "present", "past"))
    return state(scene, act(scene, action, doer, tense=tense, mode="progressive"))


@pattern(1)
def two_people_do(scene: Scene) -> Sentence:
    """Minsu and Yuna play soccer together."""
    action = transitive(scene, scene.pick(_SHARED))
    first, second = scene.pick_new(_NAMES), scene.pick_new(_NAMES)
    left, joining, right, together = (
        Word(first.english[0]),
        Word("and"),
        Word(second.english[0]),
        Word("together"),
    )
    doer = NounPhrase([left, joining, right], second.korean, (right,))
    doer.before = [Eojeol(first.korean + "와", (left,), (joining,))]
    doer.agreement = "plural"
    joint = Complement([together], [Eojeol("함께", (together,))], MANNER, 15)
    return state(scene, act(scene, Action(action.verb, [*action.complements, joint]), doer, time=0.2))


_PLACED = tuple(verb for verb in TRANSITIVE if verb.places)
_PLACED_INTRANSITIVE = tuple(verb for verb in INTRANSITIVE if verb.places)
_BY_MANNER = tuple(
    (entry, tuple(verb for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION) if entry in verb.manners))
    for entry in MANNERS
)
_HABITUAL = human_verbs("eat drink watch wear clean bake sell write cook sing ride")
_SHARED = human_verbs("eat drink study watch listen make cook clean practice sing play")
_JOINING = tuple(
    verb
    for verb in human_verbs("eat drink buy sell study learn like hate make wash bring draw")
    if verb.variety > 4
)
_COVERING = human_verbs("walk run")
_WEARING = human_verbs("wear")
_TRAVELS = tuple(verb for verb in MOTION if verb.forms.base in ("go", "come"))
_JOURNEYS = (
    (
        nouns_of("=bus =train =taxi =subway =bicycle =car"),
        nouns_of("landmark =home =airport =company =office =beach"),
    ),
    (nouns_of("=airplane =boat"), nouns_of("=Japan =Korea =America =Busan")),
    (nouns_of("=bus =train =car"), nouns_of("=Seoul =Busan =city =beach =mountain")),
)
_ENDS = (*nouns_of("=home"), *nouns_of("landmark"))  # "to home" is no English
_NAMES = nouns_of("name")
_COUNTED = tuple(
    (verb, entry)
    for verb in human_verbs(
        "eat buy sell draw borrow read receive write make move break collect plant choose find wash carry "
        "bring bake raise send use meet invite fix lose"
    )
    for entry in dict.fromkeys(verb.objects)
    if entry.form == "count" and not entry.classes & {"elder", "kin", "place"}
)
_MEASURED = tuple(
    (verb, entry)
    for verb in human_verbs("eat drink buy sell pour")
    for entry in MEASURABLE
    if entry in verb.objects
)
_TOOLS = tuple(
    (verb, tuple(entry for entry in nouns_of(objects) if entry in verb.objects), nouns_of(tools))
    for base, objects, tools in (
        ("write", "writing", "=pencil =computer"),
        ("draw", "drawn animal", "=pencil"),
        ("eat", "=rice =soup =cake", "=spoon"),
        ("take", "=photo", "=camera =phone"),
    )
    for verb in human_verbs(base)
    if set(nouns_of(objects)) & set(verb.objects)
)
