"""The classic examples of attention, English to French: a small grammar with gold alignments.

    for pair in generate("train", 2_000):
        ...

Five patterns vary the sentences with which papers and tutorials explain attention. These sentences have words
that change places and words that agree with a distant word.

    I am a student.              Je suis étudiant.                  a word without a translation
    How was your day?            Comment s'est passée ta journée ?  how → comment; passée agrees with journée
    I am going to eat dinner.    Je vais dîner.                     eat dinner → dîner: two words become one
    The agreement on the European Economic Area was signed in August 1992.    Bahdanau et al. 2015, figure 3
    The law will never be perfect, but its application should be just.        Vaswani et al. 2017, figure 4
"""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from jumok.errors import DataError, suggest
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SPLITS = ("train", "valid", "test")
TESTS_PER_1000 = 50  # of 1,000 sentences, 50 are test sentences, and another 50 are for validation
MAX_FAILED_DRAWS = 20_000  # after this many draws in a row without a new pair, a DataError is raised


class French(NamedTuple):
    """A French word, with the indices of the English words of its sure and possible links."""

    word: str
    sure: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()


class Noun(NamedTuple):
    english: str
    french: str
    feminine: bool


class InflectedWord(NamedTuple):
    """A word with a masculine and a feminine form: an adjective, a participle or a profession."""

    english: str
    masculine: str
    feminine: str

    def agreeing_with(self, noun: Noun) -> str:
        return self.feminine if noun.feminine else self.masculine


class Person(NamedTuple):
    """A pronoun with its forms of to be, être and aller. Their fields have the names of the forms for "I"."""

    english: str
    am: str
    french: str
    suis: str
    vais: str
    feminine: bool = False
    plural: bool = False


PERSONS = (
    Person("I", "am", "Je", "suis", "vais"),
    Person("You", "are", "Tu", "es", "vas"),
    Person("He", "is", "Il", "est", "va"),
    Person("She", "is", "Elle", "est", "va", feminine=True),
    Person("We", "are", "Nous", "sommes", "allons", plural=True),
    Person("They", "are", "Ils", "sont", "vont", plural=True),
)
PROFESSIONS = (
    InflectedWord("student", "étudiant", "étudiante"),
    InflectedWord("teacher", "professeur", "professeure"),
    InflectedWord("lawyer", "avocat", "avocate"),
    InflectedWord("musician", "musicien", "musicienne"),
    InflectedWord("nurse", "infirmier", "infirmière"),
    InflectedWord("dancer", "danseur", "danseuse"),
    InflectedWord("engineer", "ingénieur", "ingénieure"),
    InflectedWord("writer", "écrivain", "écrivaine"),
    InflectedWord("baker", "boulanger", "boulangère"),
    InflectedWord("singer", "chanteur", "chanteuse"),
)
# The English form; the French forms before a masculine and before a feminine noun. All EVENTS start with a
# consonant. Before a vowel, feminine nouns take the masculine form, too: see `_rule_sentence`.
POSSESSIVES = (
    ("my", "mon", "ma"),
    ("your", "ton", "ta"),
    ("his", "son", "sa"),
    ("her", "son", "sa"),
    ("our", "notre", "notre"),
    ("their", "leur", "leur"),
)
EVENTS = (
    Noun("day", "journée", True),
    Noun("evening", "soirée", True),
    Noun("week", "semaine", True),
    Noun("meeting", "réunion", True),
    Noun("trip", "voyage", False),
    Noun("weekend", "week-end", False),
    Noun("concert", "concert", False),
    Noun("wedding", "mariage", False),
)
# What somebody is going to do: English, and French words whose indices count from the English verb, index 0.
PLANS: tuple[tuple[str, tuple[French, ...]], ...] = (
    ("eat dinner", (French("dîner", (0, 1)),)),
    ("go home", (French("rentrer", (0, 1)),)),
    ("read a book", (French("lire", (0,)), French("un", (1,)), French("livre", (2,)))),
    ("watch a film", (French("regarder", (0,)), French("un", (1,)), French("film", (2,)))),
    ("write a letter", (French("écrire", (0,)), French("une", (1,)), French("lettre", (2,)))),
    ("sing a song", (French("chanter", (0,)), French("une", (1,)), French("chanson", (2,)))),
    ("buy a car", (French("acheter", (0,)), French("une", (1,)), French("voiture", (2,)))),
    ("open the window", (French("ouvrir", (0,)), French("la", (1,)), French("fenêtre", (2,)))),
    ("close the door", (French("fermer", (0,)), French("la", (1,)), French("porte", (2,)))),
    ("learn French", (French("apprendre", (0,)), French("le", (), (1,)), French("français", (1,)))),
    ("call a friend", (French("appeler", (0,)), French("un", (1,)), French("ami", (2,)))),
)
TIMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ()),
    ("tomorrow", ("demain",)),
    ("today", ("aujourd'hui",)),
    ("tonight", ("ce", "soir")),
)
DOCUMENTS = (
    Noun("agreement", "accord", False),
    Noun("report", "rapport", False),
    Noun("treaty", "traité", False),
    Noun("law", "loi", True),
    Noun("declaration", "déclaration", True),
    Noun("decision", "décision", True),
)
REGIONS = (
    InflectedWord("European", "européen", "européenne"),
    InflectedWord("American", "américain", "américaine"),
    InflectedWord("African", "africain", "africaine"),
    InflectedWord("Canadian", "canadien", "canadienne"),
    InflectedWord("Italian", "italien", "italienne"),
    InflectedWord("Mexican", "mexicain", "mexicaine"),
)
DOMAINS = (
    InflectedWord("Economic", "économique", "économique"),
    InflectedWord("Social", "social", "sociale"),
    InflectedWord("Commercial", "commercial", "commerciale"),
    InflectedWord("Political", "politique", "politique"),
)
AREAS = (
    Noun("Area", "zone", True),
    Noun("Market", "marché", False),
    Noun("Union", "union", True),
    Noun("Council", "conseil", False),
    Noun("Project", "projet", False),
    Noun("Agency", "agence", True),
)
PARTICIPLES = (
    InflectedWord("signed", "signé", "signée"),
    InflectedWord("published", "publié", "publiée"),
    InflectedWord("adopted", "adopté", "adoptée"),
    InflectedWord("rejected", "rejeté", "rejetée"),
)
MONTHS = (
    ("January", "janvier"),
    ("February", "février"),
    ("March", "mars"),
    ("April", "avril"),
    ("May", "mai"),
    ("June", "juin"),
    ("July", "juillet"),
    ("August", "août"),
    ("September", "septembre"),
    ("October", "octobre"),
    ("November", "novembre"),
    ("December", "décembre"),
)
RULES = (
    Noun("law", "loi", True),
    Noun("rule", "règle", True),
    Noun("method", "méthode", True),
    Noun("plan", "plan", False),
    Noun("system", "système", False),
    Noun("text", "texte", False),
)
PARTS = (
    Noun("application", "application", True),
    Noun("goal", "objectif", False),
    Noun("result", "résultat", False),
    Noun("form", "forme", True),
    Noun("language", "langue", True),
)
QUALITIES = (
    InflectedWord("perfect", "parfait", "parfaite"),
    InflectedWord("just", "juste", "juste"),
    InflectedWord("clear", "clair", "claire"),
    InflectedWord("simple", "simple", "simple"),
    InflectedWord("complete", "complet", "complète"),
    InflectedWord("known", "connu", "connue"),
)


