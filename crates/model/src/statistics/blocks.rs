//! The interval of a ratio of sums over blocks of time: how much was done in a second, or for each
//! unit of work, within one recording.
//!
//! Neighbouring blocks resemble each other, so they are worth fewer independent ones: with a
//! correlation r between neighbours, n (1 - r) / (1 + r) of them (the effective size of an
//! autoregressive series of the first order; Wilks, *Statistical Methods in the Atmospheric
//! Sciences*, 5.2.4). r is estimated within each recording, with its bias of 1/n taken out, and is
//! never taken for negative. The error of a ratio is that of its residuals (Cochran, *Sampling
//! Techniques*, 6.3). What changes from one recording to the next is not in it.

/// Below so many blocks there is no interval.
pub const LEAST_BLOCKS: usize = 4;

/// Blocks that resemble their neighbours more than this say nothing of an interval.
const MOST_CORRELATION: f64 = 0.95;

/// What was done in a block, and in how much of what it is divided by: seconds, units of work.
pub type Block = (f64, f64);

/// A ratio, and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// The sum of what was done over the sum of what it is divided by.
    pub value: f64,
    /// Its standard error; `None` for too few blocks.
    pub error: Option<f64>,
    /// The degrees of freedom of the error.
    pub freedom: f64,
}

impl RatioEstimate {
    /// The ratio of `recordings`, each a series of blocks; `None` where there is nothing to divide
    /// by.
    #[must_use]
    pub fn of(recordings: &[Vec<Block>]) -> Option<Self> {
        let all = || recordings.iter().flatten();
        let (done, by) = all().fold((0.0, 0.0), |(done, by), block| (done + block.0, by + block.1));
        if by <= 0.0 {
            return None;
        }
        let value = done / by;
        let count = all().count();
        let mean = by / count as f64;
        let residual = |block: &Block| (block.0 - value * block.1) / mean;
        let squares: f64 = all().map(|block| residual(block).powi(2)).sum();
        let none = Self { value, error: None, freedom: 0.0 };
        if count < LEAST_BLOCKS {
            return Some(none);
        }
        let neighbours = recordings.iter().flat_map(|blocks| blocks.windows(2));
        let products: f64 = neighbours.map(|pair| residual(&pair[0]) * residual(&pair[1])).sum();
        let seen = if squares > 0.0 { products / squares } else { 0.0 };
        let correlation = (seen + 1.0 / count as f64).clamp(0.0, 1.0);
        if correlation > MOST_CORRELATION {
            return Some(none);
        }
        let effective = count as f64 * (1.0 - correlation) / (1.0 + correlation);
        let variance = squares / (count - 1) as f64;
        Some(Self {
            value,
            error: Some((variance / effective).sqrt()),
            freedom: (effective - 1.0).max(1.0),
        })
    }

    /// The 95 % interval of the difference of `second` from this one.
    #[must_use]
    pub fn difference(&self, second: &Self) -> Option<(f64, f64)> {
        let half = half_width([self.error?, second.error?], [self.freedom, second.freedom]);
        let difference = second.value - self.value;
        Some((difference - half, difference + half))
    }

    /// The 95 % interval of `second` over this one; `None` unless both are above 0.
    #[must_use]
    pub fn quotient(&self, second: &Self) -> Option<(f64, f64)> {
        if self.value <= 0.0 || second.value <= 0.0 {
            return None;
        }
        let relative = [self.error? / self.value, second.error? / second.value];
        let half = half_width(relative, [self.freedom, second.freedom]);
        let quotient = second.value / self.value;
        Some((quotient * (-half).exp(), quotient * half.exp()))
    }
}

/// Half of the interval of a difference of two values with these errors, by Welch's degrees of
/// freedom.
fn half_width(errors: [f64; 2], freedoms: [f64; 2]) -> f64 {
    let [a, b] = errors.map(|error| error * error);
    let sum = a + b;
    if sum <= 0.0 {
        return 0.0;
    }
    let freedom = sum * sum / (a * a / freedoms[0] + b * b / freedoms[1]);
    student(freedom) * sum.sqrt()
}

