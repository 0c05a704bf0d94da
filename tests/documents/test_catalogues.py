"""XLIFF, Android strings, subtitles and PO files are translated, and other programs can read the results."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from jumok.documents.document import SegmentTranslation
from jumok.documents.registry import read_document
from jumok.errors import DataError
from jumok.text.words import word_spans
from support.office_files import identity, reverse, shout

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en" original="a" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>My name <g id="1">is</g> Michael</source>
      </trans-unit>
      <trans-unit id="2"><source>Hello %s &amp; you<x id="2"/></source><target/></trans-unit>
      <trans-unit id="3"><source>done</source><target state="final">fertig</target></trans-unit>
      <trans-unit id="4" translate="no"><source>kept</source></trans-unit>
      <trans-unit id="5"><source>a <bpt id="1">[</bpt>bold<ept id="1">]</ept> word</source></trans-unit>
      <trans-unit id="6"><source>42</source></trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF_2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f"><unit id="1"><segment>
   <source>My name <pc id="1">is</pc> Michael<ph id="2"/></source>
  </segment><segment><source>a <sc id="3"/>new<ec startRef="3"/> day</source><target></target></segment>
 </unit></file>
</xliff>
"""


def test_xliff_1_units_without_a_translation_are_filled() -> None:
    _, document = read_document("a.xlf", XLIFF_1.encode())
    assert document.segments == ["My name is Michael", "Hello & you", "a bold word"]
    written = reverse(document, "ko").decode()
    expected = XLIFF_1.replace('source-language="en"', 'source-language="en" target-language="ko"')
    expected = expected.replace(
        "Michael</source>",
        'Michael</source>\n        <target state="translated">MICHAEL <g id="1">IS</g> NAME MY</target>',
    )
    filled = '<target state="translated">YOU<x id="2"/> %s &amp; HELLO</target>'
    expected = expected.replace("<target/>", filled)
    expected = expected.replace(
        " word</source>",
        ' word</source><target state="translated">WORD <bpt id="1">[</bpt>BOLD<ept id="1">]</ept> A</target>',
    )
    assert written == expected


def test_an_xliff_unit_with_an_invented_placeholder_is_marked_for_review() -> None:
    _, document = read_document("a.xliff", XLIFF_1.encode())
    written = document.write([SegmentTranslation("%d"), *map(SegmentTranslation, ("one", "two"))]).decode()
    assert '<target state="needs-review-translation">' in written
    assert written.count("needs-review") == 1


def test_xliff_2_segments_without_a_translation_are_filled() -> None:
    _, document = read_document("a.xlf", XLIFF_2.encode())
    assert document.segments == ["My name is Michael", "a new day"]
    written = reverse(document, "ko").decode()
    assert 'srcLang="en" trgLang="ko"' in written
    assert '\n   <target>MICHAEL<ph id="2"/> <pc id="1">IS</pc> NAME MY</target>\n' in written
    assert '<target>DAY <sc id="3"/>NEW<ec startRef="3"/> A</target>' in written
    ElementTree.fromstring(written)  # raises an error if it is not well-formed


def xliff_2(content: str) -> str:
    return XLIFF_2[: XLIFF_2.index("<unit")] + content + "</file></xliff>"


@pytest.mark.parametrize(
    "attributes", ["", ' state="initial"', " subState='x:y' state = 'initial' id=\"s1\""]
)
@pytest.mark.parametrize("target", ["", "<target/>", "<target xml:lang='ko'> </target>"])
def test_a_newly_translated_segment_of_xliff_2_gets_a_new_state(attributes: str, target: str) -> None:
    """The state is "translated", or "initial" if the translation has a placeholder that the source lacks."""
    source = "<source>You have <ph id='1'/> %s files</source>"
    text = xliff_2(f"<unit id='1'><segment{attributes}>{source}{target}</segment></unit>")
    _, document = read_document("a.xlf", text.encode())
    [segment] = document.segments
    written = shout(document).decode()
    id_ = ' id="s1"' if "id=" in attributes else ""
    assert f'<segment{id_} state="translated">{source}<target' in written
    assert "subState" not in written
    invented = document.write([SegmentTranslation(f"{segment} %d")]).decode()
    assert f'<segment{id_} state="initial" subState="jumok:needs-review">' in invented
    # A segment that needs a review is not translated again.
    assert read_document("a.xlf", invented.encode())[1].segments == []
    ElementTree.fromstring(invented)  # raises an error if it is not well-formed


