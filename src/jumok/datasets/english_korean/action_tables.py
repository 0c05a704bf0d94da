"""Tables of actions that belong together: sequences, conditions and results, topics.

An action is a verb and its objects or goals, which are a class of nouns (`eat meal`: any noun of the class
`meal`) or single nouns (`go =park`). If none are given (`sleep`), all objects or goals of the verb are meant.
A verb is named as in the table of verbs, with its Korean if only one row is meant: `take/타다 =bus`. Actions
are separated by semicolons.
"""

from __future__ import annotations

# What people do in turn: earlier | later. This table is for sentences with "after", "before" and "and".
SEQUENCES = """
buy =meat =fish =noodles =vegetables =egg | make =soup; prepare =dinner =lunch
wash =vegetables =carrot =tomato | make =soup =sandwich; cook =meat =fish; prepare =lunch =dinner
cook; bake; make =soup =noodles =sandwich =cake; prepare meal | wash dish; clean =kitchen; rest; drink \
=coffee =tea
cook =meat =fish =vegetables | eat =rice =kimchi =bread; drink =water =juice
eat meal =rice =noodles =meat =soup | drink =coffee =tea =milk =water =juice; wash dish; take/먹다; walk; \
rest; clean =kitchen
eat meal =rice =noodles | watch =movie =television =news; listen_to =music =radio; exercise; study; go \
=park =cafe
study; do; finish; write =report =email =letter; work | rest; sleep; watch =movie =television; listen_to \
=music =radio
study; do; finish; write =report | eat =ice_cream =cookie =cake =fruit meal; drink =coffee =tea =juice; \
play team =tennis; exercise; walk
clean | rest; drink =coffee =tea =water =juice; cook; bake; prepare =dinner =lunch; sleep; listen_to =music
exercise; run; swim; play team =tennis; dance | rest; drink =water =juice =milk; eat meal =fruit =banana; \
sleep
watch =movie =television =news; listen_to =music =radio; drink =milk =tea; write =letter =email; turn_off \
| sleep
take_off =coat =shoes =socks =hat =gloves | rest; sleep; watch =television =movie; drink =tea =water; \
clean =room
turn_off =television =computer =radio =light; close =door =window | sleep; go =school =office =home; rest
turn_on =light | study; write =letter =email =report; do; clean =room; cook
turn_on =radio | listen_to =music =news =song; dance; clean
turn_on =computer | write =email =report; watch =movie; study
open =window =door | clean =room =kitchen =house
wear =coat =shoes =hat =gloves =boots | go =park =market =school =store =mountain; walk
buy =ticket | take/타다 =train =airplane =boat =bus; watch =movie; go =Busan =Seoul =Japan
meet =friend =cousin name | eat meal =noodles =cake; drink =coffee =tea; watch =movie; walk; play team \
=tennis; go =cafe =park =museum
plant; fix; move/옮기다; carry | rest; drink =water =juice =coffee; eat meal
wash dish =fruit; pour =coffee =tea | rest; watch =television =news; listen_to =radio
practice sport; practice instrument | rest; drink =water; go =home; listen_to =music
buy =book =novel =newspaper =flower =gift =cake | go =home =park =cafe; meet =friend =cousin name
"""

# Conditions, and what other people do because of them: condition | result. Both may be negated together.
REWARDS = """
clean =room =house =kitchen; wash dish; do; finish =homework; study | buy =toy =doll =ball =bicycle =cake \
=ice_cream =chocolate; \
make =cookie =cake =sandwich =noodles; bake =cookie =cake =bread; cook =meat =fish
buy =meat =fish =egg =noodles =vegetables | make =soup; prepare =dinner =lunch
buy =egg =milk | bake =cake =cookie =bread; make =cake =cookie
cook; bake =bread =cake; make =soup =sandwich; prepare meal | wash dish; clean =kitchen; buy =fruit =juice \
=milk =ice_cream
wash =vegetables =tomato =carrot | make =soup =sandwich; prepare =lunch =dinner
sing; play instrument | dance; sing
turn_on =television | watch =movie =news =television; turn_off =radio =light
turn_on =radio | dance; listen_to =music =news; turn_off =television
turn_on =light | study; clean =room
turn_off =television =radio | study; sleep; rest
turn_off =light | sleep
move/옮기다 =desk =chair =bed =table =box; open =window | clean =room
bring =camera | take/찍다
buy =ticket | watch =movie
come =home =Seoul =Busan =Korea | cook; bake; make homemade; clean =room =house; prepare meal
"""

