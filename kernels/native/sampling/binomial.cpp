// sampling/binomial.cpp -- binomial draws by inversion where few successes are expected, else by acceptance and rejection.
// Source  V. Kachitvichyanukul, B. W. Schmeiser, "Binomial random variate generation", Commun. ACM 31 (1988) 216: BTPE and
//         inversion, in the order of operations of NumPy's distributions.c (random_binomial, random_multinomial).
#include "sampling/binomial.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace qsim {

namespace {

constexpr double kMostInverted = 30;  // expected successes that are still drawn by inversion
constexpr std::size_t kSumBlock = 128;

std::int64_t by_inversion(Stream& stream, std::int64_t n, double p) {
    const double q = 1.0 - p, start = std::exp(n * std::log(q)), mean = n * p;
    const auto bound = static_cast<std::int64_t>(std::min(static_cast<double>(n), mean + 10.0 * std::sqrt(mean * q + 1)));
    std::int64_t successes = 0;
    double chance = start, uniform = stream.uniform();
    while (uniform > chance) {
        ++successes;
        if (successes > bound) {
            successes = 0;
            chance = start;
            uniform = stream.uniform();
        } else {
            uniform -= chance;
            chance = ((n - successes + 1) * p * chance) / (successes * q);
        }
    }
    return successes;
}

// Stirling's correction of log(x!), with `square` = x^2.
double correction(double x, double square) {
    return (13680. - (462. - (132. - (99. - 140. / square) / square) / square) / square) / x / 166320.;
}

// The hat function of one pair (n, r), r <= 1/2, and what its regions need.
struct Hat {
    Hat(std::int64_t trials, double probability) : n(trials), r(probability), q(1.0 - r) {
        const double fm = n * r + r;
        m = static_cast<std::int64_t>(std::floor(fm));
        p1 = std::floor(2.195 * std::sqrt(n * r * q) - 4.6 * q) + 0.5;
        xm = m + 0.5;
        xl = xm - p1;
        xr = xm + p1;
        c = 0.134 + 20.5 / (15.3 + m);
        double a = (fm - xl) / (fm - xl * r);
        left = a * (1.0 + a / 2.0);
        a = (xr - fm) / (xr * q);
        right = a * (1.0 + a / 2.0);
        p2 = p1 * (1.0 + 2.0 * c);
        p3 = p2 + c / left;
        p4 = p3 + c / right;
        nrq = n * r * q;
    }

    // Whether `y` lies under the distribution at height `v` of the hat.
    bool accepts(std::int64_t y, double v) const {
        const std::int64_t k = std::llabs(y - m);
        if (k <= 20 || k >= nrq / 2.0 - 1) {
            const double s = r / q, a = s * (n + 1);
            double f = 1.0;
            for (std::int64_t i = m + 1; i <= y; ++i) f *= (a / i - s);
            for (std::int64_t i = y + 1; i <= m; ++i) f /= (a / i - s);
            return v <= f;
        }
        const double rho = (k / nrq) * ((k * (k / 3.0 + 0.625) + 0.16666666666666666) / nrq + 0.5);
        const double t = -k * k / (2 * nrq), height = std::log(v);
        if (height < t - rho) return true;
        if (height > t + rho) return false;
        const double x1 = y + 1, f1 = m + 1, z = n + 1 - m, w = n - y + 1;
        return height <= xm * std::log(f1 / x1) + (n - m + 0.5) * std::log(z / w) + (y - m) * std::log(w * r / (x1 * q)) +
                             correction(f1, f1 * f1) + correction(z, z * z) + correction(x1, x1 * x1) + correction(w, w * w);
    }

    std::int64_t n, m;
    double r, q, p1, xm, xl, xr, c, left, right, p2, p3, p4, nrq;
};

std::int64_t by_rejection(Stream& stream, std::int64_t n, double p) {
    const Hat hat(n, p);
    for (;;) {
        const double u = stream.uniform() * hat.p4;
        double v = stream.uniform();
        std::int64_t y;
        if (u <= hat.p1) return static_cast<std::int64_t>(std::floor(hat.xm - hat.p1 * v + u));  // the triangle
        if (u <= hat.p2) {  // the parallelograms
            const double x = hat.xl + (u - hat.p1) / hat.c;
            v = v * hat.c + 1.0 - std::fabs(hat.m - x + 0.5) / hat.p1;
            if (v > 1.0) continue;
            y = static_cast<std::int64_t>(std::floor(x));
        } else if (u <= hat.p3) {  // the left tail
            if (v == 0.0) continue;
            y = static_cast<std::int64_t>(std::floor(hat.xl + std::log(v) / hat.left));
            if (y < 0) continue;
            v = v * (u - hat.p2) * hat.left;
        } else {  // the right tail
            if (v == 0.0) continue;
            y = static_cast<std::int64_t>(std::floor(hat.xr - std::log(v) / hat.right));
            if (y > n) continue;
            v = v * (u - hat.p3) * hat.right;
        }
        if (hat.accepts(y, v)) return y;
    }
}

}  // namespace

std::int64_t binomial(Stream& stream, std::int64_t trials, double probability) {
    if (trials == 0 || probability == 0) return 0;
    const bool flipped = !(probability <= 0.5);
    const double p = flipped ? 1.0 - probability : probability;
    const std::int64_t drawn = p * trials <= kMostInverted ? by_inversion(stream, trials, p) : by_rejection(stream, trials, p);
    return flipped ? trials - drawn : drawn;
}

void multinomial(Stream& stream, std::int64_t trials, const double* probabilities, std::size_t size, std::int64_t* counts) {
    std::fill(counts, counts + size, 0);
    double remaining = 1.0;
    for (std::size_t j = 0; j + 1 < size; ++j) {
        counts[j] = binomial(stream, trials, probabilities[j] / remaining);
        trials -= counts[j];
        if (trials <= 0) return;
        remaining -= probabilities[j];
    }
    counts[size - 1] = trials;
}

double pairwise_sum(const double* values, std::size_t size) {
    if (size < 8) {
        double sum = 0;
        for (std::size_t i = 0; i < size; ++i) sum += values[i];
        return sum;
    }
    if (size > kSumBlock) {
        const std::size_t half = size / 2 - size / 2 % 8;
        return pairwise_sum(values, half) + pairwise_sum(values + half, size - half);
    }
    double sums[8];
    std::copy(values, values + 8, sums);
    std::size_t i = 8;
    for (; i + 8 <= size; i += 8)
        for (int j = 0; j < 8; ++j) sums[j] += values[i + j];
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < size; ++i) sum += values[i];
    return sum;
}

}  // namespace qsim
