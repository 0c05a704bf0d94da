"""The strings of the server's pages in English and Korean.

The server inserts the strings of one language into a page. The script of the page can change the language.
In the page, `data-string` names the string that is the text of an element, and `data-label` names the string
that is its label (`aria-label`).
"""

from __future__ import annotations

import re

from jumok.server.api.attention import NO_SINGLE_MODEL
from jumok.server.api.parameters import NOT_RECOGNISED
from jumok.text.languages import language_name

__all__ = ["ERROR_MESSAGES", "STRINGS", "localized_language_name", "negotiate_language"]

STRINGS = {
    "en": {
        "skip": "Skip to the text",
        "translate": "Translate",
        "clear": "Clear",
        "copy": "Copy",
        "copied": "Copied",
        "see": "Open the attention page",
        "back": "← Back to the translation",
        "swap": "Swap languages",
        "no-swap": "No model translates in the other direction",
        "from": "From",
        "to": "To",
        "text": "Text",
        "translation": "Translation",
        "tags": "Style",
        "tag-polite": "Polite",
        "tag-formal": "Formal",
        "tag-informal": "Informal",
        "tint": "Tint words by probability",
        "tint-legend": "Tint: raw probability that the model gives the word. It is no measure of quality.",
        "probability": "raw probability {percent}",
        "unknown-probability": "probability not computed",
        "linked": "aligned with: {words}",
        "working": "Searching …",
        "close": "Close",
        "choose-candidate": "Choose a word, and the rest is rewritten.",
        "no-candidates": "The model has no other word here.",
        "no-candidates-through": "Through a pivot language there are no other words to choose.",
        "this-sentence": "This sentence",
        "sentence-number": "Sentence {number} of {count}",
        "previous": "Previous sentence",
        "next": "Next sentence",
        "chosen": "You chose this translation.",
        "own": "Back to the model's own",
        "alternatives": "Other translations",
        "no-alternatives": "The search has found no other translation.",
        "attention": "Attention",
        "attention-caption": "Rows: words of the translation. Columns: words of the text.",
        "attention-note": "How much the model attends to each word of the text when it writes a word, "
        "in the heads that alignments are read from.",
        "no-attention": "This model has no attention to show.",
        "choose-file": "Choose a file",
        "drop": "or drop one here. The layout stays as it is.",
        "formats": "Formats:",
        "file-working": "Translating …",
        "file-progress": "{done} of {total} sentences",
        "file-done": "Translated",
        "file-cancelled": "Cancelled",
        "cancel": "Cancel",
        "save": "Download the translation",
        "history": "History",
        "keep-history": "Keep a history, in this browser only",
        "clear-history": "Delete all",
        "private": "Your text stays on this server and is not stored. "
        "A translated file stays in memory and can be downloaded for up to 20 minutes.",
        "keys": "Ctrl + Enter translates at once, Esc stops.",
        "auto": "Detect language",
        "detected": "Detected: ",
        "through": "Translated through: ",
        "untranslated": "This is already the target language: nothing was translated.",
        "lost": "The server cannot be reached.",
        "stale": "The grey translation is that of the previous text.",
        "no-words": "Without word probabilities: they would take too long for this text.",
        "composing": "Waiting for the syllable to be completed …",
        "too-long": "The text is {count} characters too long, so it is not translated.",
        "cut": "Cut it to {count} characters",
        "key": "API key",
        "theme": "Theme",
        "system": "System",
        "light": "Light",
        "dark": "Dark",
        "language": "Language",
        "api-intro": "The API of LibreTranslate, so its clients work unchanged, and more under /v1/. "
        "Every example runs as it is, with your API key if the server needs one.",
        "openapi": "OpenAPI document",
        "examples": "Examples in",
        "field": "Field",
        "values": "Values",
        "required": "required",
    },
    "ko": {
        "skip": "본문으로 건너뛰기",
        "translate": "번역",
        "clear": "지우기",
        "copy": "복사",
        "copied": "복사됨",
        "see": "어텐션 페이지 열기",
        "back": "← 번역으로 돌아가기",
        "swap": "원문 언어와 대상 언어 맞바꾸기",
        "no-swap": "반대 방향으로 번역하는 모델이 없습니다",
        "from": "원문 언어",
        "to": "대상 언어",
        "text": "원문",
        "translation": "번역문",
        "tags": "문체",
        "tag-polite": "존댓말",
        "tag-formal": "격식체",
        "tag-informal": "비격식체",
        "tint": "단어별 확률을 색으로 표시",
        "tint-legend": "색은 모델이 단어에 매긴 확률(보정하지 않은 값)을 나타내며, "
        "번역 품질을 뜻하지 않습니다.",
        "probability": "보정하지 않은 확률 {percent}",
        "unknown-probability": "확률을 계산하지 않음",
        "linked": "대응하는 원문: {words}",
        "working": "찾는 중 …",
        "close": "닫기",
        "choose-candidate": "단어를 고르면 나머지를 다시 번역합니다.",
        "no-candidates": "이 자리에는 모델이 제시할 다른 단어가 없습니다.",
        "no-candidates-through": "경유 언어를 거친 번역에서는 다른 단어를 고를 수 없습니다.",
        "this-sentence": "이 문장",
        "sentence-number": "문장 {number} / {count}",
        "previous": "이전 문장",
        "next": "다음 문장",
        "chosen": "직접 고른 번역입니다.",
        "own": "모델의 번역으로 되돌리기",
        "alternatives": "다른 번역",
        "no-alternatives": "탐색에서 다른 번역을 찾지 못했습니다.",
        "attention": "어텐션",
        "attention-caption": "행: 번역문의 단어, 열: 원문의 단어",
        "attention-note": "모델이 단어를 생성할 때 원문의 각 단어에 얼마나 주목하는지를 "
        "단어 정렬에 쓰는 헤드를 기준으로 보여 줍니다.",
        "no-attention": "이 모델에는 보여 줄 어텐션이 없습니다.",
        "choose-file": "파일 선택",
        "drop": "또는 여기에 끌어다 놓으세요. 서식은 그대로 유지됩니다.",
        "formats": "지원 형식:",
        "file-working": "번역 중 …",
        "file-progress": "{total}문장 중 {done}문장",
        "file-done": "번역 완료",
        "file-cancelled": "취소됨",
        "cancel": "취소",
        "save": "번역된 파일 내려받기",
        "history": "번역 기록",
        "keep-history": "이 브라우저에만 기록 남기기",
        "clear-history": "모두 삭제",
        "private": "입력한 텍스트는 이 서버에서만 처리되며 저장되지 않습니다. "
        "번역된 파일은 메모리에 보관되며 최대 20분 동안 내려받을 수 있습니다.",
        "keys": "Ctrl + Enter: 바로 번역, Esc: 중지",
        "auto": "언어 감지",
        "detected": "감지된 언어: ",
        "through": "경유 언어: ",
        "untranslated": "원문이 이미 대상 언어로 되어 있어 번역하지 않았습니다.",
        "lost": "서버에 연결할 수 없습니다.",
        "stale": "회색 번역문은 이전 원문의 번역입니다.",
        "no-words": "이 텍스트는 단어별 확률을 계산하는 데 너무 오래 걸려 표시하지 않습니다.",
        "composing": "글자 입력이 끝나면 번역합니다 …",
        "too-long": "원문이 한도를 {count}자 초과해 번역하지 않았습니다.",
        "cut": "{count}자까지만 남기기",
        "key": "API 키",
        "theme": "테마",
        "system": "시스템 설정",
        "light": "라이트",
        "dark": "다크",
        "language": "언어",
        "api-intro": "LibreTranslate의 API와 호환되므로 그 클라이언트를 그대로 쓸 수 있고, "
        "/v1/ 아래에 추가 기능이 있습니다. 모든 예제는 그대로 실행할 수 있으며, "
        "서버가 API 키를 요구하면 키만 채우면 됩니다.",
        "openapi": "OpenAPI 문서",
        "examples": "예제 코드",
        "field": "필드",
        "values": "값",
        "required": "필수",
    },
}