# Conditions, and what the same person does because of them.
CONSEQUENCES = """
finish; do | rest; sleep; play team =tennis; watch =movie =television; go =park =home =cafe
take/먹다 | sleep; rest
go =market =store | buy food
go =bakery | buy baked_goods =sandwich
go =library | study; borrow =book
go =bookstore | buy =book =novel =newspaper =map
go =cafe | drink =coffee =tea =juice; eat =cake =cookie =sandwich; meet =friend =cousin name
go =restaurant | eat =meat =fish =noodles =soup; meet =friend =cousin name
go =Korea | learn =Korean; visit =museum; eat =kimchi; meet =friend
go =park | take/찍다; rest; walk; exercise; ride =bicycle; draw =flower =tree
go =beach | take/찍다; rest; walk; swim
go =mountain | take/찍다; rest; draw =flower =tree
buy =camera; borrow =camera | take/찍다
borrow =bicycle | go =park =beach =school =market
buy =car | travel; sell =bicycle
buy =bicycle | sell =car; exercise
buy =ticket | watch =movie; take/타다 =train =airplane =boat; go =Busan =Seoul =Japan
buy =vegetables =meat =fish =noodles | make =soup; prepare =dinner =lunch
sell =house =car | buy =house =car; move/이사하다; travel
meet =friend =cousin name | eat meal =noodles =cake; drink =coffee =tea; watch =movie; play team =tennis; \
go =cafe =park
travel; go =Japan =America | take/찍다; buy =gift; visit =museum; write =letter; send =photo
receive =money | buy =camera =computer =phone =bicycle =coat =shoes =guitar =bed
bake; cook; make homemade | invite =friend =cousin name
"""

# Topics on which people are compared: "I drink coffee, and Minsu drinks tea."
TOPICS = """
cook; bake; clean; wash; watch; listen_to =music =radio; rest; sleep; make homemade; prepare; draw; \
practice instrument; write; study
study; learn study; teach; do; write =report =letter =email; practice instrument
play; swim; run; walk; exercise; ride; practice sport; dance; go =park =beach =mountain =playground
buy; choose; go =market =store =bookstore =bakery
eat; drink
eat; drink; buy food drink; cook; bake
go region; take/타다 =train =airplane =bus =boat; visit region
like food drink; hate food drink
like sport; hate sport
play team =tennis; practice sport; learn sport
like study; hate study
like animal; hate animal
raise =dog =cat =bird =rabbit
take/타다; drive; ride; walk; run
clean; wash; cook; fix; move/옮기다; carry; buy =vegetables =fruit =meat =milk
meet; help; wait_for; invite
"""

# Work, and what another person does meanwhile: "I worked, but Minsu slept."
CONTRASTS = """
work; study; clean; cook; write =report =email; do; wash dish; fix; move/옮기다; carry | rest; sleep; \
watch; listen_to =music =radio; dance; \
play team =tennis; play instrument; drink =coffee =tea; go =park =cafe =beach; eat =cake =ice_cream =cookie
go =school =office =library | go =park =beach =home =hospital; rest; sleep; stay =hotel
take/타다 =bus =train =subway | walk; take/타다 =taxi; drive =car; ride =bicycle
"""

# What is said about a person: "The man who lives in Seoul likes coffee."
ACTIONS_OF_DESCRIBED_PEOPLE = """
like food drink sport study animal; hate food drink sport study animal; eat meal; drink beverage; study; \
learn; teach; write =novel =letter; \
play sport; play instrument; raise =dog =cat =bird; buy =car =house =bag =flower =cake =camera; sell =car \
=fruit =bread; meet; help; invite; \
visit; take/타다; drive; ride; go; come; watch =movie =news; listen_to =music =news =radio; cook; bake; \
clean; practice; fix; draw; lose; \
find; receive; send =letter =gift =email; know; trust; love; miss; understand study; plant; build =house
"""

# What people hope of others.
HOPED_ACTIONS = """
come; return; go =hospital =Korea; study; learn; cook; bake; make homemade; help; sing; dance; rest; \
sleep; invite; send =letter =email =photo; write =letter =email =novel; clean; finish; buy =house =car \
=cake =flower; \
practice; play instrument
"""

