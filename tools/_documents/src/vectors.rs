//! Vectors as they are kept.

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

/// The vectors of passages, each of length 1, or without numbers where it points nowhere; and how long those are that have some.
pub(crate) fn all_normalised(vectors: Vec<(i64, Vec<f32>)>) -> (Vec<(i64, Vec<f32>)>, usize) {
    let normalise = |(passage, vector)| (passage, normalised(vector).unwrap_or_default());
    let vectors: Vec<(i64, Vec<f32>)> = vectors.into_iter().map(normalise).collect();
    let dimensions = vectors.iter().map(|(_, vector)| vector.len()).max().unwrap_or_default();
    (vectors, dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_a_vector_that_points_nowhere_is_none() {
        for numbers in [&[0.0, 0.0][..], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0], &[]] {
            assert_eq!(normalised(numbers.to_vec()), None, "{numbers:?}");
        }
        assert_eq!(normalised(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        let (vectors, dimensions) = all_normalised(vec![(1, vec![0.0, 2.0]), (2, vec![0.0, 0.0])]);
        assert_eq!((vectors, dimensions), (vec![(1, vec![0.0, 1.0]), (2, Vec::new())], 2));
    }
}
