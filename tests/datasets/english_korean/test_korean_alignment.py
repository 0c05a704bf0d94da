"""Generated alignments equal alignments annotated by hand, in Pharaoh format.

`0-1` is a sure link, `0?1` is a link that is only possible.
"""

from __future__ import annotations

import pytest

from support.guided import find_pair

ALIGNMENTS = """
somebody goes | I go home. | 0-0 1-2 2-1 3-3
somebody goes | <polite> I go home. | 0?2 1-0 2-2 3-1 4-3
somebody goes | He lives in Seoul. | 0-0 1-2 2?1 3-1 4-3
somebody goes | I go to school every day. | 0-0 1-3 2?2 3-2 4-1 5-1 6-4
transitive statement | She will not choose the hat. | 0-0 1-4 2-3 3-2 3?4 2?4 4?1 5-1 6-5
transitive statement | They do not know me. | 0-0 1?2 2-2 3-2 4-1 5-3
thing is adjective | The apple is very sweet. | 0?0 1-0 2?2 3-1 4-2 5-3
somebody is something | Minsu is not a doctor. | 0-0 1?2 2-2 3?1 4-1 5-3
somebody is something | She is a nurse. | 0-0 1?1 2?1 3-1 4-2
there is | There is a cat under the table. | 0?3 1-3 2?2 3-2 4-1 5?0 6-0 7-4
counted objects | Yuna bought three apples. | 0-0 1-4 2-2 2-3 3-1 3?3 4-5
measured objects | I drank two cups of coffee. | 0-0 1-4 2-2 3-3 4?3 5-1 6-5
somebody can | She cannot drive the car. | 0-0 1-3 1-4 2-2 2?3 2?4 3?1 4-1 5-5
somebody has to | We have to clean the room. | 0-0 1-3 2?2 2?3 3-2 3?3 4?1 5-1 6-4
is it adjective | <polite> Are you tired? | 0?0 1?0 2?0 3-0 4-1
the thing that | The book that I read is interesting. | 0?2 1-2 2?1 3-0 4-1 5?3 6-3 7-4
state so | I was tired, so I slept. | 0-0 1?1 2-1 4?1 5?0 6-2 7-3
when | When will they study science? | 0-1 1-4 2-0 3-3 3?4 4-2 5-5
"""


def _rows() -> list[tuple[str, str, set[str]]]:
    rows = [[cell.strip() for cell in line.split(" | ")] for line in ALIGNMENTS.strip().splitlines()]
    return [(pattern, english, set(links.split())) for pattern, english, links in rows]


@pytest.mark.parametrize(("pattern", "english", "links"), _rows())
def test_alignments_equal_those_annotated_by_hand(pattern: str, english: str, links: set[str]) -> None:
    pair = find_pair(pattern, english)
    assert pair is not None
    assert set(str(pair.alignment).split()) == links
