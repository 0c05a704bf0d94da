"""Tables of the verbs and adjectives of the corpus.

Verbs:      English | Korean | subjects | objects | places | manners | honorific Korean | times
Adjectives: English | Korean | nouns | honorific Korean

`eat/ate/eaten` gives irregular English forms; words after `_` belong to the verb (listen_to). A Korean form
has its irregular class after a colon (듣다:ㄷ) and may have words before it (배가 고프다). The column of
manners has adverbs. The column of times has profiles (keys of `expressions.TIME_PROFILES`) or single kinds of
times, such as `night` (last column of `expressions.TIMES`). It also has `again` if people repeat the action
with the same thing. The other columns contain noun classes, or one noun as `=piano`. The lists after the
tables name a verb or adjective by its English, or as move/이사하다 if it has several Korean words and only
one is meant. INABILITY names verbs by their Korean.
"""

from __future__ import annotations

# An English verb may have several rows: its object determines the Korean verb.
TRANSITIVE = """
eat/ate/eaten         | 먹다       | person | food grain meal | dining | quickly slowly alone | 드시다 | daily
eat/ate/eaten         | 먹다       | =tiger =lion =dog =fox =bear | =meat | | quickly slowly | | animal
eat/ate/eaten         | 먹다       | =cat =bear | =fish | | quickly slowly | | animal
eat/ate/eaten         | 먹다       | =rabbit =horse =cow =monkey =mouse | =apple =banana =carrot =tomato \
=vegetables | | quickly slowly | | animal
drink/drank/drunk     | 마시다     | person | beverage | dining | quickly slowly alone | 드시다 | daily
drink/drank/drunk     | 마시다     | adult elder | =beer | dining | quickly slowly alone | 드시다 | event
take/took/taken       | 먹다       | person | medicine | | | 드시다 | daily again
read/read/read        | 읽다       | person | text | studying resting | slowly quietly alone | | daily
write/wrote/written   | 쓰다       | person | =letter =email =report | studying | quickly slowly alone | | \
routine
write/wrote/written   | 쓰다       | person | =novel | studying | alone | | year
study                 | 공부하다   | person | study | studying | hard alone | | routine
learn                 | 배우다     | person | study sport instrument | =school | quickly hard | | course
teach/taught          | 가르치다   | tutor elder | study | =school | well | | course
speak/spoke/spoken    | 하다       | person | language | | slowly quickly | | state
practice              | 연습하다   | person | sport instrument | | hard alone | | routine
do/did/done           | 하다       | young | =homework | studying | quickly alone | | routine
finish                | 끝내다     | young | =homework | | quickly | | event
finish                | 끝내다     | adult | =report | | quickly | | event
watch                 | 보다       | person | film =news =television | =home | quietly alone | | daily weekly
listen_to             | 듣다:ㄷ    | person | heard | =home =room =cafe | quietly alone | | daily mornings \
weekly
sing/sang/sung        | 부르다:르  | person | sung | =park =school =room | loudly well | | event
play                  | 하다       | person | team | playing =school | alone | | routine
play                  | 치다       | person | =tennis | =park =school | well | | routine
play                  | 치다       | person | struck | =home =room =school | well quietly | | routine again
play                  | 켜다       | person | bowed | =home =room =school | well quietly | | routine again
buy/bought            | 사다       | person | goods food beverage =ticket | shopping | quickly | | errand
sell/sold             | 팔다       | seller | goods food drink | shopping | | | errand
make/made             | 만들다     | person | homemade handmade | =home | quickly well | | daylight
cook                  | 요리하다   | person | cooked | cooking | quickly alone | | daylight weekly
bake                  | 굽다:ㅂ    | person | baked | cooking =bakery | well | | daylight weekly
wash                  | 씻다       | person | fruit vegetable washable dish | cooking | carefully quickly \
| | daylight
clean                 | 청소하다   | person | cleaned | | quickly alone | | active again
open                  | 열다       | person | shut opened | | quietly carefully | | moment night again
close                 | 닫다       | person | shut | | quietly | | moment night again
turn_on               | 켜다       | person | device lamp | | | | moment night again
turn_off              | 끄다       | person | device lamp | | | | moment night again
fix                   | 고치다     | adult | mended | | quickly well | | daylight
use                   | 사용하다   | person | used | | | | routine again
find/found            | 찾다       | person | portable small | =home =room =office =classroom | | | event
lose/lost             | 잃어버리다 | person | portable small =money | =library =hotel =museum =station \
=market =airport | | | event
borrow                | 빌리다     | person | lent | | | | daylight
bring/brought         | 가져오다   | person | brought given | | | | daylight
choose/chose/chosen   | 고르다:르  | person | clothes given =book | =market =store =bookstore | slowly | | \
event
draw/drew/drawn       | 그리다     | person | drawn animal | =park =room =school | well | | daylight
take/took/taken       | 찍다       | person | photographed | =park =garden =farm =beach =mountain | well | \
| daylight
take/took/taken       | 타다       | person | =bus =train =taxi =subway | | | | active again
take/took/taken       | 타다       | person | =airplane =boat | | | | trip
ride/rode/ridden      | 타다       | person | mount | =park =farm =beach | well | | errand again
drive/drove/driven    | 운전하다   | adult | driven | | slowly carefully | | daylight again
send/sent             | 보내다     | person | sent | | | | event
receive               | 받다       | person | sent given | | | | event
throw/threw/thrown    | 던지다     | person | thrown | playing | | | hour morning
catch/caught          | 잡다       | person | =ball =mouse | | quickly | | hour morning
push                  | 밀다       | person | pushed | | slowly | | hour morning
carry                 | 나르다:르  | adult | load | | carefully | | daylight
move                  | 옮기다     | person | load furniture | | slowly carefully | | daylight
pick_up               | 줍다:ㅂ    | person | dropped | =park =playground =beach | | | hour morning
collect               | 모으다     | person | collected | | | | state
break/broke/broken    | 깨다       | person | fragile | | | | event
pour                  | 따르다     | person | beverage | =kitchen | slowly | | hour morning
plant                 | 심다       | person | plant | =garden =park =farm | | | growing
build/built           | 짓다:ㅅ    | adult | built | town region | | | year
raise                 | 기르다:르  | person | pet farmed | =home =farm | | | state
hug/hugged/hugged/hugging | 안다   | person | little =dog =cat | | | | hour morning
wear/wore/worn        | 입다       | female | =skirt =dress | | | | day weekday everyday again
wear/wore/worn        | 입다       | person | =shirt =coat =pants | | | | day weekday everyday again
wear/wore/worn        | 신다       | person | worn_foot | | | | day weekday everyday again
wear/wore/worn        | 쓰다       | person | worn_head | | | | day weekday everyday again
wear/wore/worn        | 끼다       | person | worn_hand worn_finger | | | | day weekday everyday again
take_off/took/taken   | 벗다       | person | =coat =hat =glasses worn_foot worn_hand | | quickly | | hour \
morning
chase                 | 쫓다       | =dog =cat =fox | =rabbit =bird =mouse =duck | =garden =farm | quickly \
| | animal
chase                 | 쫓다       | =tiger =lion | =rabbit =fox =monkey | =mountain | quickly | | animal
bite/bit/bitten       | 물다       | =dog | =ball =doll =shoes =gloves | | | | animal
love                  | 사랑하다   | person | =friend kin elder =child name | | | | state
like                  | 좋아하다   | person | \
food grain drink fruit sport study animal melody film =news text | \
| | | state
hate                  | 싫어하다   | person | \
food grain drink sport study animal =homework =medicine | | | | state
miss                  | 그리워하다 | person | kin name | | | | state
trust                 | 믿다       | person | person elder | | | | state
help                  | 돕다:ㅂ오  | person | person | | | | errand again
meet/met              | 만나다     | person | person | meeting | | | errand again
wait_for              | 기다리다   | person | person elder =bus =train =taxi =subway | meeting | quietly | \
| event again
invite                | 초대하다   | person | person | | | | errand
know/knew/known       | 알다       | person | person known | | well | | state
remember              | 기억하다   | person | person known | | well | | state
forget/forgot/forgotten | 잊다     | person | known name | | | | state
understand/understood | 이해하다   | person | =book =novel =story =letter =report study | | well | | state
prepare               | 준비하다   | person | meal =gift | =home | | | daylight again
visit                 | 방문하다   | person | =museum =hospital =school =company =farm region | | | | trip \
again
"""

