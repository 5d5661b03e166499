/* Finds the rows of a column whose bits differ from those that were told, 64 rows at a time.

   gcc makes these loops vectors, from -O3 on. From one portable build the processor takes the widest it has. */

#ifndef PLAYHALL_SCANS_H
#define PLAYHALL_SCANS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PH_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PH_CLONES
#endif

/* 64 bytes that are 0 or 1, as bits. */
static inline uint64_t ph_pack(const uint8_t *marks)
{
    uint64_t bits = 0;
    for (int n = 0; n < 8; n++) {
        uint64_t eight;
        memcpy(&eight, marks + 8 * n, 8);
        bits |= ((eight * 0x0102040810204080ULL) >> 56) << (8 * n);
    }
    return bits;
}

#define PH_SCAN(NAME, TYPE)                                                                                  \
    PH_CLONES static int NAME(const TYPE *restrict now, const TYPE *restrict told, size_t rows,              \
                              uint64_t *restrict out)                                                        \
    {                                                                                                        \
        int any = 0;                                                                                         \
        for (size_t first = 0; first < rows; first += 64) {                                                  \
            const TYPE *a = now + first, *b = told + first;                                                  \
            uint64_t bits = 0;                                                                               \
            if (rows - first >= 64) {                                                                        \
                uint8_t marks[64];                                                                           \
                TYPE differ = 0;                                                                             \
                for (int n = 0; n < 64; n++)                                                                 \
                    differ |= a[n] ^ b[n];                                                                   \
                if (differ) {                                                                                \
                    for (int n = 0; n < 64; n++)                                                             \
                        marks[n] = a[n] != b[n];                                                             \
                    bits = ph_pack(marks);                                                                   \
                }                                                                                            \
            } else {                                                                                         \
                for (size_t n = 0; n < rows - first; n++)                                                    \
                    bits |= (uint64_t)(a[n] != b[n]) << n;                                                   \
            }                                                                                                \
            out[first / 64] = bits;                                                                          \
            any |= bits != 0;                                                                                \
        }                                                                                                    \
        return any;                                                                                          \
    }

PH_SCAN(ph_scan_1, uint8_t)
PH_SCAN(ph_scan_2, uint16_t)
PH_SCAN(ph_scan_4, uint32_t)
PH_SCAN(ph_scan_8, uint64_t)

/* Puts a bit for each row that differs into `out`; returns whether there is one. */
static int ph_scan(const char *now, const char *told, size_t width, size_t rows, uint64_t *out)
{
    switch (width) {
    case 1:
        return ph_scan_1((const uint8_t *)now, (const uint8_t *)told, rows, out);
    case 2:
        return ph_scan_2((const uint16_t *)now, (const uint16_t *)told, rows, out);
    case 4:
        return ph_scan_4((const uint32_t *)now, (const uint32_t *)told, rows, out);
    default:
        return ph_scan_8((const uint64_t *)now, (const uint64_t *)told, rows, out);
    }
}

#endif