# What people do at home when it rains or snows, and what they then do not do.
INDOORS = """
watch =movie =television =news; listen_to =music =radio; clean =room =house =kitchen; bake =cookie =cake \
=bread; \
make =soup =noodles =cookie =cake; cook =meat =fish; rest; sleep; study; write =letter =email; draw =flower \
=cat =dog; \
play instrument; practice instrument
"""
OUTDOORS = """
swim; run; walk; exercise; ride =bicycle; plant =flower =tree; play team =tennis; go =park =beach =mountain; \
take/찍다
"""

# Effects of a state: state | what people then do | what they then do not do.
EFFECTS_OF_STATES = """
tired   | sleep; rest; go =home | exercise; study; run; walk; work; clean; cook; dance; play team
busy    | | watch; play team =tennis; travel; rest; meet =friend name; sleep; exercise; cook; clean; eat \
=lunch =breakfast
sick    | rest; sleep; take/먹다; go =hospital | work; exercise; swim; study; drive; go =school =office; \
play team
hungry  | eat food grain meal; cook; make =sandwich =soup =noodles; buy =bread =sandwich =banana | study; \
exercise; clean; dance
thirsty | drink =water =juice =milk; buy =water =juice | run; dance; walk; exercise
happy   | laugh; sing; dance | cry
sad     | cry; listen_to =music =song | laugh; dance; sing; eat =dinner =lunch
lonely  | cry; raise =dog =cat =bird =rabbit; meet =friend =cousin; invite =friend =cousin; write =letter \
=email | laugh; sing; dance
"""

# What people are doing when something happens, and what happens.
LASTING_ACTIONS = """
watch; listen_to; cook; bake; clean; write; draw; study; sleep; rest; cry; dance; exercise; eat; drink; \
wash; practice instrument; \
play instrument; fix; make homemade; do; prepare meal
"""
MOMENTS = """
open =door =window; close =door =window; turn_on; turn_off; break; finish; find
"""
# What people do with their ears, mouth or face | what they do meanwhile: "She sings while she cooks."
WHILE = """
listen_to =music =radio =song =news | cook; clean; study; walk; work; exercise; drive; draw; bake; make \
homemade; write; wash; run
sing | cook; clean; walk; work; drive; bake; make homemade; wash; ride =bicycle; dance
drink =coffee =tea =juice =water =milk | study; work; write; wait; watch =movie =television =news; walk; \
listen_to =music =radio; draw; rest
eat =apple =banana =cookie =bread =sandwich =chocolate =ice_cream =cake | watch =movie =television =news; \
walk; work; study; wait; listen_to =music =radio
cry | write =letter; watch =movie; listen_to =song =music
laugh | watch =movie =television; dance; play team
"""

