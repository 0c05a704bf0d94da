"""Tables of the verbs and adjectives of the corpus.

Verbs:      English | Korean | subjects | objects | places | manners | honorific Korean
Adjectives: English | Korean | nouns | honorific Korean

`eat/ate/eaten` gives irregular English forms; words after `_` belong to the verb (listen_to). A Korean form
has its irregular class after a colon (듣다:ㄷ) and may have words before it (배가 고프다). The other columns
contain noun classes, or one noun as `=piano`; manners are adverbs.
"""

from __future__ import annotations

# An English verb may have several rows: its object determines the Korean verb.
TRANSITIVE = """
eat/ate/eaten         | 먹다       | person | food meal | dining | quickly slowly alone | 드시다
eat/ate/eaten         | 먹다       | animal | fruit vegetable =bread =meat =fish | | quickly slowly |
drink/drank/drunk     | 마시다     | person | drink | dining | quickly slowly alone | 드시다
take/took/taken       | 먹다       | person | medicine | | | 드시다
read/read/read        | 읽다       | person | text | studying resting | slowly quietly alone |
write/wrote/written   | 쓰다       | person | writing | studying | quickly slowly alone |
study                 | 공부하다   | person | study | studying | hard alone |
learn                 | 배우다     | person | study sport instrument | =school | quickly hard |
teach/taught          | 가르치다   | adult elder | study | =school | well |
speak/spoke/spoken    | 하다       | person | language | | slowly quickly |
practice              | 연습하다   | person | sport instrument | | hard alone |
do/did/done           | 하다       | person | =homework | studying | quickly alone |
finish                | 끝내다     | person | duty | | quickly |
watch                 | 보다       | person | film =television | =home | quietly alone |
listen_to             | 듣다:ㄷ    | person | heard | =home =room =cafe =library | quietly alone |
sing/sang/sung        | 부르다:르  | person | sung | =park | loudly well |
play                  | 하다       | person | sport | playing | alone |
play                  | 치다       | person | struck | =home =room | well quietly |
play                  | 켜다       | person | bowed | =home =room | well quietly |
buy/bought            | 사다       | person | goods food drink =ticket | shopping | quickly |
sell/sold             | 팔다       | adult | goods food drink | shopping | |
make/made             | 만들다     | person | homemade handmade | =home | quickly well |
cook                  | 요리하다   | person | cooked | cooking | quickly alone |
bake                  | 굽다:ㅂ    | person | baked | cooking =bakery | well |
wash                  | 씻다       | person | fruit vegetable washable dish | cooking | carefully quickly |
clean                 | 청소하다   | person | cleaned | | quickly carefully |
open                  | 열다       | person | shut opened | | quietly carefully |
close                 | 닫다       | person | shut | | quietly |
turn_on               | 켜다       | person | device lamp | | |
turn_off              | 끄다       | person | device lamp | | |
fix                   | 고치다     | adult | mended | | quickly well |
use                   | 사용하다   | person | used | | carefully |
find/found            | 찾다       | person | portable small | indoor =home | |
lose/lost             | 잃어버리다 | person | portable small =money | indoor =home =station =market | |
borrow                | 빌리다     | person | lent | | |
bring/brought         | 가져오다   | person | portable weighty given | | quickly |
choose/chose/chosen   | 고르다:르  | person | clothes given =book | shopping | carefully slowly |
draw/drew/drawn       | 그리다     | person | drawn animal | =park =room =school | well |
take/took/taken       | 찍다       | person | photographed | outdoor | well |
take/took/taken       | 타다       | person | transit | | |
ride/rode/ridden      | 타다       | person | mount | =park =farm =beach | well |
drive/drove/driven    | 운전하다   | adult | driven | | slowly carefully |
send/sent             | 보내다     | person | sent | | |
receive               | 받다       | person | sent given | | |
throw/threw/thrown    | 던지다     | person | thrown | playing | |
catch/caught          | 잡다       | person | =ball =mouse | | quickly |
push                  | 밀다       | person | weighty | | slowly |
carry                 | 나르다:르  | adult | weighty | | carefully |
move                  | 옮기다     | person | weighty furniture | | slowly carefully |
pick_up               | 줍다:ㅂ    | person | dropped | outdoor | |
collect               | 모으다     | person | collected | | |
break/broke/broken    | 깨다       | person | fragile | | |
pour                  | 따르다     | person | drink | cooking | slowly |
plant                 | 심다       | person | plant | =garden =park =farm | |
build/built           | 짓다:ㅅ    | adult | built | town region | |
raise                 | 기르다:르  | person | pet farmed | =home =farm | |
hug/hugged/hugged/hugging | 안다   | person | little pet =doll | | |
wear/wore/worn        | 입다       | person | worn_body | | |
wear/wore/worn        | 신다       | person | worn_foot | | |
wear/wore/worn        | 쓰다       | person | worn_head | | |
wear/wore/worn        | 끼다       | person | worn_hand worn_finger | | |
take_off/took/taken   | 벗다       | person | worn_body worn_foot worn_head worn_hand | | quickly |
chase                 | 쫓다       | hunter | =rabbit =bird =mouse =duck | outdoor | quickly |
bite/bit/bitten       | 물다       | =dog =fox =mouse | =ball =doll =shoes =gloves | | |
love                  | 사랑하다   | person | person kin elder | | |
like                  | 좋아하다   | person | food drink fruit sport study animal melody film text | | |
hate                  | 싫어하다   | person | food drink sport study animal =homework =medicine | | |
miss                  | 그리워하다 | person | kin | | |
trust                 | 믿다       | person | person elder | | |
help                  | 돕다:ㅂ오  | person | person | | |
meet/met              | 만나다     | person | person | meeting | |
wait_for              | 기다리다   | person | person elder transit =letter | meeting | quietly |
invite                | 초대하다   | person | person | | |
know/knew/known       | 알다       | person | person known | | well |
remember              | 기억하다   | person | person known | | well |
forget/forgot/forgotten | 잊다     | person | known | | |
understand/understood | 이해하다   | person | =book =novel =story =letter =report study | | well |
prepare               | 준비하다   | person | meal =gift | =home | |
visit                 | 방문하다   | person | landmark region | | |
"""

