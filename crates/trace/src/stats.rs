//! Summary statistics of a list of numbers. All return `None` where the figure is undefined (empty
//! list, zero mean, too few values) instead of NaN.

/// Jain's fairness index (sum x)^2 / (n * sum x^2): 1 when all shares are equal, 1/n when one takes
/// all. R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination for
/// Resource Allocation in Shared Computer Systems", DEC-TR-301, 1984. `None` if all are zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    // Scaled by the largest, so that squares neither overflow nor vanish.
    let largest = shares.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let sum: f64 = shares.iter().map(|x| x / largest).sum();
    let squares: f64 = shares.iter().map(|x| (x / largest) * (x / largest)).sum();
    finite(sum * sum / (shares.len() as f64 * squares))
}

/// Arithmetic mean; `None` of no values, or if it is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    finite(values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1 in the denominator), of at least two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    finite(libm::sqrt(squares(values)? / (values.len() - 1) as f64))
}

/// Population standard deviation (n in the denominator): what `ping` prints as mdev.
pub fn population_deviation(values: &[f64]) -> Option<f64> {
    finite(libm::sqrt(squares(values)? / values.len() as f64))
}

/// Sum of the squares of the differences from the mean.
fn squares(values: &[f64]) -> Option<f64> {
    // Two passes: no cancellation for values far from zero.
    let m = mean(values)?;
    Some(values.iter().map(|x| (x - m) * (x - m)).sum())
}

/// Coefficient of variation: standard deviation over mean. Of a throughput sampled over time it is
/// the smoothness measure of S. Floyd, M. Handley, J. Padhye, J. Widmer, "Equation-Based Congestion
/// Control for Unicast Applications", SIGCOMM 2000, section 4.1.2.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let m = mean(values)?;
    if m == 0.0 {
        return None;
    }
    finite(standard_deviation(values)? / m)
}

/// The `p`-quantile (0..=1) with linear interpolation between closest ranks: definition 7 of R. J.
/// Hyndman, Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50(4),
/// 1996; the default of NumPy and R. Sorts the list (NaN last).
pub fn percentile(values: &mut [f64], p: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let below = libm::floor(position);
    let i = (below as usize).min(last);
    let (a, b) = (values[i], values[(i + 1).min(last)]);
    finite(a + (b - a) * (position - below))
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jain_of_equal_shares_is_one_and_of_a_monopoly_one_over_n() {
        assert_eq!(jain_index(&[5.0; 4]), Some(1.0));
        assert_eq!(jain_index(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        // The example of the report: k of n users share equally, the index is k/n.
        assert_eq!(jain_index(&[1.0, 1.0, 1.0, 0.0]), Some(0.75));
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn deviation_and_variation() {
        let v = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&v), Some(5.0));
        assert!((standard_deviation(&v).unwrap() - 2.138_089_935).abs() < 1e-9);
        assert!((coefficient_of_variation(&v).unwrap() - 0.427_617_987).abs() < 1e-9);
        assert_eq!(population_deviation(&v), Some(2.0));
        assert_eq!(population_deviation(&[1.0]), Some(0.0));
        assert_eq!(population_deviation(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[-1.0, 1.0]), None);
    }

    #[test]
    fn percentiles_interpolate_like_numpy() {
        let mut v = [15.0, 20.0, 35.0, 40.0, 50.0];
        assert_eq!(percentile(&mut v, 0.4), Some(29.0));
        assert_eq!(percentile(&mut v, 0.0), Some(15.0));
        assert_eq!(percentile(&mut v, 1.0), Some(50.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_over_n_and_one(v in prop::collection::vec(0.0..1e200f64, 1..30)) {
            if let Some(j) = jain_index(&v) {
                prop_assert!(j <= 1.0 + 1e-9 && j >= 1.0 / v.len() as f64 - 1e-9);
            }
        }
    }
}
