"""Tables of times, adverbs, numbers and spatial relations."""

from __future__ import annotations

# English | Korean | tenses | kind. A time with the tense "habit" fits only the present. It makes the tense
# clear where English has one form for past and present ("I read a book every day"). The kind says which
# actions fit: see TIME_PROFILES. The kind `year` is for times that are a month or more away, `part` for a
# part of the day, and `weekly` for times that come every week.
TIMES = """
yesterday             | 어제         | past                | day
last night            | 어젯밤에     | past                | night
last week             | 지난주에     | past                | week
last year             | 작년에       | past                | year
this morning          | 오늘 아침에  | past                | morning
an hour ago           | 한 시간 전에 | past                | hour
today                 | 오늘         | past present future | day
tomorrow              | 내일         | future              | day
tonight               | 오늘 밤에    | future              | night
next week             | 다음 주에    | future              | week
next month            | 다음 달에    | future              | year
next year             | 내년에       | future              | year
every day             | 매일         | habit               | everyday
every morning         | 매일 아침    | habit               | mornings
every week            | 매주         | habit               | weekly
on weekends           | 주말에       | habit               | weekly
in the morning        | 아침에       | past present future | part
in the afternoon      | 오후에       | past present future | part
in the evening        | 저녁에       | past present future | part
at night              | 밤에         | past present future | night
on Monday             | 월요일에     | past future         | weekday
on Friday             | 금요일에     | past future         | weekday
on Sunday             | 일요일에     | past future         | weekday
in spring             | 봄에         | present future      | spring
in winter             | 겨울에       | present future      | winter
"""

# Profile of a verb → kinds of times that fit the verb. The tables of verbs name profiles and single kinds.
# There, "again" marks actions that people repeat with the same thing ("I use my computer every day"). A habit
# may then have a definite object.
TIME_PROFILES = {
    "state": "",
    "event": "hour day part morning night week weekday",
    "daylight": "hour day part morning week weekday",
    "daily": "hour day part morning night weekday everyday",
    "active": "hour day part morning week weekday everyday mornings weekly",
    "moment": "hour day part morning",
    "routine": "hour day part morning night week weekday everyday weekly",
    "errand": "hour day part morning week weekday weekly",
    "course": "week weekday year everyday weekly",
    "trip": "day week weekday year",
    "project": "week year",
    "growing": "day morning week weekday year spring",
    "animal": "hour day part morning night everyday",
    "rising": "day morning weekday",
}

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

# "too" is last, because only the adjectives in predicates.COMPLAINTS take it.
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
