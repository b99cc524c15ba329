"""Interpreter of plans with symbolic data: final memory of every GPU, and all faults.

Calls, the order of accesses, and races: docs/exchange/mscclpp.md, "Checks". Puts over a port channel are executed by a
queue, in order, some time later. Where no two accesses to the same memory are unordered every run gives the same, so
that one run is enough. The work is proportional to the operations and the chunks that they move.
"""

from collections import defaultdict, deque

from ..msccl.findings import place_text
from ..msccl.order import Access, Order, Races, Source
from ..msccl.outcome import KINDS, SCRATCH, Meaning, Run
from .compile import Instruction, Place, Way, Work, compile_plan
from .plan import PORT, SIGNALS, WAITS, Plan

#: Where packets begin in a GPU's memory, and how far the second half of the scratch memory is from the first.
PACKETS, HALF = 1 << 42, 1 << 39


def meaning_of(plan: Plan, units: int = 1) -> Meaning:
    """Return the specification of a plan's collective; an unknown one is any movement of data."""
    kind, gpu = KINDS.get(plan.collective), plan.gpus[0]
    sizes = Meaning(kind, plan.ngpus, plan.ngpus).sizes
    chunks = gpu.output if kind is not None and sizes[0] < sizes[1] else gpu.input
    if kind is not None and kind.name in ("gather", "scatter"):
        chunks //= plan.ngpus
    return Meaning(kind, plan.ngpus, chunks * units)


def execute(plan: Plan, units: int = 1, calls: int | None = None) -> Run:
    """Run a plan so many calls, by default as many as its scratch memory has halves, and one more."""
    machine = _Machine(plan, units, calls or 2 + plan.double_scratch)
    machine.go()
    machine.check()
    return machine.run


class _Thread:
    __slots__ = ("actor", "at", "call", "gpu", "instructions", "name", "stage", "unit", "waits_for")

    def __init__(self, actor: int, gpu: int, name: int, instructions: list[Instruction]) -> None:
        self.actor, self.gpu, self.name, self.instructions = actor, gpu, name, instructions
        self.call = self.at = self.stage = self.unit = 0
        self.waits_for = ""

    @property
    def event(self) -> int:
        """The present instruction as an event: those of a call follow its begin."""
        return self.call * (len(self.instructions) + 1) + 1 + self.at

    def events(self, instructions: int) -> int:
        """So many instructions of this call as a number of events."""
        return self.call * (len(self.instructions) + 1) + 1 + instructions