INTRANSITIVE = """
sleep/slept           | 자다       | person |  | resting | well alone late | 주무시다
sleep/slept           | 자다       | animal |  | =garden =park =room | quietly |
walk                  | 걷다:ㄷ    | person |  | outdoor | slowly quickly alone |
run/ran/run/running   | 달리다     | person |  | outdoor | quickly slowly alone |
run/ran/run/running   | 달리다     | runner |  | =garden =park =mountain | quickly |
swim/swam/swum/swimming | 수영하다 | person |  | swimming | alone slowly |
work                  | 일하다     | adult elder |  | working | hard alone |
rest                  | 쉬다       | person |  | resting | quietly alone |
laugh                 | 웃다       | person |  | =school =room =cafe | loudly quietly |
cry                   | 울다       | person |  | =room =park =station | loudly quietly alone |
dance                 | 춤추다     | person |  | =park =beach | alone |
exercise              | 운동하다   | person |  | =park =playground =room | hard alone |
travel                | 여행하다   | person |  | region | alone slowly |
play                  | 놀다       | young |  | playing | quietly alone |
play                  | 놀다       | pet =monkey |  | playing | quietly |
wait                  | 기다리다   | person |  | meeting | quietly alone |
get_up/got/gotten/getting | 일어나다 | person |  | | early late quickly |
"""

# Movement and rest. The object column contains the English preposition and the Korean particle of the place.
MOTION = """
go/went/gone          | 가다       | person | to 에 | destination | quickly alone early |
come/came/come        | 오다       | person | to 에 | destination | quickly alone early late |
return                | 돌아가다   | person | to 으로 | town region returned | quickly alone late |
move                  | 이사하다   | person | to 으로 | region town | |
leave/left            | 떠나다     | person | for 으로 | region | early alone |
arrive                | 도착하다   | person | at 에 | =station =airport =hotel =school region | early late |
arrive                | 도착하다   | =bus =train =airplane =boat | at 에 | =station region | late |
live                  | 살다       | person | in 에 | town region | alone |
stay                  | 머무르다:르 | person | at 에 | =hotel region | alone |
sit/sat/sat/sitting   | 앉다       | person | on 에 | =chair =bed | quietly |
sit/sat/sat/sitting   | 앉다       | pet | on 에 | =chair =bed | quietly |
"""

