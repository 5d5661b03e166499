/* Entries of rows in which the same fields are told, up to 64 at a time: what stands before the fields, then
   the fields, column by column. All sizes are known then, so that no loop has a branch.

   Most often the rows are one after the other, and their ids of one size: an entry is `step` bytes after the one
   before it then. gcc makes vectors of the loops over ids, masks and versions. */

#ifndef PLAYHALL_RUNS_H
#define PLAYHALL_RUNS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "scans.h"

typedef struct {
    uint32_t count;
    uint32_t step;   /* from one entry to the next, or 0 where that differs */
    int straight;    /* rows are one after the other */
    uint32_t size;   /* of what stands before the fields, where there is a step */
    uint32_t fields; /* how many bytes of fields an entry has */
    uint32_t row[64];
    uint32_t id[64];
    uint64_t head[64];
    uint32_t head_size[64];
    uint32_t at[64]; /* of its fields, from the beginning of the first entry, where there is no step */
} ph_run;

PH_CLONES static int ph_same_64(const uint64_t *masks)
{
    uint64_t differ = 0;
    for (int n = 1; n < 64; n++)
        differ |= masks[n] ^ masks[0];
    return differ == 0;
}

PH_CLONES static void ph_fill_32(uint32_t *out, uint32_t value)
{
    for (int n = 0; n < 64; n++)
        out[n] = value;
}

PH_CLONES static void ph_fill_64(uint64_t *out, uint64_t value)
{
    for (int n = 0; n < 64; n++)
        out[n] = value;
}

/* Sets the same bits in the masks of 64 rows. */
PH_CLONES static void ph_mark_64(uint64_t *masks, uint64_t bits)
{
    for (int n = 0; n < 64; n++)
        masks[n] |= bits;
}

/* Takes 64 rows. */
static inline void ph_whole(ph_run *run, uint32_t first, const uint32_t *ids)
{
    run->row[0] = first;
    memcpy(run->id, ids + first, sizeof(run->id));
    run->count = 64;
    run->straight = 1;
}

/* Takes rows from the lowest on, as long as their masks are the same; returns those that are left. */
static inline uint64_t ph_part(ph_run *run, uint32_t first, uint64_t rows, const uint64_t *masks, const uint32_t *ids)
{
    uint32_t n = 0, row = first + (uint32_t)__builtin_ctzll(rows);
    const uint64_t mask = masks[row];
    while (rows) {
        row = first + (uint32_t)__builtin_ctzll(rows);
        if (masks[row] != mask)
            break;
        rows &= rows - 1;
        run->row[n] = row;
        run->id[n++] = ids[row];
    }
    run->count = n;
    run->straight = run->row[n - 1] - run->row[0] == n - 1;
    return rows;
}

static inline uint32_t ph_row(const ph_run *run, uint32_t n)
{
    return run->straight ? run->row[0] + n : run->row[n];
}

/* Heads. An update's is the id as a varint; a record's is msgpack of an array of two and the id. */

static inline uint32_t ph_varint_size(uint32_t id)
{
    return 1 + (id > 0x7F) + (id > 0x3FFF) + (id > 0x1FFFFF) + (id > 0xFFFFFFF);
}

static inline uint64_t ph_varint(uint64_t id)
{
    const uint64_t more = (id > 0x7F ? 0x80 : 0) | (id > 0x3FFF ? 0x8000 : 0) | (id > 0x1FFFFF ? 0x800000 : 0) |
                          (id > 0xFFFFFFF ? 0x80000000 : 0);
    return (id & 0x7F) | (id & 0x3F80) << 1 | (id & 0x1FC000) << 2 | (id & 0xFE00000) << 3 | (id & 0xF0000000) << 4 |
           more;
}

static inline uint32_t ph_record_head_size(uint32_t id)
{
    return 2 + (id > 0x7F) + (id > 0xFF) + 2 * (id > 0xFFFF);
}

