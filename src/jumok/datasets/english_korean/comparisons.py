"""Tables of nouns that people compare, and of things of one kind.

Comparisons are true: a chain orders its nouns (mouse < cat < dog). Two nouns of a chain without `<` between
them may be compared in either direction. For the opposite of an adjective, its chains are reversed.
"""

from __future__ import annotations

# Adjective and its opposite, if it has one | chains, separated by semicolons.
CHAINS = """
big small | mouse < bird < rabbit cat < dog < horse; duck < cow horse; fox monkey < tiger lion bear; \
chair < table desk < bed; phone < camera < computer < refrigerator; radio < television < refrigerator; \
violin < guitar < piano; bicycle < car taxi < bus < airplane; room kitchen < classroom; \
house < hotel hospital school museum library; bank store < hospital museum; Busan < Seoul; \
Korea < Japan < America; strawberry < apple orange tomato; bag box; cup dish; flower < tree; doll toy; \
cafe < hotel
long short | story < novel; letter email < report; letter email; skirt pants dress coat; song < movie
heavy light | chair < table desk < bed; bag box; phone < camera < computer < refrigerator; violin < guitar \
< piano; \
newspaper < book; umbrella < bag; bicycle < car
fast slow | boat < bus taxi car < train < airplane; bicycle < bus taxi car; cat < dog rabbit < horse; \
duck < rabbit fox; mouse < fox < tiger lion
expensive cheap | apple banana orange strawberry; potato carrot tomato; cookie cake sandwich bread; \
ice_cream chocolate; juice coffee tea milk; noodles soup < meat fish; socks gloves < shirt skirt \
pants hat < coat; \
dress shirt skirt; shoes boots; chair < table desk bed; newspaper < book; \
clock radio < phone camera < computer refrigerator; guitar violin < piano; bicycle < car; cup dish; spoon \
knife; \
ball doll toy; umbrella bag wallet
clean | room kitchen classroom; cup dish; shirt skirt pants coat; restaurant hotel; river beach
sweet | apple banana orange strawberry; cookie cake chocolate ice_cream; tomato carrot < banana strawberry
easy difficult | Korean English history math science; book novel
interesting | Korean English history math science; book novel movie story; soccer baseball basketball tennis
important | Korean English history math science; letter email report; homework report
quiet | library museum hotel cafe; classroom < library; market station restaurant < museum library
bright dark | room kitchen classroom office
pretty | skirt dress shirt coat; hat shoes
cute | dog cat rabbit bird; rabbit duck monkey; boy girl child
delicious | apple banana orange strawberry; rice noodles soup; meat fish; cookie cake bread sandwich; \
ice_cream chocolate; coffee tea juice milk
beautiful | sea mountain garden river; song music; beach river
spacious | room kitchen classroom office; park garden playground; room kitchen < library
strong | mouse < cat < dog < horse; rabbit < fox < bear tiger lion; duck < cow horse; monkey < bear; \
Minsu Jisu Yuna Mina Minho Junho Sora Jimin; soldier police_officer farmer; child boy girl < man woman; \
younger_brother cousin friend
kind | Minsu Jisu Yuna Mina Minho Junho Sora Jimin; doctor nurse police_officer; singer actor; man woman; \
cousin friend; \
younger_brother younger_sister; chef farmer; boy girl
smart | Minsu Jisu Yuna Mina Minho Junho Sora Jimin; doctor scientist writer; boy girl child; man woman; \
cousin friend; \
younger_brother younger_sister; son daughter; dog cat; bird < monkey
tall | Minsu Jisu Yuna Mina Minho Junho Sora Jimin; child boy girl < man woman; doctor nurse; singer \
actor; soldier farmer chef; \
cousin friend; younger_brother younger_sister; son daughter
diligent | Minsu Jisu Yuna Mina Minho Junho Sora Jimin; doctor nurse; farmer chef; writer painter; cousin \
friend; \
younger_brother younger_sister; boy girl; man woman
brave | Minsu Jisu Yuna Mina Minho Junho Sora Jimin; soldier police_officer; boy girl child; man woman; \
cousin friend; cat < dog
"""

# Things of one kind, one kind per line. People name them together: "bread and milk" is a purchase, "a map and
# a monkey" is not.
KINDS = """
apple banana orange strawberry
potato tomato carrot
cookie cake bread sandwich
chocolate ice_cream cookie cake
rice soup noodles kimchi
meat fish egg
bread milk egg
water milk juice
coffee tea milk
breakfast lunch dinner
book newspaper
novel letter
letter email
Korean English
history math science
Korean English history
soccer baseball tennis basketball
piano guitar violin
shirt skirt pants coat
shirt dress coat
shoes socks boots
hat gloves coat
cup dish spoon
knife spoon
chair table desk bed
bag umbrella hat
wallet bag
phone computer camera
television radio
toy doll ball
picture map
dog cat bird rabbit
horse cow duck
tiger bear lion
monkey fox bear
flower tree
Korea Japan America
"""
