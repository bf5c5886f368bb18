//! From rounds to figures: paired ratios, and how sure they are.

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

const RESAMPLES: usize = 10_000;

/// The geometric mean of ratios that were each taken within one round, with a bootstrap interval over the rounds.
pub(crate) fn paired(ratios: &[f64]) -> Option<Estimate> {
    let logs: Vec<f64> = ratios.iter().filter(|ratio| ratio.is_finite() && **ratio > 0.0).map(|r| r.ln()).collect();
    if logs.is_empty() {
        return None;
    }
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut pick = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        logs[(random % logs.len() as u64) as usize]
    };
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| (0..logs.len()).map(|_| pick()).sum::<f64>() / logs.len() as f64).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((means.len() - 1) as f64 * share) as usize].exp();
    let value = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    Some(Estimate { value, low: at(0.025), high: at(0.975) })
}

/// The value that this share of all are not above.
pub(crate) fn quantile(sorted: &[u32], share: f64) -> u32 {
    match sorted.len() {
        0 => 0,
        n => sorted[((n - 1) as f64 * share).round() as usize],
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_lies_in_its_interval_and_equal_rounds_are_certain() {
        let estimate = paired(&[1.0, 1.1, 0.9, 1.05, 1.2, 1.0]).unwrap();
        assert!(estimate.low < estimate.value && estimate.value < estimate.high, "{estimate:?}");
        let certain = paired(&[2.0; 12]).unwrap();
        assert!((certain.low - 2.0).abs() < 1e-9 && (certain.high - 2.0).abs() < 1e-9);
        assert_eq!(paired(&[]), None);
    }

    #[test]
    fn quantiles_and_medians() {
        let sorted: Vec<u32> = (1..=101).collect();
        assert_eq!((quantile(&sorted, 0.5), quantile(&sorted, 0.99)), (51, 100));
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), 2.5);
    }
}
