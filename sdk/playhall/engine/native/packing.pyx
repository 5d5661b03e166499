"""The native twins of `packing` and `lanes`: see there for what the bytes mean.

Whatever comes down a stream is read with its bounds checked first: a room host runs tenants' code.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

ctypedef const unsigned char* Bytes

cdef enum:
    UNRELIABLE = 1
    EACH_HEAD = 2
    ENGINE_START = 9  # size u32, flags u8, count u32
    DOWN_START = 17  # size u32, flags u8, generation u64, count u32
    UP_START = 8  # link u32, size u32
    WEBSOCKET_HEADER = 10
    PIECE_BYTES = 262144
    STREAM_SHIFT = 32
    INPUTS = 12  # frames.INPUTS


cdef inline uint32_t get_u32(Bytes data) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, data, 4)
    return value


cdef inline uint64_t get_u64(Bytes data) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, data, 8)
    return value


cdef inline void put_u32(char* data, uint32_t value) noexcept nogil:
    memcpy(data, &value, 4)


cdef inline bytes make_bytes(Bytes data, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char*> data, size)


cdef class Buffer:
    """Bytes that grow."""

    def __dealloc__(self):
        free(self.data)

    cdef char* more(self, Py_ssize_t size) except NULL:
        """Room for so many more bytes, which are part of it from now on."""
        cdef Py_ssize_t needed = self.length + size
        cdef Py_ssize_t room
        cdef char* data
        if needed > self.room:
            room = max(needed, 2 * self.room, 1024)
            data = <char*> realloc(self.data, room)
            if data == NULL:
                raise MemoryError
            self.data, self.room = data, room
        data = self.data + self.length
        self.length = needed
        return data


# A group's parts, wherever its links stand.

cdef struct Parts:
    unsigned char flags
    uint32_t count
    Bytes links
    Bytes tail  # the size of the body, heads, body
    Bytes heads
    Bytes body
    Py_ssize_t body_size
    Bytes end


cdef int read_parts(Parts* parts, Bytes start, Bytes end, int link_size) except -1:
    """Read from the first link on, up to `end`; `flags` and `count` are set. ValueError where it does not fit."""
    cdef Bytes at
    cdef uint32_t heads, i
    if parts.flags > (UNRELIABLE | EACH_HEAD) or end - start < <Py_ssize_t> parts.count * link_size + 4:
        raise ValueError("a group of frames does not fit its run")
    parts.links = start
    parts.tail = start + <Py_ssize_t> parts.count * link_size
    parts.body_size = get_u32(parts.tail)
    parts.heads = at = parts.tail + 4
    heads = parts.count if parts.flags & EACH_HEAD else 1
    for i in range(heads):
        if at >= end or end - at < 1 + at[0]:
            raise ValueError("a head does not fit its group of frames")
        at += 1 + at[0]
    if end - at != parts.body_size:
        raise ValueError("a body does not fill its group of frames")
    parts.body, parts.end = at, end
    return 0


# Down, at the room host.

@cython.final
cdef class Piece(Buffer):
    """A run for one stream."""

    cdef uint64_t stream


cdef class Router:
    """The runs that are made of an engine's groups."""

    cdef uint64_t generation
    cdef list pieces
    cdef dict newest
    cdef Piece last

    def __cinit__(self):
        self.pieces, self.newest, self.last = [], {}, None

    cdef char* space(self, uint64_t stream, Py_ssize_t size) except NULL:
        cdef Piece piece = self.last
        if piece is None or piece.stream != stream:
            piece = self.newest.get(stream)
        if piece is None or piece.length + size > PIECE_BYTES:
            piece = Piece()
            piece.stream = stream
            self.newest[stream] = piece
            self.pieces.append(piece)
        self.last = piece
        return piece.more(size)

    cdef char* begin(self, uint64_t stream, unsigned char flags, uint32_t count, Py_ssize_t tail) except NULL:
        """A group's start; returns where the links go, and `tail` bytes after them."""
        if count == 1:
            flags &= ~EACH_HEAD  # one head is one for all
        cdef Py_ssize_t size = DOWN_START + 4 * <Py_ssize_t> count + tail
        cdef char* out = self.space(stream, size)
        put_u32(out, <uint32_t> (size - 4))
        out[4] = <char> flags
        memcpy(out + 5, &self.generation, 8)
        put_u32(out + 13, count)
        return out + DOWN_START

    cdef int add(self, Parts* parts) except -1:
        cdef uint32_t i
        cdef uint64_t stream
        if parts.count == 0:
            return 0
        stream = get_u64(parts.links) >> STREAM_SHIFT
        for i in range(1, parts.count):
            if get_u64(parts.links + 8 * <Py_ssize_t> i) >> STREAM_SHIFT != stream:
                return self.split(parts)
        return self.add_whole(parts, stream)

    cdef int add_whole(self, Parts* parts, uint64_t stream) except -1:
        cdef Py_ssize_t tail = parts.end - parts.tail
        cdef char* out = self.begin(stream, parts.flags, parts.count, tail)
        cdef uint32_t i
        for i in range(parts.count):
            memcpy(out, parts.links + 8 * <Py_ssize_t> i, 4)
            out += 4
        memcpy(out, parts.tail, tail)
        return 0

    cdef int split(self, Parts* parts) except -1:
        """Links of several streams: those of each, in the order in which streams first come."""
        cdef dict streams = {}
        cdef uint32_t i
        cdef uint64_t stream
        for i in range(parts.count):
            streams[get_u64(parts.links + 8 * <Py_ssize_t> i) >> STREAM_SHIFT] = None
        for stream in streams:
            self.add_part(parts, stream)
        return 0

    cdef int add_part(self, Parts* parts, uint64_t stream) except -1:
        cdef bint each = (parts.flags & EACH_HEAD) != 0
        cdef Bytes head = parts.heads
        cdef Py_ssize_t heads = 0 if each else parts.body - parts.heads
        cdef uint32_t i, count = 0
        cdef uint64_t link
        cdef char* links
        cdef char* out
        for i in range(parts.count):
            if get_u64(parts.links + 8 * <Py_ssize_t> i) >> STREAM_SHIFT == stream:
                count += 1
                if each:
                    heads += 1 + head[0]
            if each:
                head += 1 + head[0]
        links = self.begin(stream, parts.flags, count, 4 + heads + parts.body_size)
        out = links + 4 * <Py_ssize_t> count
        memcpy(out, parts.tail, 4)
        out += 4
        head = parts.heads
        if not each:
            memcpy(out, head, heads)
            out += heads
        for i in range(parts.count):
            link = get_u64(parts.links + 8 * <Py_ssize_t> i)
            if link >> STREAM_SHIFT == stream:
                put_u32(links, <uint32_t> link)
                links += 4
                if each:
                    memcpy(out, head, 1 + head[0])
                    out += 1 + head[0]
            if each:
                head += 1 + head[0]
        memcpy(out, parts.body, parts.body_size)
        return 0