INTRANSITIVE = """
sleep/slept           | 자다       | person |  | =home =hotel =room | well alone late | 주무시다 | night
sleep/slept           | 자다       | pet |  | =garden =park =room | quietly | | animal
sleep/slept           | 자다       | farmed |  | =farm | quietly | | animal
walk                  | 걷다:ㄷ    | person |  | =park =garden =playground =beach | slowly quickly alone | \
| active
run/ran/run/running   | 달리다     | person |  | =park =playground =beach | quickly slowly alone | | active
run/ran/run/running   | 달리다     | =dog =cat =rabbit |  | =garden =park | quickly | | animal
run/ran/run/running   | 달리다     | =horse |  | =farm | quickly | | animal
run/ran/run/running   | 달리다     | =fox =tiger =lion |  | =mountain | quickly | | animal
swim/swam/swum/swimming | 수영하다 | person |  | swimming | alone slowly | | active
work                  | 일하다     | adult elder |  | working | hard alone | | routine
rest                  | 쉬다       | person |  | resting | quietly alone | | routine
laugh                 | 웃다       | person |  |  | loudly quietly | | hour
cry                   | 울다       | person |  |  | loudly quietly alone | | hour
dance                 | 춤추다     | person |  | =park =beach =school | alone well | | event weekly
exercise              | 운동하다   | person |  | =park =playground | hard alone | | active
travel                | 여행하다   | person |  | region | alone | | project spring winter
play                  | 놀다       | young |  | playing | quietly alone | | routine
play                  | 놀다       | =dog =cat =rabbit |  | =garden =park | quietly | | animal
wait                  | 기다리다   | person |  | meeting | quietly alone | | moment
get_up/got/gotten/getting | 일어나다 | person |  | | early late | | rising
"""

