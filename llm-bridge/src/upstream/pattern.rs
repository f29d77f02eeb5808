//! Patterns of the names of models.

use serde::Deserialize;

/// The name of a model, or its beginning with a `*` behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelPattern(String);

impl TryFrom<String> for ModelPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.strip_suffix('*').unwrap_or(&text).contains('*') {
            return Err(format!(
                "`{text}` is not the name of a model; write it as clients ask for it, or its beginning with one `*` behind it"
            ));
        }
        Ok(Self(text))
    }
}

impl ModelPattern {
    /// How closely it fits a name, for the choice between several: a name more closely than any beginning, a longer beginning more
    /// closely than a shorter. `None` where it does not fit.
    pub fn fit(&self, model: &str) -> Option<usize> {
        match self.0.strip_suffix('*') {
            Some(begin) => model.starts_with(begin).then_some(begin.len()),
            None => (self.0 == model).then_some(usize::MAX),
        }
    }
}
