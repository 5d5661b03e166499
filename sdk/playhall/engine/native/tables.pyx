"""Native tables: handles, values, rows, stamps and flushes. The twin of `handles`, `places` and `tracking`.

An entity's values are in the table of its kind, in its row: those of a room in the room's, all others in the
nursery of their class. A handle knows its table and row, so that reading and writing are the same for all. What
is simple is done here: numbers that fit, of the exact types float, int and bool. All else, errors too, is the
pure code's: `Home.write` takes over with the value as it was given.

Memory. Handles and Trackeds keep their KindTable alive, so pointers hold. Objects (str, bytes, Json) are in
Python lists, which the garbage collector knows. A table's columns move when it grows, until it is pinned for
`columns()` (see `columns`): from then on they are in pages of that kind, which arrays keep alive.
"""

cimport cython
from cpython.object cimport PyTypeObject
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from playhall.engine.errors import DeadEntityError
from playhall.engine.fields import F32, F64, JSON, JsonValue, QuantisedType
from playhall.engine.handles import (
    GRAVE,
    NURSERY,
    AbstractAttribute,
    Home,
    check_new,
    concrete,
    dead,
    example,
    fill_locals,
    no_such_fields,
)
from playhall.engine.patches import Patches
from playhall.engine.tracking import Scope

cdef extern from *:
    """
    typedef PyObject *(*ph_getter)(PyObject *, void *);
    typedef int (*ph_setter)(PyObject *, PyObject *, void *);
    static inline int ph_is_ascii(PyObject *text) { return PyUnicode_IS_ASCII(text); }
    """
    ctypedef void* ph_getter
    ctypedef void* ph_setter
    ctypedef struct PyGetSetDef:
        const char* name
        ph_getter get
        ph_setter set
        const char* doc
        void* closure
    object PyDescr_NewGetSet(PyTypeObject* cls, PyGetSetDef* definition)
    bint is_float "PyFloat_CheckExact"(PyObject*) noexcept
    bint is_int "PyLong_CheckExact"(PyObject*) noexcept
    bint is_bool "PyBool_Check"(PyObject*) noexcept
    bint is_str "PyUnicode_CheckExact"(PyObject*) noexcept
    bint is_ascii "ph_is_ascii"(PyObject*) noexcept
    Py_ssize_t length_of_str "PyUnicode_GET_LENGTH"(PyObject*) noexcept
    double float_of "PyFloat_AS_DOUBLE"(PyObject*) noexcept
    double PyLong_AsDouble(PyObject*) except? -1.0
    long PyLong_AsLongAndOverflow(PyObject*, int* overflow) except? -1
    void PyErr_Clear() noexcept
    PyObject* Py_True
    int isinf(double) noexcept nogil  # -1 of -inf

cdef enum:
    FIRST_ROWS = 16
    MAX_STR = 16_384

cdef dict CODES = {
    "bool": CODE_BOOL, "u8": CODE_U8, "u16": CODE_U16, "u32": CODE_U32, "i8": CODE_I8, "i16": CODE_I16,
    "i32": CODE_I32, "f32": CODE_F32, "f64": CODE_F64, "q8": CODE_Q8, "q16": CODE_Q16, "str": CODE_STR,
    "bytes": CODE_BYTES, "json": CODE_JSON,
}
cdef dict SHARINGS = {
    Scope.SHARED: SHARED, Scope.HIDDEN: HIDDEN, Scope.PRIVATE: PRIVATE, Scope.PRESENCE: PRESENCE
}


# Layouts

cdef class Layout:
    def __cinit__(self, spec):
        cdef Py_ssize_t count = len(spec.fields)
        self.spec = spec
        self.field = <Field*>calloc(count + 1, sizeof(Field))
        self.descriptors = calloc(count + 1, sizeof(PyGetSetDef))
        if self.field == NULL or self.descriptors == NULL:
            raise MemoryError
        self.index_of = {field.name: field.index for field in spec.fields}
        self.json = [field for field in spec.fields if field.type is JSON]
        for field in spec.fields:
            fill_field(self.field + <uint32_t>field.index, field)

    def __init__(self, spec):
        if spec.abstract:
            return
        # Its first row holds the defaults, and is nobody's.
        self.nursery = KindTable(self, 0, SHARED)
        self.nursery.take()
        for field in spec.fields:
            self.nursery.put(0, field.index, field.default)
        self.default_size = fields_size(&self.nursery.t, 0, self.nursery.t.all_mask)

    def __dealloc__(self):
        free(self.field)
        free(self.descriptors)


cdef int fill_field(Field* out, field) except -1:
    type = field.type
    out.code = CODES[type.name]
    out.size = type.fixed_size or 0
    out.width = 0 if out.code >= CODE_STR else 8 if isinstance(type, QuantisedType) else type.fixed_size
    out.owner_only = field.owner_only
    out.writable = field.writable
    out.lo, out.hi = getattr(type, "lo", 0), getattr(type, "hi", 0)
    out.steps = getattr(type, "steps", 0)
    return 0


def equip(cls, spec):
    """Give a new class its fields."""
    cdef Layout layout = Layout(spec)
    cdef PyGetSetDef* definition
    type.__setattr__(cls, "_layout", layout)
    if spec.abstract:
        for field in spec.fields:
            type.__setattr__(cls, field.name, AbstractAttribute(field))
        return
    for field in spec.fields:
        definition = <PyGetSetDef*>layout.descriptors + <uint32_t>field.index
        definition.name = PyUnicode_AsUTF8AndSize(<PyObject*>field.name, NULL)  # the spec's, which stays
        definition.get, definition.set = accessors(layout.field[<uint32_t>field.index].code)
        definition.closure = <void*><size_t>field.index
        type.__setattr__(cls, field.name, PyDescr_NewGetSet(<PyTypeObject*>cls, definition))


# Tables

cdef enum:
    FIRST_MASK = 4
    FIRST_BITMAP = 6
    ARRAYS = 16


cdef struct Arrays:  # those by row that every table has: numbers, masks, bitmaps
    void** of[ARRAYS]