def route(bytes data not None, uint64_t generation):
    """See packing.route."""
    cdef Bytes at = <Bytes> PyBytes_AS_STRING(data)
    cdef Bytes end = at + PyBytes_GET_SIZE(data)
    cdef Bytes group_end
    cdef Parts parts
    cdef Piece piece
    cdef Router router = Router()
    router.generation = generation
    while at < end:
        if end - at < ENGINE_START or end - at - 4 < get_u32(at):
            raise ValueError("a run of frames is cut short")
        group_end = at + 4 + get_u32(at)
        parts.flags, parts.count = at[4], get_u32(at + 5)
        read_parts(&parts, at + ENGINE_START, group_end, 8)
        router.add(&parts)
        at = group_end
    return [(piece.stream, make_bytes(<Bytes> piece.data, piece.length)) for piece in router.pieces]


def reliable_only(bytes run not None):
    """See packing.reliable_only."""
    cdef Bytes at = <Bytes> PyBytes_AS_STRING(run)
    cdef Bytes end = at + PyBytes_GET_SIZE(run)
    cdef Py_ssize_t size, lost = 0
    cdef Buffer kept = Buffer()
    while at < end:
        if end - at < DOWN_START or end - at - 4 < get_u32(at):
            raise ValueError("a run of frames is cut short")
        size = 4 + <Py_ssize_t> get_u32(at)
        if at[4] & UNRELIABLE:
            lost += 1
        else:
            memcpy(kept.more(size), at, size)
        at += size
    return make_bytes(<Bytes> kept.data, kept.length), lost


# Down, at the router.

cdef class Port:
    """A lane's `write` that takes a frame as it lies in memory."""

    cdef Py_ssize_t write(self, unsigned char* frame, Py_ssize_t size) except -1:
        """See lanes.Lane. The WEBSOCKET_HEADER bytes before the frame are the port's, for a header."""
        raise NotImplementedError


