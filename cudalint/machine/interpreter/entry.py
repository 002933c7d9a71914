"""One entry of a program: how the machine runs it, and what it found."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from enum import Enum

from cudalint.machine.assumptions import Asking, Assumption, Facts, alternatives, assumptions, sayable
from cudalint.machine.covering import MOST_WAYS, cover_all, needed, needs_either
from cudalint.machine.launched import Launched
from cudalint.machine.messages import Foretold
from cudalint.machine.offers import Offers
from cudalint.machine.outcome import OF_INHERITING, Doubt, Kind, Outcome
from cudalint.machine.passed_over import Branches
from cudalint.machine.questions import (
    Either,
    Fact,
    answered,
    are_of_several_ranks,
    asks_for_a_setting,
    asks_for_an_option,
    may_hold,
    read,
    told_by,
)
from cudalint.machine.started import ProcessRecord
from cudalint.machine.state import MOST_ASSUMED, Process, State
from cudalint.machine.trace import Site, TraceStep
from cudalint.structs import Frozen, Mutable, field, replace

MOST_STEPS = 12_000
# What workers give back, which is theirs.
RESULT = "result"
# How the message ends of memory whose owner waits for those that it lends it to.
LIVES_ON = ", as it does here"
MOST_ASSUMED_STEPS = 3_000
# An instance is made once for all methods of its class, which takes this much at most: Lightning's Fabric 3,500, a
# Dataset of Hugging Face 4,500, most of them for imports.
MOST_MAKING_STEPS = 8_000
# What many entries begin with is imported once, and that all the way: diffusers needs 20,000, mmengine 30,000.
MOST_PREPARED_STEPS = 40_000
# Tests are many, and each one does little by itself; what all tests of a module begin with is imported for few of them.
MOST_TEST_STEPS = 700
MOST_COLLECTING_STEPS = 4_000
# Outcomes that another path takes back, by what it does first.
_BY_ABSENCE = frozenset({Kind.INIT_BEFORE_DEVICE, Kind.BARRIER_BEFORE_DEVICE, Kind.GLOBAL_RANK_DEVICE})
# Outcomes that take several ranks.
_OF_RANKS = frozenset(
    {
        Kind.ALLOCATION_BEFORE_DEVICE,
        Kind.ALLOCATION_BEFORE_RANKS,
        Kind.BARRIER_BEFORE_DEVICE,
        Kind.BARRIER_GUESSES,
        Kind.COLLECTIVE_BEFORE_DEVICE,
        Kind.GLOBAL_RANK_DEVICE,
        Kind.INIT_BEFORE_DEVICE,
        Kind.LOADED_ONTO_ONE,
        Kind.RANK_WITHOUT_DEVICE,
    }
)


# How programs fail, as hardware shows it.
_FAILURES = frozenset({"crash", "hang", "child-death"})
# So many choices of a path are told apart: each doubles the ways.
_MOST_SPLIT = 4


class Purpose(Enum):
    """What a machine runs for.

    ``ENTRY``: what a process does. ``COLLECTION``: the import of what all tests of a module begin with, which miss what
    is not there. ``PREPARATION``: an import that several entries begin with, ``OWN_PREPARATION``: of a module that no
    other imports, so that these are all its own. ``MAKING``: the instance that several begin with.
    """

    ENTRY = "entry"
    COLLECTION = "collection"
    PREPARATION = "preparation"
    OWN_PREPARATION = "own preparation"
    MAKING = "making"

    @property
    def prepares(self) -> bool:
        """Whether an import is run for the entries that begin with it."""
        return self in (Purpose.PREPARATION, Purpose.OWN_PREPARATION)


class EntryOptions(Frozen):
    """How an entry is run.

    ``in_test``: its module is one that pytest runs. ``purpose``: what it is run for. ``follows_few``: of each process
    one path goes on that used a GPU and one that did not. ``assumed``: an unknown caller is assumed to call it.
    ``uses_gpu``: the program has code that may use a GPU. ``ignores_pickling_errors``: workers run although what is
    sent to them does not pickle, for a look at what they do with it. ``listens``: what functions do is recorded.
    ``until``: the processor time of this process at which it ends, finished or not.
    ``watched`` are the statements whose processes are recorded, ``shaped`` the expressions whose values are
    (``machine/shapes.py``). ``at_most`` are steps, where it matters less what it shows.
    ``foretold`` is what goes through its channels, where an earlier run showed all of it. ``without_gpus``: the machine
    that it runs on has none.
    """

    in_test: bool = False
    purpose: Purpose = Purpose.ENTRY
    follows_few: bool = False
    assumed: bool = False
    uses_gpu: bool = True
    ignores_pickling_errors: bool = False
    listens: bool = False
    until: float | None = None
    watched: frozenset[Site] = frozenset()
    shaped: frozenset[Site] = frozenset()
    at_most: int | None = None
    foretold: Foretold = field(default_factory=dict)
    without_gpus: bool = False

    @property
    def most_steps(self) -> int:
        """How many statements the entry may run."""
        most = self._most_of_its_kind
        return most if self.at_most is None else min(most, self.at_most)

    @property
    def _most_of_its_kind(self) -> int:
        match self.purpose:
            case Purpose.PREPARATION:
                return MOST_PREPARED_STEPS
            case Purpose.OWN_PREPARATION:
                return MOST_STEPS
            case Purpose.MAKING:
                return MOST_MAKING_STEPS
            case Purpose.COLLECTION:
                return MOST_COLLECTING_STEPS
            case Purpose.ENTRY:
                if self.in_test:
                    return MOST_TEST_STEPS
                return MOST_ASSUMED_STEPS if self.assumed else MOST_STEPS


class EntryRecord(Mutable):
    """What the run of an entry found.

    ``outcomes`` gathers what goes wrong, ``entered`` the functions that it reached, ``launches`` the launches by place
    and start method. ``commands`` are the functions that it registered for a library to call, ``serves`` says that it
    started a server. ``processes`` are those that came to the watched statements, ``trace_steps`` what functions did,
    where the options ask for these.

    ``cut`` says which bound was met: from then on it is not known what was not done, and nothing is certain.
    ``spent`` is set when the steps are used up: all paths have ended there.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    cut: str | None = None
    spent: bool = False
    entered: set[Site] = field(default_factory=set)
    launches: dict[tuple[Site, str], Launched] = field(default_factory=dict)
    commands: list[Site] = field(default_factory=list)
    # The state in which the program hands its own tests to a runner, and whether that is pytest.
    testing: State | None = None
    by_pytest: bool = False
    serves: bool = False
    # Whether it asked for the words of its command line.
    reads_words: bool = False
    # The options that a user may set to one of few words.
    offers: Offers = field(default_factory=Offers)
    processes: dict[Site, list[Process]] = field(default_factory=dict)
    trace_steps: list[TraceStep] = field(default_factory=list)
    # For a map of the processes; None where no map is wanted.
    processes_noted: ProcessRecord | None = None
    # The launches that do no harm, with the assumptions of the paths on which they do none.
    protected: list[tuple[Site, tuple[tuple[Hashable, bool], ...]]] = field(default_factory=list)
    # The launches whose workers fail and whose parent goes on, because it catches that.
    outlived: set[Site] = field(default_factory=set)
    # The launches whose failure a test expects.
    expected: set[Site] = field(default_factory=set)
    # The ways on which a device is selected by a rank within the machine: there a global one is only a fallback.
    local_choices: set[tuple[Site, ...]] = field(default_factory=set)
    # Where ranks meet on one GPU that all of them selected, the ways on which they did.
    same_choices: dict[Site, tuple[Site, ...]] = field(default_factory=dict)
    # The process groups that are joined after a device was selected, on some path.
    device_first: set[Site] = field(default_factory=set)
    # Where GPU memory was sent whose receivers this process waited for, and where some path ended without that.
    returned: set[Site] = field(default_factory=set)
    left_behind: set[Site] = field(default_factory=set)
    # Where the questions were asked that paths split on.
    asked: dict[Hashable, Asking] = field(default_factory=dict)
    # Whether a device is the one that the program names where something else may say another: unknown what that says.
    stand_ins: set[Hashable] = field(default_factory=set)
    # What the paths assumed that came to the end, and those that ended by an exception which nothing caught.
    completed: list[Facts] = field(default_factory=list)
    refused: list[Facts] = field(default_factory=list)
    branches: Branches = field(default_factory=Branches)

    @property
    def reached(self) -> frozenset[Site]:
        """The functions that it reached, and those that the program calls only where it never goes."""
        return self.branches.passed_over | self.entered

    @property
    def events(self) -> int:
        """How much has happened so far that is recorded, whatever it is."""
        return len(self.outcomes) + len(self.launches) + len(self.commands) + len(self.protected) + self.serves

    def tell(self, failed: Outcome) -> None:
        """Another process is told of a failure that a handler got over."""
        where = (failed.kind, failed.anchor, failed.effect)
        for i, outcome in enumerate(self.outcomes):
            if outcome.caught and not outcome.told and (outcome.kind, outcome.anchor, outcome.effect) == where:
                self.outcomes[i] = replace(outcome, told=bool(outcome.launch))

    def copy(self) -> EntryRecord:
        """The same, for an entry that goes on from there."""
        return replace(
            self,
            outcomes=[*self.outcomes],
            entered={*self.entered},
            launches={**self.launches},
            commands=[*self.commands],
            processes={site: [*found] for site, found in self.processes.items()},
            trace_steps=[*self.trace_steps],
            protected=[*self.protected],
            outlived={*self.outlived},
            expected={*self.expected},
            local_choices={*self.local_choices},
            same_choices={**self.same_choices},
            device_first={*self.device_first},
            returned={*self.returned},
            left_behind={*self.left_behind},
            asked={**self.asked},
            stand_ins={*self.stand_ins},
            completed=[*self.completed],
            refused=[*self.refused],
            offers=self.offers.copy(),
            branches=self.branches.copy(),
        )

    def final_outcomes(self, modelled: Container[str]) -> list[Outcome]:
        """The outcomes; those whose launch is harmless on a contradicting path are not certain.

        Where a bound cut, such a path may not have been seen. ``modelled`` are the libraries that go without saying.
        """
        given = [o for o in self.outcomes if not o.unsaid and not self._falls_back(o) and not self._has_its_device(o)]
        given = [o for o in given if o.kind not in _OF_RANKS or are_of_several_ranks(o.facts)]
        given = [o for o in given if o.within not in self.expected]
        # What is seen to be received too late its owner did not wait for, whatever it waited for.
        lost = {o.anchor for o in given if o.kind is Kind.PRODUCER_ENDS and o.cause}
        given = [o for o in given if o.kind is not Kind.CUDA_ACROSS or o.anchor not in lost]
        return self._with_assumptions([self._final(outcome) for outcome in given], modelled)

    def _with_assumptions(self, outcomes: list[Outcome], modelled: Container[str]) -> list[Outcome]:
        """The outcomes, each with what has to be so for it to come about."""
        required = self._required(outcomes)
        facts = [
            tuple(f for f in outcome.facts if f not in required or not required[f].concern(f, outcome.facts))
            for outcome in outcomes
        ]
        told = [self._seen_to_matter(sayable(each, self.asked, modelled)) for each in facts]
        left_open = self._left_open(outcomes)
        ways: dict[Hashable, dict[Facts, None]] = {}
        for outcome, way, choices in zip(outcomes, told, left_open, strict=True):
            known_ways = ways.setdefault(_shown_as(outcome), {})
            # Of more than it is asked of, none is looked at: a loop may come here thousands of times.
            if len(known_ways) <= MOST_WAYS:
                known_ways.update(dict.fromkeys(_split(way, choices)))
        paths: dict[Hashable, dict[Facts, None]] = {}
        for outcome in outcomes:
            known_paths = paths.setdefault(_shown_as(outcome), {})
            if len(known_paths) <= MOST_WAYS:
                known_paths[_decided_outside(outcome)] = None
        some = {alike for alike, found in paths.items() if not cover_all(list(found))}
        # Of several failures each may end some paths, and all of them together each path.
        ends = [outcome for outcome in outcomes if some and _ends_its_path(outcome)]
        if ends and cover_all(list(dict.fromkeys(map(_decided_outside, ends)))):
            some -= set(map(_shown_as, ends))
        known: dict[tuple[Hashable, Facts], Facts] = {}
        worded: dict[tuple[Facts, Facts], tuple[Assumption, ...]] = {}
        chosen: dict[tuple[Either, ...], tuple[Assumption, ...]] = {}
        result: list[Outcome] = []
        for outcome, each, way, choices in zip(outcomes, facts, told, left_open, strict=True):
            alike = _shown_as(outcome)
            if (alike, way) not in known:
                known[alike, way] = needed(way, list(ways[alike]))
            told_with = known[alike, way], each
            if told_with not in worded:
                worded[told_with] = assumptions(*told_with, self.asked, modelled)
            kept = choices
            if len(ways[alike]) <= MOST_WAYS:
                kept = tuple(c for c in choices if needs_either(told_by(c), known[alike, way], list(ways[alike])))
            if kept not in chosen:
                chosen[kept] = tuple(alternatives(kept, self.asked, modelled))
            said = (*worded[told_with], *chosen[kept])
            conditional = bool(_decided_outside(outcome)) and alike in some
            result.append(replace(outcome, assumptions=said, on_some_paths=conditional))
        return result

    def _seen_to_matter(self, facts: Facts) -> Facts:
        """These facts without settings that few users know, where a bound cut off what becomes of the other answer."""
        if self.cut is None or not any(asks_for_a_setting(question) for question, _ in facts):
            return facts
        return tuple(
            (question, answer)
            for question, answer in facts
            if not asks_for_a_setting(question)
            or any(answered(completed, question) is (not answer) for completed in self.completed)
        )

    def _final(self, outcome: Outcome) -> Outcome:
        """An outcome as all paths together show it."""
        doubt = self._doubt(outcome)
        return replace(
            self._weighed(outcome),
            certain=doubt is None,
            doubt=doubt,
            outlived=outcome.within in self.outlived,
        )

    def _weighed(self, outcome: Outcome) -> Outcome:
        """The outcome; nothing comes of lending GPU memory to processes that its owner waits for on all paths.

        Where a bound cut, it may wait where nobody looked: that it does not is seen where a path ends without.
        """
        is_lent = outcome.kind is Kind.CUDA_ACROSS and outcome.subject != RESULT
        if not is_lent or outcome.benign:
            return outcome
        if self.cut is not None:
            return outcome if outcome.anchor in self.left_behind else replace(outcome, benign=True)
        if outcome.anchor not in self.returned or outcome.anchor in self.left_behind:
            return outcome
        return replace(outcome, benign=True, detail=LIVES_ON)

    def _doubt(self, outcome: Outcome) -> Doubt | None:
        """What is left open, now that all paths are known."""
        if outcome.doubt is not None or not outcome.certain:
            return outcome.doubt or Doubt.METHOD
        if self.cut is not None and (outcome.facts or outcome.kind in _BY_ABSENCE):
            return Doubt.CUT
        return Doubt.ELSEWHERE if self._is_averted_elsewhere(outcome) else None

    def _required(self, outcomes: Iterable[Outcome]) -> dict[Fact, _Refusals]:
        """What outcomes assume and the program refuses to run without: asked once of each, of many outcomes."""
        assumed = dict.fromkeys(fact for outcome in outcomes for fact in outcome.facts)
        return {fact: found for fact in assumed if (found := self._refusals(fact)) is not None}

    def _left_open(self, outcomes: Iterable[Outcome]) -> list[tuple[Either, ...]]:
        """For each outcome the choices that the program leaves to its user: it does something else where neither is so.

        What it requires is asked once of each choice, of many outcomes.
        """
        taken = dict.fromkeys(choice for outcome in outcomes for choice in outcome.choices)
        told = {choice: told_by(choice) for choice in taken if not self._is_required_choice(choice)}
        return [
            tuple(c for c in outcome.choices if c in told and not any(fact in outcome.facts for fact in told[c]))
            for outcome in outcomes
        ]

    def _is_required_choice(self, choice: Either) -> bool:
        """Whether the program refuses to run where none of two things, or more, is so."""
        told = told_by(choice)
        neither = [(question, not answer) for question, answer in told]
        if not _assumed_by(neither, self.refused):
            return False
        if self.cut is not None:
            return not _assumed_by(neither, self.completed)
        either = ((choice, True), choice.one, choice.other, *told)
        return all(any(fact in facts for fact in either) for facts in self.completed)

    def _refusals(self, fact: Fact) -> _Refusals | None:
        """Where the program refuses to go on without something; None where it does not, or much speaks against it."""
        question, answer = fact
        if (place := self.asked.get(question)) is not None and place.needs is answer:
            ended = [facts for facts in dict.fromkeys(self.refused) if may_hold((question, not answer), facts)]
            if ended and not any(answered(facts, question) is (not answer) for facts in self.completed):
                return _Refusals(ended[:MOST_WAYS], [])
        if self.cut is not None:
            return None
        refused = [facts for facts in dict.fromkeys(self.refused) if _asks_and_allows(facts, question, not answer)]
        told = ((facts, answered(facts, question)) for facts in dict.fromkeys(self.completed))
        # A path that remembers all that it can may have forgotten it.
        other = [f for f, one in told if one is (not answer) or (one is None and len(f) < MOST_ASSUMED)]
        return _Refusals(refused[:MOST_WAYS], other) if refused and len(other) <= MOST_WAYS else None

    def _has_its_device(self, outcome: Outcome) -> bool:
        """Whether a device is selected before the group is joined, under a condition that is not seen to fail."""
        match outcome.kind:
            case Kind.INIT_BEFORE_DEVICE:
                return outcome.anchor in self.device_first
            case Kind.BARRIER_BEFORE_DEVICE:
                return any(step.site in self.device_first for step in outcome.cause)
        return False

    def _falls_back(self, outcome: Outcome) -> bool:
        """Whether a device that is no rank's own is taken only where the program does not take its rank's.

        A global rank may be the fallback of one that is not known; one GPU is meant where users say so by an option.
        """
        match outcome.kind:
            case Kind.GLOBAL_RANK_DEVICE:
                return tuple(step.site for step in outcome.effect) in self.local_choices
            case Kind.RANK_WITHOUT_DEVICE:
                is_told = any(asks_for_an_option(sym) for sym, _ in outcome.facts)
                return is_told and self.same_choices.get(outcome.anchor) in self.local_choices
        return False

    def _is_averted_elsewhere(self, outcome: Outcome) -> bool:
        if outcome.kind not in OF_INHERITING:
            return False
        for anchor, facts in self.protected:
            if anchor == outcome.within and any((sym, not value) in facts for sym, value in outcome.facts):
                return True
        return False


