//! A figure over several runs.

/// The middle of several values, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) lower_quartile: f64,
    pub(crate) upper_quartile: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` of no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted = Vec::from_iter(values);
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        // Between the two nearest values where none is exactly there.
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        Some(Self { median: at(0.5), lower_quartile: at(0.25), upper_quartile: at(0.75), least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_quarters_lie_between_the_ends() {
        assert_eq!(Spread::of([]), None);
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("there are values");
        assert_eq!((spread.least, spread.median, spread.most), (1.0, 2.5, 4.0));
        assert_eq!((spread.lower_quartile, spread.upper_quartile), (1.75, 3.25));
    }
}