# Movement and rest. The object column contains the English preposition and the Korean particle of the place.
MOTION = """
go/went/gone          | 가다       | person | to 에 | destination | alone early | | trip errand
come/came/come        | 오다       | person | to 에 | visited | alone early late | | trip errand
return                | 돌아가다   | person | to 으로 | town region returned | alone | | event
move                  | 이사하다   | person | to 으로 | region town | | | project
leave/left            | 떠나다     | person | for 으로 | region | early alone | | trip
arrive                | 도착하다   | person | at 에 | =station =airport =hotel =school region | early late \
| | event
arrive                | 도착하다   | =bus =train | at 에 | =station =city =Seoul =Busan | late | | moment
live                  | 살다       | person | in 에 | town region | alone | | state
stay                  | 머무르다:르 | person | at 에 | =hotel region | alone | | project
sit/sat/sat/sitting   | 앉다       | person | on 에 | =chair =bed | quietly | | hour
sit/sat/sat/sitting   | 앉다       | =dog =cat =bird | on 에 | =chair =bed | quietly | | hour
"""

# Verbs with a recipient: "I gave a flower to the child." The column before the times is the humble verb, used
# if the recipient is an elder.
GIVING = """
give/gave/given       | 주다       | person | given =money =book =ticket | | | 드리다 | event
send/sent             | 보내다     | person | sent | | | | event
show/showed/shown     | 보여 주다  | person | shown =ticket =letter =doll | | | 보여 드리다 | event
"""

