//! The table at the end.

use std::fmt;

use crate::{options::Options, target::Figures};

/// How much more than the bare proxy Toolrack may add to the 99th percentile.
const MOST_ADDED: f64 = 1.5;
/// How much memory a stream may take, in KiB.
const MOST_MEMORY: f64 = 60.0;
/// How much of that may be left of a stream, in KiB.
const MOST_KEPT: f64 = 15.0;

pub(crate) struct Report<'f> {
    options: &'f Options,
    figures: &'f [Figures],
}

impl<'f> Report<'f> {
    pub(crate) fn new(options: &'f Options, figures: &'f [Figures]) -> Self {
        Self { options, figures }
    }

    fn named(&self, name: &str) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// What a proxy adds to the 99th percentile of asking directly.
    fn added(&self, figures: &Figures) -> f64 {
        self.named("direct").map_or(f64::NAN, |direct| figures.most - direct.most)
    }

    /// A figure as a multiple of the bare proxy's.
    fn to_bare(&self, figures: &Figures, figure: impl Fn(&Figures) -> f64) -> f64 {
        self.named("bare proxy").map_or(f64::NAN, |bare| figure(figures) / figure(bare))
    }

    /// What is asked of Toolrack, and whether it is so.
    fn targets(&self) -> Vec<(String, bool)> {
        let Some(ours) = self.named("toolrack") else { return Vec::new() };
        let at_most =
            |what: &str, is: f64, most: f64| (format!("{what}: {is:.2}, at most {most}"), is <= most);
        vec![
            at_most(
                "added p99, times the bare proxy's",
                self.to_bare(ours, |one| self.added(one)),
                MOST_ADDED,
            ),
            at_most("memory of a stream, KiB", ours.at_peak, MOST_MEMORY),
            at_most("left of it afterwards, KiB", ours.afterwards, MOST_KEPT),
        ]
    }

    /// Whether every stream came whole. Whether the targets are met depends on what else the machine does.
    pub(crate) fn is_whole(&self) -> bool {
        self.figures.iter().all(|figures| figures.broken == 0)
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, name: &str, cell: impl Fn(&Figures) -> String) -> fmt::Result {
        write!(f, "| {name} |")?;
        self.figures.iter().try_for_each(|figures| write!(f, " {} |", cell(figures)))?;
        writeln!(f)
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { tokens, interval, rounds, .. } = self.options;
        writeln!(
            f,
            "A token every {} ms, {tokens} of them; medians of {rounds} rounds\n",
            interval.as_millis()
        )?;
        self.row(f, "", |one| one.name.to_owned())?;
        self.row(f, "---", |_| "--:".to_owned())?;
        let ms = |microseconds: f64| format!("{:.2}", microseconds / 1e3);
        let proxy = |one: &Figures, cell: String| if one.name == "direct" { String::new() } else { cell };
        self.row(f, "streams at once", |one| one.streams.to_string())?;
        self.row(f, "tokens a second", |one| format!("{:.0}", one.rate))?;
        self.row(f, "time to the first token, p50, ms", |one| ms(one.first))?;
        self.row(f, "latency of a token, p50, ms", |one| ms(one.half))?;
        self.row(f, "latency of a token, p99, ms", |one| ms(one.most))?;
        self.row(f, "added to p99, ms", |one| proxy(one, ms(self.added(one))))?;
        let ratio = |one: &Figures, ratio: f64| proxy(one, format!("{ratio:.2}"));
        self.row(f, "… times the bare proxy", |one| ratio(one, self.to_bare(one, |one| self.added(one))))?;
        self.row(f, "processor time for a token, µs", |one| format!("{:.1}", one.processor))?;
        self.row(f, "… times the bare proxy", |one| ratio(one, self.to_bare(one, |one| one.processor)))?;
        self.row(f, "memory when idle, MiB", |one| format!("{:.0}", one.idle as f64 / 1024.0))?;
        self.row(f, "memory for a stream, KiB", |one| format!("{:.1}", one.at_peak))?;
        self.row(f, "left of it afterwards, KiB", |one| format!("{:.1}", one.afterwards))?;
        self.row(f, "streams that did not come whole", |one| one.broken.to_string())?;
        writeln!(f)?;
        for (target, is_met) in self.targets() {
            writeln!(f, "{target}: {}", if is_met { "met" } else { "missed" })?;
        }
        Ok(())
    }
}
