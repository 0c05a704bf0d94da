"""Tables of times, adverbs, numbers and spatial relations."""

from __future__ import annotations

# English | Korean | tenses. "habit": present only; it makes the tense clear where English has one form
# for both ("I read a book every day").
TIMES = """
yesterday             | 어제         | past
last night            | 어젯밤에     | past
last week             | 지난주에     | past
last year             | 작년에       | past
this morning          | 오늘 아침에  | past
an hour ago           | 한 시간 전에 | past
today                 | 오늘         | past present future
tomorrow              | 내일         | future
tonight               | 오늘 밤에    | future
next week             | 다음 주에    | future
next month            | 다음 달에    | future
next year             | 내년에       | future
every day             | 매일         | habit
every morning         | 매일 아침    | habit
every week            | 매주         | habit
on weekends           | 주말에       | habit
in the morning        | 아침에       | past present future
in the afternoon      | 오후에       | past present future
in the evening        | 저녁에       | past present future
at night              | 밤에         | past present future
on Monday             | 월요일에     | past future
on Friday             | 금요일에     | past future
on Sunday             | 일요일에     | past future
in spring             | 봄에         | present future
in winter             | 겨울에       | present future
"""

FREQUENCIES = """
always    | 항상
often     | 자주
sometimes | 가끔
usually   | 보통
"""

MANNERS = """
quickly   | 빨리
slowly    | 천천히
quietly   | 조용히
loudly    | 크게
carefully | 조심스럽게
hard      | 열심히
well      | 잘
alone     | 혼자
early     | 일찍
late      | 늦게
"""

DEGREES = """
very      | 아주
really    | 정말
too       | 너무
"""

NUMBERS = """
one       | 한
two       | 두
three     | 세
four      | 네
five      | 다섯
six       | 여섯
seven     | 일곱
eight     | 여덟
nine      | 아홉
ten       | 열
"""

# English preposition | Korean relational noun; `in` is for containers.
RELATIONS = """
in          | 안
on          | 위
under       | 밑
behind      | 뒤
in front of | 앞
next to     | 옆
"""