def _starts_with_vowel(word: str) -> bool:
    return word[0] in "aeiouéè"


def _with_article(noun: Noun, article_index: int, noun_index: int) -> list[French]:
    """Return the French definite article and noun, given the indices of both words in English."""
    if _starts_with_vowel(noun.french):
        return [French(f"l'{noun.french}", (noun_index,), (article_index,))]
    return [French("la" if noun.feminine else "le", (article_index,)), French(noun.french, (noun_index,))]


def _profession_sentence(random: Random) -> tuple[list[str], list[French]]:
    person, profession = random.choice(PERSONS), random.choice(PROFESSIONS)
    french = profession.feminine if person.feminine else profession.masculine
    negated = random.random() < 0.5
    verb = [French(person.suis, (1,))]
    if negated:
        elided = _starts_with_vowel(person.suis)
        verb = [French(f"n'{person.suis}", (1,), (2,))] if elided else [French("ne", (), (2,)), *verb]
        verb.append(French("pas", (2,)))
    english = [person.english, person.am, *(["not"] if negated else [])]
    next_index = len(english)
    if person.plural:
        return [*english, f"{profession.english}s"], [
            French(person.french, (0,)),
            *verb,
            French(f"{french}s", (next_index,)),
        ]
    article = "an" if _starts_with_vowel(profession.english) else "a"
    return [*english, article, profession.english], [
        French(person.french, (0,)),
        *verb,
        French(french, (next_index + 1,), (next_index,)),
    ]


def _event_question(random: Random) -> tuple[list[str], list[French]]:
    (owner, masculine, feminine), event = random.choice(POSSESSIVES), random.choice(EVENTS)
    return ["How", "was", owner, event.english], [
        French("Comment", (0,)),
        French("s'est", (1,)),
        French("passée" if event.feminine else "passé", (1,)),
        French(feminine if event.feminine else masculine, (2,)),
        French(event.french, (3,)),
    ]