# Actions that people request, forbid, permit and propose, and actions that people have to do.
REQUESTED_ACTIONS = """
open; close; turn_on; turn_off; clean; wash; eat; drink; read; write =letter =email =report; study; do; \
finish; practice; sing; \
buy; cook; bake; make homemade; use; find; bring; choose; draw; take/찍다; take/타다; take/먹다; send; \
throw =ball; catch =ball; \
push; move/옮기다; carry; pick_up; pour; plant; take_off; help; wait_for; invite; prepare; visit =museum \
=farm; listen_to; watch; \
learn; borrow; hug little; run; walk; sleep; rest; exercise; dance; wait; go; come; return; sit; drive; wear
"""
FORBIDDEN_ACTIONS = """
open; close; turn_on; turn_off; eat food; drink; use; buy; sell; read =letter =email =newspaper; \
take/찍다; throw; push; \
move/옮기다; drive; ride; wear; take_off; borrow; bring; send; pour; sing; play team =tennis; play \
instrument; watch; listen_to; \
invite; wait_for; run; swim; sleep; dance; laugh; cry; go =sea =river =mountain =beach =park =market \
=office; sit; pick_up; \
meet; forget; lose; break; trust =man =woman name; take/타다 =boat =airplane =train =taxi
"""
PERMITTED_ACTIONS = """
open; close; turn_on; turn_off; eat food; drink; use; buy; sell; read; take/찍다; move/옮기다; drive; \
ride; wear; take_off; borrow; \
bring; send; sing; play; watch; listen_to; invite; choose; run; swim; sleep; rest; dance; go; come; \
return; sit; draw; pick_up; \
meet; take/타다; study =English =Korean =math; cook; bake; practice; wait; visit; plant
"""
PROPOSED_ACTIONS = """
eat; drink; study; watch; listen_to; sing; play; buy; make homemade; cook; bake; clean; wash; go; return; \
visit; meet; help; \
wait_for; plant; ride; take/타다; take/찍다; invite; rest; walk; run; swim; dance; exercise; travel; \
prepare; learn; practice; \
fix; move/옮기다; open; close; turn_on; turn_off; sell; choose; draw; send; leave; stay; wait; raise =dog \
=cat =bird =rabbit; find; use
"""
OBLIGATORY_ACTIONS = """
clean; wash; do; finish; study; learn study; teach; write =report =letter =email; practice; work; go; \
come; return; take/먹다; \
take/타다; buy; sell =car =house =bicycle =computer =camera; cook; prepare; fix; move/옮기다; carry; \
bring; send; find; borrow; help; \
meet; wait_for; invite; visit; use; open; close; turn_on; turn_off; drive; wear =coat =gloves =boots =hat \
=glasses =shoes; \
take_off =shoes =coat =hat =gloves; exercise; rest; sleep; wait; run; walk; leave; choose; plant; build; \
read =book =newspaper \
=report =letter
"""
# What people want, plan and decide to do, and what they can do.
WANTED_ACTIONS = """
eat; drink; read; write; study; learn; teach; speak; practice; finish; watch; listen_to; sing; play; buy; \
sell; make; cook; bake; \
clean; fix; borrow; choose; draw; take/찍다; take/타다; ride; drive; send; collect; plant; build; \
raise; wear; help; \
meet; wait_for; invite; prepare; visit; sleep; walk; run; swim; work; rest; dance; exercise; travel; wait; \
get_up; go; \
come; return; move/이사하다; leave; live; stay; sit; open; move/옮기다
"""
# Plans that a question with "will you" asks about. With a small task, "Will you open the door?" is a request.
PLANS = """
leave; travel; visit; move/이사하다; go; return; stay; live; study; learn; teach; work; practice; exercise; \
swim; meet; invite; build; raise; take/타다; ride; write =novel; \
buy =house =car =bicycle =computer =camera =phone =television =refrigerator =piano =guitar =violin \
furniture; \
sell =house =car =bicycle =computer =camera =piano furniture
"""
POSSIBLE_ACTIONS = """
eat food; drink; read; write; study; learn; teach; speak; practice; do; finish; watch; listen_to; sing; \
play sport; play instrument; buy; sell; make; cook; \
bake; wash; clean; open; close; turn_on; turn_off; fix; use; find; borrow; bring; choose; draw; take/찍다; \
take/타다; ride; drive; send; \
throw; catch; push; carry; move/옮기다; plant; build; raise; help; meet; wait_for; invite; understand; \
remember; prepare; visit; \
sleep; walk; run; swim; work; rest; dance; exercise; travel; wait; go; come; return; stay; trust
"""
# Actions that people like, have done before, know how to do, or began.
PASTIMES = """
read =book =novel =newspaper =story; watch; listen_to; cook; bake; draw; sing; swim; walk; run; dance; \
travel; exercise; learn; \
study; ride; drive =car; collect; raise; plant; eat food; drink; make homemade; write =letter =novel \
=email; play; take/찍다; clean; teach; \
practice; meet =friend =cousin; visit region =museum; take/타다 =train =airplane =boat =bus
"""
EXPERIENCES = """
eat =kimchi =fish =strawberry =carrot =chocolate =ice_cream =cake =noodles; drink =beer =coffee =tea; \
ride; drive; raise; \
make =kimchi =cake =chocolate =cookie =bread =doll =toy =chair =noodles; bake; learn; teach; visit; meet; \
fix; draw; plant; \
write =novel =letter =report; play; borrow =umbrella =camera =bicycle; take/타다 =airplane =boat =train \
=subway; use =map =camera =computer; \
build =house =hotel; collect; read =novel =newspaper; sing; sell =car =bicycle =computer =camera =fruit; \
practice; invite; help; send =letter =email =gift; receive =letter =gift
"""
SKILLS = """
drive; ride; swim; dance; bake; cook; make homemade handmade; fix; speak; use =computer =camera =map; \
draw; play sport; play instrument; raise; plant; sing
"""
BEGUN_ACTIONS = """
read; write; study; learn; teach; practice; cook; clean; draw; collect; build; raise; make; eat food; \
listen_to; sing; cry; laugh; walk; \
run; dance; work; exercise; play; wash; bake; watch; prepare; fix; drink; do; sell
"""
