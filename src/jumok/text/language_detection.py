"""Which of a few languages a text is in, by its scripts and its most frequent function words.

The candidates are the languages of the loaded models, usually two or three: a small table is enough, and
nothing has to be downloaded.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from jumok.text.languages import LANGUAGES
from jumok.text.scripts import classify_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.text.scripts import Characters

__all__ = ["detect_languages"]

_FUNCTION_WORD_TABLE = """
af die en het is van nie wat dit ek 'n vir op sy met hy te word aan was ons
az və bu bir üçün ilə da də o ki ən çox olan
bg и на в се да не за от с че е са по като има ще
be і ў не на што як з да гэта ён яна па для
bs i u je se na da su za od s koji što kao nije biti
ca el la de que i en un una els les per amb és del no al se més
cs a se v na je že to s z do o i ve který jsem jako jsou není by
cy y yn a i ar o ei wedi mae mewn hon gan oedd
da og i at det er en til på som med af for de den ikke der jeg har var
de der die und das ist in zu den nicht ein eine mit sich auf für von dem es ich wir sie auch im
en the of and to a in is that it for was on with he as are i you they we she this not at have his
eo la de kaj en al mi estas ne kun por ke li sed oni vi
es el la de que y en un una los se por con las del no para su es lo al como más yo
et ja on ei see et ta kui oli ma oma mis ka
eu eta da du bat ez ere zuen dira egin izan hau
fi ja on ei se että hän oli ovat joka mutta kun niin minä olen ole
fr le la les de et un une des est en que qui dans pour pas je il elle ce sur ne avec au du nous vous
ga an na agus a i is ar tá ag le go do bhí sé
gl o a de que e en un unha os as por con non do da para é
hr i u je se na da su za od s koji što kao nije biti sam
hu a az és hogy nem egy is ez meg van de volt csak már
id yang dan di ini itu dengan untuk tidak dari dalam akan pada ke ada saya
is og að er í á sem til við um var ekki það ég hann
it il la di e che un una per non in con sono le del si è i gli da al come io
la et in est non ad cum ut ex qui quod sed
lt ir yra į kad iš su tai ne kaip jis bet buvo
lv un ir ar uz no ka par tas nav bet bija es
mk и на во се да не за од со што е се по како има
ms yang dan di ini itu dengan untuk tidak dari dalam akan pada ke ada saya ialah
mt il u ta li f' hija huwa minn għal
nb og i å det er en til på som med av for de den ikke jeg har var
nl de het een en van ik dat is niet in te op zijn met voor hij die maar aan er wij
nn og i å det er ein til på som med av for dei den ikkje eg har var
no og i å det er en til på som med av for de den ikke jeg har var
pl i w na z nie się do to że jest o jak po ale co za od przez jego są
pt o a de que e em um uma os as do da não para com por se é mais eu no na
ro și de în a la cu nu o un pe care este din că mai sunt pentru
ru и в не на что я с он как это по но из у за от же она они был мы вы
sk a sa v na je že to s z do o i ktorý som ako sú nie by
sl in je v na se da so za z ki ne kot bi ni sem
sq dhe të në e i një për me se është nga që ka
sr и у је се на да су за од с који што као није бити i u je se na da su za od
sv och i att det är en till på som med av för de den inte jag har var om ett
sw na ya wa kwa ni katika la za cha hii kuwa
tl ang ng sa na mga at ay ito si hindi ko siya
tr ve bir bu için ile da de o ne çok gibi daha ama var ben
uk і в не на що я з він як це по але та у за від до вона вони був
uz va bu bir uchun bilan ham u emas bo'lgan
vi và của là có không một cho được người trong với này đã các những tôi
fa و در به از که این است را با برای آن
ar في من على أن إلى هذا التي كان عن مع هو ما لا
ur کے میں کی ہے اور سے کا کو پر یہ نے
"""
_FUNCTION_WORDS = {
    code: frozenset(words)
    for code, *words in (line.split() for line in _FUNCTION_WORD_TABLE.strip().splitlines())
}
_RARE_LETTERS = {  # letters that few other languages use
    "cs": "ěřů", "da": "æø", "de": "ß", "es": "ñ¿¡", "et": "õ", "fr": "œêèç", "hu": "őű", "is": "þð",
    "lt": "ėįųū", "lv": "āēīņļķ", "nb": "æø", "nn": "æø", "no": "æø", "pl": "łąęśżźć", "pt": "ãõ",
    "ro": "ășț", "ru": "ыэё", "sk": "ľĺŕô", "sv": "åä", "tr": "ğış", "uk": "їєґ", "be": "ў",
    "vi": "ươđạảấầẩẫậắằẳẵặ", "fa": "پچژگ", "ur": "ٹڈڑےہ",
}  # fmt: skip
_MAX_CHARACTERS = 2_000  # more text adds no information


def detect_languages(text: str, candidates: Sequence[str]) -> list[tuple[str, float]]:
    """Return each candidate with a confidence from 0 to 100, best first; ties keep the given order."""
    text = text[:_MAX_CHARACTERS]
    characters = classify_characters([text])
    num_letters = int(characters.count_letters()[0])
    evidence = {code: _evidence(text, code, characters, num_letters) for code in candidates}
    best = max(evidence.values(), default=0.0)
    weights = {code: math.exp(4 * (value - best)) * (value > 0) for code, value in evidence.items()}
    total = sum(weights.values())
    shares = {code: weight / total if total else 0.0 for code, weight in weights.items()}
    certainty = min(1.0, best / 0.6)  # low if the text fits no candidate well
    return sorted(
        ((code, round(100 * share * certainty, 1)) for code, share in shares.items()),
        key=lambda code_and_confidence: -code_and_confidence[1],
    )


def _evidence(text: str, code: str, characters: Characters, num_letters: int) -> float:
    """Return 0 if no letter is in the language's scripts, 0.6 if all are, more with typical words."""
    language = LANGUAGES.get(code)
    if not num_letters:
        return 0.0
    if language is None:
        return 0.1
    in_scripts = int(characters.count_letters(language.scripts)[0]) / num_letters
    # Japanese text contains kana; text in Han characters only may be Chinese.
    in_main_script = int(characters.count_letters(language.scripts[:1])[0]) / num_letters
    lowered = text.lower()
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", lowered)
    function_words = sum(word in _FUNCTION_WORDS.get(code, ()) for word in words) / max(1, len(words))
    rare_letters = sum(lowered.count(letter) for letter in _RARE_LETTERS.get(code, "")) / num_letters
    return in_scripts * (0.7 + 0.3 * bool(in_main_script)) * (0.6 + 1.5 * function_words + 3 * rare_letters)