def _split(way: Facts, choices: Iterable[Either]) -> list[Facts]:
    """What a path assumes that a reader can be told of; where it takes one of two things, with each of them."""
    ways = [way]
    for told in map(told_by, tuple(choices)[:_MOST_SPLIT]):
        ways = [(*way, fact) for way in ways for fact in told]
    return ways


def _asks_and_allows(facts: Facts, question: Hashable, answer: bool) -> bool:
    """Whether a path asked what a question is about, and this may have been the answer."""
    subject, _ = read(question)
    return any(read(known)[0] == subject for known, _ in facts) and answered(facts, question) is not (not answer)


def _assumed_by(wanted: Iterable[Fact], paths: Iterable[Facts]) -> bool:
    """Whether one of several paths assumes all of these facts."""
    return any(all(fact in facts for fact in wanted) for facts in paths)


class _Refusals(Frozen):
    """Paths that end as something is not so, and those that come to the end of the program and do not assume it."""

    refused: list[Facts]
    without: list[Facts]

    def concern(self, fact: Fact, facts: Facts) -> bool:
        """Whether a path with these facts would have been refused without one of them.

        Others that come to the end without it say nothing where they went another way before.
        """
        subject = read(fact[0])[0]
        beside = tuple(known for known in facts if read(known[0])[0] != subject)
        return any(not _exclude(beside, other) for other in self.refused) and all(
            _exclude(beside, other) for other in self.without
        )


def _exclude(facts: Facts, others: Facts) -> bool:
    """Whether there is something that both assume, and not alike."""
    return any(answered(others, question) is (not answer) for question, answer in facts)


def _ends_its_path(outcome: Outcome) -> bool:
    """Whether the program fails with it wherever it comes about, and goes on nowhere."""
    return outcome.certain and outcome.how in _FAILURES and not (outcome.caught or outcome.outlived or outcome.assumed)


def _decided_outside(outcome: Outcome) -> Facts:
    """What an outcome assumes; not what decides whether its worker comes to it with what it is given."""
    return outcome.facts if outcome.outside is None else outcome.outside


def _shown_as(outcome: Outcome) -> Hashable:
    """What outcomes have in common that are the same to a reader, whatever led there."""
    return (
        (outcome.kind, outcome.anchor, outcome.how, outcome.condition, outcome.certain, outcome.doubt),
        (outcome.caught, outcome.outlived, outcome.benign, outcome.in_test),
    )