cdef Arrays arrays_of(Table* t) noexcept:
    cdef Arrays found
    found.of[:] = [
        <void**>&t.id, <void**>&t.born, <void**>&t.changed_at, <void**>&t.owner_changed,
        <void**>&t.dirty, <void**>&t.mask,
        <void**>&t.alive, <void**>&t.owned, <void**>&t.fresh, <void**>&t.dirty_rows, <void**>&t.pending,
        <void**>&t.added, <void**>&t.changed, <void**>&t.special, <void**>&t.whole, <void**>&t.alike,
    ]
    return found


cdef int resize(void** array, size_t before, size_t after) except -1:
    """Make an array longer, in bytes; what is new is zero."""
    cdef char* made = <char*>realloc(array[0], after)
    if made == NULL:
        raise MemoryError
    memset(made + before, 0, after - before)
    array[0] = made
    return 0


@cython.no_gc_clear
cdef class KindTable:
    """The rows of one kind. Cleared by nobody before the last handle in it is gone."""

    def __cinit__(self, Layout layout, uint32_t number, uint8_t sharing):
        cdef Table* t = &self.t
        cdef uint32_t index
        cdef size_t count = len(layout.spec.fields)
        self.layout = layout
        t.number, t.sharing, t.fields, t.field = number, sharing, count, layout.field
        t.words = (t.fields + 63) // 64 or 1
        for index in range(t.fields):
            describe(t, index)
        t.data = <char**>calloc(count + 1, sizeof(char*))
        t.blobs = <PyObject**>calloc(count + 1, sizeof(PyObject*))
        t.told = <char**>calloc(count + 1, sizeof(char*))
        t.stamps = <uint32_t**>calloc(count + 1, sizeof(uint32_t*))
        if t.data == NULL or t.blobs == NULL or t.told == NULL or t.stamps == NULL:
            raise MemoryError
        self.by_row = []
        self.objects = [[] if t.field[index].width == 0 else None for index in range(count)]
        self.texts = [[] if t.field[index].code == CODE_JSON else None for index in range(count)]
        for index in range(t.fields):
            if t.field[index].width == 0:
                t.data[index] = <char*><PyObject*>self.objects[index]
                t.blobs[index] = <PyObject*>(self.objects[index] if self.texts[index] is None
                                             else self.texts[index])
        self.grow(FIRST_ROWS)

    def __dealloc__(self):
        cdef Table* t = &self.t
        cdef uint32_t index
        for index in range(t.fields):
            if t.data != NULL and t.field[index].width and self.pages is None:
                free(t.data[index])
            if t.told != NULL:
                free(t.told[index])
            if t.stamps != NULL:
                free(t.stamps[index])
        free(t.data)
        free(t.blobs)
        free(t.told)
        free(t.stamps)
        for index in range(<uint32_t>ARRAYS):
            free(arrays_of(t).of[index][0])
        free(self.taken)

    cdef int grow(self, uint32_t cap) except -1:
        cdef Table* t = &self.t
        cdef uint32_t index, before = t.cap
        cdef size_t words = t.words * sizeof(uint64_t)
        if self.most:
            if before >= self.most:
                raise MemoryError(f"{self.layout.spec.name}: no row is left")
            cap = min(cap, self.most)
        for index in range(t.fields):
            resize(<void**>&t.stamps[index], 4 * <size_t>before, 4 * <size_t>cap)
            self.grow_column(index, before, cap)
        for index in range(<uint32_t>ARRAYS):
            if index < FIRST_MASK:
                resize(arrays_of(t).of[index], 4 * <size_t>before, 4 * <size_t>cap)
            elif index < FIRST_BITMAP:
                resize(arrays_of(t).of[index], words * before, words * cap)
            else:
                resize(arrays_of(t).of[index], bitmap_bytes(before), bitmap_bytes(cap))
        resize(<void**>&self.taken, bitmap_bytes(before), bitmap_bytes(cap))
        self.by_row.extend([None] * (cap - before))
        t.cap = cap
        return 0

    cdef int grow_column(self, uint32_t index, uint32_t before, uint32_t cap) except -1:
        cdef Table* t = &self.t
        cdef size_t width = t.field[index].width
        if not width:
            objects, texts, zero = self.objects[index], self.texts[index], self.layout.spec.fields[index].type.zero
            objects.extend([zero] * (<Py_ssize_t>cap - len(objects)))
            if texts is not None:
                texts.extend([zero.data] * (<Py_ssize_t>cap - len(texts)))
            return 0
        if not self.most:
            resize(<void**>&t.data[index], width * before, width * cap)
        if t.told[index] != NULL:
            resize(<void**>&t.told[index], width * before, width * cap)
        return 0

    cdef uint32_t take(self) except? 0xFFFFFFFF:
        """Return the lowest free row, which is taken from now on."""
        cdef uint32_t word = self.first_free >> 6, row
        while True:
            while word < (self.t.cap + 63) >> 6:
                if ~self.taken[word]:
                    row = 64 * word + <uint32_t>ctz64(~self.taken[word])
                    if row >= self.t.cap:
                        break
                    set_bit(self.taken, row)
                    self.first_free = row + 1
                    self.t.used = max(self.t.used, row + 1)
                    return row
                word += 1
            self.grow(2 * self.t.cap)
            word = min(word, (self.t.cap >> 6))

    cdef int give_back(self, uint32_t row) except -1:
        """Let others take a row, which is blank."""
        clear_bit(self.taken, row)
        self.by_row[row] = None
        self.first_free = min(self.first_free, row)
        return 0

    cdef int blank(self, uint32_t row) except -1:
        """Make all values of a row zero: nobody's."""
        cdef Table* t = &self.t
        cdef uint32_t index
        cdef size_t width
        for index in range(t.fields):
            width = t.field[index].width
            if width:
                memset(t.data[index] + width * row, 0, width)
                if t.told[index] != NULL:
                    memset(t.told[index] + width * row, 0, width)
            else:
                self.put(row, index, self.layout.spec.fields[index].type.zero)
        return 0

    cdef int copy_row(self, uint32_t row, KindTable source, uint32_t source_row) except -1:
        """Take over all values of a row of another table of the same layout."""
        cdef Table* t = &self.t
        cdef uint32_t index
        cdef size_t width
        for index in range(t.fields):
            width = t.field[index].width
            if width:
                memcpy(t.data[index] + width * row, source.t.data[index] + width * source_row, width)
                if t.told[index] != NULL:
                    memcpy(t.told[index] + width * row, t.data[index] + width * row, width)
            else:
                self.put(row, index, source.get(source_row, index))
        return 0

    cdef object get(self, uint32_t row, uint32_t index):
        """Return a stored value."""
        return self.value_in(self.t.data[index], row, index)

    cdef object value_in(self, char* column, uint32_t row, uint32_t index):
        cdef uint8_t code = self.t.field[index].code
        if code >= CODE_STR:
            return <object>item_of(<PyObject*>column, row)
        if code >= CODE_F32:
            return number_in(column, code, row)
        if code == CODE_BOOL:
            return column[row] != 0
        return <long>number_in(column, code, row)

    cdef int put(self, uint32_t row, uint32_t index, object stored) except -1:
        """Put a stored value in place, as one that was told."""
        cdef uint8_t code = self.t.field[index].code
        if code >= CODE_STR:
            self.objects[index][row] = stored
            if code == CODE_JSON:
                self.texts[index][row] = stored.data
        else:
            put_number_at(&self.t, row, index, stored)
        return 0


