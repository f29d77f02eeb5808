//! Semantic versions.

use std::cmp::Ordering;

use semver::Version;

/// Which of two versions has precedence, by the rules of <https://semver.org>; what stands behind a `+` does not count.
/// `None` where one of them is no semantic version.
///
/// ```
/// use std::cmp::Ordering;
/// use registry_core::compare_versions;
///
/// assert_eq!(compare_versions("1.10.0", "1.9.0"), Some(Ordering::Greater));
/// assert_eq!(compare_versions("2.0.0-rc.1", "2.0.0"), Some(Ordering::Less));
/// assert_eq!(compare_versions("spring", "1.0.0"), None);
/// ```
pub fn compare_versions(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (Version::parse(one).ok()?, Version::parse(other).ok()?);
    Some(one.cmp_precedence(&other))
}

/// Whether a version is the older of two. What cannot be compared is not.
pub(crate) fn is_older(version: Option<&str>, than: Option<&str>) -> bool {
    version.zip(than).and_then(|(version, than)| compare_versions(version, than)) == Some(Ordering::Less)
}
