"""Conjugated forms equal forms written by hand and, for every stem of the lexicon, the forms of Kiwi."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumok.datasets.english_korean.conjugation import conjugate, copula, stem, with_honorific
from support.korean_stems import kiwi_stems

ENDINGS = ("ㄴ다", "어요", "어ㅆ다", "니", "으면", "으ㄹ", "으ㄴ", "어서")

# Lexicon entry, kind, and its forms with ENDINGS, written by hand.
FORMS = [
    ("가다", "verb", "간다 가요 갔다 가니 가면 갈 간 가서"),
    ("오다", "verb", "온다 와요 왔다 오니 오면 올 온 와서"),
    ("보다", "verb", "본다 봐요 봤다 보니 보면 볼 본 봐서"),
    ("먹다", "verb", "먹는다 먹어요 먹었다 먹니 먹으면 먹을 먹은 먹어서"),
    ("마시다", "verb", "마신다 마셔요 마셨다 마시니 마시면 마실 마신 마셔서"),
    ("배우다", "verb", "배운다 배워요 배웠다 배우니 배우면 배울 배운 배워서"),
    ("하다", "verb", "한다 해요 했다 하니 하면 할 한 해서"),
    ("공부하다", "verb", "공부한다 공부해요 공부했다 공부하니 공부하면 공부할 공부한 공부해서"),
    ("되다", "verb", "된다 돼요 됐다 되니 되면 될 된 돼서"),
    ("쉬다", "verb", "쉰다 쉬어요 쉬었다 쉬니 쉬면 쉴 쉰 쉬어서"),
    ("켜다", "verb", "켠다 켜요 켰다 켜니 켜면 켤 켠 켜서"),
    ("보내다", "verb", "보낸다 보내요 보냈다 보내니 보내면 보낼 보낸 보내서"),
    ("쓰다", "verb", "쓴다 써요 썼다 쓰니 쓰면 쓸 쓴 써서"),
    ("끄다", "verb", "끈다 꺼요 껐다 끄니 끄면 끌 끈 꺼서"),
    ("모으다", "verb", "모은다 모아요 모았다 모으니 모으면 모을 모은 모아서"),
    ("따르다", "verb", "따른다 따라요 따랐다 따르니 따르면 따를 따른 따라서"),
    ("살다", "verb", "산다 살아요 살았다 사니 살면 살 산 살아서"),
    ("만들다", "verb", "만든다 만들어요 만들었다 만드니 만들면 만들 만든 만들어서"),
    ("알다", "verb", "안다 알아요 알았다 아니 알면 알 안 알아서"),
    ("듣다:ㄷ", "verb", "듣는다 들어요 들었다 듣니 들으면 들을 들은 들어서"),
    ("걷다:ㄷ", "verb", "걷는다 걸어요 걸었다 걷니 걸으면 걸을 걸은 걸어서"),
    ("닫다", "verb", "닫는다 닫아요 닫았다 닫니 닫으면 닫을 닫은 닫아서"),
    ("돕다:ㅂ오", "verb", "돕는다 도와요 도왔다 돕니 도우면 도울 도운 도와서"),
    ("굽다:ㅂ", "verb", "굽는다 구워요 구웠다 굽니 구우면 구울 구운 구워서"),
    ("줍다:ㅂ", "verb", "줍는다 주워요 주웠다 줍니 주우면 주울 주운 주워서"),
    ("입다", "verb", "입는다 입어요 입었다 입니 입으면 입을 입은 입어서"),
    ("짓다:ㅅ", "verb", "짓는다 지어요 지었다 짓니 지으면 지을 지은 지어서"),
    ("씻다", "verb", "씻는다 씻어요 씻었다 씻니 씻으면 씻을 씻은 씻어서"),
    ("모르다:르", "verb", "모른다 몰라요 몰랐다 모르니 모르면 모를 모른 몰라서"),
    ("부르다:르", "verb", "부른다 불러요 불렀다 부르니 부르면 부를 부른 불러서"),
    ("고르다:르", "verb", "고른다 골라요 골랐다 고르니 고르면 고를 고른 골라서"),
    ("예쁘다", "adjective", "예쁘다 예뻐요 예뻤다 예쁘니 예쁘면 예쁠 예쁜 예뻐서"),
    ("바쁘다", "adjective", "바쁘다 바빠요 바빴다 바쁘니 바쁘면 바쁠 바쁜 바빠서"),
    ("크다", "adjective", "크다 커요 컸다 크니 크면 클 큰 커서"),
    ("작다", "adjective", "작다 작아요 작았다 작니 작으면 작을 작은 작아서"),
    ("길다", "adjective", "길다 길어요 길었다 기니 길면 길 긴 길어서"),
    ("달다", "adjective", "달다 달아요 달았다 다니 달면 달 단 달아서"),
    ("춥다:ㅂ", "adjective", "춥다 추워요 추웠다 춥니 추우면 추울 추운 추워서"),
    ("가깝다:ㅂ", "adjective", "가깝다 가까워요 가까웠다 가깝니 가까우면 가까울 가까운 가까워서"),
    (
        "아름답다:ㅂ",
        "adjective",
        "아름답다 아름다워요 아름다웠다 아름답니 아름다우면 아름다울 아름다운 아름다워서",
    ),
    ("빨갛다:ㅎ", "adjective", "빨갛다 빨개요 빨갰다 빨갛니 빨가면 빨갈 빨간 빨개서"),
    ("하얗다:ㅎ", "adjective", "하얗다 하얘요 하얬다 하얗니 하야면 하얄 하얀 하얘서"),
    ("빠르다:르", "adjective", "빠르다 빨라요 빨랐다 빠르니 빠르면 빠를 빠른 빨라서"),
    ("좋다", "adjective", "좋다 좋아요 좋았다 좋니 좋으면 좋을 좋은 좋아서"),
    ("피곤하다", "adjective", "피곤하다 피곤해요 피곤했다 피곤하니 피곤하면 피곤할 피곤한 피곤해서"),
    # `stem` ignores the kind of 있다 and 없다. Their forms 있은 and 없은 are rare, but correct.
    ("있다", "verb", "있다 있어요 있었다 있니 있으면 있을 있은 있어서"),
    ("없다", "verb", "없다 없어요 없었다 없니 없으면 없을 없은 없어서"),
]


@pytest.mark.parametrize(
    ("entry", "kind", "ending", "expected"),
    [
        (entry, kind, ending, form)
        for entry, kind, forms in FORMS
        for ending, form in zip(ENDINGS, forms.split(), strict=True)
    ],
)
def test_forms_equal_those_written_by_hand(entry: str, kind: str, ending: str, expected: str) -> None:
    assert conjugate(stem(entry, kind), ending) == expected


@pytest.mark.parametrize(
    ("entry", "kind", "ending", "expected"),
    [
        ("먹다", "verb", "는", "먹는"),
        ("살다", "verb", "는", "사는"),
        ("예쁘다", "adjective", "는", "예쁜"),
        ("재미있다", "adjective", "는", "재미있는"),
        ("맛있다", "adjective", "는", "맛있는"),
        ("길다", "adjective", "는", "긴"),
        ("가다", "verb", "ㄴ다고", "간다고"),
        ("먹다", "verb", "ㄴ다고", "먹는다고"),
        ("예쁘다", "adjective", "ㄴ다고", "예쁘다고"),
        ("살다", "verb", "으러", "살러"),
        ("사다", "verb", "으러", "사러"),
        ("듣다:ㄷ", "verb", "으려고", "들으려고"),
        ("만들다", "verb", "으려고", "만들려고"),
        ("돕다:ㅂ오", "verb", "어야", "도와야"),
        ("자다", "verb", "어도", "자도"),
        ("춥다:ㅂ", "adjective", "어지", "추워지"),
        ("오다", "verb", "어ㅆ을", "왔을"),
        ("열다", "verb", "어라", "열어라"),
        ("놀다", "verb", "자", "놀자"),
        ("놀다", "verb", "기", "놀기"),
    ],
)
def test_forms_with_other_endings_are_correct(entry: str, kind: str, ending: str, expected: str) -> None:
    assert conjugate(stem(entry, kind), ending) == expected


@pytest.mark.parametrize(
    ("entry", "kind", "ending", "expected"),
    [
        ("가다", "verb", "ㄴ다", "가신다"),
        ("가다", "verb", "어요", "가세요"),
        ("가다", "verb", "어ㅆ어요", "가셨어요"),
        ("읽다", "verb", "ㄴ다", "읽으신다"),
        ("만들다", "verb", "어요", "만드세요"),
        ("듣다:ㄷ", "verb", "어요", "들으세요"),
        ("돕다:ㅂ오", "verb", "어요", "도우세요"),
        ("친절하다", "adjective", "ㄴ다", "친절하시다"),
        ("친절하다", "adjective", "어요", "친절하세요"),
        ("있다", "verb", "ㄴ다", "있으시다"),
        ("없다", "verb", "어요", "없으세요"),
        ("모르다:르", "verb", "ㄴ다", "모르신다"),
        ("알다", "verb", "ㄴ다", "아신다"),
        ("가다", "verb", "으ㄹ", "가실"),
        ("가다", "verb", "어서", "가셔서"),
    ],
)
def test_honorific_forms_are_correct(entry: str, kind: str, ending: str, expected: str) -> None:
    assert conjugate(with_honorific(stem(entry, kind)), ending) == expected


@pytest.mark.parametrize(
    ("noun", "ending", "honorific", "expected"),
    [
        ("학생", "ㄴ다", False, "학생이다"),
        ("의사", "ㄴ다", False, "의사이다"),
        ("학생", "어요", False, "학생이에요"),
        ("의사", "어요", False, "의사예요"),
        ("학생", "어ㅆ다", False, "학생이었다"),
        ("의사", "어ㅆ다", False, "의사였다"),
        ("학생", "어ㅆ어요", False, "학생이었어요"),
        ("의사", "어ㅆ어요", False, "의사였어요"),
        ("학생", "니", False, "학생이니"),
        ("의사", "니", False, "의사니"),
        ("누구", "어요", False, "누구예요"),
        ("의사", "ㄴ다", True, "의사이시다"),
        ("의사", "어요", True, "의사이세요"),
        ("의사", "어ㅆ다", True, "의사이셨다"),
    ],
)
def test_forms_of_the_copula_are_correct(noun: str, ending: str, honorific: bool, expected: str) -> None:
    assert copula(noun, ending, honorific) == expected


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("ㄴ다", "아니다"),
        ("어요", "아니에요"),
        ("어ㅆ다", "아니었다"),
        ("어ㅆ어요", "아니었어요"),
        ("어ㅆ니", "아니었니"),
    ],
)
def test_anida_does_not_contract(ending: str, expected: str) -> None:
    assert conjugate(stem("아니다:아니", "adjective"), ending) == expected


# Our forms where Kiwi gives another: for 드시다, Kiwi gives 드셔요. Both 드셔요 and 드세요 are standard, and
# 드세요 is more common. The same holds for the other verbs.
KIWI_EXCEPTIONS = {
    "드시다 verb 어요": "드세요",
    "주무시다 verb 어요": "주무세요",
    "계시다 verb 어요": "계세요",
    "편찮으시다 adjective 어요": "편찮으세요",
}


def test_the_forms_of_the_lexicon_agree_with_kiwi() -> None:
    kiwi_forms = json.loads(Path(__file__).with_name("kiwi_forms.json").read_text(encoding="utf-8"))
    stems = {f"{base.text}다 {base.kind}": base for base in kiwi_stems()}
    assert {key.rpartition(" ")[0] for key in kiwi_forms} == set(stems), "run make_kiwi_fixture.py again"
    ours = {key: conjugate(stems[key.rpartition(" ")[0]], key.rpartition(" ")[2]) for key in kiwi_forms}
    assert {key: form for key, form in ours.items() if form != kiwi_forms[key]} == KIWI_EXCEPTIONS
    assert len(kiwi_forms) > 3000
