// ozaki/crt.cuh -- from residues of sums to entries of the product, by CRT in two words of FP64, whose units INT8 products leave idle.
// Exactness  the high words' sums are exact (moduli.split_weight); one rounding when the fraction is scaled
// Source     arXiv:2504.08009, section 3
#pragma once
#include "ozaki/ozaki.cuh"

// high and low + integer, scaled by the product of the moduli; rounded once but for terms of 2^-100
__device__ __forceinline__ double scaled_fraction(double high, double low, const Scheme& scheme) {
    const double fraction = high - rint(high);  // exact
    const double sum = fraction + low, part = sum - fraction;
    const double rest = (fraction - (sum - part)) + (low - part);
    return __fma_rn(sum, scheme.product_high, __fma_rn(sum, scheme.product_low, rest * scheme.product_high));
}

// exact: 1024 + value for a value from 0 to 1023, given 1024 times it added to kThousand: no conversion, and the bias is the same
// for every modulus, so that the sums start less it
constexpr int kThousand = 0x40900000;
__device__ __forceinline__ double biased_double(int high) { return __hiloint2double(high, 0); }

// Residues of four columns by one modulus, as they were loaded, into the four sums of each.
struct Sums {
    double re_high[4], re_low[4], im_high[4], im_low[4];
    __device__ explicit Sums(const Scheme& scheme) {
#pragma unroll
        for (int i = 0; i < 4; ++i) re_high[i] = scheme.offset[0], re_low[i] = scheme.offset[1], im_high[i] = scheme.offset[2], im_low[i] = scheme.offset[3];
    }
    __device__ __forceinline__ void add(unsigned plus, unsigned minus, const Modulus& m) {
        plus ^= 0x80808080u, minus ^= 0x80808080u;  // residues + 128
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int a = __byte_perm(plus, 0, 0x4404 | i << 4), b = __byte_perm(minus, 0, 0x4404 | i << 4);  // times 256
            const int middle = a * 4 + (kThousand + (256 << 10));
            const double sum = biased_double(middle + b * 4), difference = biased_double(middle - b * 4);
            re_high[i] = __fma_rn(sum, m.re_high, re_high[i]);
            re_low[i] = __fma_rn(sum, m.re_low, re_low[i]);
            im_high[i] = __fma_rn(difference, m.im_high, im_high[i]);
            im_low[i] = __fma_rn(difference, m.im_low, im_low[i]);
        }
    }
};
