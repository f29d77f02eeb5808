//! The names that may have been meant.

/// A longer name is none that somebody has or meant to write, and comparing it would take long.
const LONGEST: usize = 128;

/// The names most like one, best first, at most three.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let wanted = plain(name);
    let last = |name: &str| name.rsplit_once('.').map_or(name.to_owned(), |(_, last)| last.to_owned());
    let wanted_last = plain(&last(name));
    let mut scored: Vec<(f64, &str)> = names
        .filter(|known| known.len() <= LONGEST)
        .map(|known| {
            let whole = strsim::jaro_winkler(&wanted, &plain(known));
            // A name with a forgotten or wrong module is the likeliest slip.
            let tail = strsim::jaro_winkler(&wanted_last, &plain(&last(known)));
            (whole.max(tail * 0.99), known)
        })
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, known)| *known);
    scored.into_iter().take(3).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, nearest};

    #[test]
    fn the_likeliest_comes_first() {
        let known = ["research.web_search", "research.fetch_webpage", "calculate", "current_time"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("web_search"), ["research.web_search"]);
        assert_eq!(near("search.web-serch").first(), Some(&"research.web_search"));
        assert_eq!(near("calculator").first(), Some(&"calculate"));
        assert!(nearest(&"x".repeat(1 << 20), known.into_iter()).is_empty());
        let long = format!("a{}", "b".repeat(LONGEST));
        assert!(nearest("abbb", [long.as_str()].into_iter()).is_empty());
        assert!(near("delete_everything").is_empty(), "{:?}", near("delete_everything"));
    }
}