cdef inline size_t bitmap_bytes(uint32_t rows) noexcept nogil:
    return 8 * ((<size_t>rows + 63) // 64)


cdef int describe(Table* t, uint32_t index) noexcept:
    """Note what a field says of its kind."""
    cdef Field* field = t.field + index
    set_bit(t.all_mask, index)
    set_bit(&t.owner_only_mask[0] if field.owner_only else &t.public_mask[0], index)
    if field.writable:
        set_bit(t.writable_mask, index)
    t.fixed_size += field.size
    if not field.owner_only:
        t.public_fixed_size += field.size
    if not field.size:
        set_bit(t.var_mask, index)
    t.var |= field.size == 0
    t.has_owner_only |= field.owner_only
    return 0


cdef inline void place(Table* t, uint32_t row, uint32_t index, double value) noexcept nogil:
    """Put a number that fits in place."""
    cdef char* column = t.data[index]
    cdef size_t width = t.field[index].width
    cdef uint8_t code = t.field[index].code
    if code == CODE_F32:
        (<float*>column)[row] = <float>value
    elif code >= CODE_F64:
        (<double*>column)[row] = value
    elif code == CODE_I32:
        (<int32_t*>column)[row] = <int32_t>value
    elif code == CODE_U32:
        (<uint32_t*>column)[row] = <uint32_t>value
    elif width == 2:
        (<uint16_t*>column)[row] = <uint16_t><int32_t>value
    else:
        (<uint8_t*>column)[row] = <uint8_t><int32_t>value


cdef inline void note_told(Table* t, uint32_t row, uint32_t index) noexcept nogil:
    """What is in place counts as told: whoever put it there sees to that."""
    cdef size_t at = t.field[index].width * <size_t>row
    if t.told[index] != NULL:
        memcpy(t.told[index] + at, t.data[index] + at, t.field[index].width)


cdef int put_number_at(Table* t, uint32_t row, uint32_t index, double stored) except -1:
    place(t, row, index, stored)
    note_told(t, row, index)
    return 0


# What numbers are stored as

cdef inline bint fits(Field* field, PyObject* value, double* out) except -1:
    """Store what an exact float, int or bool is stored as. False: ask the field's type."""
    cdef int overflow = 0
    cdef long number
    if field.code >= CODE_F32:
        if is_float(value):
            out[0] = float_of(value)
        elif is_int(value):
            out[0] = <double>PyLong_AsLongAndOverflow(value, &overflow)
            if overflow or not -9007199254740992 <= out[0] <= 9007199254740992:
                return False
        else:
            return False
        return fits_float(field, out)
    if field.code == CODE_BOOL:
        out[0] = value == Py_True
        return is_bool(value)
    if not is_int(value):
        return False
    number = PyLong_AsLongAndOverflow(value, &overflow)
    out[0] = <double>number
    return not overflow and field.lo <= out[0] <= field.hi


cdef inline bint fits_float(Field* field, double* value) noexcept nogil:
    cdef double given = value[0]
    if field.code == CODE_F32:
        value[0] = <double><float>given
        return not isinf(value[0]) or isinf(given) != 0
    if field.code == CODE_F64:
        return True
    if not (field.lo <= given <= field.hi):
        return False
    value[0] = at_step(field, given)
    return True


# Attributes: what a field's descriptor does

cdef object get_bool(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return self.t.data[<size_t>closure][self.row] != 0


cdef object get_int(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return <long>number_at(self.t, <uint32_t><size_t>closure, self.row)


cdef object get_u8(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return (<uint8_t*>self.t.data[<size_t>closure])[self.row]


cdef object get_f32(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return (<float*>self.t.data[<size_t>closure])[self.row]


cdef object get_f64(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return (<double*>self.t.data[<size_t>closure])[self.row]


cdef object get_object(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return <object>item_of(<PyObject*>self.t.data[<size_t>closure], self.row)


cdef object get_json(Handle self, void* closure):
    if self.t == NULL:
        raise gone(self)
    return (<object>item_of(<PyObject*>self.t.data[<size_t>closure], self.row)).value


cdef inline bint is_simple(Handle self, uint32_t index, PyObject* value) noexcept:
    """Whether a write is between the handle and its table alone: nobody forbids it, and nobody else wrote."""
    return not (
        self.t == NULL
        or value == NULL
        or self.foreign
        or (self.t.field[index].writable and has_bit(self.t.owned, self.row))
    )


cdef int set_f32(Handle self, PyObject* value, void* closure) except -1:
    cdef uint32_t index = <uint32_t><size_t>closure
    cdef Table* t = self.t
    cdef float* slot
    cdef float rounded
    cdef uint32_t before, after
    if not is_simple(self, index, value) or not is_float(value):
        return set_number(self, value, closure)
    rounded = <float>float_of(value)
    if isinf(rounded):
        return set_number(self, value, closure)
    slot = <float*>t.data[index] + self.row
    memcpy(&before, slot, 4)
    memcpy(&after, &rounded, 4)
    if before != after:
        slot[0] = rounded
        if t.told[index] != NULL:
            (<float*>t.told[index])[self.row] = rounded
        mark(t, self.row, index)
    return 0


cdef int set_number(Handle self, PyObject* value, void* closure) except -1:
    cdef uint32_t index = <uint32_t><size_t>closure
    cdef Table* t = self.t
    cdef size_t width
    cdef uint64_t before = 0, after = 0
    cdef double stored
    if not is_simple(self, index, value) or not fits(t.field + index, value, &stored):
        return set_slowly(self, value, closure)
    width = t.field[index].width
    memcpy(&before, t.data[index] + width * self.row, width)
    place(t, self.row, index, stored)
    memcpy(&after, t.data[index] + width * self.row, width)
    if before != after:  # else it may be there by an array already, and is still to be told
        note_told(t, self.row, index)
        mark(t, self.row, index)
    return 0


cdef int set_slowly(Handle self, PyObject* value, void* closure) except -1:
    """As the pure engine does it: see `Home.write`."""
    cdef uint32_t index = <uint32_t><size_t>closure
    if value == NULL:
        spec = type(self)._spec
        raise AttributeError(f"{spec.name}.{spec.fields[index].name} is a field, and cannot be deleted")
    if self.t == NULL:
        raise gone(self)
    self.home.write(self, index, <object>value)
    return 0


cdef (ph_getter, ph_setter) accessors(uint8_t code):
    """Return what reads and writes fields of a type."""
    if code == CODE_F32:
        return <ph_getter>get_f32, <ph_setter>set_f32
    if CODE_F64 <= code <= CODE_Q16:
        return <ph_getter>get_f64, <ph_setter>set_number
    if code == CODE_BOOL:
        return <ph_getter>get_bool, <ph_setter>set_number
    if code == CODE_U8:
        return <ph_getter>get_u8, <ph_setter>set_number
    if code < CODE_F32:
        return <ph_getter>get_int, <ph_setter>set_number
    return <ph_getter>(get_json if code == CODE_JSON else get_object), <ph_setter>set_slowly


# Handles

cdef object gone(Handle self):
    """Return what touching a handle raises that is in no table."""
    if self.home is None:
        return AttributeError(f"{type(self).__name__}: __init__ was not called")
    return dead(self)


cdef object not_writable(Handle self, name, lacks):
    """Return what Python raises of a property of an ordinary class."""
    return AttributeError(f"property {name!r} of {type(self).__name__!r} object has no {lacks}")


@cython.no_gc_clear
cdef class Handle:
    """What an Entity is beside its class: see `handles`."""

    def __init__(self, /, *unnamed, **given):
        spec = concrete(type(self))
        cdef Layout layout = type(self)._layout
        if unnamed:
            raise TypeError(f"{spec.name}: fields are given by name, as in {example(type(self))}")
        if self.home is not None:
            raise TypeError(f"{spec.name}: __init__ is called once")
        self.settle_in(layout)
        self._size = layout.default_size
        if layout.json or not self.take_simple(layout, given):
            self.take_given(layout, given)
        fill_locals(self, spec)

    def __dealloc__(self):
        if self.t != NULL and self.table is self.table.layout.nursery:
            self.leave_nursery()

    cdef int settle_in(self, Layout layout) except -1:
        """Take a row of the nursery, with the defaults in it."""
        self.row = layout.nursery.take()
        layout.nursery.copy_row(self.row, layout.nursery, 0)
        self.table, self.t, self.home = layout.nursery, &layout.nursery.t, NURSERY
        return 0

    cdef int leave_nursery(self) except -1:
        self.table.blank(self.row)
        self.table.give_back(self.row)
        self.t = NULL
        return 0

    cdef bint take_simple(self, Layout layout, dict given) except -1:
        """Store what is given, if those are numbers that fit. False: start again with `take_given`."""
        cdef double stored
        cdef uint32_t index
        for name, value in given.items():
            found = layout.index_of.get(name)
            if found is None:
                return False
            index = found
            if layout.field[index].size == 0 or not fits(layout.field + index, <PyObject*>value, &stored):
                return False
            put_number_at(self.t, self.row, index, stored)
        return True

    cdef int take_given(self, Layout layout, dict given) except -1:
        spec = layout.spec
        for field in spec.fields:
            if field.name in given:
                stored = field.accept(spec.name, None, given.pop(field.name))
            else:
                stored = field.fresh_default()
            if self.t == NULL:  # deleted by code of a value's class
                raise gone(self)
            self.table.put(self.row, field.index, stored)
        if given:
            raise no_such_fields(spec, given)
        self._size = fields_size(self.t, self.row, self.t.all_mask)
        check_new(spec, RowValues(self), self._size)
        return 0

    @property
    def id(self):
        if self.identity is None:
            raise DeadEntityError(f"{type(self)._spec.name} has no id before it is added")
        return self.identity

    @id.setter
    def id(self, value):
        raise not_writable(self, "id", "setter")

    @id.deleter
    def id(self):
        raise not_writable(self, "id", "deleter")

    @property
    def owner(self):
        return self.player

    @owner.setter
    def owner(self, value):
        raise not_writable(self, "owner", "setter")

    @owner.deleter
    def owner(self):
        raise not_writable(self, "owner", "deleter")

    # What Home, and what both engines share, knows a handle by.

    @property
    def _id(self):
        return self.identity

    @property
    def _owner(self):
        return self.player

    @property
    def _home(self):
        return self.home

    @property
    def _values(self):
        return RowValues(self)


cdef class RowValues:
    """The stored values of an entity, by the index of the field: a live view."""

    cdef Handle entity

    def __cinit__(self, Handle entity):
        self.entity = entity

    cdef Table* table(self) except NULL:
        if self.entity.t == NULL:
            raise gone(self.entity)
        return self.entity.t

    cdef uint32_t checked(self, Py_ssize_t index) except? 0xFFFFFFFF:
        if not 0 <= index < <Py_ssize_t>self.table().fields:
            raise IndexError(f"no field {index}")
        return <uint32_t>index

    def __getitem__(self, Py_ssize_t index):
        cdef uint32_t found = self.checked(index)
        return self.entity.table.get(self.entity.row, found)

    def __setitem__(self, Py_ssize_t index, stored):
        cdef uint32_t found = self.checked(index)
        self.entity.table.put(self.entity.row, found, stored)

    def __len__(self):
        return self.table().fields

    def __iter__(self):
        return iter(values_of(self.entity.table, self.entity.row) if self.table() != NULL else ())


cdef list values_of(KindTable table, uint32_t row):
    return [table.get(row, index) for index in range(table.t.fields)]


def stored_values(Handle entity not None):
    """Return the stored values in the order of the fields: a live view, to be read and not kept."""
    return RowValues(entity)


def adopt(Handle entity not None, home, id, owner):
    """Move a new entity from the nursery to a home that is no room's. Raises ValueError if it has one."""
    if entity.home is not NURSERY:
        raise ValueError(f"{entity!r} was added before; make a new one")
    entity.home, entity.identity, entity.player, entity.foreign = home, id, owner, True


def restore(cls, home, id, owner, values):
    """Make an entity of stored values in a home that is no room's: in a client's replica."""
    cdef Handle entity = revived(cls, values)
    entity.home, entity.identity, entity.player, entity.foreign = home, id, owner, True
    return entity


cdef Handle revived(cls, values):
    """Make a handle of stored values."""
    spec = concrete(cls)
    cdef Handle entity = cls.__new__(cls)
    cdef uint32_t index
    entity.settle_in(cls._layout)
    for index, stored in enumerate(values):
        entity.table.put(entity.row, index, stored)
    entity._size = fields_size(entity.t, entity.row, entity.t.all_mask)
    fill_locals(entity, spec)
    return entity


def put(Handle entity not None, uint32_t index, stored):
    """Put a stored value in place without telling the home."""
    if entity.t == NULL:
        raise gone(entity)
    if entity.t.field[index].size == 0:
        type = entity.table.layout.spec.fields[index].type
        entity._size += type.size(stored) - type.size(entity.table.get(entity.row, index))
    entity.table.put(entity.row, index, stored)


def set_owner(Handle entity not None, owner):
    """Note another owner without telling the home."""
    entity.player = owner


cpdef bury(Handle entity):
    """Make the handle dead. Its id and owner can still be read, its fields not."""
    if entity.t != NULL and entity.table is entity.table.layout.nursery:
        entity.leave_nursery()
    entity.t = NULL
    entity.home = GRAVE


def is_dead(Handle entity not None):
    """Whether the entity was deleted."""
    return entity.home is GRAVE


# What is tracked

cdef class Tracked:
    """One thing that changes: see `tracking`. While it is there, its versions are in its table's row."""

    def set_owner(self, owner):
        """Note another owner."""
        if self.owner is not None:
            self._lost_by = self._lost_by or set()
            self._lost_by.add(self.owner)
        self.owner = owner
        self.owner_dirty = True
        if owner is None:
            clear_bit(self.t.owned, self.row)
        else:
            set_bit(self.t.owned, self.row)
        set_bit(self.t.pending, self.row)
        self.touch()

    def owner_wrote(self, uint32_t index, stored):
        """Note what the owner wrote, whatever the room is going to make of it.

        If that is not the room's value at the flush, the owner is corrected, also where nothing has changed.
        """
        if self._believed is None:
            self._believed = {}
        self._believed[index] = stored
        set_bit(self.t.pending, self.row)
        if not self.spec.fields[index].type.same(self.table.get(self.row, index), stored):
            self.touch()

    cdef int touch(self) except -1:
        set_bit(self.t.dirty_rows, self.row)
        self.t.touched = 1
        return 0

    # As a home

    def write(self, entity, index, value):
        Home.write(self, entity, index, value)

    def patch(self, entity, index, offset, data):
        Home.patch(self, entity, index, offset, data)

    def on_write(self, entity, uint32_t index, stored):
        if self._patched is not None:
            self._patched.pop(index, None)
        self.note_belief(index, self.told(index))
        mark(self.t, self.row, index)

    def on_patch(self, entity, uint32_t index, offset, data, stored):
        cdef uint64_t* dirty = self.t.dirty + <size_t>self.row * self.t.words
        if self._patched is None:
            self._patched = {}
        if not has_bit(dirty, index) or index in self._patched:
            # A patch beyond the end changes the gap before it too, but filling it with zeros is what a
            # patch means.
            self._patched.setdefault(index, []).append((offset, offset + len(data)))
            set_bit(self.t.pending, self.row)
        self.note_belief(index, self.told(index))
        mark(self.t, self.row, index)

    cdef object told(self, uint32_t index):
        """Return the value that was told last: in arrays another may be in place already."""
        cdef char* column = self.t.told[index]
        return self.table.value_in(self.t.data[index] if column == NULL else column, self.row, index)

    cdef int note_belief(self, uint32_t index, object told) except -1:
        """Room code is about to write a field, or did through columns: the owner believes what it was told."""
        if self.owner is None or not self.owner_writes(index):
            return 0
        if self._believed is None:
            self._believed = {}
        if index not in self._believed:
            self._believed[index] = told
            set_bit(self.t.pending, self.row)
        return 0

    cdef bint owner_writes(self, uint32_t index) except -1:
        if self.t.sharing == PRESENCE:
            return self.spec.fields[index].name == "status"
        return self.t.field[index].writable

    # What a flush does of it beyond stamping

    cdef int settle(self, Flush flush, uint32_t version, bint added) except -1:
        if not added:
            if self._believed and self.owner is not None and not self.owner_dirty:
                flush.correct(self.owner, self, self.overruled(version))
            # Who has just become the owner is told all that owners write, and need not be twice.
            for player in self._lost_by or ():
                if player != self.owner:
                    flush.correct(player, self, self.spec.writable_mask)
        if self._patched or self._patches:
            self.settle_patches(version, added)
        if self.owner_dirty:
            self.t.owner_changed[self.row] = version
            set_bit(self.t.special, self.row)
        self._believed, self._patched, self._lost_by, self.owner_dirty = None, None, None, False
        if not self._patches:
            clear_bit(self.t.pending, self.row)
        return 0

    cdef object overruled(self, uint32_t version):
        """Return the mask of the fields that are not as the owner believes, and note that it is told."""
        mask = 0
        for index, believed in self._believed.items():
            if not self.spec.fields[index].type.same(self.table.get(self.row, index), believed):
                if self._corrected_at is None:
                    self._corrected_at = {}
                self._corrected_at[index] = version
                mask |= 1 << index
        return mask

    cdef int settle_patches(self, uint32_t version, bint added) except -1:
        cdef uint64_t* dirty = self.t.dirty + <size_t>self.row * self.t.words
        cdef dict patched = self._patched or {}
        cdef uint32_t index
        if self._patches is None:
            self._patches = {}
        for index in sorted({*self._patches, *patched}):
            if not has_bit(dirty, index):
                continue
            if index not in patched or added:
                self._patches.pop(index, None)
                continue
            # Before its first patch the field had been the same since it was last written.
            kept = self._patches.setdefault(index, Patches(self.t.stamps[index][self.row], []))
            kept.add(version, patched[index])
            set_bit(self.t.special, self.row)
        return 0

    # What may be asked of it

    @property
    def spec(self):
        return type(self.entity)._spec

    @property
    def values(self):
        """The stored values: a live view, or those that a twin or what was removed keeps."""
        return self.kept_values if self.t == NULL else RowValues(self.entity)

    @property
    def stamps(self):
        if self.t == NULL:
            return self.kept_stamps
        return [self.t.stamps[index][self.row] for index in range(self.t.fields)]

    @property
    def born(self):
        if self.t == NULL:
            return self.kept_born
        return -1 if self.t.born[self.row] == UNBORN else self.t.born[self.row]

    @property
    def changed(self):
        return self.kept_changed if self.t == NULL else self.t.changed_at[self.row]

    @property
    def owner_changed(self):
        return self.kept_owner_changed if self.t == NULL else self.t.owner_changed[self.row]

    @property
    def owner_mask(self):
        """The mask of what the owner writes."""
        if self.scope is Scope.PRESENCE:
            return 1 << self.spec.by_name["status"].index
        return self.spec.writable_mask

    @property
    def corrected_at(self):
        """By field: when the owner of now was last told a value other than what it believed."""
        return self._corrected_at or {}

    @property
    def patches(self):
        return self._patches or {}

    def changed_since(self, long long version):
        """Return the mask of the fields that have changed since a version."""
        cdef uint32_t index
        cdef object mask = 0, bit = 1  # a C number has no room for all fields
        if self.t == NULL:
            for stamp in self.kept_stamps:
                if stamp > version:
                    mask |= bit
                bit <<= 1
            return mask
        for index in range(self.t.fields):
            if <long long>self.t.stamps[index][self.row] > version:
                mask |= bit << index
        return mask

    def patches_since(self, version, mask):
        """Return, of the fields in `mask`, those that patches bring up to date, with the ranges to send."""
        out = {}
        values = self.values if self._patches else None
        for index, patches in (self._patches or {}).items():
            if mask >> index & 1:
                ranges = patches.ranges(version, len(values[index]))
                if ranges is not None:
                    out[index] = ranges
        return out

    def twin(self):
        """Return a copy of this as it was flushed last, which does not change. To be called after a flush.

        It holds the same values. All who ask between two changes get the same.
        """
        if self.t == NULL:
            return self
        if self._twin is None or self._twin.kept_changed != self.t.changed_at[self.row]:
            self._twin = self.copy()
        return self._twin

    cdef Tracked copy(self):
        cdef Tracked twin = Tracked.__new__(Tracked)
        twin.row, twin.number, twin.entity = self.row, self.number, self.entity
        twin.scope, twin.id, twin.owner = self.scope, self.id, self.owner
        twin.table = self.table
        twin._corrected_at = None if self._corrected_at is None else dict(self._corrected_at)
        if self._patches:
            twin._patches = {
                index: Patches(each.since, list(each.made)) for index, each in self._patches.items()
            }
        twin.keep(self)
        return twin

    cdef int keep(self, Tracked source) except -1:
        """Hold what there is of another one, or this one, from now on."""
        self.kept_values = list(source.values)
        self.kept_stamps = source.stamps
        self.kept_born, self.kept_changed = source.born, source.changed
        self.kept_owner_changed = source.owner_changed
        self.t = NULL
        return 0


cdef class Flush:
    """What has changed from one version to the next: see `tracking`. Its lists hold until the next flush."""

    @property
    def added(self):
        if self._added is None:
            self._added = self.tracker.listed(True)
        return self._added

    @property
    def changed(self):
        if self._changed is None:
            self._changed = self.tracker.listed(False)
        return self._changed

    def correct(self, player, Tracked tracked, mask):
        if mask:
            masks = self.corrections.setdefault(player, {})
            masks[tracked] = masks.get(tracked, 0) | mask


cdef class Tracker:
    """All that is tracked in one room: see `tracking`."""

    def __cinit__(self):
        self.tables = []
        self._public, self._private = {}, {}
        self._removed, self._resting, self._columns = [], [], []

    @property
    def public(self):
        """All that may be seen by anybody, by id: shared state, entities, presence."""
        return self._public

    def public_since(self, long long version):
        """Return what of it has changed since a version, by kind and row."""
        cdef KindTable table
        cdef uint32_t word, row
        cdef uint64_t rows
        found = {}
        for table in self.tables:
            if table is None or table.t.sharing not in (SHARED, PRESENCE):
                continue
            for word in range(bitmap_words(&table.t)):
                rows = table.t.alive[word]
                while rows:
                    row = 64 * word + <uint32_t>ctz64(rows)
                    rows &= rows - 1
                    if <long long>table.t.changed_at[row] > version:
                        tracked = table.by_row[row]
                        found[(<Tracked>tracked).id] = tracked
        return found

    def add(self, Handle entity not None, scope, id, uint32_t number, owner):
        """Track something new: born in the next flush. Raises ValueError for what was added before."""
        if entity.home is not NURSERY:
            raise ValueError(f"{entity!r} was added before; make a new one")
        cdef Tracked tracked = self.register(entity, scope, id, number, owner)
        cdef Table* t = tracked.t
        t.born[tracked.row] = UNBORN
        set_bit(t.fresh, tracked.row)
        tracked.touch()
        return tracked

    def restore(self, cls, scope, id, uint32_t number, owner, values):
        """Track what was saved: it was there before the generation's first version."""
        return self.register(revived(cls, values), scope, id, number, owner)

    cdef Tracked register(self, Handle entity, scope, id, uint32_t number, owner):
        """Move a handle from the nursery to a row of its kind's table."""
        cdef KindTable table = self.table_of(type(entity)._layout, number, SHARINGS[scope])
        cdef uint32_t row = table.take()
        cdef Tracked tracked = Tracked.__new__(Tracked)
        table.copy_row(row, entity.table, entity.row)
        entity.leave_nursery()
        entity.table, entity.t, entity.row = table, &table.t, row
        entity.home, entity.identity = tracked, id
        entity.player = None if scope is Scope.PRESENCE else owner
        tracked.table, tracked.t, tracked.row, tracked.number = table, &table.t, row, number
        tracked.entity, tracked.scope, tracked.id, tracked.owner = entity, scope, id, owner
        self.enter(table, tracked)
        if scope is Scope.PRIVATE:
            self._private[owner or ""] = tracked
        elif scope is not Scope.HIDDEN:
            self._public[id] = tracked
        return tracked

    cdef int enter(self, KindTable table, Tracked tracked) except -1:
        """Fill in what a table knows of a row beside values."""
        cdef Table* t = &table.t
        cdef uint32_t row = tracked.row, index
        table.by_row[row] = tracked
        t.id[row] = tracked.id
        t.born[row] = t.changed_at[row] = t.owner_changed[row] = 0
        for index in range(t.fields):
            t.stamps[index][row] = 0
        set_bit(t.alive, row)
        if tracked.owner is not None:
            set_bit(t.owned, row)
        t.count += 1
        if t.shown_id != NULL:
            t.shown_alive[row], t.shown_id[row] = 1, t.id[row]
        return 0

    def remove(self, Tracked tracked not None):
        """Forget it; its handle is dead from now on. Its last values stay with the Tracked."""
        cdef KindTable table = tracked.table
        cdef bint told = table.t.born[tracked.row] != UNBORN
        if tracked.scope is Scope.PRIVATE:
            del self._private[tracked.owner or ""]
        elif tracked.scope is not Scope.HIDDEN:
            del self._public[tracked.id]
        tracked.keep(tracked)
        bury(tracked.entity)
        self.leave(table, tracked.row)
        if told:
            self._removed.append(tracked)
        else:
            table.give_back(tracked.row)

    cdef int leave(self, KindTable table, uint32_t row) except -1:
        cdef Table* t = &table.t
        clear_bit(t.alive, row)
        clear_bit(t.owned, row)
        clear_bit(t.fresh, row)
        clear_bit(t.dirty_rows, row)
        clear_bit(t.pending, row)
        memset(t.dirty + <size_t>row * t.words, 0, 8 * t.words)
        t.count -= 1
        table.blank(row)
        if t.shown_id != NULL:
            t.shown_alive[row], t.shown_id[row] = 0, 0
        return 0

    def private(self, player):
        return self._private.get(player)

    def private_players(self):
        return list(self._private)

    def columns(self, kind, uint32_t number):
        """Return the columns of a kind.

        Raises TypeError where it can have none, ModuleNotFoundError without NumPy.
        """
        from playhall.engine.native.columns import Rows

        for rows in self._columns:
            if rows.number == number:
                return rows.columns()
        rows = Rows(self.table_of(kind._layout, number, HIDDEN if kind._spec.hidden else SHARED))
        self._columns.append(rows)
        return rows.columns()

    cdef KindTable table_of(self, Layout layout, uint32_t number, uint8_t sharing):
        """Return the table of a number, which is made when there is the first thing of it."""
        while <Py_ssize_t>number >= len(self.tables):
            self.tables.append(None)
        if self.tables[number] is None:
            self.tables[number] = KindTable(layout, number, sharing)
        return self.tables[number]

    @property
    def dirty(self):
        """Whether a flush would find anything."""
        cdef KindTable table
        if self._removed:
            return True
        for table in self.tables:
            if table is not None and table.t.touched and any_bit(&table.t, table.t.dirty_rows):
                return True
        return any(rows.changed() for rows in self._columns)

    def flush(self, uint32_t version):
        """Stamp all that has changed with `version`, and return it.

        Raises FieldError, and stamps nothing then, where what was written through columns does not fit.
        """
        cdef Tracked tracked
        cdef KindTable table
        for tracked in self._resting:
            tracked.table.give_back(tracked.row)
        self._resting = []
        for rows in self._columns:
            rows.tell()
        cdef Flush flush = Flush.__new__(Flush)
        flush.version, flush.tracker, flush.removed, flush.corrections = version, self, self._removed, {}
        for table in self.tables:
            if table is not None:
                stamp_table(table, flush, version)
        self._removed, self._resting = [], self._removed
        return flush

    cdef list listed(self, bint added):
        """Return what the last flush found."""
        cdef KindTable table
        cdef uint32_t word
        cdef uint64_t rows
        cdef list found = []
        for table in self.tables:
            if table is None or not table.t.flushed:
                continue
            for word in range(bitmap_words(&table.t)):
                rows = (table.t.added if added else table.t.changed)[word]
                while rows:
                    found.append(table.by_row[64 * word + <uint32_t>ctz64(rows)])
                    rows &= rows - 1
        return found


cdef bint any_bit(const Table* t, const uint64_t* bits) noexcept nogil:
    cdef uint32_t word
    for word in range(bitmap_words(t)):
        if bits[word]:
            return True
    return False


# Flushing

cdef int stamp_table(KindTable table, Flush flush, uint32_t version) except -1:
    """Give what is dirty in a table its version."""
    cdef Table* t = &table.t
    cdef uint32_t word, words = bitmap_words(t)
    cdef uint64_t rows, fresh, late
    if t.flushed:
        memset(t.added, 0, 8 * <size_t>words)
        memset(t.changed, 0, 8 * <size_t>words)
        memset(t.special, 0, 8 * <size_t>words)
        memset(t.alike, 0, 8 * <size_t>words)
        t.flushed = 0
    if not t.touched:
        return 0
    t.touched, t.flushed = 0, 1
    memset(t.any_mask, 0, sizeof(t.any_mask))
    for word in range(words):
        rows = t.dirty_rows[word]
        if not rows:
            continue
        fresh, late = rows & t.fresh[word], rows & t.pending[word]
        t.added[word], t.changed[word] = fresh, rows & ~fresh
        while late:
            settle_row(table, 64 * word + <uint32_t>ctz64(late), flush, version)
            late &= late - 1
        t.fresh[word] &= ~fresh
        t.dirty_rows[word] = 0
        if rows == ~<uint64_t>0 and is_alike(t, word):
            stamp_block(t, word, version)
        else:
            stamp_rows(t, word, rows, version)
        while fresh:
            t.born[64 * word + <uint32_t>ctz64(fresh)] = version
            fresh &= fresh - 1
    return 0


cdef int settle_row(KindTable table, uint32_t row, Flush flush, uint32_t version) except -1:
    cdef Tracked tracked = table.by_row[row]
    tracked.settle(flush, version, has_bit(table.t.fresh, row))
    return 0


cdef void stamp_rows(Table* t, uint32_t at, uint64_t rows, uint32_t version) noexcept nogil:
    cdef uint32_t row, word, words = t.words
    cdef uint64_t* dirty
    cdef uint64_t fields
    spread(t, at)
    while rows:
        row = 64 * at + <uint32_t>ctz64(rows)
        rows &= rows - 1
        dirty = t.dirty + <size_t>row * words
        t.changed_at[row] = version
        for word in range(words):
            fields = dirty[word]
            t.mask[<size_t>row * words + word] = fields
            t.any_mask[word] |= fields
            dirty[word] = 0
            while fields:
                t.stamps[64 * word + <uint32_t>ctz64(fields)][row] = version
                fields &= fields - 1


cdef bint is_alike(Table* t, uint32_t at) noexcept nogil:
    """Whether the same was written in all rows of a word, as it often is: `whole` tells it then."""
    cdef uint64_t* dirty = t.dirty + 64 * <size_t>at
    if t.words == 1 and not t.whole[at] and same_64(dirty):
        t.whole[at] = dirty[0]
        memset(dirty, 0, 64 * 8)
    return t.whole[at] != 0


cdef void stamp_block(Table* t, uint32_t at, uint32_t version) noexcept nogil:
    """Stamp 64 rows that are alike."""
    cdef uint64_t fields = t.whole[at]
    cdef size_t first = 64 * <size_t>at
    t.whole[at], t.alike[at] = 0, fields
    t.any_mask[0] |= fields
    fill_64(t.mask + first, fields)
    fill_32(t.changed_at + first, version)
    while fields:
        fill_32(t.stamps[ctz64(fields)] + first, version)
        fields &= fields - 1


# All changes

cdef enum:
    FEW = 4  # rows that are written one by one rather than together


cdef Py_ssize_t changes_bound(const Table* t) except -1:
    """At most how many bytes put_changes writes."""
    cdef uint32_t word, row
    cdef uint64_t rows, any_var = 0
    cdef uint64_t mask[MAX_WORDS]
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t most = 5 + <Py_ssize_t>mask_size(t.all_mask, t.words) + t.public_fixed_size
    if not t.flushed:
        return 0
    for word in range(t.words):
        any_var |= t.any_mask[word] & t.public_mask[word] & t.var_mask[word]
    for word in range(bitmap_words(t)):
        rows = t.changed[word]
        if not any_var:
            total += most * popcount64(rows)
            continue
        while rows:
            row = 64 * word + <uint32_t>ctz64(rows)
            rows &= rows - 1
            if told_mask(t, row, mask):
                total += change_size(t, row, mask)
    return total


cdef char* put_changes(char* out, const Table* t, uint32_t base, uint32_t* offset, uint32_t* size) except NULL:
    cdef uint32_t word
    cdef uint64_t rows, left
    cdef char* start = out - base
    cdef Run run
    if not t.flushed:
        return out
    for word in range(bitmap_words(t)):
        rows = t.changed[word]
        if t.words > 1:
            out = put_rows(out, start, t, 64 * word, rows, offset, size)
            continue
        while rows:
            left = take_run(&run, t, word, rows)
            if run.count > FEW and is_plain(t, t.mask[run.row[0]] & t.public_mask[0]):
                out = put_run(out, start, t, &run, offset, size)
            else:
                out = put_rows(out, start, t, 64 * word, rows ^ left, offset, size)
            rows = left
    return out


cdef char* put_rows(
    char* out, const char* start, const Table* t, uint32_t first, uint64_t rows, uint32_t* offset, uint32_t* size
) except NULL:
    """Write changes one by one."""
    cdef uint32_t row
    cdef uint64_t mask[MAX_WORDS]
    cdef char* at
    while rows:
        row = first + <uint32_t>ctz64(rows)
        rows &= rows - 1
        at = out
        if told_mask(t, row, mask):
            out = put_change(out, t, row, mask)
        offset[row] = <uint32_t>(at - start)
        size[row] = <uint32_t>(out - at)
    return out


cdef char* put_run(
    char* out, const char* start, const Table* t, Run* run, uint32_t* offset, uint32_t* size
) noexcept nogil:
    """Write the changes of rows in which the same has changed."""
    cdef uint64_t mask = t.mask[run.row[0]] & t.public_mask[0], tail = 0
    cdef uint32_t tail_size = <uint32_t>(put_varint(<char*>&tail, mask) - <char*>&tail)
    cdef uint32_t fields = plain_size(t, mask)
    cdef char* end
    end = put_heads(out, run, False, tail, tail_size, fields)
    put_columns(out, t, run, mask)
    put_pieces(run, <uint32_t>(out - start), offset, size)
    return end
