//! Vectors of passages in memory, and the nearest of them.
//!
//! All of them are looked at, so what is found is what is nearest, and not nearly so. A pass over 28,000 vectors of 384 numbers is
//! a matter of milliseconds; what bounds it is the memory they take: their count times their length times 4 bytes.

use std::collections::HashSet;

/// Sums that are kept side by side, so that the compiler may use a vector register for them.
const LANES: usize = 8;

/// The vector of length 1 that points where this one does; `None` where it points nowhere.
pub(crate) fn normalised(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a part of the vector's length is at most 1")]
    vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    Some(vector)
}

/// A vector as it is kept: its numbers one after the other, little-endian.
pub(crate) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The vectors of passages, all of one length and normalised.
#[derive(Debug, Clone)]
pub(crate) struct VectorMatrix {
    dimensions: usize,
    /// A row for each passage, one after the other.
    numbers: Vec<f32>,
    places: Vec<Place>,
}

/// Whose vector a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) passage: i64,
    pub(crate) document: i64,
}

impl VectorMatrix {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self { dimensions, numbers: Vec::new(), places: Vec::new() }
    }

    /// How many vectors there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How long they are.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Takes room for so many more.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.numbers.reserve_exact(count.saturating_mul(self.dimensions));
        self.places.reserve_exact(count);
    }

    /// Adds a vector as it is kept. One of another length is left out.
    pub(crate) fn push(&mut self, place: Place, bytes: &[u8]) {
        let (numbers, rest) = bytes.as_chunks::<4>();
        if numbers.len() == self.dimensions && rest.is_empty() {
            self.numbers.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            self.places.push(place);
        }
    }

    /// Leaves the vectors of those passages and no other.
    pub(crate) fn retain(&mut self, stays: impl Fn(i64) -> bool) {
        let mut kept = 0;
        let places = std::mem::take(&mut self.places);
        self.places = places
            .into_iter()
            .enumerate()
            .filter(|(row, place)| {
                let stays = stays(place.passage);
                if stays {
                    let from = row * self.dimensions;
                    self.numbers.copy_within(from..from + self.dimensions, kept * self.dimensions);
                    kept += 1;
                }
                stays
            })
            .map(|(_, place)| place)
            .collect();
        self.numbers.truncate(kept * self.dimensions);
    }

    /// The passages nearest to a normalised vector with their cosine, best first, of those documents where some are named.
    pub(crate) fn nearest(
        &self,
        vector: &[f32],
        limit: usize,
        documents: Option<&HashSet<i64>>,
    ) -> Vec<(i64, f32)> {
        if vector.len() != self.dimensions || self.dimensions == 0 || limit == 0 {
            return Vec::new();
        }
        let rows = self.places.iter().zip(self.numbers.chunks_exact(self.dimensions));
        let mut near: Vec<(i64, f32)> = rows
            .filter(|(place, _)| documents.is_none_or(|documents| documents.contains(&place.document)))
            .map(|(place, row)| (place.passage, dot(row, vector)))
            .collect();
        // The earlier one where two are as near, so that the order is the same each time.
        let order =
            |(one, near): &(i64, f32), (other, far): &(i64, f32)| far.total_cmp(near).then(one.cmp(other));
        if near.len() > limit {
            near.select_nth_unstable_by(limit, order);
            near.truncate(limit);
        }
        near.sort_unstable_by(order);
        near
    }
}

/// The sum of the products. In one sum, the order of its additions would keep the compiler from making several at once.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let ((ones, one_rest), (others, other_rest)) = (one.as_chunks::<LANES>(), other.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (one, other) in ones.iter().zip(others) {
        for (sum, (one, other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            *sum += one * other;
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(vectors: &[&[f32]]) -> VectorMatrix {
        let mut matrix = VectorMatrix::new(vectors[0].len());
        matrix.reserve(vectors.len());
        for (passage, vector) in (0..).zip(vectors) {
            let bytes = to_bytes(&normalised(vector.to_vec()).unwrap());
            matrix.push(Place { passage, document: passage / 2 }, &bytes);
        }
        matrix
    }

    fn passages(found: &[(i64, f32)]) -> Vec<i64> {
        found.iter().map(|(passage, _)| *passage).collect()
    }

    #[test]
    fn p6_the_nearest_come_first_with_their_cosine() {
        let matrix = matrix(&[&[1.0, 0.0], &[3.0, 3.0], &[0.0, -2.0], &[-1.0, 0.1], &[10.0, 0.0]]);
        let query = normalised(vec![5.0, 0.0]).unwrap();
        let found = matrix.nearest(&query, 3, None);
        assert_eq!(passages(&found), [0, 4, 1]);
        assert!((found[0].1 - 1.0).abs() < 1e-6 && (found[2].1 - 0.5_f32.sqrt()).abs() < 1e-6, "{found:?}");
        assert_eq!(passages(&matrix.nearest(&query, 9, None)), [0, 4, 1, 2, 3]);
        assert_eq!(passages(&matrix.nearest(&query, 1, None)), [0]);
        assert_eq!(passages(&matrix.nearest(&query, 9, Some(&HashSet::from([1])))), [2, 3]);
        assert_eq!(matrix.nearest(&query, 0, None), []);
    }

    #[test]
    fn p6_vectors_of_another_length_are_not_compared() {
        let mut matrix = matrix(&[&[1.0, 0.0]]);
        assert_eq!(matrix.nearest(&[1.0], 5, None), []);
        assert_eq!(matrix.nearest(&[1.0, 0.0, 0.0], 5, None), []);
        for bytes in [&[][..], &[0; 4], &[0; 9], &[0; 12]] {
            matrix.push(Place { passage: 9, document: 9 }, bytes);
        }
        assert_eq!((matrix.len(), matrix.dimensions()), (1, 2));
        assert_eq!(VectorMatrix::new(0).nearest(&[], 5, None), []);
    }

    #[test]
    fn p6_what_points_nowhere_is_no_vector() {
        for vector in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
            assert_eq!(normalised(vector.clone()), None, "{vector:?}");
        }
        let huge = normalised(vec![f32::MAX, f32::MAX]).unwrap();
        assert!((huge[0] - 0.5_f32.sqrt()).abs() < 1e-6, "{huge:?}");
    }

    #[test]
    fn p6_rows_that_go_leave_the_others_in_place() {
        let mut matrix = matrix(&[&[1.0, 0.0], &[0.0, 1.0], &[-1.0, 0.0], &[0.0, -1.0]]);
        matrix.retain(|passage| passage % 2 == 1);
        assert_eq!(matrix.len(), 2);
        assert_eq!(matrix.nearest(&[0.0, 1.0], 5, None), [(1, 1.0), (3, -1.0)]);
        matrix.retain(|_| false);
        assert_eq!((matrix.len(), matrix.nearest(&[0.0, 1.0], 5, None).len()), (0, 0));
    }

    #[test]
    fn p6_a_product_is_the_same_in_lanes() {
        for length in [1_u8, 7, 8, 9, 31, 100] {
            let one: Vec<f32> = (0..length).map(f32::from).collect();
            let other: Vec<f32> = (0..length).map(|number| f32::from(number % 5)).collect();
            let plain: f32 = one.iter().zip(&other).map(|(one, other)| one * other).sum();
            assert!((dot(&one, &other) - plain).abs() < 1e-2, "{length}");
        }
    }
}
