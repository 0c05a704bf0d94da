"""Tables of the nouns of the corpus.

A row is: English, Korean, counter (권 in 책 두 권), classes. A mark before the English gives the form: `~`
is a mass noun (bread), `+` a noun that is always plural (pants), `=` a name. `child/children` gives an
irregular plural. `_` is a space. Classes restrict the verbs and adjectives of a noun, so that no chair
eats. The classes `struck` and `bowed` decide whether an instrument is played with 치다 or 켜다.
"""

from __future__ import annotations

PEOPLE = """
student          학생      명  person job young tutor
doctor           의사      명  person job adult adult_job
nurse            간호사    명  person job adult adult_job
singer           가수      명  person job adult adult_job
writer           작가      명  person job adult adult_job tutor
farmer           농부      명  person job adult adult_job seller
chef             요리사    명  person job adult adult_job
painter          화가      명  person job adult adult_job
soldier          군인      명  person job adult adult_job
actor            배우      명  person job adult adult_job
scientist        과학자    명  person job adult adult_job tutor
police_officer   경찰관    명  person job adult adult_job
child/children   아이      명  person young little
boy              소년      명  person young little
girl             소녀      명  person young little female
man/men          남자      명  person adult seller tutor
woman/women      여자      명  person adult seller tutor female
friend           친구      명  person adult kin seller tutor
cousin           사촌      명  person adult kin seller tutor
younger_brother  남동생    명  person young kin
younger_sister   여동생    명  person young kin female
son              아들      명  person young kin
daughter         딸        명  person young kin female
mother           어머니    분  elder kin ours female
father           아버지    분  elder kin ours
grandmother      할머니    분  elder kin ours female
grandfather      할아버지  분  elder kin ours
teacher          선생님    분  elder ours
professor        교수님    분  elder ours
=Minsu           민수      명  person adult name seller tutor
=Jisu            지수      명  person adult name seller tutor female
=Yuna            유나      명  person adult name seller tutor female
=Mina            미나      명  person adult name seller tutor female
=Minho           민호      명  person adult name seller tutor
=Junho           준호      명  person adult name seller tutor
=Sora            소라      명  person adult name seller tutor female
=Jimin           지민      명  person adult name seller tutor female
"""

ANIMALS = """
dog              개        마리  animal pet runner hunter animal_sized
cat              고양이    마리  animal pet runner hunter
bird             새        마리  animal pet
rabbit           토끼      마리  animal pet runner
horse            말        마리  animal farmed runner mount animal_sized
cow              소        마리  animal farmed animal_sized
duck             오리      마리  animal farmed
mouse/mice       쥐        마리  animal tiny
fox              여우      마리  animal wild runner hunter
tiger            호랑이    마리  animal wild runner fierce hunter animal_sized
bear             곰        마리  animal wild fierce animal_sized
lion             사자      마리  animal wild runner fierce hunter animal_sized
monkey           원숭이    마리  animal wild
"""

FOOD = """
apple            사과      개    food fruit fresh red
banana           바나나    개    food fruit fresh yellow
orange           오렌지    개    food fruit fresh
strawberry       딸기      개    food fruit fresh red
potato           감자      개    food vegetable fresh baked
tomato           토마토    개    food vegetable fresh red
carrot           당근      개    food vegetable fresh
egg              달걀      개    food fresh fragile
cookie           쿠키      개    food baked sweet homemade baked_goods
cake             케이크    개    food baked sweet homemade baked_goods
sandwich         샌드위치  개    food homemade
~bread           빵        개    food baked fresh homemade baked_goods
~rice            밥        그릇  grain hot
~meat            고기      근    food cooked
~fish            생선      마리  food cooked fresh
~soup            수프      그릇  food hot homemade spicy
~kimchi          김치      포기  food spicy homemade
~chocolate       초콜릿    개    food sweet homemade
~ice_cream       아이스크림 개   food sweet
~fruit           과일      개    food fresh washable
+noodles         국수      그릇  food hot spicy homemade
+vegetables      채소      개    food fresh washable cooked
~water           물        잔    drink beverage brewed
~milk            우유      잔    drink beverage brewed fresh
~coffee          커피      잔    drink beverage brewed sweet
~tea             차        잔    drink beverage brewed
~juice           주스      잔    drink beverage sweet
~beer            맥주      잔    drink alcohol
~breakfast       아침      끼    meal
~lunch           점심      끼    meal
~dinner          저녁      끼    meal
"""

CULTURE = """
book             책        권    text goods portable lent brought
newspaper        신문      부    text goods portable brought
novel            소설      편    text writing
letter           편지      통    text writing sent lengthy
email            이메일    통    text writing sent lengthy
report           보고서    개    text writing duty
story            이야기    편    text heard known
movie            영화      편    film known
~news            뉴스      개    heard definite
~music           음악      곡    heard melody
song             노래      곡    heard melody sung known
radio            라디오    대    heard device goods mended device_small
~Korean          한국어    개    study language
~English         영어      개    study language
~history         역사      개    study
~math            수학      개    study
~science         과학      개    study
~soccer          축구      개    sport team
~baseball        야구      개    sport team
~tennis          테니스    개    sport
~basketball      농구      개    sport team
piano            피아노    대    instrument struck goods
guitar           기타      대    instrument struck goods
violin           바이올린  대    instrument bowed goods
~homework        숙제      개    duty study_duty
~medicine        약        알    medicine
"""