ERROR_MESSAGES: dict[str, dict[int | str, str]] = {
    "en": {
        "Invalid request: missing q parameter": "Enter a text to translate.",
        NOT_RECOGNISED: "The language was not recognised. Choose it above the text.",
        429: "Too many requests. Try again in {seconds} s.",
    },
    "ko": {
        "Invalid request: missing q parameter": "번역할 텍스트를 입력하세요.",
        NOT_RECOGNISED: "언어를 인식하지 못했습니다. 위에서 원문 언어를 선택하세요.",
        NO_SINGLE_MODEL: "이 언어 쌍을 한 번에 번역하는 모델이 없어 어텐션을 볼 수 없습니다.",
        "There is no such file": "파일이 없거나 보관 기간이 지났습니다. 다시 번역하세요.",
        0: "번역이 중단되었습니다. {message}",
        400: "요청을 처리할 수 없습니다. {message}",
        403: "API 키가 올바르지 않습니다.",
        404: "API 키가 필요한 서버에서는 어텐션 페이지를 쓸 수 없습니다. POST /v1/explain을 이용하세요.",
        408: "요청 시간이 초과되었습니다. 다시 시도하세요.",
        409: "이 모델이나 문장으로는 처리할 수 없는 요청입니다. {message}",
        413: "텍스트가 너무 깁니다.",
        415: "지원하지 않는 형식입니다.",
        429: "요청이 너무 많습니다. {seconds}초 후에 다시 시도하세요.",
        500: "서버 오류가 발생했습니다. {message}",
        503: "서버가 지금 요청을 처리할 수 없습니다. {seconds}초 후에 다시 시도하세요.",
    },
}
"""The messages that the page shows for errors. A key is a part of the error's message, or its HTTP status.

The key 0 is for an error inside a stream. An error without an entry is shown with its own message."""