static inline uint64_t ph_record_head(uint64_t id)
{
    const uint64_t two = 0xCD | (id & 0xFF) << 16 | (id >> 8 & 0xFF) << 8;
    const uint64_t four = 0xCE | (id >> 24) << 8 | (id >> 16 & 0xFF) << 16 | (id >> 8 & 0xFF) << 24 | (id & 0xFF) << 32;
    const uint64_t one = id > 0x7F ? 0xCC | id << 8 : id;
    return 0x92 | (id > 0xFFFF ? four : id > 0xFF ? two : one) << 8;
}

PH_CLONES static void ph_bounds(const uint32_t *restrict ids, uint32_t count, uint32_t *restrict bounds)
{
    uint32_t low = ids[0], high = ids[0];
    for (uint32_t n = 0; n < count; n++) {
        low = ids[n] < low ? ids[n] : low;
        high = ids[n] > high ? ids[n] : high;
    }
    bounds[0] = low;
    bounds[1] = high;
}

/* Varints of at most 4 bytes, all of one size; and then the tail. */
PH_CLONES static void ph_even_varints(const uint32_t *restrict ids, uint32_t count, uint32_t more, uint64_t tail,
                                      uint64_t *restrict head)
{
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t id = ids[n];
        const uint32_t bits = (id & 0x7F) | (id & 0x3F80) << 1 | (id & 0x1FC000) << 2 | (id & 0xFE00000) << 3 | more;
        head[n] = bits | tail;
    }
}

/* The same of records' heads. */
PH_CLONES static void ph_even_records(const uint32_t *restrict ids, uint32_t count, uint32_t size, uint64_t tail,
                                      uint64_t *restrict head)
{
    if (size == 4)
        for (uint32_t n = 0; n < count; n++)
            head[n] = (0xCD92 | (ids[n] & 0xFF00) << 8 | ids[n] << 24) | tail;
    else if (size == 6)
        for (uint32_t n = 0; n < count; n++)
            head[n] = (uint64_t)__builtin_bswap32(ids[n]) << 16 | 0xCE92 | tail;
    else
        for (uint32_t n = 0; n < count; n++)
            head[n] = ph_record_head(ids[n]) | tail;
}

PH_CLONES static void ph_steps(uint32_t *at, uint32_t count, uint32_t first, uint32_t step)
{
    for (uint32_t n = 0; n < count; n++)
        at[n] = first + n * step;
}

/* Writes what stands before the fields: the heads, and a tail (at most 8 bytes) that is the same for all. Then
   come `fields` bytes. Returns where the entries end; up to 8 bytes beyond may be written. */
static char *ph_put_heads(char *restrict out, ph_run *restrict run, int record, uint64_t tail, uint32_t tail_size,
                          uint32_t fields)
{
    const uint32_t count = run->count;
    uint32_t bounds[2], size, at = 0;
    run->fields = fields;
    ph_bounds(run->id, count, bounds);
    size = record ? ph_record_head_size(bounds[0]) : ph_varint_size(bounds[0]);
    if (size == (record ? ph_record_head_size(bounds[1]) : ph_varint_size(bounds[1])) && (record || size < 5)) {
        const uint32_t whole = size + tail_size, step = whole + fields;
        if (record)
            ph_even_records(run->id, count, size, tail << 8 * size, run->head);
        else
            ph_even_varints(run->id, count, 0x808080u & ((1u << (8 * size - 8)) - 1), tail << 8 * size, run->head);
        run->step = step;
        run->size = whole;
        for (uint32_t n = 0; n < count; n++)
            memcpy(out + (size_t)n * step, run->head + n, 8);
        if (whole > 8)
            for (uint32_t n = 0; n < count; n++)
                memcpy(out + (size_t)n * step + size, &tail, 8);
        return out + (size_t)count * step;
    }
    run->step = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t id = run->id[n];
        const uint64_t head = record ? ph_record_head(id) : ph_varint(id);
        memcpy(out + at, &head, 8);
        run->head_size[n] = record ? ph_record_head_size(id) : ph_varint_size(id);
        at += run->head_size[n];
        memcpy(out + at, &tail, 8);
        at += tail_size;
        run->head_size[n] += tail_size;
        run->at[n] = at;
        at += fields;
    }
    return out + at;
}

