"""Languages: codes, English names and scripts.

An unknown language is "" everywhere. Steps that depend on the language, such as the script check, are then
skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jumok.errors import DataError, suggest


@dataclass(frozen=True, slots=True)
class Language:
    """A language with its ISO 639-1 code (`ko`), ISO 639-3 code (`kor`), English name and scripts."""

    code: str
    long_code: str
    name: str
    scripts: tuple[str, ...]  # the most common one first


_TABLE = """
af afr Afrikaans Latin
am amh Amharic Ethiopic
ar ara Arabic Arabic
as asm Assamese Bengali
az aze Azerbaijani Latin Cyrillic
be bel Belarusian Cyrillic
bg bul Bulgarian Cyrillic
bn ben Bengali Bengali
bo bod Tibetan Tibetan
br bre Breton Latin
bs bos Bosnian Latin Cyrillic
ca cat Catalan Latin
cs ces Czech Latin
cy cym Welsh Latin
da dan Danish Latin
de deu German Latin
el ell Greek Greek
en eng English Latin
eo epo Esperanto Latin
es spa Spanish Latin
et est Estonian Latin
eu eus Basque Latin
fa fas Persian Arabic
fi fin Finnish Latin
fo fao Faroese Latin
fr fra French Latin
fy fry Frisian Latin
ga gle Irish Latin
gd gla Gaelic Latin
gl glg Galician Latin
gu guj Gujarati Gujarati
ha hau Hausa Latin
he heb Hebrew Hebrew
hi hin Hindi Devanagari
hr hrv Croatian Latin
ht hat Haitian Latin
hu hun Hungarian Latin
hy hye Armenian Armenian
id ind Indonesian Latin
ig ibo Igbo Latin
is isl Icelandic Latin
it ita Italian Latin
ja jpn Japanese Kana Han
jv jav Javanese Latin
ka kat Georgian Georgian
kk kaz Kazakh Cyrillic Latin
km khm Khmer Khmer
kn kan Kannada Kannada
ko kor Korean Hangul Han
ku kur Kurdish Latin Arabic
ky kir Kyrgyz Cyrillic
la lat Latin Latin
lb ltz Luxembourgish Latin
lo lao Lao Lao
lt lit Lithuanian Latin
lv lav Latvian Latin
mg mlg Malagasy Latin
mi mri Maori Latin
mk mkd Macedonian Cyrillic
ml mal Malayalam Malayalam
mn mon Mongolian Cyrillic Mongolian
mr mar Marathi Devanagari
ms msa Malay Latin
mt mlt Maltese Latin
my mya Burmese Myanmar
nb nob Bokmål Latin
ne nep Nepali Devanagari
nl nld Dutch Latin
nn nno Nynorsk Latin
no nor Norwegian Latin
oc oci Occitan Latin
or ori Odia Odia
pa pan Punjabi Gurmukhi Arabic
pl pol Polish Latin
ps pus Pashto Arabic
pt por Portuguese Latin
ro ron Romanian Latin
ru rus Russian Cyrillic
sd snd Sindhi Arabic Devanagari
si sin Sinhala Sinhala
sk slk Slovak Latin
sl slv Slovenian Latin
so som Somali Latin
sq sqi Albanian Latin
sr srp Serbian Cyrillic Latin
su sun Sundanese Latin
sv swe Swedish Latin
sw swa Swahili Latin
ta tam Tamil Tamil
te tel Telugu Telugu
tg tgk Tajik Cyrillic
th tha Thai Thai
tk tuk Turkmen Latin
tl tgl Tagalog Latin
tr tur Turkish Latin
tt tat Tatar Cyrillic
ug uig Uyghur Arabic
uk ukr Ukrainian Cyrillic
ur urd Urdu Arabic
uz uzb Uzbek Latin Cyrillic
vi vie Vietnamese Latin
xh xho Xhosa Latin
yi yid Yiddish Hebrew
yo yor Yoruba Latin
zh zho Chinese Han
zu zul Zulu Latin
"""


def _read_table() -> dict[str, Language]:
    rows = (line.split() for line in _TABLE.strip().splitlines())
    return {row[0]: Language(row[0], row[1], row[2], tuple(row[3:])) for row in rows}


LANGUAGES: dict[str, Language] = _read_table()
_BY_LONG_CODE = {language.long_code: language for language in LANGUAGES.values()}
_BY_LONG_CODE["cmn"] = LANGUAGES["zh"]  # Mandarin, as other toolkits name Chinese
_BY_NAME = {language.name.casefold(): language for language in LANGUAGES.values()}


def find_language(word: str) -> Language | None:
    """Return the language with this code or name, or None. Examples: `ko`, `kor`, `Korean`, `ko-KR`, `ko_KR`.

    Codes must be in lower case, because "It" and "No" are usually words at the start of a sentence, whereas
    `it` and `no` are usually headers of columns.
    """
    base = word.replace("_", "-").partition("-")[0]
    return LANGUAGES.get(base) or _BY_LONG_CODE.get(base) or _BY_NAME.get(word.casefold())


_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})*", re.ASCII)


def looks_like_language(word: str) -> bool:
    """Return whether a word is a known language, or has the form of a code, such as `hsb` or `zh_Hant_TW`.

    Short words in lower case, such as `the`, have this form too.
    """
    return find_language(word) is not None or _CODE.fullmatch(word) is not None


def language_code(word: str) -> str:
    """Return the code of the language that has this code or name, in lower or upper case.

    An unknown language raises a DataError.
    """
    language = find_language(word.strip()) or find_language(word.strip().lower())
    if language is None:
        known = [*LANGUAGES, *_BY_LONG_CODE, *(language.name for language in LANGUAGES.values())]
        raise DataError(
            f"Unknown language {word!r}.{suggest(word, known)} "
            f"Use a code such as `en` or `ko`; jumok knows {len(LANGUAGES)} languages."
        )
    return language.code


def language_name(code: str) -> str:
    """Return the English name of a language, or the code itself if it is unknown."""
    language = LANGUAGES.get(code)
    return language.name if language else code