_KOREAN_NAME_TABLE = """
af 아프리칸스어, am 암하라어, ar 아랍어, as 아삼어, az 아제르바이잔어, be 벨라루스어, bg 불가리아어,
bn 벵골어, bo 티베트어, br 브르타뉴어, bs 보스니아어, ca 카탈로니아어, cs 체코어, cy 웨일스어, da 덴마크어,
de 독일어, el 그리스어, en 영어, eo 에스페란토어, es 스페인어, et 에스토니아어, eu 바스크어, fa 페르시아어,
fi 핀란드어, fo 페로어, fr 프랑스어, fy 서부 프리지아어, ga 아일랜드어, gd 스코틀랜드 게일어, gl 갈리시아어,
gu 구자라트어, ha 하우사어, he 히브리어, hi 힌디어, hr 크로아티아어, ht 아이티어, hu 헝가리어,
hy 아르메니아어, id 인도네시아어, ig 이그보어, is 아이슬란드어, it 이탈리아어, ja 일본어, jv 자바어,
ka 조지아어, kk 카자흐어, km 크메르어, kn 칸나다어, ko 한국어, ku 쿠르드어, ky 키르기스어, la 라틴어,
lb 룩셈부르크어, lo 라오어, lt 리투아니아어, lv 라트비아어, mg 말라가시어, mi 마오리어, mk 마케도니아어,
ml 말라얄람어, mn 몽골어, mr 마라티어, ms 말레이어, mt 몰타어, my 버마어, nb 노르웨이어(보크말), ne 네팔어,
nl 네덜란드어, nn 노르웨이어(니노르스크), no 노르웨이어, oc 오크어, or 오리야어, pa 펀자브어, pl 폴란드어,
ps 파슈토어, pt 포르투갈어, ro 루마니아어, ru 러시아어, sd 신디어, si 싱할라어, sk 슬로바키아어,
sl 슬로베니아어, so 소말리어, sq 알바니아어, sr 세르비아어, su 순다어, sv 스웨덴어, sw 스와힐리어,
ta 타밀어, te 텔루구어, tg 타지크어, th 태국어, tk 투르크멘어, tl 타갈로그어, tr 튀르키예어, tt 타타르어,
ug 위구르어, uk 우크라이나어, ur 우르두어, uz 우즈베크어, vi 베트남어, xh 코사어, yi 이디시어, yo 요루바어,
zh 중국어, zu 줄루어
"""
_KOREAN_NAMES = dict(entry.strip().split(" ", 1) for entry in _KOREAN_NAME_TABLE.split(","))
_QUALITY = re.compile(r"\s*q\s*=\s*([01](?:\.\d*)?)\s*")


def negotiate_language(accept_language: str) -> str:
    """Return the page language that an Accept-Language header prefers; English if it accepts none of them."""
    best_quality, best = 0.0, "en"
    for entry in accept_language.lower().split(","):
        name, _, parameter = entry.partition(";")
        match = _QUALITY.fullmatch(parameter)
        quality = float(match[1]) if match else 1.0
        code = name.strip().partition("-")[0]
        if code in STRINGS and quality > best_quality:
            best_quality, best = quality, code
    return best


def localized_language_name(ui_language: str, code: str) -> str:
    """Return the name of a language in English or Korean; in English if the Korean name is not known."""
    if ui_language != "ko":
        return language_name(code)
    name = _KOREAN_NAMES.get(re.split("[-_]", code)[0])
    if name is None:
        return language_name(code)
    return name if code in _KOREAN_NAMES else f"{name} ({code})"
