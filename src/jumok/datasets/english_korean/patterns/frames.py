"""Actions that the tables of `action_tables.py` name: a verb with some of its objects or goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jumok.datasets.english_korean.clauses import Action, going_action, intransitive_action, transitive_action
from jumok.datasets.english_korean.lexicon import INTRANSITIVE, MOTION, TRANSITIVE, Noun, Verb, nouns_of
from jumok.datasets.english_korean.noun_phrases import NounPhrase, person_subject

if TYPE_CHECKING:
    from jumok.datasets.english_korean.scene import Scene


class Frame(NamedTuple):
    """A verb with some of its objects or goals; `entries` is empty for a verb that takes neither."""

    verb: Verb
    entries: tuple[Noun, ...]


Frames = tuple[Frame, ...]


def read_frames(text: str) -> Frames:
    """Return the frames of actions such as "eat meal; go =park; sleep"."""
    return tuple(frame for item in text.split(";") if item.strip() for frame in _read_item(item))


def _read_item(item: str) -> list[Frame]:
    name, *specification = item.split()
    english, _, korean = name.partition("/")
    accepted_nouns = nouns_of(" ".join(specification)) if specification else None
    frames = []
    for verb in (*TRANSITIVE, *INTRANSITIVE, *MOTION):
        is_named = "_".join([verb.forms.base, *verb.after]) == english
        if not is_named or not verb.human_subject or (korean and f"{verb.stem.text}다" != korean):
            continue
        complements = verb.places if verb.adpositions[0] else verb.objects
        entries = tuple(entry for entry in complements if accepted_nouns is None or entry in accepted_nouns)
        # A verb with objects or goals fits if one of them is accepted. A verb without objects and goals fits
        # if the item names no nouns.
        if bool(entries) == bool(complements) and (accepted_nouns is None or complements):
            frames.append(Frame(verb, entries))
    if not frames:
        raise ValueError(f"No verb of people fits the action {item.strip()!r}.")
    return frames


def read_rows(table: str) -> tuple[tuple[Frames, ...], ...]:
    """Read rows of actions, separated by `|`."""
    return tuple(tuple(read_frames(cell) for cell in line.split("|")) for line in table.strip().splitlines())


def frames_of(verbs: tuple[Verb, ...]) -> Frames:
    """Return verbs with all of their objects or goals."""
    return tuple(Frame(verb, verb.places if verb.adpositions[0] else verb.objects) for verb in verbs)


def frame_action(scene: Scene, frames: Frames, *, generic: bool = False) -> Action:
    """Return one of these actions."""
    verb, entries = scene.pick_new(frames)
    if not entries:
        return intransitive_action(scene, verb)
    entry = scene.pick_new(entries)
    if verb.adpositions[0]:
        return going_action(scene, verb, entry)
    return transitive_action(scene, verb, entry, generic=generic)


def fitting_subject(scene: Scene, *actions: Action) -> NounPhrase:
    """Return a person who can do these actions: children do homework, adults drive.

    If several of the actions restrict their subject, only the first restriction counts.
    """
    subjects = next(
        (action.verb.subjects for action in actions if "person" not in action.verb.subjects),
        actions[0].verb.subjects,
    )
    return person_subject(scene, subjects)