class _Machine:
    def __init__(self, plan: Plan, units: int, calls: int) -> None:
        self.plan, self.calls, count = plan, calls, plan.ngpus
        self.run = Run(meaning_of(plan, units), inplace=plan.inplace)
        for gpu, base, sizes in zip(plan.gpus, self.run.bases, self.run.sizes, strict=True):
            base["p"] = PACKETS
            chunks = {"i": gpu.input, "o": gpu.output, "s": gpu.scratch, "p": gpu.scratch}
            sizes.update({buffer: size * units for buffer, size in chunks.items()})
        self.threads = [
            [_Thread(0, gpu.id, block.id, some) for block, some in zip(gpu.blocks, program, strict=True)]
            for gpu, program in zip(plan.gpus, compile_plan(plan, units), strict=True)
        ]
        self.all = [thread for some in self.threads for thread in some]
        for actor, thread in enumerate(self.all):
            thread.actor = actor
        self.hosts = len(self.all)  # the first host's actor
        self.queues: dict[Way, int] = {}
        self.releases: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for thread in self.all:
            for one in thread.instructions:
                for way in one.ways if one.works or one.name == "flush" else ():
                    self.queues.setdefault(way, self.hosts + count + len(self.queues))
                for number in one.semaphores if one.name == "sem_release" else ():
                    self.releases[thread.gpu, number][thread.actor] += 1
        self.queued: dict[Way, list[tuple[_Thread, int]]] = {way: [] for way in self.queues}
        self.order = Order(self.hosts + count + len(self.queues))
        self.races = Races(count, self.order, self.run.findings, self._access_text, self._call)
        self.current = [0] * count
        self.ends = [0] * count
        self.signals: dict[Way, list[Source]] = defaultdict(list)
        self.waited: dict[Way, int] = defaultdict(int)
        self.value = [list(gpu.semaphores) for gpu in plan.gpus]
        self.released: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.acquired: dict[tuple[int, int, int], int] = defaultdict(int)
        self.meeting: dict[tuple[int, int], list[_Thread]] = defaultdict(list)
        self.flags: list[dict[int, tuple[int, Source]]] = [{} for _ in range(count)]
        self.sleeping: dict[object, list[_Thread]] = defaultdict(list)
        self.ready: deque[_Thread] = deque(self.all)
        for rank in range(count):
            self._begin(rank)

    def go(self) -> None:
        while self.ready:
            thread = self.ready.popleft()
            while thread.call < self.calls and thread.call < self.current[thread.gpu]:
                if thread.at == len(thread.instructions):
                    self._end(thread)
                elif self._advance(thread, thread.instructions[thread.at]):
                    thread.at, thread.stage, thread.unit = thread.at + 1, 0, 0
                else:
                    break

    def _begin(self, gpu: int) -> None:
        """Begin a call: the user has read the output and written the input."""
        call, host = self.current[gpu], self.hosts + gpu
        self.current[gpu] = call + 1
        own = self.threads[gpu]
        self.order.add(host, call, *(Source(one.actor, call * (len(one.instructions) + 1)) for one in own))
        memory, theirs = self.run.memory[gpu], Access(host, call, 0)
        for address in [one for one in {*memory, *self.races.read[gpu]} if one < SCRATCH]:
            for access, writes in self.races.forget(gpu, address):
                self.races.check_order(access, call + 1, theirs, writes=writes)
            memory.pop(address, None)
        for one in own:
            self.order.add(one.actor, call * (len(one.instructions) + 1), Source(host, call + 1))
            self.ready.append(one)

    def _end(self, thread: _Thread) -> None:
        thread.call, thread.at = thread.call + 1, 0
        self.ends[thread.gpu] += 1
        if self.ends[thread.gpu] == len(self.threads[thread.gpu]):
            self.ends[thread.gpu] = 0
            if thread.call < self.calls:
                self._begin(thread.gpu)

    def _advance(self, thread: _Thread, one: Instruction) -> bool:
        """Do an instruction, or as much of it as can be done now; whether it has come to its end."""
        if one.works:
            return self._move(thread, one)
        if one.name in SIGNALS:
            self._signal(thread, one)
        elif one.name in WAITS:
            return self._wait(thread, one)
        elif one.name == "flush":
            for way in one.ways:
                self.order.add(thread.actor, thread.event, Source(self.queues[way], len(self.queued[way])))
        elif one.name == "sem_release":
            for number in one.semaphores:
                self.value[thread.gpu][number] += 1
                self.released[thread.gpu, number][thread.actor].append(thread.events(one.start))
                self._wake((thread.gpu, number, "semaphore"))
        elif one.name == "sem_acquire":
            return self._acquire(thread, one)
        elif one.name == "barrier":
            return self._wait_at_barrier(thread, one)
        return True

    def _signal(self, thread: _Thread, one: Instruction) -> None:
        for way in one.ways:
            if way[0] == PORT:
                self._tell(way, self._queue(thread, one, way))
            else:
                relaxed = one.name == "rlxsignal"
                self._tell(way, Source(thread.actor, thread.events(one.start), relaxed=relaxed))

    def _queue(self, thread: _Thread, one: Instruction, way: Way) -> Source:
        """Put something into the queue of a port channel; what has ended when it is done."""
        queue = self.queues.setdefault(way, -1)
        items = self.queued.setdefault(way, [])
        if queue < 0:  # it has signals alone
            return Source(thread.actor, thread.events(one.start))
        items.append((thread, one.place))
        self.order.add(queue, len(items) - 1, Source(thread.actor, thread.events(one.start)))
        return Source(queue, len(items))

    def _tell(self, way: Way, source: Source) -> None:
        self.signals[way].append(source)
        self._wake(way)

    def _wake(self, key: object) -> None:
        self.ready.extend(self.sleeping.pop(key, ()))

    def _sleep(self, thread: _Thread, key: object, reason: str) -> bool:
        self.sleeping[key].append(thread)
        thread.waits_for = reason
        return False

    def _wait(self, thread: _Thread, one: Instruction) -> bool:
        while thread.stage < len(one.ways):
            way = one.ways[thread.stage]
            number = self.waited[way]
            if number >= len(self.signals[way]):
                return self._sleep(thread, way, f"waits for a signal of gpu {way[1]} that never comes")
            self.waited[way] += 1
            source = self.signals[way][number]
            if one.name == "rlxwait" and way[0] != PORT:
                source = source._replace(relaxed=True)
            self.order.add(thread.actor, thread.event, source)
            thread.stage += 1
        return True

    def _acquire(self, thread: _Thread, one: Instruction) -> bool:
        while thread.stage < len(one.semaphores):
            number = one.semaphores[thread.stage]
            if self.value[thread.gpu][number] <= 0:
                key = (thread.gpu, number, "semaphore")
                return self._sleep(thread, key, f"waits for semaphore {number} that nobody releases")
            self.value[thread.gpu][number] -= 1
            self.acquired[thread.gpu, number, thread.actor] += 1
            self._after_releases(thread, number)
            thread.stage += 1
        return True

    def _after_releases(self, thread: _Thread, number: int) -> None:
        """Return the releases that are certain: those beyond the initial value and all other blocks' releases."""
        key = (thread.gpu, number)
        had = self.plan.gpus[thread.gpu].semaphores[number]
        acquires = self.acquired[thread.gpu, number, thread.actor]
        every = self.releases[key]
        most = sum(every.values()) * (thread.call + 1)
        for actor, count in every.items():
            certain = acquires - had - (most - count * (thread.call + 1))
            if 0 < certain <= len(self.released[key][actor]):
                source = Source(actor, self.released[key][actor][certain - 1])
                self.order.add(thread.actor, thread.event, source)

    def _wait_at_barrier(self, thread: _Thread, one: Instruction) -> bool:
        number, blocks = one.barrier
        if thread.stage or blocks == 1:
            return True
        here = self.meeting[thread.gpu, number]
        if thread not in here:
            here.append(thread)
        if len(here) < blocks:
            thread.waits_for = f"waits at barrier {number} for {blocks - len(here)} more thread blocks"
            return False
        for other in here:
            others = (Source(each.actor, each.event) for each in here if each is not other)
            self.order.add(other.actor, other.event, *others)
            other.stage = 1
            if other is not thread:
                self.ready.append(other)
        here.clear()
        return True

    def _move(self, thread: _Thread, one: Instruction) -> bool:
        while thread.stage < len(one.works):
            work = one.works[thread.stage]
            queued = bool(one.ways) and one.name != "rppkt"
            if thread.unit == 0 and queued:
                self._queue(thread, one, one.ways[thread.stage])
            while thread.unit < work.units:
                if not self._run_unit(thread, one, work):
                    return False
                thread.unit += 1
            if queued and one.name in ("pws", "pwsf"):
                way = one.ways[thread.stage]
                end = Source(self.queues[way], len(self.queued[way]))
                self._tell(way, end)
                if one.name == "pwsf":
                    self.order.add(thread.actor, thread.event, end)
            thread.stage, thread.unit = thread.stage + 1, 0
        return True

    def _run_unit(self, thread: _Thread, one: Instruction, work: Work) -> bool:
        """Do one unit; False if it has to wait for a packet."""
        places = [(place, self._address(thread, one, place)) for place in work.reads]
        for place, address in places:
            if place.buffer == "p" and address is not None and one.name != "ppkt":
                flag = self.flags[place.gpu].get(address)
                if flag is None or flag[0] != thread.call:
                    return self._sleep(thread, (place.gpu, address), "waits for a packet that never comes")
        event, start, number = thread.event, thread.events(one.start), (thread.stage << 32) + thread.unit
        access = Access(thread.actor, event, number)
        for place, address in places:
            if place.buffer == "p" and address is not None and (flag := self.flags[place.gpu].get(address)):
                self.order.parts.setdefault(access, []).append(flag[1])
                self.order.add(thread.actor, event, flag[1])
        if one.ways and one.name != "rppkt":
            way = one.ways[thread.stage]
            last = len(self.queued[way])
            access, start = Access(self.queues[way], last - 1, number), last
        values = [self._load(place, address, access, start, thread) for place, address in places]
        value = values[0]
        for other in values[1:]:
            value = self.run.values.sum(value, other)
        for place in work.writes:
            address = self._address(thread, one, place)
            if address is not None:
                self._store(place, address, value, access, start, thread)
        return True

    def _address(self, thread: _Thread, one: Instruction, place: Place) -> int | None:
        offset = place.offset + thread.unit
        size = self.run.sizes[place.gpu][place.buffer]
        if not 0 <= offset < size:
            what = "scratch memory" if place.buffer in "sp" else "input" if place.buffer == "i" else "output"
            text = f"uses unit {offset} of the {what} of gpu {place.gpu}, which has {size}"
            self.run.findings.add("bounds", text, place_text(thread.gpu, thread.name, one.place))
            return None
        half = HALF if place.half and thread.call % 2 else 0
        return self.run.bases[place.gpu][place.buffer] + offset + half

    def _load(self, place: Place, address: int | None, access: Access, start: int, thread: _Thread) -> int:
        values, gpu = self.run.values, place.gpu
        if address is None:
            return values.contribution(gpu, -1)
        if address < SCRATCH and gpu != thread.gpu:
            self._check_begun(gpu, access, start)
        self.races.note_read(gpu, address, access, start)
        value = self.run.memory[gpu].get(address)
        if value is not None:
            return value
        earlier = self.calls - self.current[gpu]
        return self.run.first_read(gpu, address, gpu + self.run.ngpus * earlier, lambda: self._access_text(access))

    def _store(self, place: Place, address: int, value: int, access: Access, start: int, thread: _Thread) -> None:
        gpu = place.gpu
        if address < SCRATCH and gpu != thread.gpu:
            self._check_begun(gpu, access, start)
        self.races.note_write(gpu, address, access, start)
        self.run.memory[gpu][address] = value
        if place.buffer == "p":
            events = start if access.actor < self.hosts else access.event
            self.flags[gpu][address] = (thread.call, Source(access.actor, events, access))
            self._wake((gpu, address))

    def _check_begun(self, gpu: int, access: Access, start: int) -> None:
        """Check that another GPU has begun the call before its input or output is used."""
        host = Access(self.hosts + gpu, self.current[gpu] - 1, 0)
        if self.order.ends_before(host, start, access, relaxed=True):
            return
        text = f"uses the input or output of gpu {gpu}, which may not have begun the call"
        self.run.findings.add("race", text, self._access_text(access))

    def _access_text(self, access: Access) -> str:
        actor = access.actor
        if actor < self.hosts:
            thread = self.all[actor]
            place = access.event % (len(thread.instructions) + 1) - 1
            return place_text(thread.gpu, thread.name, thread.instructions[place].place)
        if actor < self.hosts + self.run.ngpus:
            return f"gpu {actor - self.hosts}, the next call"
        way = next(one for one, queue in self.queues.items() if queue == actor)
        thread, place = self.queued[way][access.event]
        return place_text(thread.gpu, thread.name, place)

    def _call(self, access: Access) -> int:
        """Return the call of an access; the user's is that of the call before."""
        actor = access.actor
        if actor < self.hosts:
            return access.event // (len(self.all[actor].instructions) + 1)
        return access.event - 1 if actor < self.hosts + self.run.ngpus else 0

    def check(self) -> None:
        """Report what has not come to its end, and what is left over."""
        findings = self.run.findings
        for thread in self.all:
            if thread.call < self.calls and thread.at < len(thread.instructions):
                place = place_text(thread.gpu, thread.name, thread.instructions[thread.at].place)
                findings.add("hang", thread.waits_for or "does not go on", place)
        self.run.ended = all(thread.call == self.calls for thread in self.all)
        if not self.run.ended:
            return
        for way, signals in self.signals.items():
            if len(signals) > self.waited[way]:
                text = f"signals gpu {way[2]} over {way[0]} channels {len(signals):,} times"
                findings.add("unmatched", f"{text}, which waits {self.waited[way]:,} times", f"gpu {way[1]}")
        for gpu, values in zip(self.plan.gpus, self.value, strict=True):
            for number, (value, had) in enumerate(zip(values, gpu.semaphores, strict=True)):
                if value != had:
                    text = f"semaphore {number} begins with {had} and ends with {value}"
                    findings.add("semaphore", text, f"gpu {gpu.id}")
        for rank in range(self.run.ngpus):
            self._check_layout(rank)

    def _check_layout(self, rank: int) -> None:
        """Packets and plain data have no scratch memory in common; a packet takes two units."""
        memory = self.run.memory[rank]
        plain = {one - SCRATCH for one in memory if SCRATCH <= one < PACKETS}
        packets = [one - PACKETS for one in memory if one >= PACKETS]
        for one in packets:
            place = one // HALF * HALF + 2 * (one % HALF)
            if place in plain or place + 1 in plain:
                text = f"unit {one % HALF} of packets in the scratch memory is where plain data is"
                self.run.findings.add("mixed", f"{text}; a packet takes two units", f"gpu {rank}")
                return
