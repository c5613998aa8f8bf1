"""Retired names stay retired: an invented word is replaced by the ordinary word of the field, once and everywhere."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from nearcast.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
# Names of code that are not used any more; docs/glossary.md has the words that are.
_RETIRED = """
_doubled _grown _live_or_tell _Scene absorb add_areas AheadIndex append_areas BatchNotes Beside beside besides
best_owner BufferedRanking check_words claim_slot clear_over collect_pairs concerned Differences door drop_slot
due_owners Ends explain_way Filed Filing find_from find_place find_too FloorBuffers FloorRanking FloorState
forget_words Found frame_around frame_of gather_bits gather_hefts give_room grid_around Ground ground Grouped
hand_down has_no_more heard_of heft home_of home_slot IndexPlace is_reporter is_wanted journal judge_pairs
JudgeArrays keep_deliveries keep_fitting keep_words lane_of LateArrays lent let_through let_wait Lived look_around
low_at lows_at mark_over mass_below mass_in Matches may_be_there may_hold MessageGroups most_behind MoveGroups
n_gone numbers_of only_one owner_of Pairs part_of_entry part_of_run Piece PiecedWindow pile pile_up pinned_index
pop_due promise push_mortal put_off RankedStory Ranking rarest_list rarest_owner rarity_of reach_of reckon
reserve_words run_beside run_found Runs scarce Scene score_some score_told score_untold seems_above send_down
settle_border settle_borders ShardArea ShardPlace sieve sift SilentSubscribers slot_for spread_bits SpreadChooser
StepNotes StreamArea SubscriberArrays SubscriberBatch Subscribers sweep take_back take_found take_up taken_by
tell_way TickState twist_of unlikeness unpin_before wait_at waits_at widened with_room without_dead words_room
worth_of
"""
RETIRED = frozenset(_RETIRED.split())
# Words of the same kind in sentences: nobody who knows the field would look for them.
IN_PROSE = ("anew", "heft", "lest", "sieve", "presences", "unlikeness")
# These packages keep their names until the work on them begins; each line goes with it. So do their pages.
EXEMPT = (
    "src/nearcast/pipeline/keeping",
    "src/nearcast/pipeline/ranked",
    "src/nearcast/pipeline/tracked",
    "src/nearcast/service",
    "src/nearcast/storage",
    "src/nearcast/client",
)
EXEMPT_PAGES = (
    "docs/explanation/ranked_streams.md",
    "docs/explanation/tracked_streams.md",
    "docs/experiments",
    "docs/reference/routes.md",
)


def sources() -> Iterator[tuple[str, str]]:
    for folder in ("src", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(EXEMPT):
                yield name, path.read_text(encoding="utf-8")


def pages() -> Iterator[tuple[str, str]]:
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(EXEMPT_PAGES):
            yield name, path.read_text(encoding="utf-8")


def helps() -> Iterator[tuple[str, str]]:
    pending = [("nearcast", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop()
        texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
        yield f"{name} --help", " ".join(texts)
        pending += [(f"{name} {child}", below) for child, below in getattr(command, "commands", {}).items()]


def test_no_code_has_a_retired_name() -> None:
    seen = {
        f"{name}:{token.start[0]}: {token.string}"
        for name, text in sources()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and token.string in RETIRED
    }
    assert sorted(seen) == []


def test_no_page_names_what_is_retired() -> None:
    seen = {
        f"{name}: {word}"
        for name, text in pages()
        for code in re.findall(r"`([^`\n]+)`", text)
        for word in re.findall(r"\w+", code)
        if word in RETIRED
    }
    assert sorted(seen) == []


@pytest.mark.parametrize("where", ["code", "pages", "help"])
def test_no_sentence_has_an_invented_word(where: str) -> None:
    texts = {"code": sources, "pages": pages, "help": helps}[where]()
    invented = re.compile(rf"\b({'|'.join(IN_PROSE)})\b", re.IGNORECASE)
    seen = {f"{name}: {match.group()}" for name, text in texts for match in invented.finditer(text)}
    assert sorted(seen) == []
