//! The vectors in an answer of the OpenAI API.

use serde::Deserialize;

#[derive(Deserialize)]
struct Reply {
    data: Vec<Row>,
}

/// How many tokens the texts had; 0 where the reply does not say.
pub(crate) fn tokens(reply: &[u8]) -> u64 {
    #[derive(Default, Deserialize)]
    struct Usage {
        #[serde(default)]
        prompt_tokens: u64,
    }
    #[derive(Deserialize)]
    struct Counted {
        #[serde(default)]
        usage: Usage,
    }
    serde_json::from_slice(reply).map_or(0, |Counted { usage }| usage.prompt_tokens)
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

/// The vectors of a reply in the order of the texts. One that is missing would put all behind it to the wrong text.
pub(crate) fn read(reply: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let Reply { mut data } =
        serde_json::from_slice(reply).map_err(|error| format!("they cannot be read: {error}"))?;
    data.sort_by_key(|row| row.index);
    if !data.iter().map(|row| row.index).eq(0..count) {
        return Err(format!("they are not those of {count} texts, one each"));
    }
    let length = data.first().map_or(0, |row| row.embedding.len());
    if length == 0 && count > 0 {
        return Err("they have no numbers".to_owned());
    }
    for row in &data {
        if row.embedding.len() != length {
            return Err(format!("one has {} numbers and another {length}", row.embedding.len()));
        }
        if !row.embedding.iter().all(|number| number.is_finite()) {
            return Err("one has a number that is too large".to_owned());
        }
    }
    Ok(data.into_iter().map(|row| row.embedding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_vectors_are_read_in_the_order_of_the_texts() {
        let reply = br#"{"object": "list", "model": "m", "usage": {}, "data": [
            {"object": "embedding", "index": 1, "embedding": [0, -1e-3]},
            {"object": "embedding", "index": 0, "embedding": [1.5, 2]}]}"#;
        assert_eq!(read(reply, 2), Ok(vec![vec![1.5, 2.0], vec![0.0, -0.001]]));
        assert_eq!(read(br#"{"data": []}"#, 0), Ok(vec![]));
    }

    #[test]
    fn p6_a_reply_that_is_not_one_vector_for_each_text_is_refused() {
        for (reply, fault) in [
            ("", "cannot be read"),
            ("<html>", "cannot be read"),
            (r#"{"error": "x"}"#, "missing field `data`"),
            (r#"{"data": [{"embedding": [1]}, {"embedding": [1]}]}"#, "missing field `index`"),
            (r#"{"data": [{"index": 0, "embedding": "AAAA"}]}"#, "invalid type: string"),
            (
                r#"{"data": [{"index": 0, "embedding": [[1]]}, {"index": 1, "embedding": [[1]]}]}"#,
                "invalid type",
            ),
            (
                r#"{"data": [{"index": 0, "embedding": [null]}, {"index": 1, "embedding": [1]}]}"#,
                "invalid type: null",
            ),
            (r#"{"data": [{"index": 0, "embedding": [1]}]}"#, "not those of 2 texts"),
            (
                r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#,
                "not those of 2 texts",
            ),
            (
                r#"{"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}"#,
                "not those of 2 texts",
            ),
            (
                r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}"#,
                "not those of 2 texts",
            ),
            (r#"{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}"#, "no numbers"),
            (
                r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}"#,
                "has 2 numbers",
            ),
            (
                r#"{"data": [{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1]}]}"#,
                // Out of range, or too large: serde_json says the one or the other, by its features.
                "number",
            ),
        ] {
            let reported = read(reply.as_bytes(), 2).unwrap_err();
            assert!(reported.contains(fault), "{reply}: {reported}");
        }
    }
}
