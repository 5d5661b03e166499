/* Loops of sync.pyx over what one client holds and sees.

   Most words of these bitmaps have a bit or two, which no branch predictor can follow. So each word is taken
   apart by the same few steps, whatever is in it, and what these wrote too much is written over by the next. */

#ifndef PLAYHALL_SIGHTS_H
#define PLAYHALL_SIGHTS_H

#include <stdint.h>
#include <string.h>

#include "scans.h"

static inline void ph_put_row(uint32_t *to, uint32_t row, uint64_t bits)
{
    row += (uint32_t)__builtin_ctzll(bits);
    /* Seen by the compiler as one store each: gathering them into a vector takes longer. */
    *(volatile uint32_t *)to = row;
}

/* Write the rows in `seen`, `held` and `told`, in order, and the words in which `seen` and `held` differ. Needs
   space for 4 rows and one word more than it writes. Returns how many rows; `*differing`: how many words. */
PH_CLONES static size_t ph_split(const uint64_t *seen, const uint64_t *held, const uint64_t *told,
                                 uint32_t words, uint32_t *rows, uint32_t *differ, size_t *differing)
{
    const uint64_t top = (uint64_t)1 << 63; /* so that there is always a lowest bit */
    size_t n = 0, d = 0;
    for (uint32_t word = 0; word < words; word++) {
        uint64_t s = seen[word], h = held[word], kept = s & h & told[word];
        uint32_t row = word << 6, *to = rows + n;
        differ[d] = word;
        d += s != h;
        n += (size_t)__builtin_popcountll(kept);
        ph_put_row(to, row, kept | top);
        kept &= kept - 1;
        ph_put_row(to + 1, row, kept | top);
        kept &= kept - 1;
        ph_put_row(to + 2, row, kept | top);
        kept &= kept - 1;
        for (to += 3; kept; kept &= kept - 1)
            *to++ = row + (uint32_t)__builtin_ctzll(kept);
    }
    *differing = d;
    return n;
}

/* Write the words in which two bitmaps differ. Needs space for one more. */
static inline size_t ph_differing(const uint64_t *a, const uint64_t *b, uint32_t words, uint32_t *differ)
{
    size_t d = 0;
    for (uint32_t word = 0; word < words; word++) {
        differ[d] = word;
        d += a[word] != b[word];
    }
    return d;
}

/* What is copied has 16 bytes of padding behind it, as there is where it goes. */
static inline char *ph_copy_piece(char *to, const char *piece, uint32_t size)
{
    /* Most have less than 16 bytes, and one move without a branch is faster than a call. */
    memcpy(to, piece, 16);
    if (__builtin_expect(size > 16, 0))
        memcpy(to + 16, piece + 16, size - 16);
    return to + size;
}

/* Copy the pieces of rows, one behind the other. */
static inline char *ph_copy_pieces(char *to, const char *data, const uint32_t *at, const uint32_t *size,
                                   const uint32_t *rows, size_t count)
{
    for (size_t n = 0; n < count; n++)
        to = ph_copy_piece(to, data + at[rows[n]], size[rows[n]]);
    return to;
}

#endif