@pytest.mark.parametrize("state", ["translated", "reviewed", "final"])
@pytest.mark.parametrize("target", ["", "<target/>", "<target>a word</target>", "<target>낱말</target>"])
def test_a_finished_segment_of_xliff_2_stays(state: str, target: str) -> None:
    segment = f'<segment state="{state}" subState="x:y"><source>a word</source>{target}</segment>'
    text = xliff_2(f"<unit id='1'>{segment}</unit>").encode()
    _, document = read_document("a.xlf", text)
    assert (document.segments, shout(document)) == ([], text)


def test_a_unit_inherits_translate_from_its_nearest_ancestor() -> None:
    unit = "<unit{}><segment><source>{}</source></segment></unit>"
    text = xliff_2(
        "<group translate='no'>"
        + unit.format("", "one")
        + unit.format(" translate='yes'", "two")
        + "</group>"
    )
    _, document = read_document("a.xlf", text.encode())
    assert document.segments == ["two"]
    expected = text.replace(
        "<segment><source>two</source>", '<segment state="translated"><source>two</source>'
    )
    expected = expected.replace("two</source>", "two</source><target>TWO</target>")
    assert shout(document).decode() == expected


@pytest.mark.parametrize("source", ["srcLang='en'", 'srcLang = "en"'])
def test_the_target_language_of_xliff_is_declared_for_any_quotes(source: str) -> None:
    text = XLIFF_2.replace('srcLang="en"', source)
    written = shout(read_document("a.xlf", text.encode())[1], "ko").decode()
    assert f'{source} trgLang="ko"' in written
    for declared in ("trgLang='fr'", 'trgLang = "fr"'):
        text = XLIFF_2.replace('srcLang="en"', f"{source} {declared}")
        assert f"{source} {declared}>" in shout(read_document("a.xlf", text.encode())[1], "ko").decode()


def test_xliff_in_utf_16_stays_in_utf_16() -> None:
    data = XLIFF_1.replace("UTF-8", "UTF-16").encode("utf-16")
    _, document = read_document("a.xlf", data)
    expected = shout(read_document("a.xlf", XLIFF_1.encode())[1]).decode().replace("UTF-8", "UTF-16")
    assert shout(document).decode("utf-16") == expected


@pytest.mark.parametrize(
    ("text", "module", "name"), [(XLIFF_1, "xliff", "Xliff1File"), (XLIFF_2, "xliff2", "Xliff2File")]
)
def test_translate_toolkit_reads_what_is_written(text: str, module: str, name: str) -> None:
    storage = pytest.importorskip(f"translate.storage.{module}", reason="needs translate-toolkit")
    _, document = read_document("a.xlf", text.encode())
    units = getattr(storage, name).parsestring(shout(document, "ko")).units
    assert any("MICHAEL" in str(unit.target) for unit in units)


ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- a comment -->
    <string name="a">My name <b>is</b> Michael</string>
    <string name="b">Don\\'t say \\"%1$s\\"\\nagain</string>
    <string name="c" translatable="false">kept</string>
    <string name="d">Hi <xliff:g id="n">%s</xliff:g>, you</string>
    <string name="e"><![CDATA[a <i>slanted</i> word]]></string>
    <string name="f">@string/app_name</string>
    <string-array name="g"><item>first</item></string-array>
    <plurals name="h"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>
