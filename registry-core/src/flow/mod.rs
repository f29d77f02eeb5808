//! Information flow: what the calls of a turn have read, and what a later call would do with it.
//!
//! A tool says what its results hold ([`Reads`]) and where its arguments go ([`Sends`]). What a turn has read marks it ([`HasRead`]).
//! A call that would send private data outside, or act after untrusted text was read, is asked about, refused or allowed, as the
//! [`FlowRules`] have it.

mod decide;
mod has_read;
mod words;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

pub(crate) use decide::Concern;
pub use has_read::{HasRead, TurnFlow};

/// One thing that a result may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Mark {
    /// Data of the user, or of others who have not published it.
    Private,
    /// Text that somebody else wrote and nobody has checked, such as a web page or a mail.
    Untrusted,
}

/// What the results of a tool may hold: private data, untrusted text, both or neither.
///
/// ```
/// use registry_core::flow::Reads;
///
/// assert_eq!(Reads::PRIVATE.and(Reads::UNTRUSTED).to_string(), "private, untrusted");
/// assert!(Reads::NOTHING.is_nothing());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Mark>", into = "Vec<Mark>")]
pub struct Reads {
    /// Data of the user, or of others who have not published it: files, mails, documents, what a person's own systems say.
    pub private: bool,
    /// Text that somebody else wrote and nobody has checked: web pages, mails, documents from elsewhere.
    pub untrusted: bool,
}

impl Reads {
    /// Neither: a calculation, a clock, the operator's own text.
    pub const NOTHING: Self = Self { private: false, untrusted: false };
    /// Private data.
    pub const PRIVATE: Self = Self { private: true, untrusted: false };
    /// Untrusted text.
    pub const UNTRUSTED: Self = Self { private: false, untrusted: true };
    /// Private data and untrusted text.
    pub const BOTH: Self = Self { private: true, untrusted: true };

    /// What is in either.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { private: self.private || other.private, untrusted: self.untrusted || other.untrusted }
    }

    /// Whether it is neither.
    pub const fn is_nothing(self) -> bool {
        !self.private && !self.untrusted
    }

    fn marks(self) -> impl Iterator<Item = Mark> {
        let private = self.private.then_some(Mark::Private);
        private.into_iter().chain(self.untrusted.then_some(Mark::Untrusted))
    }
}

impl From<Vec<Mark>> for Reads {
    fn from(marks: Vec<Mark>) -> Self {
        Self { private: marks.contains(&Mark::Private), untrusted: marks.contains(&Mark::Untrusted) }
    }
}

impl From<Reads> for Vec<Mark> {
    fn from(reads: Reads) -> Self {
        reads.marks().collect()
    }
}

/// The words, with commas: `private, untrusted`; nothing for neither.
impl std::fmt::Display for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.marks().map(|mark| mark.to_string()).collect();
        f.write_str(&words.join(", "))
    }
}

/// Reads words with commas, as they are written. `nothing` and an empty text are neither.
impl std::str::FromStr for Reads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(str::trim).filter(|word| !matches!(*word, "" | "nothing"));
        let marks: Result<Vec<Mark>, String> = words
            .map(|word| {
                word.parse()
                    .map_err(|_| format!("unknown word `{word}`; the words are private and untrusted"))
            })
            .collect();
        Ok(marks?.into())
    }
}

impl JsonSchema for Reads {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Reads".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Mark>>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Where the arguments of a call go.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_place)]
#[non_exhaustive]
pub enum Sends {
    /// Nowhere but to this server and the operator's own systems.
    Nothing,
    /// To somebody else: a search engine, a web server, a recipient of a mail, a service of another company.
    Outside,
}

impl Sends {
    /// The word, as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_place(text: &str) -> String {
    format!("unknown word `{text}`; the words are nothing and outside")
}

/// What happens to a call that would do what a rule is about.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum FlowRule {
    /// It is made.
    Allow,
    /// A person is asked.
    #[default]
    Ask,
    /// It is not made.
    Refuse,
}

/// What happens to calls, by what their turn has read and what they would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowRules {
    /// The turn has read private data, and the call sends outside.
    pub private_outside: FlowRule,
    /// The turn has read untrusted text, and the call does more than read.
    pub untrusted_acting: FlowRule,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b20_what_is_read_is_written_as_words() {
        for (reads, json) in [
            (Reads::NOTHING, "[]"),
            (Reads::PRIVATE, r#"["private"]"#),
            (Reads::UNTRUSTED, r#"["untrusted"]"#),
            (Reads::BOTH, r#"["private","untrusted"]"#),
        ] {
            assert_eq!(serde_json::to_string(&reads).unwrap(), json);
            assert_eq!(serde_json::from_str::<Reads>(json).unwrap(), reads);
            assert_eq!(reads.to_string().parse::<Reads>().unwrap(), reads);
        }
        assert_eq!("nothing".parse(), Ok(Reads::NOTHING));
        assert!("secret".parse::<Reads>().unwrap_err().contains("private and untrusted"));
        assert!(
            serde_json::from_str::<Reads>(r#"["secret"]"#).unwrap_err().to_string().contains("`private`")
        );
        assert!("away".parse::<Sends>().unwrap_err().contains("nothing and outside"));
    }
}