/// The 97.5 % point of Student's distribution, a little too large between whole degrees of freedom.
fn student(freedom: f64) -> f64 {
    const POINTS: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let whole = freedom.max(1.0).floor() as usize;
    POINTS.get(whole - 1).copied().unwrap_or(1.96 + 2.5 / freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform numbers from a fixed seed.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Near normal, with deviation 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }

        /// Blocks of a second whose rate of `mean` varies by a tenth, each with this correlation to
        /// the one before.
        fn blocks(&mut self, count: usize, mean: f64, correlation: f64) -> Vec<Block> {
            let mut state = self.normal();
            let fresh = (1.0 - correlation * correlation).sqrt();
            (0..count)
                .map(|_| {
                    state = correlation * state + fresh * self.normal();
                    (mean * (1.0 + 0.1 * state), 1.0)
                })
                .collect()
        }
    }

    /// How many of 1,000 intervals of 2 times hold it, and their median width.
    fn coverage(count: usize, correlation: f64) -> (usize, f64) {
        let mut noise = Noise(7);
        let (mut held, mut widths) = (0, Vec::new());
        for _ in 0..1_000 {
            let first = RatioEstimate::of(&[noise.blocks(count, 100.0, correlation)]).unwrap();
            let second = RatioEstimate::of(&[noise.blocks(count, 200.0, correlation)]).unwrap();
            let interval = first.quotient(&second);
            // An interval that is not given is not wrong.
            let (low, high) = interval.unwrap_or((0.0, f64::INFINITY));
            held += usize::from(low <= 2.0 && 2.0 <= high);
            widths.push(high - low);
        }
        widths.sort_by(f64::total_cmp);
        (held, widths[500])
    }

    #[test]
    fn intervals_hold_the_truth_also_where_blocks_resemble_their_neighbours() {
        for (count, correlation, least) in
            [(8, 0.0, 940), (20, 0.0, 940), (20, 0.5, 900), (20, 0.8, 850), (60, 0.8, 900)]
        {
            let (held, width) = coverage(count, correlation);
            assert!(held >= least, "{count} {correlation}: {held}");
            assert!(width < 4.0, "{count} {correlation}: {width} wide");
        }
        // Were blocks taken for independent, this would fall far below.
        assert!(coverage(20, 0.0).1 < coverage(20, 0.8).1 / 1.5);
    }

    #[test]
    fn few_blocks_and_a_rate_that_only_rises_have_no_interval() {
        let three = RatioEstimate::of(&[vec![(1.0, 1.0); 3]]).unwrap();
        assert_eq!((three.value, three.error), (1.0, None));
        let rising: Vec<Block> = (0..40).map(|second| (f64::from(second), 1.0)).collect();
        let estimate = RatioEstimate::of(&[rising]).unwrap();
        let calm = RatioEstimate::of(&[vec![(40.0, 1.0); 40]]).unwrap();
        let wide = estimate.quotient(&calm).is_none_or(|(low, high)| high / low > 2.0);
        assert!(wide, "{estimate:?}");
        assert_eq!(RatioEstimate::of(&[vec![(1.0, 0.0)]]), None);
        assert_eq!(RatioEstimate::of(&[]), None);
    }

    #[test]
    fn what_never_varies_is_known_exactly() {
        let one = RatioEstimate::of(&[vec![(5.0, 2.0); 9]]).unwrap();
        let two = RatioEstimate::of(&[vec![(10.0, 2.0); 9]]).unwrap();
        assert_eq!(one.difference(&two), Some((2.5, 2.5)));
        assert_eq!(one.quotient(&two), Some((2.0, 2.0)));
        let none = RatioEstimate::of(&[vec![(0.0, 2.0); 9]]).unwrap();
        assert_eq!(none.quotient(&two), None);
    }
}