# Verbs that are strange in some tenses: nobody plans to lose a key, and "I lose a key" needs a habit.
PAST_VERBS = "lose break forget find"
PAST_AND_FUTURE_VERBS = (
    "finish receive move/이사하다 leave build invite borrow choose catch arrive visit stay"
)
PRESENT_AND_PAST_VERBS = "laugh cry"  # nobody plans them
# States have no future here: "I will know the song" is a guess.
STATIVE_VERBS = "know like hate love trust miss understand remember forget"
# Verbs whose negation is inability: 이해하지 못하다.
INABILITY = "이해하다 기억하다 찾다 받다"
# Verbs that create their object. The object has no owner and no price yet, and cannot be "this" or "that".
CREATION = "make bake cook write draw build plant raise take/찍다"
# Verbs after which a noun means the kind: "collect stones", "like dogs".
KIND_VERBS = "like hate collect"

# Places that fit only some objects of a verb: verbs | places | objects that fit.
PLACES_OF_OBJECTS = """
bake            | =bakery    | baked_goods
buy sell choose | =bookstore | =book =newspaper =novel =map
buy sell        | =bakery    | baked_goods =sandwich
buy sell choose | =market    | food clothes =juice =milk =flower =knife =dish =cup =spoon =bag
buy sell choose | =store     | food drink clothes device_small =bag =box =cup =dish =umbrella =pencil \
=ball =toy =doll =knife =spoon =clock =wallet =guitar =violin =chair =ring =gift
eat drink       | =cafe      | =cake =cookie =sandwich =bread =ice_cream =chocolate =coffee =tea =juice \
=milk =water
eat drink       | =restaurant | =rice =meat =fish =soup =kimchi =noodles =vegetables =bread meal =beer \
=water =juice =tea =coffee
eat drink       | =hotel     | meal =bread =fruit =coffee =tea =juice =beer =water =fish =meat =soup
ride            | =park      | =bicycle
ride            | =farm      | =horse
raise           | =home      | pet
raise           | =farm      | farmed =dog
wait_for        | =station   | person elder =train =subway =bus =taxi
wait_for        | =school =restaurant =museum =airport =cafe =bookstore =park | person elder
read            | =beach =park =garden =hotel | =book =novel =newspaper
read            | =home =library =room =school =cafe =classroom | text
write           | =cafe =library =classroom =school | =letter =email =report =novel
plant           | =garden =park =farm | plant
play            | =beach =garden | =soccer =baseball
study           | =home =library =school =cafe =room =classroom | study
prepare         | =home      | meal =gift
find            | =office =classroom =room =home | portable small
lose            | =library =museum =hotel | =umbrella =phone =wallet =key =camera =glasses =bag
"""