def _plan_sentence(random: Random) -> tuple[list[str], list[French]]:
    person, (plan, french_plan) = random.choice(PERSONS), random.choice(PLANS)
    time, french_time = random.choice(TIMES)
    english = [person.english, person.am, "going", "to", *plan.split()]
    french = [French(person.french, (0,)), French(person.vais, (2,), (1, 3))]
    for word, sure, possible in french_plan:
        french.append(French(word, tuple(4 + i for i in sure), tuple(4 + i for i in possible)))
    french += [French(word, (len(english),)) for word in french_time]
    return [*english, *time.split()], french


def _document_sentence(random: Random) -> tuple[list[str], list[French]]:
    document, area = random.choice(DOCUMENTS), random.choice(AREAS)
    region, domain, participle = (random.choice(kind) for kind in (REGIONS, DOMAINS, PARTICIPLES))
    (month, french_month), year = random.choice(MONTHS), str(random.randint(1950, 2020))
    english = f"The {document.english} on the {region.english} {domain.english} {area.english} was"
    return [*english.split(), participle.english, "in", month, year], [
        *_with_article(document, article_index=0, noun_index=1),
        French("sur", (2,)),
        *_with_article(area, article_index=3, noun_index=6),
        French(domain.agreeing_with(area), (5,)),
        French(region.agreeing_with(area), (4,)),
        French("a", (7,)),
        French("été", (7,)),
        French(participle.agreeing_with(document), (8,)),
        French("en", (9,)),
        French(french_month, (10,)),
        French(year, (11,)),
    ]


def _rule_sentence(random: Random) -> tuple[list[str], list[French]]:
    rule, part = random.choice(RULES), random.choice(PARTS)
    first, second = random.sample(QUALITIES, 2)
    english = f"The {rule.english} will never be {first.english} , but its {part.english} should be"
    son = "sa" if part.feminine and not _starts_with_vowel(part.french) else "son"
    return [*english.split(), second.english], [
        *_with_article(rule, article_index=0, noun_index=1),
        French("ne", (), (3,)),
        French("sera", (2, 4)),
        French("jamais", (3,)),
        French(first.agreeing_with(rule), (5,)),
        French(",", (6,)),
        French("mais", (7,)),
        French(son, (8,)),
        French(part.french, (9,)),
        French("devrait", (10,)),
        French("être", (11,)),
        French(second.agreeing_with(part), (12,)),
    ]


# Function that builds a sentence, its relative frequency, and the punctuation mark at the end.
PATTERNS: tuple[tuple[Callable[[Random], tuple[list[str], list[French]]], int, str], ...] = (
    (_profession_sentence, 2, "."),
    (_event_question, 1, "?"),
    (_plan_sentence, 3, "."),
    (_document_sentence, 5, "."),
    (_rule_sentence, 4, "."),
)


def generate(split: str, count: int, *, seed: int = 1) -> Iterator[Pair]:
    """Yield `count` distinct pairs of a split. The pairs depend only on the split and the seed.

    A smaller `count` gives the first pairs of the same sequence. If no new pair is found in MAX_FAILED_DRAWS
    draws, a DataError is raised after the last pair.
    """
    if split not in SPLITS:
        raise DataError(
            f'There is no split "{split}"; there are {", ".join(SPLITS)}.{suggest(split, SPLITS)}'
        )
    return _pairs(split, count, seed)


def _pairs(split: str, count: int, seed: int) -> Iterator[Pair]:
    random = Random(f"{split} {seed}")
    builders, cumulative = [build for build, _, _ in PATTERNS], list(accumulate(row[1] for row in PATTERNS))
    ends = {build: end for build, _, end in PATTERNS}
    sources: set[str] = set()
    failed_draws = 0
    while len(sources) < count:
        if failed_draws == MAX_FAILED_DRAWS:
            raise DataError(
                f"The grammar has no more pairs for the split {split} after {len(sources):,} distinct ones. "
                f"Received: count {count:,}. Use fewer."
            )
        failed_draws += 1
        build = random.choices(builders, cum_weights=cumulative)[0]
        pair = _pair(*build(random), ends[build])
        if pair.source not in sources and _split_of(pair.source) == split:
            sources.add(pair.source)
            failed_draws = 0
            yield pair


def _split_of(english: str) -> str:
    bucket = crc32(english.encode()) % 1000
    if bucket < TESTS_PER_1000:
        return "test"
    return "valid" if bucket < 2 * TESTS_PER_1000 else "train"


def _pair(english: Sequence[str], french: Sequence[French], end: str) -> Pair:
    words = [*french, French(end, (len(english),))]
    sure = frozenset((i, j) for j, word in enumerate(words) for i in word.sure)
    possible = frozenset((i, j) for j, word in enumerate(words) for i in word.possible)
    target = " ".join(word.word for word in french).replace(" ,", ",")
    target = target[0].upper() + target[1:] + (" ?" if end == "?" else end)
    return Pair(" ".join(english).replace(" ,", ",") + end, target, Alignment(sure, possible))