@cython.final
cdef class Lane:
    """See lanes.Lane."""

    cdef Port port
    cdef object write
    cdef public object offer
    cdef public object waits
    cdef public object look
    cdef public uint64_t generation
    cdef public bint live
    cdef public bint busy
    cdef public bint owes
    cdef public Py_ssize_t held
    cdef public int64_t given
    cdef public int64_t drained
    cdef public int64_t reported
    cdef public int64_t spare
    cdef public double progress_at

    def __init__(self, write, offer, waits, look):
        self.port = write if isinstance(write, Port) else None
        self.write, self.offer, self.waits, self.look = write, offer, waits, look
        self.spare = -1

    cdef int put(self, unsigned char* frame, Py_ssize_t size, bint unreliable, double now) except -1:
        """Send a frame, which a port may write before, or let the client decide."""
        cdef Py_ssize_t waiting
        if not self.live or self.busy or self.held or (unreliable and self.spare < 0):
            self.offer(make_bytes(frame, size), unreliable, now)
            return 0
        if self.given == self.drained:
            self.progress_at = now
        self.given += size
        self.spare -= size + WEBSOCKET_HEADER
        if self.port is None:
            waiting = self.write(make_bytes(frame, size))
        else:
            waiting = self.port.write(frame, size)
        if waiting:
            self.busy = True
            self.waits()
        elif self.spare >= 0:
            self.drained = self.given
        return 0


@cython.final
cdef class Downlink:
    """See lanes.Downlink."""

    cdef readonly dict lanes
    cdef readonly list owing
    cdef public Py_ssize_t dropped
    cdef Py_ssize_t limits[256]
    cdef int64_t owe_at
    cdef Buffer scratch

    def __init__(self, limits, int64_t owe_at):
        cdef int kind
        self.lanes, self.owing, self.owe_at, self.scratch = {}, [], owe_at, Buffer()
        for kind in range(256):
            self.limits[kind] = limits.get(kind, 0)

    def deliver(self, bytes run not None, double now):
        """See lanes.Downlink.deliver."""
        cdef Bytes at = <Bytes> PyBytes_AS_STRING(run)
        cdef Bytes end = at + PyBytes_GET_SIZE(run)
        cdef Bytes group_end
        cdef uint64_t generation
        cdef Parts parts
        cdef list bad = []
        while at < end:
            if end - at < DOWN_START:
                raise ValueError("a run of frames is cut short")
            if end - at - 4 < get_u32(at) or get_u32(at) < DOWN_START - 4:
                raise ValueError("a group of frames does not fit its run")
            group_end = at + 4 + get_u32(at)
            parts.flags, generation, parts.count = at[4], get_u64(at + 5), get_u32(at + 13)
            read_parts(&parts, at + DOWN_START, group_end, 4)
            self.give(&parts, generation, now, bad)
            at = group_end
        return bad

    cdef int give(self, Parts* parts, uint64_t generation, double now, list bad) except -1:
        """Give each link its frame: the body is copied once, and each head before it."""
        cdef bint each = (parts.flags & EACH_HEAD) != 0
        cdef bint unreliable = (parts.flags & UNRELIABLE) != 0
        cdef Bytes head = parts.heads
        cdef Buffer scratch = self.scratch
        cdef unsigned char* body
        cdef unsigned char* frame = NULL
        cdef Py_ssize_t size
        cdef uint32_t i, number
        cdef Lane lane
        scratch.length = 0
        body = <unsigned char*> scratch.more(WEBSOCKET_HEADER + 255 + parts.body_size) + WEBSOCKET_HEADER + 255
        memcpy(body, parts.body, parts.body_size)
        for i in range(parts.count):
            number = get_u32(parts.links + 4 * <Py_ssize_t> i)
            if each or frame == NULL:
                frame = body - head[0]
                memcpy(frame, head + 1, head[0])
            size = body - frame + parts.body_size
            lane = self.lanes.get(number)
            if lane is None or lane.generation != generation:
                self.dropped += 1
            elif size and size <= self.limits[frame[0]]:
                lane.put(frame, size, unreliable, now)
                self.see(number, lane)
            else:
                self.dropped += 1
                lane.generation, lane.live = 0, False
                bad.append(number)
            if each:
                head += 1 + head[0]
        return 0

    cdef int see(self, uint32_t number, Lane lane) except -1:
        """Let a lane with much unreported owe."""
        if not lane.owes and lane.given - lane.reported >= self.owe_at:
            lane.owes = True
            self.owing.append(number)
        return 0

    def report(self, double now, *, bint all_of_it=False):
        """See lanes.Downlink.report."""
        cdef int64_t at_least = 1 if all_of_it else self.owe_at
        cdef list links = [], totals = [], owing
        cdef Lane lane
        owing, self.owing = list(self.lanes) if all_of_it else self.owing, []
        for number in owing:
            lane = self.lanes.get(number)
            if lane is None:
                continue
            if lane.drained != lane.given and lane.given - lane.reported >= at_least:
                lane.look(now)
            if lane.drained - lane.reported >= at_least:
                lane.reported = lane.drained
                links.append(number)
                totals.append(<uint32_t> lane.drained)
            lane.owes = False
            self.see(number, lane)
        return links, totals


