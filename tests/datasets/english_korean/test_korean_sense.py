"""Sentences make sense and their Korean is natural.

Each regular expression below finds a kind of sentence that an earlier version of the grammar generated, and
that is nonsense or unnatural.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import TYPE_CHECKING

import pytest

from jumok.datasets.english_korean import generate, nouns
from jumok.datasets.english_korean.lexicon import NOUNS, nouns_of
from jumok.datasets.english_korean.patterns.frames import read_frames
from jumok.datasets.english_korean.patterns.table import PATTERNS
from jumok.datasets.english_korean.scene import Scene

if TYPE_CHECKING:
    from jumok.types import Pair

pytestmark = pytest.mark.no_cover


@cache
def pairs() -> tuple[Pair, ...]:
    return tuple(generate("train", 20_000, seed=5))


WHEN = r"(?:yesterday|today|tomorrow|tonight|last|next|every|this morning|on \w+day|in the|at night)"
PRAISE = "clean|fresh|good|pretty|beautiful|cute|delicious|interesting|warm|bright|near|cheap|light|spacious"
STATES = "know|knew|like|love|hate|trust|miss|understand|remember"

START = "^(?:<polite> )?+"

NONSENSE = {
    "too with praise": rf"\btoo (?:{PRAISE})\b",
    "a time with living": rf"\blive in (?:the )?\w+ {WHEN}",
    "a time with a state": rf"^(?:<polite> )?(?:Next|Last|On|In|Tomorrow)[^,]*, .* (?:{STATES})\w* ",
    "a state in the future": rf"\bwill (?:not )?(?:{STATES})\b",
    "collect one thing": r"\b(?:collect|collects|collected|collecting) (?:a|an|the|this|that|my|his|"
    r"her|your|\w+'s) ",
    "only wear": r"\bonly (?:wears?|takes off)\b",
    "only with a definite object": r"\bonly (?:eats?|drinks?|sings?|watch|watches|bakes?) (?:the "
    r"(?!news)|this|that)",
    "an article before an instrument": r"\b(?:play|learn|practic)\w* (?:an?|\w+'s|my|this|that) "
    r"(?:\w+ )?(?:piano|guitar|violin)",
    "plural or described radios": r"\blisten\w* to (?:an?|my|the \w+|these|those) radios?\b|"
    r"televisions\b.*\bwatch",
    "a fixed trait that begins": r"\bbecomes? (?:a|an) \w+ (?:student|doctor|nurse|singer|writer|"
    r"farmer|chef|painter)",
    "get up with a frequency but no time of day": r"\b(?:always|often|sometimes|usually) gets? up\.",
    "a price or an owner of a thing being made": r"\b(?:bake[sd]?|ma[dk]es?|draws?|drew|cook(?:s|ed)?) "
    r"(?:that|this (?!morning)|my|\w+'s|a cheap|an expensive|the cheap|the expensive)\b",
    "a novel in a day": r"\bnovels? .*(?:an hour ago|today|tonight|this morning)",
    "building within a night, a day or a week": r"\bbuil[td]\w* .*(?:last night|yesterday|"
    r"tomorrow|today|an hour ago|week)",
    "adults who do homework": r"\b(?:professor|teacher|doctor|farmer|father|grandmother)s? (?:did|"
    r"does|finish\w+) \w*\s?\w*\s?homework",
    "somebody's medicine": r"'s medicine|\b(?:my|his|her) medicine",
    "an accident in the future": r"\bwill (?:lose|break|forget)\b",
    "predators that eat fruit": r"\b(?:tiger|lion|fox)s? (?:ate|eats?|is eating|was eating) .*(?:apple|"
    r"banana|orange|tomato|bread)",
    "late or early with a week, month or year": r"\b(?:late|early) (?:next|last) (?:week|month|year)",
    "a place for the wrong goods": r"\b(?:buy|buys|bought|sells?|sold|buying|selling) .*(?:bag|chair|"
    r"table|desk|bed|computer|"
    r"television|shirt|coat|skirt|dress|hat|piano|guitar|car|bicycle|milk|juice|meat|fish|phone|"
    r"clock)s? at the (?:bookstore|bakery)",
    "a polite statement that reads as a request": r"^<polite> You are (?:very |really |too )?\w+\.$",
    "unrelated clauses": r"^(?:<polite> )?(?:Before|After|If)\b.*\b(?:buil[dt]|collect|throw|threw|"
    r"push|pick|hug|use)",
    "waiting for a vehicle at a place without a stop": r"\bwait\w* for .*(?:bus|train|subway|taxi) "
    r"at (?:the (?!station)|school)",
    "sitting on furniture for a season or a year": r"\bsi?a?ts? on the \w+ (?:in spring|in winter|"
    r"next year|last year)",
    "a statement to people about how they feel": r"^(?:<polite> )?You (?:are|were) (?:\w+ )?(?:tired|hungry|"
    r"thirsty|sad|lonely|sick)\.",
    "a negated verb after but, with another subject": rf"{START}(?!(\w+) [^,]*, but (?i:\1) )[^,]*, but "
    r"[^,]* (?:do|does|did) not ",
    "a negated verb in the third clause": rf"{START}[^,]*, [^,]*, and [^,]* (?:do|does|did) not ",
    "an activity as a condition": rf"{START}If (?!it )[^,]*?\b(?:runs?|walks?|swims?|exercises?|drives?|"
    r"laughs?|dances?|plays? (?!the))\b[^,]*,",
    "a visit as a condition of sport": rf"{START}If [^,]*\bcomes? to [^,]*, [^,]* will (?:not )?(?:play|"
    r"walk|run|dance|sing|study|sleep|drink)\b",
    "an unexplained result": rf"{START}If (?!it |[^,]*\b(?:am|is|are|goe?s?|takes?|finish\w*|does|do|"
    r"turns? o\w+|sings?|plays? the)\b)[^,]*, [^,]* will (?:not )?(?:walk|run|sleep|dance)\b",
    "a request as a plan": rf"{START}Will you (?:turn|send|bring|wash|open|close|help|wait|clean|make|bake|"
    r"cook|draw|find|fix|use|carry|move (?!to)|pour|push|throw|catch|sing|finish|do|prepare|choose|borrow|"
    r"take (?:off|an? photo|the photo|medicine)|buy (?:an? |the )?(?:\w+ )?(?:bread|milk|apple|cake))\b",
    "today with the plain present": rf"{START}It (?:rains|snows)\b.* today",
    "one ticket of several people": rf"{START}(?:We|They|The (?:\w+ )?(?:\w+s|men|women|children)) "
    r"(?:did not |do not )?(?:have|had|need|needed) an? (?:\w+ )?(?:ticket|wallet|key|umbrella|hat|shirt|"
    r"coat|phone|ring)\b",
    "borrow or receive a thing with a possessor": r"\b(?:borrow|receiv)\w* (?:my|our|your|his|her|\w+'s) ",
    "a described friend that people have": r"\b(?:have|has|had) an? (?:tall|kind|smart|lazy|diligent) ",
    "a statement to people about what they will do": rf"{START}You will (?!(?:not )?(?:need|become|be)\b)",
    "soup of fruit": r"\bwash\w* (?:\S+ )?fruit\b.*\bsoup\b|\bsoup\b.*\bwash\w* (?:\S+ )?fruit\b",
    "a habit with this thing": rf"{START}(?:Before|After) \w+ \w+[^d, ] (?:this|that|these|those) [^,]*, \w+ "
    r"(?:rests?|sleeps?|walks?|cleans?|drinks?|eats?|studies|study)\b",
    "a sold thing that is described in the present": r"\bthat [^,]*\b(?:sold|lost|sent)(?: on \w+| "
    r"last \w+)? (?:is|are)\b",
    "wear instead of put on": rf"{START}(?:Before|After)\b.*\b(?:wear|wears|wore)\b",
    "going to speak a language": r"\b(?:going|decided) to speak\b",
    "do not trust my mother": rf"{START}Do not trust (?:my|his|our|\w+'s) ",
    "use an umbrella": r"\b(?:use[sd]?|using) (?:\S+ ){0,2}umbrellas?\b",
    "going to receive": r"\b(?:going|decided|wants?|wanted) to receive\b",
    "her as a recipient": r"\b(?:sen[dt]s?|sending|bring(?:s|ing)?|brought|show(?:s|ed|ing)?|gives?|gave|"
    r"giving) her \w+",
}

UNNATURAL = {
    "테니스를 하다": r"테니스를 (?:하|한|할|해|했|합)",
    "새로운 물건": r"새로운",
    "전화기": r"전화기",
    "어디에서 짓다, 심다": r"어디에서 [^?]*(?:을|를) (?:지으|지어|지었|짓|심)",
    "무엇을 방문하다": r"무엇을 방문",
    "언어를 묻는 무엇을 하다": r"무엇을 (?:하니|했니|할 거)",
    "바닷가에서 걷다": r"(?:공원|바닷가|정원|운동장)에서 (?:걷|걸)",
    "나라에서 여행하다": r"(?:한국|일본|미국|서울|부산)에서 (?:\S+ )?여행",
    "이해하지 않다": r"(?:이해|기억)하(?:시)?지 않",
    "찾지 않았다": r"(?:찾|받)(?:으시)?지 않았",
    "하시지 않다": r"(?:가|오|하|사|만나|공부하)시지 않",
    "여럿이 혼자": r"^(?:우리는|그들은|\S+들은) (?:\S+에 )?혼자 ",
    "뉴스가 좋다": r"뉴스[는가] (?:\S+ )?좋",
    "우리 셔츠": r"우리 (?:셔츠|치마|원피스|코트|바지|모자|안경|장갑|우산|지갑|가방)",
    "그는 그의": r"^그는 .*(?<!나는 )그의 |^그녀는 .*그녀의 ",
    "봄에 날씨가 좋다": r"(?:봄|겨울)에 (?:\S+에 )?(?:날씨가|비가|눈이) .*(?<!왔다)(?<!것이다)(?<!거예요)\.$",
    "저 키가 큰 남자": r"(?:^| )(?:이|저|그) (?:키가|힘이) (?:큰|작은|센)",
    "아주 키가 크다": r"(?:아주|정말) (?:키가|힘이) (?:크|커|컸|세|셌)",
    "소녀는 누구니": r"^(?:소녀|소년|아이|학생|의사|간호사|가수|작가|과학자|군인)들?[은는] 누구(?:니|예요)",
    "친구를 만나고": r"(?:친구|사촌|민수|지수|유나|미나|민호|준호|소라|지민)[을를] 만나고 (?!싶|있|계)",
    "이야기 두 개": r"이야기(?:가)? \S+ 개",
    "국수를 요리하다": r"(?:국수|달걀)(?:를|을|는|은|도|만)? (?:\S+ )?요리",
    "만나시러": r"(?:만나|하|사|보|쉬|배우|부르|찍으|치|켜|그리|타)시러",
    "교실은 밝아졌다": r"(?:교실|방|부엌|사무실|도서관|강|공원|식당|운동장|과일|채소|고기|생선|커피)[은는] "
    r"\S+(?:졌|질)",
    "여자는 어디에 사니": r"^(?:여자|남자)들?[은는] ",
    "카메라를 나르다": r"(?:카메라|가방)를? (?:\S+ )?(?:나르|나를|날랐|날라)",
}


@pytest.mark.parametrize("cause", NONSENSE)
def test_english_makes_sense(cause: str) -> None:
    assert not [pair.source for pair in pairs() if re.search(NONSENSE[cause], pair.source)]


@pytest.mark.parametrize("cause", UNNATURAL)
def test_korean_is_natural(cause: str) -> None:
    assert not [pair for pair in pairs() if re.search(UNNATURAL[cause], pair.target)]


TAUTOLOGY = (
    r"\b(tall|kind|smart|diligent|brave|strong|lazy) \w+ (?:is|are|was|were) "
    r"(?:(?:not|very|really|more) )?\1(?:e?r)?\b"
)
CONTRARY = r"\b(?:lazy|diligent) \w+ (?:is|are|was|were) (?:(?:not|very|really) )?(?:lazy|diligent)\b"


@pytest.mark.parametrize("pattern", ["person is adjective", "comparison"])
def test_a_trait_is_not_repeated_or_denied(pattern: str) -> None:
    random = Random(3).random
    english = [PATTERNS[pattern].build(Scene(random, False)).english() for _ in range(8_000)]
    assert not [text for text in english if re.search(f"{TAUTOLOGY}|{CONTRARY}", text)]


# --- comparisons --------------------

# Noun → its table. A radio is compared with devices, a house with places, which are in other tables.
TABLE_OF_NOUN = {
    row.split()[0].lstrip("~+=").partition("/")[0].replace("_", " ").lower(): name
    for name in ("PEOPLE", "ANIMALS", "FOOD", "CULTURE", "CLOTHES", "THINGS", "PLACES")
    for row in getattr(nouns, name).strip().splitlines()
} | {"radio": "THINGS", "house": "PLACES"}
KEY_OF_PLURAL = {" ".join(entry.plural): entry.key.lower() for entry in NOUNS}
SMALL_ANIMALS = {"mouse", "bird", "rabbit", "cat", "duck", "fox", "monkey"}
LARGE_ANIMALS = {"horse", "cow", "tiger", "lion", "bear"}


@cache
def comparisons() -> tuple[tuple[str, str, str], ...]:
    """Return many comparisons as (noun, comparative, noun)."""
    random = Random(3).random
    english = [PATTERNS["comparison"].build(Scene(random, False)).english()[:-1] for _ in range(4_000)]
    matches = [re.fullmatch(r"(.+) (?:is|are|was|were) (more \w+|\w+) than (.+)", text) for text in english]
    return tuple((_noun(match[1]), match[2], _noun(match[3])) for match in matches if match)


def _noun(phrase: str) -> str:
    words = phrase.lower().split()
    last = words[-1] if " ".join(words[-2:]) not in (*TABLE_OF_NOUN, *KEY_OF_PLURAL) else " ".join(words[-2:])
    return KEY_OF_PLURAL.get(last, last)


def test_only_things_of_one_kind_are_compared() -> None:
    assert len(comparisons()) == 4_000
    assert not [row for row in comparisons() if TABLE_OF_NOUN[row[0]] != TABLE_OF_NOUN[row[2]]]


def test_comparisons_of_size_strength_speed_and_length_are_true() -> None:
    for subject, comparative, other in comparisons():
        is_more = comparative in ("bigger", "stronger", "faster")
        small, large = (other, subject) if is_more else (subject, other)
        if is_more or comparative in ("smaller", "slower"):
            assert not (small in LARGE_ANIMALS and large in SMALL_ANIMALS), (subject, comparative, other)
        if comparative == "longer":
            assert (subject, other) not in {("letter", "novel"), ("email", "novel"), ("story", "novel")}


# --- the tables --------------------


def test_a_misspelt_noun_or_verb_of_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="unicorn"):
        nouns_of("=dog =unicorn")
    with pytest.raises(ValueError, match="fly =dog"):
        read_frames("eat meal; fly =dog")