ADJECTIVES = """
big                   | 크다       | =bag =box furniture sized =park =market =store =hospital =museum \
=library =hotel town animal_sized =car =bus =boat =television =refrigerator =tree =ball =dish =umbrella |
small                 | 작다       | =bag =box furniture sized =store =cafe room =museum =dog =cat =bird \
=rabbit =car =television =camera =phone =radio =cup =doll =ball =flower |
long                  | 길다       | =letter =email =skirt =pants =coat =movie =novel =story =song =river \
=report |
short                 | 짧다       | =letter =email =skirt =pants =movie =novel =story =song |
pretty                | 예쁘다     | =shirt =skirt =dress =coat =hat =shoes =ring =flower =doll =girl =bag \
=cup |
beautiful             | 아름답다:ㅂ | =flower =song =music =picture =sea =garden =mountain =city =river \
=beach |
cute                  | 귀엽다:ㅂ  | pet little =doll =monkey =fox |
good                  | 좋다       | =book =novel =story =movie melody =report |
expensive             | 비싸다     | goods food alcohol |
cheap                 | 싸다       | goods food alcohol |
heavy                 | 무겁다:ㅂ  | weighty =stone =bed =bicycle |
light                 | 가볍다:ㅂ  | =bag =chair =computer =camera =umbrella =shoes =bicycle =coat |
fast                  | 빠르다:르  | vehicle =horse =tiger |
slow                  | 느리다     | =bus =train =boat =car =computer |
hot                   | 뜨겁다:ㅂ  | hot =coffee =tea =water |
cold                  | 차갑다:ㅂ  | =water =milk =juice =beer =coffee =noodles |
hot                   | 덥다:ㅂ    | room =office |
cold                  | 춥다:ㅂ    | room =office |
warm                  | 따뜻하다   | warm =room =classroom =bread |
clean                 | 깨끗하다   | room clothes_cloth dish =restaurant =hotel =park =river =beach |
dirty                 | 더럽다:ㅂ  | room clothes_cloth dish =shoes =river =car |
delicious             | 맛있다     | food grain =coffee =tea =juice =beer |
spicy                 | 맵다:ㅂ    | spicy |
sweet                 | 달다       | sweet fruit |
fresh                 | 신선하다   | fresh |
red                   | 빨갛다:ㅎ  | colored =apple =strawberry =tomato |
blue                  | 파랗다:ㅎ  | colored =sea |
yellow                | 노랗다:ㅎ  | colored =banana |
white                 | 하얗다:ㅎ  | colored =dog =cat =rabbit =bird =horse |
black                 | 까맣다:ㅎ  | colored =dog =cat =bird =horse |
easy                  | 쉽다:ㅂ    | study =song =book =homework |
difficult             | 어렵다:ㅂ  | study =song =book =homework =novel |
interesting           | 재미있다   | =book =newspaper =novel =story =movie study =soccer =baseball =tennis \
=basketball |
boring                | 지루하다   | =movie =book =novel =story =history =report |
important             | 중요하다   | =report =homework study =letter =email |
quiet                 | 조용하다   | =library =room =classroom =office =hotel =cafe =museum =park |
noisy                 | 시끄럽다:ㅂ | =station =market =restaurant =classroom =playground =city |
bright                | 밝다       | room =office =library |
dark                  | 어둡다:ㅂ  | room |
spacious              | 넓다       | room =park =playground =garden =library =office |
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

# Traits of people and animals, which last: people do not stop being tall.
TRAITS = """
kind                  | 친절하다   | person |
smart                 | 똑똑하다   | person |
tall                  | 키가 크다  | person |
strong                | 힘이 세다  | =man =woman =soldier =police_officer =farmer =boy =friend =cousin \
name =horse =cow =bear =tiger =lion |
diligent              | 부지런하다 | person |
lazy                  | 게으르다:르 | =student =boy =girl =man =woman =friend =cousin name =cat |
brave                 | 용감하다   | =soldier =police_officer =boy =girl =child =man =woman name |
famous                | 유명하다   | =singer =writer =painter =actor =scientist =chef =doctor |
"""

# Adjectives that are used only before a noun. "The bag is new" would need another Korean word than 새.
ATTRIBUTES = """
new                   | 새         | clothes mended furniture instrument =bag =box =wallet =cup =dish =toy \
=doll =ball =book =novel =movie =car =knife =umbrella =ring |
old                   | 오래되다   | clothes mended furniture instrument =bag =box =wallet =book \
=newspaper =toy =doll =ball =house =car =map =picture =umbrella =ring =knife |
young                 | 젊다       | adult_job =man =woman |
"""

# Adjectives that can express a complaint and so take "too": nothing is too fresh.
COMPLAINTS = (
    "big small long short expensive heavy slow hot cold dirty spicy sweet difficult boring noisy dark far"
)
# Adjectives that are used before a noun only in superlatives ("the most expensive camera"), because most
# verbs do not fit ("she ate from the dirty dish").
PREDICATIVE = "far near clean dirty heavy slow dark noisy boring dangerous expensive cheap hot/덥다 cold/춥다"
# The only adjectives for the object of a verb in CREATION: "bake a delicious cake", not "bake a cheap cake".
ADJECTIVES_OF_CREATIONS = (
    "big small long short pretty beautiful good delicious sweet spicy warm interesting cute"
)
# Adjectives that express an opinion about a thing. A colour, for example, is not an opinion.
OPINIONS = (
    "big small pretty beautiful cute good expensive cheap delicious spicy easy difficult interesting boring "
    "important quiet noisy far scary dangerous spacious"
)
