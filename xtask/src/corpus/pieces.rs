//! How a case is cut into pieces.

/// One way of cutting a text.
#[derive(Debug)]
pub(super) struct Cutting {
    /// How it is spoken of.
    pub(super) name: &'static str,
    /// The characters of each piece, as JSON; the last repeats, and null is one piece.
    pub(super) sizes: String,
}

/// The ways a case is cut. The random ones are the same in every run.
pub(super) fn cuttings(id: &str, input: &str) -> [Cutting; 6] {
    let mut dice = Dice::new(id);
    let cut = |name, sizes: &str| Cutting { name, sizes: sizes.to_owned() };
    let length = input.chars().count();
    [
        cut("whole", "null"),
        cut("in pieces of 1", "1"),
        cut("in pieces of 3", "3"),
        cut("in pieces of 7", "7"),
        cut("in small pieces", &format!("{:?}", dice.sizes(length, 5))),
        cut("in large pieces", &format!("{:?}", dice.sizes(length, 60))),
    ]
}

/// A small generator of numbers.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn new(seed: &str) -> Self {
        // FNV-1a: texts that differ a little begin far apart.
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// From 1 to as many as it has sides.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1) + 1
    }

    /// Sizes of pieces that make up a text of this length.
    fn sizes(&mut self, length: usize, largest: u64) -> Vec<u64> {
        let mut sizes = vec![self.roll(largest)];
        while sizes.iter().sum::<u64>() < length as u64 {
            sizes.push(self.roll(largest));
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_cuts_are_the_same_in_every_run_and_cover_the_text() {
        let first = Dice::new("a").sizes(500, 5);
        assert_eq!(first, Dice::new("a").sizes(500, 5));
        assert_ne!(first, Dice::new("b").sizes(500, 5));
        assert!(first.iter().sum::<u64>() >= 500);
        for size in 1..=5 {
            assert!(first.contains(&size), "{size}");
        }
        assert!(first.iter().all(|size| (1..=5).contains(size)));
    }
}