</resources>
"""


def test_android_strings_keep_escapes_placeholders_and_tags() -> None:
    _, document = read_document("strings.xml", ANDROID.encode())
    assert document.segments == [
        "My name is Michael",
        'Don\'t say ""\nagain',
        "Hi , you",
        "a slanted word",
        "first",
        "file",
        "files",
    ]
    assert identity(document) == ANDROID.encode()
    written = shout(document).decode()
    assert r"""<string name="b">DON\'T SAY \"%1$s\"\nAGAIN</string>""" in written
    assert '<string name="d">HI <xliff:g id="n">%s</xliff:g>, YOU</string>' in written
    assert '<string name="e">A &lt;i&gt;SLANTED&lt;/i&gt; WORD</string>' in written
    assert '<item quantity="one">%d FILE</item><item quantity="other">%d FILES</item>' in written
    assert ">kept<" in written
    assert '<string name="a">MICHAEL <b>IS</b> NAME MY</string>' in reverse(document).decode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"  I go: "', r"\u0020\u0020I GO:\u0020"),
        (r"I go:\u0020", r"I GO:\u0020"),
        (r"\u0020I <b>go</b> home", r"\u0020I <b>GO</b> HOME"),
        ('"I go.  We stay."', r"I GO. \u0020WE STAY."),
        (" I  go\n home ", " I GO HOME "),
        ('"I" go <b>home</b> ', "I GO <b>HOME</b> "),
        (r'"Go to  C:\\" now', r"GO TO \u0020C:\\ NOW"),
    ],
)
def test_android_keeps_protected_spaces_and_collapses_other_spaces(content: str, expected: str) -> None:
    """A space is protected if it is inside quotation marks or is written as `\\u0020`."""
    text = '<resources><string name="a">{}</string></resources>'
    _, document = read_document("strings.xml", text.format(content).encode())
    assert identity(document).decode() == text.format(content)
    written = shout(document).decode()
    assert written == text.format(expected)
    assert read_document("strings.xml", written.encode())[1].segments == [document.segments[0].upper()]


def test_other_xml_is_refused() -> None:
    with pytest.raises(DataError, match="The root of this XML is <project>"):
        read_document("pom.xml", b"<project/>")


VTT = """WEBVTT - a title

NOTE
a note stays

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start
<v Ann>The <i>old</i> man &amp; the
sea are calm.

00:00:03.000 --> 00:00:04.000
- I go.
- You stay.
"""


def test_webvtt_keeps_times_notes_styles_and_entities() -> None:
    _, document = read_document("a.vtt", VTT.encode())
    assert document.segments == ["The old man & the sea are calm.", "I go.", "You stay."]
    assert identity(document) == VTT.encode()
    written = shout(document).decode()
    assert written.startswith(VTT.partition("<v Ann>")[0])
    assert "<v Ann>THE <i>OLD</i> MAN &amp;" in written
    assert written.endswith("- I GO.\n- YOU STAY.\n")


@pytest.mark.parametrize(
    ("cue", "segments", "expected"),
    [
        ("<v Ann>Who is it?<v Bob>Only me.", ["Who is it?", "Only me."], "<v Ann>WHO IS IT?<v Bob>ONLY ME."),
        (
            "<v Ann>Who is\nit?</v> <v.loud Bob>Only me.</v>",
            ["Who is it?", "Only me."],
            "<v Ann>WHO IS\nIT?</v> <v.loud Bob>ONLY ME.</v>",
        ),
        (
            "<i><v Ann>Who is it?\n<v Bob>Only</v> me.</i>",
            ["Who is it?", "Only me."],
            "<i><v Ann>WHO IS IT?</v></i>\n<i><v Bob>ONLY</v> ME.</i>",
        ),
        ("<v Ann>I <i>go</i>\nhome.</v>", ["I go home."], "<v Ann>I <i>GO</i>\nHOME.</v>"),
    ],
)
def test_each_voice_of_a_cue_is_a_segment(cue: str, segments: list[str], expected: str) -> None:
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{cue}\n"
    _, document = read_document("a.vtt", text.encode())
    assert document.segments == segments
    assert identity(document) == text.encode()
    assert shout(document).decode() == text.replace(cue, expected)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_language_in_the_header_of_webvtt_is_replaced(line_end: str) -> None:
    text = "WEBVTT\nKind: captions\nLanguage: en-US\n\nNOTE\nLanguage: en\n\n00:01.000 --> 00:02.000\nhello\n"
    _, document = read_document("a.vtt", text.replace("\n", line_end).encode())
    expected = text.replace("en-US", "ko").replace("hello", "HELLO")
    assert shout(document, "ko").decode() == expected.replace("\n", line_end)


def test_a_vtt_file_without_its_first_line_is_refused() -> None:
    with pytest.raises(DataError, match="WEBVTT"):
        read_document("a.vtt", b"1\n00:01.000 --> 00:02.000\nhello\n")


