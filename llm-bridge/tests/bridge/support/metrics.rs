//! Reads what `/metrics` answers as strictly as the text format has it, and compares it with the table of the documentation:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.
#![allow(dead_code, missing_docs, missing_debug_implementations, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// A family as the documentation has it: type, labels, help.
pub struct Documented {
    kind: String,
    labels: BTreeSet<String>,
    help: String,
}

/// The table of `docs/metrics.md`, by name.
pub fn documented() -> BTreeMap<String, Documented> {
    let row = |line: &str| {
        let cells = line.strip_prefix("| `toolrack_")?.strip_suffix(" |")?;
        let mut cells = cells.split(" | ").map(|cell| cell.trim().replace('`', ""));
        let name = format!("toolrack_{}", cells.next()?);
        let (kind, labels, help) = (cells.next()?, cells.next()?, cells.next()?);
        let labels = labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        Some((name, Documented { kind, labels, help }))
    };
    include_str!("../../../../docs/metrics.md").lines().filter_map(row).collect()
}

#[derive(Debug, Default)]
pub struct Scraped {
    /// The families that have samples.
    pub families: BTreeSet<String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Scraped {
    /// All of an answer.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n') && !text.contains('\r'), "lines end with a line feed");
        let (mut scraped, documented) = (Self::default(), documented());
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let (name, help) =
                line.strip_prefix("# HELP ").unwrap_or_else(|| panic!("{line}")).split_once(' ').unwrap();
            let known = documented.get(name).unwrap_or_else(|| panic!("{name} is not documented"));
            assert_eq!(lines.next(), Some(&*format!("# TYPE {name} {}", known.kind)));
            assert_eq!(help, known.help);
            assert!(scraped.families.insert(name.to_owned()), "{name} comes twice");
            let mut has_samples = false;
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                scraped.sample(line, name, known);
                has_samples = true;
            }
            assert!(has_samples, "{name} has no samples");
        }
        scraped.check_histograms(&documented);
        scraped
    }

    #[track_caller]
    fn sample(&mut self, line: &str, family: &str, known: &Documented) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let (name, mut labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest)),
            None => (series, Labels::new()),
        };
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let key = (name.to_owned(), labels.clone());
        if known.kind == "histogram" {
            let part = name.strip_prefix(family).unwrap();
            assert!(["_bucket", "_sum", "_count"].contains(&part), "{line}");
            assert_eq!(labels.remove("le").is_some(), part == "_bucket", "{line}");
        } else {
            assert_eq!(name, family, "{line}");
        }
        assert_eq!(labels.into_keys().collect::<BTreeSet<_>>(), known.labels, "{line}");
        assert!(self.samples.insert(key, value).is_none(), "a series comes twice: {line}");
    }

    /// Buckets hold those before them, and the last is all.
    #[track_caller]
    fn check_histograms(&self, documented: &BTreeMap<String, Documented>) {
        for (name, _) in documented.iter().filter(|(_, known)| known.kind == "histogram") {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), value) in
                self.samples.iter().filter(|((sample, _), _)| *sample == format!("{name}_bucket"))
            {
                let mut labels = labels.clone();
                let bound = labels.remove("le").unwrap().replace("+Inf", "inf").parse().unwrap();
                series.entry(labels).or_default().push((bound, *value));
            }
            for (labels, mut buckets) in series {
                buckets.sort_by(|one, two| one.0.total_cmp(&two.0));
                assert!(
                    buckets.is_sorted_by(|one, two| one.0 < two.0 && one.1 <= two.1),
                    "{name} {buckets:?}"
                );
                let last = buckets.last().unwrap();
                let count = self.samples[&(format!("{name}_count"), labels.clone())];
                assert_eq!(*last, (f64::INFINITY, count), "{name} {labels:?}");
                assert!(self.samples.contains_key(&(format!("{name}_sum"), labels)));
            }
        }
    }

    /// The sum of the series of a name that have these labels, among others; `None` where there is no such series.
    pub fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has =
            |of: &Labels| labels.iter().all(|(label, value)| of.get(*label).is_some_and(|of| of == value));
        let found: Vec<f64> = self
            .samples
            .iter()
            .filter(|((of, own), _)| of == name && has(own))
            .map(|(_, value)| *value)
            .collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }

    /// The same, as a whole number; 0 where there is no such series.
    #[track_caller]
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let sum = self.find(name, labels).unwrap_or_default();
        assert!(sum.fract() == 0.0, "{name} {labels:?} {sum}");
        sum as u64
    }

    /// The values that a label has.
    pub fn values(&self, name: &str, label: &str) -> BTreeSet<&str> {
        let of_name = self.samples.keys().filter(|(of, _)| of == name);
        of_name.filter_map(|(_, labels)| labels.get(label)).map(String::as_str).collect()
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }
}

/// What stands between the braces.
#[track_caller]
fn labels(text: &str) -> Labels {
    let mut labels = Labels::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && !name.is_empty(),
            "{text}"
        );
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap_or_else(|| panic!("{text}")) {
                (at, '"') => break at,
                (_, '\\') => match characters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    escaped @ ('\\' | '"') => value.push(escaped),
                    other => panic!("\\{other} in {text}"),
                },
                (_, other) => value.push(other),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} comes twice: {text}");
        rest = match after[end + 1..].split_at(1) {
            ("}", "") => return labels,
            (",", rest) => rest,
            _ => panic!("{text}"),
        };
    }
}