CLOTHES = """
shirt            셔츠      벌    goods clothes worn_body colored clothes_cloth
skirt            치마      벌    goods clothes worn_body colored lengthy clothes_cloth
dress            원피스    벌    goods clothes worn_body colored clothes_cloth
coat             코트      벌    goods clothes worn_body colored warm clothes_cloth
+pants           바지      벌    goods clothes worn_body colored lengthy clothes_cloth
+shoes           신발      켤레  goods clothes worn_foot colored
+socks           양말      켤레  goods clothes worn_foot colored warm clothes_cloth
+boots           장화      켤레  goods clothes worn_foot colored
hat              모자      개    goods clothes worn_head colored clothes_cloth
+glasses         안경      개    goods clothes worn_head portable
+gloves          장갑      켤레  goods clothes worn_hand colored warm clothes_cloth
ring             반지      개    goods small worn_finger portable
"""

THINGS = """
bag              가방      개    goods container colored portable weighty opened brought
box              상자      개    goods container colored weighty opened load pushed brought
cup              컵        개    goods dish fragile colored brought
dish             접시      개    goods dish fragile brought
chair            의자      개    goods furniture weighty handmade mended load pushed brought
table            식탁      개    goods furniture weighty handmade surface load pushed
desk             책상      개    goods furniture weighty handmade surface load pushed
bed              침대      개    goods furniture handmade surface pushed
door             문        개    shut
window           창문      개    shut fragile
house            집        채    built cleaned ours sized
clock            시계      개    goods mended
phone            휴대폰    대    goods portable used mended brought device_small
computer         컴퓨터    대    goods used mended device weighty device_small
television       텔레비전  대    goods mended device watched device_small
camera           카메라    대    goods portable used mended weighty lent brought device_small
refrigerator     냉장고    대    goods container mended
umbrella         우산      개    goods portable few colored lent brought
key              열쇠      개    portable small brought
wallet           지갑      개    goods portable small brought few
pencil           연필      자루  goods small used tool_write lent brought
knife/knives     칼        개    goods used brought
spoon            숟가락    개    goods used
map              지도      장    goods used drawn shown brought
picture          그림      장    goods drawn shown collected
photo            사진      장    shown sent photographed brought
gift             선물      개    goods sent given
flower           꽃        송이  goods plant drawn given colored
tree             나무      그루  plant drawn
stone            돌        개    thrown dropped collected found
ball             공        개    goods thrown dropped colored brought
toy              장난감    개    goods handmade collected given dropped
doll             인형      개    goods handmade collected given
ticket           표        장    small portable brought
~money           돈        푼    sent lent needed brought
light            불        개    lamp definite
car              자동차    대    vehicle driven goods colored mended
bicycle          자전거    대    mount goods colored mended lent pushed
bus              버스      대    vehicle driven transit
train            기차      대    vehicle transit
taxi             택시      대    vehicle driven transit
subway           지하철    대    transit definite
boat             배        척    vehicle transit
airplane         비행기    대    vehicle transit
"""

# A place has two more columns before its classes: its English preposition, and whether it takes "the".
PLACES = """
home             집        채    at  -    dining studying resting ours destination returned visited
school           학교      개    at  -    indoor studying meeting ours landmark destination returned visited
library          도서관    개    at  the  indoor studying landmark destination visited
park             공원      개    in  the  outdoor meeting resting playing landmark destination visited
market           시장      개    at  the  shopping landmark destination
store            가게      개    at  the  indoor shopping landmark destination visited
restaurant       식당      개    at  the  indoor dining meeting destination visited
hospital         병원      개    at  the  indoor working landmark destination visited
office           사무실    개    at  the  indoor working cleaned destination returned visited
bank             은행      개    at  the  indoor working landmark destination
museum           박물관    개    at  the  indoor meeting landmark destination visited
station          역        개    at  the  meeting landmark destination
airport          공항      개    at  the  meeting destination
hotel            호텔      개    at  the  indoor resting dining destination returned visited
cafe             카페      개    at  the  indoor dining meeting studying destination visited
bookstore        서점      개    at  the  indoor shopping meeting destination visited
bakery           빵집      개    at  the  indoor shopping working destination visited
company          회사      개    at  the  working ours destination returned visited
kitchen          부엌      개    in  the  indoor cooking cleaned dining room
room             방        개    in  the  indoor studying resting cleaned room
classroom        교실      개    in  the  indoor studying cleaned room
garden           정원      개    in  the  outdoor playing resting
playground       운동장    개    on  the  outdoor playing
farm             농장      개    on  the  outdoor working destination visited
beach            바닷가    개    at  the  outdoor playing resting destination visited
sea              바다      개    in  the  swimming destination
river            강        개    in  the  swimming
mountain         산        개    on  the  outdoor destination
city             도시      개    in  the  town destination visited
=Seoul           서울      개    in  -    town region destination visited
=Busan           부산      개    in  -    town region destination visited
=Korea           한국      개    in  -    region destination visited
=Japan           일본      개    in  -    region destination visited
=America         미국      개    in  -    region destination visited
"""
