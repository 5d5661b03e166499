/* Loops of gridlook.pyx over what a grid has, in the order of its cells. */

#ifndef PLAYHALL_LOOKS_H
#define PLAYHALL_LOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "scans.h"

/* What a loop goes through: positions by axis, `z` NULL where there are two axes, and whose they are. */
typedef struct {
    const double *x, *y, *z;
    const uint32_t *slot;
} ph_places;

static size_t ph_within_plain(const ph_places *p, uint32_t k, uint32_t end, const double *at, double far,
                              uint32_t *hits, size_t n)
{
    for (; k < end; k++) {
        const double dx = at[0] - p->x[k], dy = at[1] - p->y[k];
        double square = dx * dx + dy * dy;
        if (p->z) {
            const double dz = at[2] - p->z[k];
            square += dz * dz;
        }
        hits[n] = p->slot[k];
        n += square <= far;
    }
    return n;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx512f,avx512vl"))) static size_t ph_within_512(const ph_places *p, uint32_t k,
                                                                        uint32_t end, const double *at,
                                                                        double far, uint32_t *hits, size_t n)
{
    const __m512d x = _mm512_set1_pd(at[0]), y = _mm512_set1_pd(at[1]), z = _mm512_set1_pd(p->z ? at[2] : 0);
    const __m512d most = _mm512_set1_pd(far);
    for (; k < end; k += 8) {
        const __mmask8 some = end - k < 8 ? (__mmask8)((1u << (end - k)) - 1) : 0xFF;
        const __m512d dx = _mm512_sub_pd(x, _mm512_maskz_loadu_pd(some, p->x + k));
        const __m512d dy = _mm512_sub_pd(y, _mm512_maskz_loadu_pd(some, p->y + k));
        __m512d square = _mm512_add_pd(_mm512_mul_pd(dx, dx), _mm512_mul_pd(dy, dy));
        if (p->z) {
            const __m512d dz = _mm512_sub_pd(z, _mm512_maskz_loadu_pd(some, p->z + k));
            square = _mm512_add_pd(square, _mm512_mul_pd(dz, dz));
        }
        const __mmask8 near = _mm512_mask_cmp_pd_mask(some, square, most, _CMP_LE_OQ);
        const __m256i slots = _mm256_maskz_loadu_epi32(some, p->slot + k);
        _mm256_storeu_si256((__m256i *)(hits + n), _mm256_maskz_compress_epi32(near, slots));
        n += (size_t)__builtin_popcount(near);
    }
    return n;
}
#endif

/* Write behind the `n` hits there are the slots of those from `k` to `end` that are no further from a point
   than a distance, of which `far` is the square. Needs space for 8 more than there can be. Returns how many
   hits there are then. */
static inline size_t ph_within(const ph_places *p, uint32_t k, uint32_t end, const double *at, double far,
                               uint32_t *hits, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512vl")) {
        const size_t hit = ph_within_512(p, k, end, at, far, hits, n);
#ifndef __SANITIZE_ADDRESS__
        return hit;
#else
        /* The sanitized tests run what other processors run, too. */
        if (hit != ph_within_plain(p, k, end, at, far, hits, n))
            __builtin_trap();
#endif
    }
#endif
    return ph_within_plain(p, k, end, at, far, hits, n);
}

#endif