# With a recipient: "I gave a flower to the child."
GIVING = """
give/gave/given       | 주다       | person | given =money =book =ticket | | | 드리다
send/sent             | 보내다     | person | sent | | |
show/showed/shown     | 보여 주다  | person | shown =ticket =letter =doll | | | 보여 드리다
"""

ADJECTIVES = """
big                   | 크다       | goods furniture sized landmark town room animal vehicle bulky |
small                 | 작다       | goods furniture sized landmark town room animal |
long                  | 길다       | lengthy =movie =novel =river |
short                 | 짧다       | lengthy =movie =novel |
pretty                | 예쁘다     | worn_body worn_head worn_finger =flower =doll =girl =bag =cup |
beautiful             | 아름답다:ㅂ | =flower =song =music =picture =sea =garden =mountain =woman =city |
cute                  | 귀엽다:ㅂ  | pet little =doll =monkey |
good                  | 좋다       | text film melody |
expensive             | 비싸다     | goods food alcohol |
cheap                 | 싸다       | goods food alcohol |
heavy                 | 무겁다:ㅂ  | weighty =stone =bed =bicycle |
light                 | 가볍다:ㅂ  | weighty =umbrella =shoes =bicycle |
fast                  | 빠르다:르  | vehicle runner |
slow                  | 느리다     | vehicle |
hot                   | 뜨겁다:ㅂ  | hot brewed |
cold                  | 차갑다:ㅂ  | drink =noodles |
hot                   | 덥다:ㅂ    | room =office |
cold                  | 춥다:ㅂ    | room =office |
warm                  | 따뜻하다   | warm =room =classroom =bread |
clean                 | 깨끗하다   | room clothes dish =restaurant =hotel =park |
dirty                 | 더럽다:ㅂ  | room clothes dish =shoes =river |
delicious             | 맛있다     | food drink |
spicy                 | 맵다:ㅂ    | spicy |
sweet                 | 달다       | sweet fruit |
fresh                 | 신선하다   | fresh |
red                   | 빨갛다:ㅎ  | colored red |
blue                  | 파랗다:ㅎ  | colored =sea |
yellow                | 노랗다:ㅎ  | colored yellow |
white                 | 하얗다:ㅎ  | colored pet |
black                 | 까맣다:ㅎ  | colored pet |
easy                  | 쉽다:ㅂ    | study =song =book =homework |
difficult             | 어렵다:ㅂ  | study =song =book =homework =novel |
interesting           | 재미있다   | text film study |
boring                | 지루하다   | film =book =novel =story |
important             | 중요하다   | duty study =letter =email =ticket |
quiet                 | 조용하다   | indoor =park |
noisy                 | 시끄럽다:ㅂ | =station =market =restaurant =classroom =playground =city |
bright                | 밝다       | room =office =library |
dark                  | 어둡다:ㅂ  | room |
spacious              | 넓다       | room =park =playground =garden =library |
far                   | 멀다       | landmark =airport =company |
near                  | 가깝다:ㅂ  | landmark =airport =company |
scary                 | 무섭다:ㅂ  | fierce =movie =story |
dangerous             | 위험하다   | fierce =river =mountain =knife |
"""

STATES = """
happy                 | 행복하다   | person |
sad                   | 슬프다     | person |
tired                 | 피곤하다   | person |
busy                  | 바쁘다     | person |
sick                  | 아프다     | person | 편찮으시다
healthy               | 건강하다   | person |
hungry                | 배가 고프다 | person |
thirsty               | 목이 마르다:르 | person |
lonely                | 외롭다:ㅂ  | person |
"""

CHARACTERS = """
kind                  | 친절하다   | person |
smart                 | 똑똑하다   | person |
tall                  | 키가 크다  | person |
strong                | 힘이 세다  | person animal |
diligent              | 부지런하다 | person |
lazy                  | 게으르다:르 | person |
brave                 | 용감하다   | person |
famous                | 유명하다   | job |
"""

# Only before a noun: "the bag is new" would need another Korean word.
ATTRIBUTES = """
new                   | 새롭다:ㅂ  | goods vehicle =book =novel film |
old                   | 오래되다   | goods vehicle sized |
young                 | 젊다       | job =man =woman |
"""