# Up.

def by_room(bytes run not None, uint64_t high, dict rooms not None):
    """See packing.by_room."""
    cdef Bytes at = <Bytes> PyBytes_AS_STRING(run)
    cdef Bytes end = at + PyBytes_GET_SIZE(run)
    cdef Py_ssize_t size
    cdef dict found = {}
    cdef list of_room
    while at < end:
        if end - at < UP_START:
            raise ValueError("a run of frames is cut short")
        size = get_u32(at + 4)
        if end - at - UP_START < size:
            raise ValueError("a frame does not fit its run")
        room = rooms.get(get_u32(at))
        if room is not None:
            of_room = found.get(room)
            if of_room is None:
                of_room = found[room] = []
            of_room.append((high | get_u32(at), make_bytes(at + UP_START, size)))
        at += UP_START + size
    return found


@cython.final
cdef class UpRun(Buffer):
    """See packing.UpRun."""

    @property
    def size(self):
        """See packing.UpRun.size."""
        return self.length - self.holes

    def append(self, uint32_t link, bytes frame not None):
        """See packing.UpRun.append."""
        self.add(link, PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame))

    cdef int add(self, uint32_t link, const char* frame, Py_ssize_t size) except -1:
        cdef char* out = self.more(UP_START + size)
        put_u32(out, link)
        put_u32(out + 4, <uint32_t> size)
        memcpy(out + UP_START, frame, size)
        self.frames += 1
        return 0

    def drop_inputs(self, Py_ssize_t needed):
        """See packing.UpRun.drop_inputs."""
        cdef Py_ssize_t size, freed = 0, dropped = 0
        cdef Bytes data = <Bytes> self.data
        while self.at < self.length and freed < needed:
            size = get_u32(data + self.at + 4)
            if get_u32(data + self.at) and size and data[self.at + UP_START] == INPUTS:
                put_u32(self.data + self.at, 0)
                freed += UP_START + size
                dropped += 1
            self.at += UP_START + size
        self.holes += freed
        self.frames -= dropped
        if self.holes > self.length // 2:
            self.close_holes()
        return dropped

    def drop_link(self, uint32_t link):
        """See packing.UpRun.drop_link."""
        cdef Py_ssize_t size, at = 0
        while at < self.length:
            size = get_u32(<Bytes> self.data + at + 4)
            if get_u32(<Bytes> self.data + at) == link:
                put_u32(self.data + at, 0)
                self.holes += UP_START + size
                self.frames -= 1
            at += UP_START + size
        if self.holes > self.length // 2:
            self.close_holes()

    def weigh(self, bytes_by_link):
        """See packing.UpRun.weigh."""
        cdef Py_ssize_t size, at = 0
        cdef uint32_t link
        while at < self.length:
            link, size = get_u32(<Bytes> self.data + at), get_u32(<Bytes> self.data + at + 4)
            if link:
                bytes_by_link[link] += UP_START + size
            at += UP_START + size

    def take(self):
        """See packing.UpRun.take."""
        cdef bytes run
        self.close_holes()
        run = make_bytes(<Bytes> self.data, self.length)
        self.length = self.at = self.frames = 0
        return run

    cdef void close_holes(self) noexcept:
        cdef Py_ssize_t size, at = 0, kept = 0, passed = 0
        cdef char* data = self.data
        if not self.holes:
            return
        while at < self.length:
            size = UP_START + <Py_ssize_t> get_u32(<Bytes> data + at + 4)
            if get_u32(<Bytes> data + at):
                memmove(data + kept, data + at, size)
                kept += size
            at += size
            if at == self.at:
                passed = kept
        self.length, self.at, self.holes = kept, passed, 0


cdef class UpQueue:
    """See packing.UpQueue."""

    def push(self, uint32_t link, bytes frame not None):
        """See packing.UpQueue.push."""
        return self.put(link, PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame))

    cdef bint put(self, uint32_t link, const char* frame, Py_ssize_t size) except -1:
        if self.run is None or UP_START + size > self.room:
            return self.overflow(link, PyBytes_FromStringAndSize(frame, size))
        self.run.add(link, frame, size)
        self.room -= UP_START + size
        self.size += UP_START + size
        return True

    def overflow(self, link, frame):
        """See packing.UpQueue.overflow."""
        return False