/* Tells by row where each entry is, the first of which begins at `base`, and how long it is. */
static inline void ph_put_pieces(const ph_run *run, uint32_t base, uint32_t *restrict offset, uint32_t *restrict size)
{
    const uint32_t count = run->count, first = run->row[0];
    if (run->step && run->straight) {
        ph_steps(offset + first, count, base, run->step);
        ph_steps(size + first, count, run->step, 0);
        return;
    }
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t row = ph_row(run, n);
        size[row] = run->step ? run->step : run->head_size[n] + run->fields;
        offset[row] = base + (run->step ? n * run->step : run->at[n] - run->head_size[n]);
    }
}

/* Columns. `out` is where the field of the entry would be whose `at` is 0. */

static inline size_t ph_at(const ph_run *run, uint32_t n)
{
    return run->step ? run->size + (size_t)n * run->step : run->at[n];
}

#define PH_PUT(NAME, TYPE)                                                                                   \
    static inline void NAME(char *restrict out, const ph_run *restrict run, const char *restrict column)     \
    {                                                                                                        \
        const uint32_t count = run->count, step = run->step;                                                 \
        const TYPE *values = (const TYPE *)column;                                                           \
        if (step && run->straight) {                                                                         \
            values += run->row[0];                                                                           \
            out += run->size;                                                                                \
            for (uint32_t n = 0; n < count; n++)                                                             \
                memcpy(out + (size_t)n * step, values + n, sizeof(TYPE));                                    \
        } else {                                                                                             \
            for (uint32_t n = 0; n < count; n++)                                                             \
                memcpy(out + ph_at(run, n), values + ph_row(run, n), sizeof(TYPE));                          \
        }                                                                                                    \
    }

PH_PUT(ph_put_1, uint8_t)
PH_PUT(ph_put_2, uint16_t)
PH_PUT(ph_put_4, uint32_t)
PH_PUT(ph_put_8, uint64_t)

/* Two columns of four bytes, one behind the other, as x and y are. */
static inline void ph_put_4_4(char *restrict out, const ph_run *restrict run, const char *restrict one,
                              const char *restrict other)
{
    const uint32_t count = run->count, step = run->step;
    const uint32_t *a = (const uint32_t *)one, *b = (const uint32_t *)other;
    if (run->straight && step) {
        a += run->row[0];
        b += run->row[0];
        out += run->size;
        for (uint32_t n = 0; n < count; n++) {
            const uint64_t both = a[n] | (uint64_t)b[n] << 32;
            memcpy(out, &both, 8);
            out += step;
        }
        return;
    }
    ph_put_4(out, run, one);
    ph_put_4(out + 4, run, other);
}

/* The field of a type whose bytes are those in memory. */
static inline void ph_put_column(char *out, const ph_run *run, const char *column, uint32_t size)
{
    switch (size) {
    case 1:
        ph_put_1(out, run, column);
        break;
    case 2:
        ph_put_2(out, run, column);
        break;
    case 4:
        ph_put_4(out, run, column);
        break;
    default:
        ph_put_8(out, run, column);
    }
}

/* Quantised values, which are sent as their step, in one byte or two. */
static inline void ph_put_steps(char *restrict out, const ph_run *restrict run, const char *restrict column,
                                uint32_t size, double lo, double hi, double steps)
{
    const uint32_t count = run->count;
    for (uint32_t n = 0; n < count; n++) {
        const double value = ((const double *)column)[ph_row(run, n)];
        const uint16_t step = (uint16_t)floor((value - lo) / (hi - lo) * steps + 0.5);
        memcpy(out + ph_at(run, n), &step, 2 - (size == 1));
    }
}

#endif
