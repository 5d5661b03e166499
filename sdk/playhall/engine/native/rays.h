/* Places between two moments, and how far they are from a ray: loops over doubles without branches.

   gcc makes these loops vectors. Their results are those of the pure twin to the bit, so that products and sums
   may not be fused: see -ffp-contract in build_native.py. */

#ifndef PLAYHALL_RAYS_H
#define PLAYHALL_RAYS_H

#include "scans.h"

PH_CLONES static void ph_copy_f32(const float *restrict column, uint32_t size, double *restrict out)
{
    for (uint32_t n = 0; n < size; n++)
        out[n] = column[n];
}

/* NaN, which is what there is between infinities, is the earlier value. */
PH_CLONES static void ph_blend_f32(const float *restrict earlier, const float *restrict later, uint32_t size,
                                   double fraction, double *restrict out)
{
    for (uint32_t n = 0; n < size; n++) {
        const double a = earlier[n], value = a + (later[n] - a) * fraction;
        out[n] = (float)(value == value ? value : a);
    }
}

PH_CLONES static void ph_blend_f64(const double *restrict earlier, const double *restrict later, uint32_t size,
                                   double fraction, double *restrict out)
{
    for (uint32_t n = 0; n < size; n++) {
        const double a = earlier[n], value = a + (later[n] - a) * fraction;
        out[n] = value == value ? value : a;
    }
}

/* How far along a ray each place is, and the square of how far beside it. Zeros are added for the sign of a zero,
   which is the pure twin's so. */
PH_CLONES static void ph_measure_2d(const double *restrict x, const double *restrict y, uint32_t size,
                                    const double *restrict start, const double *restrict unit, double *restrict along,
                                    double *restrict beside)
{
    const double ox = start[0], oy = start[1], ux = unit[0], uy = unit[1];
    for (uint32_t n = 0; n < size; n++) {
        const double a = x[n] - ox, b = y[n] - oy, far = a * ux + b * uy + 0.0;
        const double c = a - far * ux, d = b - far * uy;
        along[n] = far;
        beside[n] = c * c + d * d;
    }
}

PH_CLONES static void ph_measure_3d(const double *restrict x, const double *restrict y, const double *restrict z,
                                    uint32_t size, const double *restrict start, const double *restrict unit,
                                    double *restrict along, double *restrict beside)
{
    const double ox = start[0], oy = start[1], oz = start[2], ux = unit[0], uy = unit[1], uz = unit[2];
    for (uint32_t n = 0; n < size; n++) {
        const double a = x[n] - ox, b = y[n] - oy, c = z[n] - oz, far = a * ux + b * uy + c * uz + 0.0;
        const double d = a - far * ux, e = b - far * uy, f = c - far * uz;
        along[n] = far;
        beside[n] = d * d + e * e + f * f;
    }
}

#endif