def test_pysubs2_reads_the_same_subtitles() -> None:
    pysubs2 = pytest.importorskip("pysubs2", reason="needs pysubs2")
    text = VTT.replace("<v Ann>", "")
    subtitles = pysubs2.SSAFile.from_string(shout(read_document("a.vtt", text.encode())[1]).decode())
    assert [event.start for event in subtitles] == [1_000, 3_000]
    assert [event.plaintext.split() for event in subtitles][1] == ["-", "I", "GO.", "-", "YOU", "STAY."]


def test_polib_reads_the_same_entries() -> None:
    polib = pytest.importorskip("polib", reason="needs polib")
    text = 'msgid ""\nmsgstr ""\n"Language: \\n"\n\nmsgid "Open \\"%s\\" now"\nmsgstr ""\n\n'
    text += 'msgid "b"\nmsgstr "c"\n'
    entries = polib.pofile(shout(read_document("a.po", text.encode())[1], "ko").decode())
    translated = [(entry.msgid, entry.msgstr) for entry in entries]
    assert translated == [('Open "%s" now', 'OPEN "%s" NOW'), ("b", "c")]
    assert entries.metadata["Language"] == "ko"


def test_bold_lands_on_the_aligned_word_in_several_text_formats() -> None:
    source, target = word_spans("My name is Michael"), word_spans("제 이름은 마이클 입니다")
    links = [(source[0], target[0]), (source[1], target[1]), (source[2], target[3]), (source[3], target[2])]
    translation = SegmentTranslation("제 이름은 마이클 입니다", links)
    for name, text, expected in (
        ("a.xml", "<resources><string>My name <b>is</b> Michael</string></resources>", "<b>입니다</b>"),
        ("a.json", '{"a": "My name <b>is</b> Michael"}', "마이클 <b>입니다</b>"),
        ("a.po", 'msgid "My name <b>is</b> Michael"\nmsgstr ""\n', "마이클 <b>입니다</b>"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nMy name <b>is</b> Michael\n", "마이클 <b>입니다</b>"),
        ("a.yml", "a: My name <b>is</b> Michael\n", "마이클 <b>입니다</b>"),
        ("a.strings", '"a" = "My name <b>is</b> Michael";\n', "마이클 <b>입니다</b>"),
        ("a.html", "<p>My name <b>is</b> Michael</p>", "마이클 <b>입니다</b>"),
        ("a.md", "My name **is** Michael", "마이클 **입니다**"),
    ):
        _, document = read_document(name, text.encode())
        assert document.segments == ["My name is Michael"]
        assert expected in document.write([translation]).decode()


def test_an_old_state_in_single_or_in_double_quotes_is_replaced() -> None:
    unit = "<target/></trans-unit>"
    for state in ("state='new'", 'state = "new"'):
        text = XLIFF_1.replace(unit, f"<target {state}/></trans-unit>")
        written = shout(read_document("a.xlf", text.encode())[1])
        assert b"new" not in written
        ElementTree.fromstring(written)  # raises an error if an attribute occurs twice


@pytest.mark.parametrize(
    ("unit", "attributes"),
    [("trans-unit", ' state="new"'), ("trans-unit", ' state="needs-translation"'), ("segment", "")],
)
def test_a_copy_of_the_source_that_is_marked_as_new_is_translated(unit: str, attributes: str) -> None:
    """Tools copy the source into the target, for translators to overwrite."""
    state = "" if attributes else ' state="initial"'
    source = 'Press <g id="1">Save</g>.'
    template = (
        f'<xliff><file source-language="en" target-language="ko"><{unit} id="1"{state}>'
        f"<source>{source}</source><target{attributes}>%s</target></{unit}></file></xliff>"
    )
    _, document = read_document("a.xlf", (template % source).encode())
    assert document.segments == ["Press Save."]
    written = shout(document).decode()
    assert '>PRESS <g id="1">SAVE</g>.</target>' in written
    assert "new" not in written
    assert "needs" not in written
    draft = (template % "저장을 누르세요.").encode()  # a translator has begun
    assert read_document("a.xlf", draft)[1].segments == []
    unmarked = (template % source).replace(attributes or state, "").encode()  # an unmarked copy may be a name
    assert read_document("a.xlf", unmarked)[1].segments == []


SEGMENTED = """<xliff version="1.2"><file source-language="en" target-language="ko"><body><trans-unit id="1">
<source>One <g id="1">here. Two. 3.</g></source>
<seg-source><mrk mtype="seg" mid="0">One <g id="1">here.</g></mrk><g id="1"> \
<mrk mtype="seg" mid="1">Two.</mrk> <mrk mtype="seg" mid="2">3.</mrk></g></seg-source>%s
</trans-unit></body></file></xliff>
"""


@pytest.mark.parametrize(
    "target",
    [
        "",
        "\n<target/>",
        '\n<target state="new">One <g id="1">here. Two. 3.</g></target>',
        '\n<target><mrk mtype="seg" mid="0"/><g id="1"> <mrk mtype="seg" mid="1"></mrk>'
        ' <mrk mtype="seg" mid="2"/></g></target>',
    ],
)
def test_segments_of_xliff_1_are_filled_one_by_one(target: str) -> None:
    _, document = read_document("a.xlf", (SEGMENTED % target).encode())
    assert document.segments == ["One here.", "Two."]
    filled = (
        '\n<target state="translated"><mrk mtype="seg" mid="0">ONE <g id="1">HERE.</g></mrk><g id="1"> '
        '<mrk mtype="seg" mid="1">TWO.</mrk> <mrk mtype="seg" mid="2">3.</mrk></g></target>'
    )
    assert shout(document).decode() == SEGMENTED % filled


def test_translated_segments_of_xliff_1_stay() -> None:
    target = (
        '<target state="final"><mrk mtype="seg" mid="0">하나.</mrk><mrk mtype="seg" mid="1"/>'
        '<mrk mtype="seg" mid="2">3.</mrk></target>'
    )
    _, document = read_document("a.xlf", (SEGMENTED % target).encode())
    assert document.segments == ["Two."]
    filled = '<mrk mtype="seg" mid="1">TWO.</mrk>'
    expected = target.replace('<mrk mtype="seg" mid="1"/>', filled).replace("final", "translated")
    assert shout(document).decode() == SEGMENTED % expected
    with_placeholder = document.write([SegmentTranslation("둘 %d.")]).decode()
    assert '<mrk mtype="seg" mid="1" comment="needs-review-translation">둘 %d.</mrk>' in with_placeholder
    done = (SEGMENTED % target.replace("/><mrk", ">둘.</mrk><mrk")).encode()
    assert shout(read_document("a.xlf", done)[1]) == done


def test_android_values_of_styles_and_identifiers_stay() -> None:
    text = (
        '<resources><style name="a"><item name="b">bold</item></style><item type="id" name="c">word</item>'
        '<declare-styleable name="d"><item name="e">other</item></declare-styleable>'
        '<item type="string" name="f">text</item></resources>'
    )
    _, document = read_document("a.xml", text.encode())
    assert document.segments == ["text"]
    assert shout(document).decode() == text.replace(">text<", ">TEXT<")


@pytest.mark.parametrize("attribute", ['mtype="protected"', 'translate="no"'])
def test_protected_words_of_xliff_stay(attribute: str) -> None:
    protected = f"<mrk {attribute}>Brand</mrk>"
    text = XLIFF_1.replace('<g id="1">is</g>', protected)
    _, document = read_document("a.xlf", text.encode())
    assert document.segments[0] == "My name Michael"
    assert f">MY NAME {protected} MICHAEL</target>" in shout(document).decode()


@pytest.mark.parametrize("arrow", [" --> ", "-->"])
def test_cues_without_an_empty_line_between_them_are_separate_segments(arrow: str) -> None:
    time = f"00:00:01,000{arrow}00:00:02,000\n"
    # Only the number directly above a line with times is the number of a cue, so 1984 is text.
    text = f"1\n{time}one\n1984\n2\n{time}two\n{time}{time}three\n"
    _, document = read_document("a.srt", text.encode())
    assert [segment.split() for segment in document.segments] == [["one", "1984"], ["two"], ["three"]]
    assert identity(document) == text.encode()
    assert shout(document).decode() == text.upper()
