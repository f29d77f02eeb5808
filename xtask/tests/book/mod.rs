//! The book: `docs/SUMMARY.md` lists each page once, and no link of a page leads nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::ROOT;

/// The Markdown files of a folder and its folders, relative to the repository.
fn pages(folder: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(Path::new(ROOT).join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = Path::new(folder).join(entry.file_name());
        if entry.path().is_dir() {
            found.extend(pages(path.to_str().unwrap()));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.insert(path);
        }
    }
    found
}

struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// A heading's anchor, as GitHub and mdBook make it; the second of the same name ends in `-1`.
fn anchor(heading: &str, taken: &mut BTreeMap<String, usize>) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    let name: String = kept.collect();
    let count = taken.entry(name.clone()).or_default();
    *count += 1;
    if *count > 1 { format!("{name}-{}", *count - 1) } else { name }
}

fn read(path: &Path) -> Page {
    let text = fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let (mut page, mut taken) = (Page { links: Vec::new(), anchors: BTreeSet::new() }, BTreeMap::new());
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.anchors.extend(heading.take().map(|heading| anchor(&heading, &mut taken)));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string())
            }
            Event::Text(piece) | Event::Code(piece) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&piece);
                }
            }
            _ => {}
        }
    }
    page
}

/// `docs/clients/../http.md` is `docs/http.md`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} is outside of the repository", path.display()),
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn u7_the_summary_lists_each_page_once() {
    let listed: Vec<PathBuf> =
        read(Path::new("docs/SUMMARY.md")).links.iter().map(|link| Path::new("docs").join(link)).collect();
    let mut pages = pages("docs");
    assert!(pages.remove(Path::new("docs/SUMMARY.md")));
    for page in &listed {
        assert!(pages.remove(page), "docs/SUMMARY.md: {} is not there, or listed twice", page.display());
    }
    assert!(pages.is_empty(), "docs/SUMMARY.md lacks {pages:?}");
}

#[test]
fn u7_no_link_of_a_page_is_dead() {
    let mut files = pages("docs");
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from));
    let pages: BTreeMap<PathBuf, Page> = files.into_iter().map(|path| (path.clone(), read(&path))).collect();
    let (mut dead, mut count) = (Vec::new(), 0);
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => plain(&path.parent().unwrap().join(file)),
            };
            count += 1;
            if !Path::new(ROOT).join(&target).exists() {
                dead.push(format!("{}: there is no {link}", path.display()));
            } else if path.starts_with("docs") && !target.starts_with("docs") {
                dead.push(format!("{}: {link} is not in the book, which has docs/ alone", path.display()));
            } else if !fragment.is_empty() && !read(&target).anchors.contains(fragment) {
                dead.push(format!("{}: {} has no heading #{fragment}", path.display(), target.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(count > 300, "{count} links");
}
